"""Relations that leave the image unchanged: the baseline, and a measured property as scale of uncertainty.

Failures of the baseline are a system's self-inconsistency.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import FollowUp, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.tasks.base import PICTURE, PROMPT
from medtest.relations.base import PUBLISHED_SEVERITY, Relation, RelationSettings
from medtest.relations.levels import number
from medtest.relations.prompts.base import prompted


class Unchanged(Relation):
    """Return the source image; the verdicts are a baseline for every other rate and enter no ``overall`` row."""

    group: ClassVar[str] = "floor"
    effects: ClassVar[frozenset[str]] = frozenset()
    any_image: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({PICTURE, PROMPT})

    def severities(self) -> tuple[int, ...]:
        """Return ``(0,)``, as there are no levels."""
        return (0,)

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw nothing."""
        return {}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Return a copy of the source image, or its prompt, at scale 0."""
        if seed.prompt is None:
            return FollowUp(image=seed.image.copy(), params=dict(params), scale=0.0)
        return prompted(seed, seed.prompt, params, scale=0.0)


class MeasuredSettings(RelationSettings):
    """Settings of ``measured``.

    Attributes:
        property: Name of the property that the seed source measured.
    """

    property: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")


class Measured(Relation):
    """Return the source image; the follow-up's scale is the property's value.

    Vacavant et al., "(α,σ)-robustness", section 4: uncertainty that cannot be added to an image, such as the
    variability of a liver's shape (equation 4), is measured.
    """

    Settings = MeasuredSettings
    group: ClassVar[str] = "measured"
    effects: ClassVar[frozenset[str]] = frozenset()
    any_image: ClassVar[bool] = True

    def severities(self) -> tuple[int, ...]:
        """Return ``(0,)``: a measurement has no levels."""
        return (PUBLISHED_SEVERITY,)

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the property and its value; nothing is drawn.

        Raises:
            NotApplicable: The property was not measured on this seed.
        """
        name = self.settings.property
        if name not in seed.properties:
            measured = ", ".join(sorted(seed.properties)) or "nothing"
            raise NotApplicable(f"{name} was not measured on this seed ({measured} was)")
        return {"property": name, "value": float(seed.properties[name])}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Return the source image itself, at the scale of its property."""
        return FollowUp(image=seed.image, params=params, scale=number(params, "value"))
