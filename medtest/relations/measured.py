"""Relation that uses a measured property as scale of uncertainty, without changing the image."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import FollowUp, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import PUBLISHED_SEVERITY, Relation, RelationSettings
from medtest.relations.levels import number


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
