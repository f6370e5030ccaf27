"""Keys that people type short: which key of a suite is meant."""

from __future__ import annotations

_WHOLE = {
    "threshold": "oracles.primary.threshold",
    "score": "oracles.primary.score",
    "against": "oracles.primary.against",
    "size": "prepare.size",
    "weights": "checkpoint",
    "gpu": "device",
    "cuda": "device",
}
_PARTS = {
    "relation": "only=relation:ID",
    "severity": "only=severity:N",
    "severities": "only=severity:N, or relations.ID.severities=[1,3]",
    "dataset": "only=dataset:ID",
    "question": "only=question:ID",
    "system": "model=NAME",
    "images": "limit=N",
}


def whole_key(key: str) -> str:
    """Return the whole key that a short one means; any other as it is."""
    return _WHOLE.get(key, key)


def meaning_of(key: str) -> str:
    """Return what to type in the place of a key that no suite and no option has, or ""."""
    if key in _WHOLE:
        return f"type {_WHOLE[key]}=\N{HORIZONTAL ELLIPSIS}"
    return f"type {_PARTS[key]}" if key in _PARTS else ""
