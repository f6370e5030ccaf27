"""Uniform noise of an attack's ε: the floor of every attack's rate, for what noise alone does is no attack's merit."""

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
        where: As of the attacks.
    """

    where: Where = "field"


class UniformNoise(Relation):
    """Add to each value a number drawn uniformly from [-ε, ε], rounded, no further than ⌊ε⌋ levels."""

    Settings = UniformNoiseSettings
    group: ClassVar[str] = "noise"
    beside_attacks: ClassVar[bool] = True
    scale_unit: ClassVar[str] = "ε in levels of 255"
    effects: ClassVar[frozenset[str]] = frozenset({"hide"})

    settings: UniformNoiseSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level and a seed of noise.

        Raises:
            NotApplicable: It is to change the lesion, or what lies beside it, and nobody outlined one.
        """
        reach(seed, self.settings.where)
        epsilon = self.settings.levels[severity].epsilon
        return {"epsilon": epsilon, "where": self.settings.where, "noise_seed": noise_seed(rng)}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Add the noise of the case's own seed."""
        epsilon = number(params, "epsilon")
        drawn = np.random.default_rng(int(number(params, "noise_seed"))).uniform(-epsilon, epsilon, seed.image.shape)
        within = math.floor(epsilon + 1e-9)
        levels = np.clip(np.rint(drawn), -within, within).astype(np.int16)
        levels[~reach(seed, str(params["where"]))] = 0
        image = np.clip(seed.image + levels, 0, 255).astype(np.uint8)
        return FollowUp(image=image, params=params, scale=epsilon)
