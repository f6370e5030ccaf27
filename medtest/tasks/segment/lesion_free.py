"""Oracle of frames without lesion: false-positive area and regions.

Scores of a case on a frame whose expected mask is empty; other cases have none:

- ``clear``: 1 if the answer has no region of at least :data:`~medtest.tasks.segment.oracle.REGION_FRACTION` of the
  image and marks at most :data:`MOST_AREA` of the field, else 0.
- ``clear_share``: 1 − ``false_area``.
- ``false_area``: marked pixels ÷ pixels of the field of view, at most 1.
- ``false_regions``: 8-connected regions of at least that fraction.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medtest.core.cases import Effect, MaskOutput, Output, PreparedSeed
from medtest.core.oracles.base import Oracle
from medtest.tasks.segment.oracle import count_false_regions

MOST_AREA = 0.005
"""Share of the field that specks may cover together on a clear frame: 1,000 pixels of a round field of 512 × 512."""


class LesionFree(Oracle):
    """Oracle of frames without lesion, without settings; the module's docstring defines the scores."""

    task: ClassVar[str] = "mask"
    scores: ClassVar[tuple[str, ...]] = ("clear", "clear_share", "false_area", "false_regions")
    criteria: ClassVar[tuple[str, ...]] = ("clear", "clear_share")
    references: ClassVar[tuple[str, ...]] = ("truth",)
    revision: ClassVar[int] = 1

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; None where the frame has a lesion or no expected mask."""
        if not isinstance(answer, MaskOutput):
            raise TypeError(f"lesion_free judges masks, not an answer of kind {answer.kind}")
        if seed.mask is None or seed.mask.any():
            return dict.fromkeys(self.scores)
        regions = count_false_regions(answer.mask, seed.mask)
        area = min(1.0, int(np.count_nonzero(answer.mask)) / max(1, int(np.count_nonzero(~seed.frame))))
        return {
            "clear": float(regions == 0 and area <= MOST_AREA),
            "clear_share": 1.0 - area,
            "false_area": area,
            "false_regions": float(regions),
        }
