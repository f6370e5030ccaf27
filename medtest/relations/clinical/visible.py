"""Relations whose severities leave every lesion visible: each takes the strongest setting that does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np

from medtest.core.cases import FollowUp, Image, Params, PreparedSeed
from medtest.core.errors import LesionInvisible
from medtest.preparation.visibility import keeps_lesion_visible, keeps_recoloured_lesion_visible
from medtest.relations.base import PUBLISHED_SEVERITY, Relation
from medtest.relations.levels import Level, number

STEPS = 8
"""Settings between the level below and a level, the level itself included."""


class VisibleRelation(Relation):
    """Relation that weakens a severity where a lesion would fall below the floors of visibility.

    A weakened setting is stronger than the level below, and its scale is recorded as the parameter ``scale_applied``; a
    severity without such a setting does not apply. Published mode is never weakened.
    """

    @abstractmethod
    def between(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> Callable[[float], dict[str, Any]]:
        """Draw the random numbers of a follow-up; return its parameters as a function of strength.

        Args:
            seed: The prepared source case.
            severity: As in :meth:`~medtest.relations.base.Relation.sample`.
            rng: The case's random generator.

        Returns:
            Parameters with ``scale`` at a share of the way from the level below (0, exclusive) to the level (1).
        """

    @abstractmethod
    def render(self, seed: PreparedSeed, params: Params) -> Image:
        """Return the image of the follow-up, uint8 H×W×3."""

    def check(self, seed: PreparedSeed, params: Params) -> tuple[bool, Image | None]:
        """Return True if the lesions stay visible, and the image if one was rendered."""
        image = self.render(seed, params)
        return keeps_lesion_visible(seed, image), image

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the parameters, weakened as far as the visibility of the lesions demands.

        Raises:
            NotApplicable: Every setting above the level below would hide the lesion.
        """
        return self._strongest(seed, severity, rng)[0]

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Render the follow-up."""
        return FollowUp(image=self.render(seed, params), params=params, scale=number(params, "scale"))

    def follow_up(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> FollowUp:
        """Sample and apply; an image that the check rendered is used again.

        Raises:
            NotApplicable: As in :meth:`sample`.
        """
        params, image = self._strongest(seed, severity, rng)
        if image is None:
            return self.apply(seed, params)
        return FollowUp(image=image, params=params, scale=number(params, "scale"))

    def _strongest(
        self, seed: PreparedSeed, severity: int, rng: np.random.Generator
    ) -> tuple[dict[str, Any], Image | None]:
        between = self.between(seed, severity, rng)
        full = between(1.0)
        if severity == PUBLISHED_SEVERITY:
            return full, None
        for step in range(STEPS, 0, -1):
            params = full if step == STEPS else between(step / STEPS)
            is_visible, image = self.check(seed, params)
            if not is_visible:
                continue
            if params is not full:
                params |= {"scale": full["scale"], "scale_applied": round(float(params["scale"]), 6)}
            return params, image
        raise LesionInvisible


class VisibleRecolouring(VisibleRelation):
    """Relation that changes colours wherever they are, which is checked without rendering."""

    @abstractmethod
    def recolour(self, seed: PreparedSeed, params: Params) -> Callable[[Image], Image]:
        """Return the change of colours, from uint8 H×W×3 to the same."""

    def render(self, seed: PreparedSeed, params: Params) -> Image:
        """Recolour the field; the black frame keeps its bytes."""
        image = self.recolour(seed, params)(seed.image)
        cv2.copyTo(seed.image, seed.frame.view(np.uint8), image)
        return image

    def check(self, seed: PreparedSeed, params: Params) -> tuple[bool, Image | None]:
        """Return True if the lesions stay visible, and no image."""
        return keeps_recoloured_lesion_visible(seed, self.recolour(seed, params)), None


def level_values(
    levels: Mapping[int, Level], severity: int, identity: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of the level below a severity, ``identity`` where there is none, and those of its level."""
    high = levels[severity].model_dump()
    below = max((n for n in levels if n < severity), default=None)
    return dict.fromkeys(high, identity) if below is None else levels[below].model_dump(), high


def interpolate(low: Mapping[str, float], high: Mapping[str, float], share: float) -> dict[str, float]:
    """Return numbers between those of two levels, at a share of the way; ``high`` itself at 1."""
    return {name: value if share == 1.0 else low[name] + share * (value - low[name]) for name, value in high.items()}
