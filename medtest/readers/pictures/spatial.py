"""Where one box lies relative to another: thresholds are relative to the boxes, so that no size of picture matters."""

from __future__ import annotations

from typing import Final

import numpy as np

from medtest.scenes import Box

OFFSET: Final = 0.1
"""Centres nearer than this share of both boxes' summed sizes, along an axis, are level on it."""
DIRECTION: Final = 0.5
"""What is left of the offset on an axis is above this share of the whole offset where a position is said of it."""
_NOTHING: Final = 1e-6


def relative_positions(one: Box, two: Box, aspect: float = 1.0) -> frozenset[str]:
    """Return how a box lies to another: of ``left of``, ``right of``, ``above``, ``below`` none, one or two.

    GenEval's rule (D. Ghosh et al., NeurIPS 2023; ``relative_position`` of its evaluation/evaluate_images.py, commit
    af4902f): the offset of the centres, on each axis less :data:`OFFSET` of the summed sizes, divided by its length
    before, is above :data:`DIRECTION`.

    Args:
        one: The box of which it is said.
        two: The box that it lies so to.
        aspect: Width of the picture divided by its height: boxes are fractions, directions are those of pixels.
    """
    first, second = (np.array(box, np.float64).reshape(2, 2) * (aspect, 1.0) for box in (one, two))
    offset = first.mean(0) - second.mean(0)
    sizes = np.abs(first[1] - first[0]) + np.abs(second[1] - second[0])
    rest = np.maximum(np.abs(offset) - OFFSET * sizes, 0.0) * np.sign(offset)
    if (np.abs(rest) < _NOTHING).all():
        return frozenset()
    x, y = rest / np.linalg.norm(offset)
    said = {"left of": x < -DIRECTION, "right of": x > DIRECTION, "above": y < -DIRECTION, "below": y > DIRECTION}
    return frozenset(name for name, holds in said.items() if holds)
