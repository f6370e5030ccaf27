"""Oracle of regions in images of any dimension: livers in volumes, moving objects in films.

Scores (``m`` is the answered region, ``y`` the expected one, counted in pixels or voxels):

- ``dice``: 2 |m ∩ y| / (|m| + |y|), which is the F-measure of precision and recall; ``f_measure`` repeats it under the
  name that background subtraction uses.
- ``iou``: |m ∩ y| / |m ∪ y|.
- ``precision``: |m ∩ y| / |m|; ``recall``: |m ∩ y| / |y|.

If both are empty, all are 1. If one is empty, dice and iou are 0; precision of an empty answer and recall of an empty
truth are 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Output, PreparedSeed, RegionOutput
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.tasks.restore.oracle import SeriesSettings


class Regions(Oracle):
    """Oracle of regions; the module's docstring defines the scores."""

    Settings: ClassVar[type[PartSettings]] = SeriesSettings
    task: ClassVar[str] = "region"
    scores: ClassVar[tuple[str, ...]] = ("dice", "iou", "precision", "recall", "f_measure")
    self_scores: ClassVar[tuple[str, ...]] = ("dice",)
    revision: ClassVar[int] = 1

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; ``self_dice`` compares with the answer to the source."""
        if not isinstance(answer, RegionOutput) or not isinstance(source, RegionOutput | None):
            raise TypeError(f"regions judges regions, not an answer of kind {answer.kind}")
        columns: dict[str, float | None] = dict.fromkeys(self.scores)
        columns["self_dice"] = None
        if source is not None:
            columns["self_dice"] = 1.0 if source is answer else overlap(answer.region, source.region)["dice"]
        if seed.mask is not None:
            columns |= overlap(answer.region, seed.mask)
        return columns


def overlap(answered: NDArray[np.bool_], expected: NDArray[np.bool_]) -> dict[str, float]:
    """Return all scores of two regions of one shape."""
    shared = int(np.count_nonzero(answered & expected))
    answered_size, expected_size = int(np.count_nonzero(answered)), int(np.count_nonzero(expected))
    if answered_size + expected_size == 0:
        return dict.fromkeys(Regions.scores, 1.0)
    dice = 2.0 * shared / (answered_size + expected_size)
    return {
        "dice": dice,
        "iou": shared / (answered_size + expected_size - shared),
        "precision": shared / answered_size if answered_size else 0.0,
        "recall": shared / expected_size if expected_size else 0.0,
        "f_measure": dice,
    }
