"""Options of an inspection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from medtest.core.errors import Mistake, UserMistakes, typed_mistake

KEYS = ("layers", "saliency", "embedding", "cases", "figures", "training", "training_cases", "threshold")
_CHOICES = {"saliency": ("gradient", "integrated", "none"), "embedding": ("tsne", "umap", "none")}
_COUNTS = {"cases": 1, "figures": 0, "training_cases": 0}


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Settings of ``medtest inspect``.

    Attributes:
        layers: Layers, published names or the network's own; empty for defaults.
        saliency: ``gradient``, ``integrated`` or ``none``.
        embedding: ``tsne``, ``umap`` or ``none``.
        cases: Maximum number of inspected cases, sources included; seeds are evenly spaced.
        figures: Number of seeds with a sheet.
        training: Suite whose seeds are training images; "" for other clean images of the suite itself.
        training_cases: Maximum number of those images.
        threshold: Least share of answers at which the chord diagram draws a pair of labels, in [0, 1]; None for the
            paper's 3,000 of 22,433.
    """

    layers: tuple[str, ...] = ()
    saliency: str = "gradient"
    embedding: str = "tsne"
    cases: int = 200
    figures: int = 4
    training: str = ""
    training_cases: int = 100
    threshold: float | None = None


def options_of(typed: Mapping[str, str]) -> InspectOptions:
    """Return the typed options.

    Args:
        typed: Values by key of :data:`KEYS`.

    Raises:
        UserMistakes: A value is invalid.
    """
    values: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    for key, text in typed.items():
        try:
            values[key] = _value(key, text)
        except ValueError as error:
            mistakes.append(typed_mistake(key, text, str(error)))
    if mistakes:
        raise UserMistakes(mistakes)
    return InspectOptions(**values)


def _value(key: str, text: str) -> Any:
    if key == "layers":
        names = [name.strip().strip("'\"") for name in text.strip("[] ").split(",")]
        return tuple(name for name in names if name)
    if key in _CHOICES:
        if text not in _CHOICES[key]:
            raise ValueError(", ".join(_CHOICES[key]))
        return text
    if key in _COUNTS:
        if not text.isdigit() or int(text) < _COUNTS[key]:
            raise ValueError(f"a whole number from {_COUNTS[key]}")
        return int(text)
    if key == "threshold":
        try:
            share = float(text)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise ValueError("a share between 0 and 1")
        return share
    return text


assert {option.name for option in fields(InspectOptions)} == set(KEYS)  # noqa: S101 - every key is an option
