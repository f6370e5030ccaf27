"""Names of metrics and params that every MLflow store accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

VALUE_LENGTH = 5900
_KEY_LENGTH = 240
NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_\-./ ]")


def metric_name(name: str) -> str:
    """Return a metric's name restricted to the characters that every MLflow store accepts."""
    return NOT_ALLOWED.sub("_", name)[:_KEY_LENGTH]


def flat_params(covers: Mapping[str, Any]) -> dict[str, str]:
    """Return the content covered by a digest as flat params: ``relations.blur``, ``system.fingerprint.weights``.

    Settings of relations and other parts stay JSON text, so that a run has tens of params instead of hundreds.
    """
    return {
        name: text for key, value in covers.items() for name, text in _flat(key, value, 2 if key == "system" else 1)
    }


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth and isinstance(value, Mapping):
        for inner, entry in value.items():
            yield from _flat(f"{name}.{inner}", entry, depth - 1)
    else:
        yield name, value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def clean_params(params: Mapping[str, str]) -> dict[str, str]:
    """Return params with keys and value lengths that every store accepts."""
    return {NOT_ALLOWED.sub("_", key)[:_KEY_LENGTH]: value[:VALUE_LENGTH] for key, value in params.items()}
