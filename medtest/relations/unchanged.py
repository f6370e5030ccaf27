"""Baseline relation that leaves the image or prompt unchanged; failures are a system's self-inconsistency."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import FollowUp, Params, PreparedSeed
from medtest.core.tasks.base import PICTURE, PROMPT
from medtest.relations.base import Relation
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
