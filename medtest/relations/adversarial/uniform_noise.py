"""Uniform noise of an attack's ε, the baseline for every attack's rate."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import FollowUp, Params, PreparedSeed
from medtest.relations.adversarial.attack import EpsilonLevel, Where, reach
from medtest.relations.base import Relation
from medtest.relations.levels import LeveledSettings, noise_seed, number


class UniformNoiseSettings(LeveledSettings[EpsilonLevel]):
    """Settings of ``uniform_noise``.

    Attributes:
        where: As for the attacks.
    """

    where: Where = "field"


class UniformNoise(Relation):
    """Add a uniform draw from [-ε, ε] to each value, rounded, by at most ⌊ε⌋ levels."""

    Settings = UniformNoiseSettings
    group: ClassVar[str] = "noise"
    beside_attacks: ClassVar[bool] = True
    scale_unit: ClassVar[str] = "ε in levels of 255"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})

    settings: UniformNoiseSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level and a noise seed.

        Raises:
            NotApplicable: ``where`` needs a lesion outline and the seed has none.
        """
        reach(seed, self.settings.where)
        epsilon = self.settings.levels[severity].epsilon
        return {"epsilon": epsilon, "where": self.settings.where, "noise_seed": noise_seed(rng)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Add the noise of the case's seed."""
        epsilon = number(params, "epsilon")
        drawn = np.random.default_rng(int(number(params, "noise_seed"))).uniform(-epsilon, epsilon, seed.image.shape)
        within = math.floor(epsilon + 1e-9)
        levels = np.clip(np.rint(drawn), -within, within).astype(np.int16)
        levels[~reach(seed, str(params["where"]))] = 0
        image = np.clip(seed.image + levels, 0, 255).astype(np.uint8)
        return FollowUp(image=image, params=params, scale=epsilon)
