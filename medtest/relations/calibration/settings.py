"""Settings of a calibrated relation."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

from pydantic import Field, model_validator

from medtest.core.plugins import PartSettings, wrong_at

TOLERANCE = 0.01
"""Largest distance of a follow-up's similarity from its target."""
REVISION = 2
"""Revision of the solver, part of a run's digest: raise it if the same settings give other parameters."""


class Calibration(PartSettings):
    """Targets that replace the severities of a relation.

    Attributes:
        ssim: Structural similarity of a follow-up to its source over the field, one target for each severity: below 1,
            above 0, decreasing.
        parameter: Field of the levels that is solved, or ``level``: a position between levels, where all numbers of the
            levels are interpolated. By default the only number of the levels, ``level`` if there are several.
    """

    ssim: list[float] = Field(min_length=1, max_length=20)
    parameter: str | None = None

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        outside = [target for target in self.ssim if not 0.0 < target < 1.0]
        if outside:
            raise wrong_at("ssim", f"similarities above 0 and below 1; not {outside[0]:g}")
        for higher, lower in pairwise(self.ssim):
            if not lower < higher:
                raise wrong_at("ssim", f"decreasing similarities, the mildest first; {lower:g} comes after {higher:g}")
        return self

    def tolerance(self, target: float) -> float:
        """Return the largest distance of a similarity from a target; smaller beside 1, which needs no change at all."""
        return min(TOLERANCE, (1.0 - target) / 2)
