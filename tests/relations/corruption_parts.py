"""Perturbations with settings, seeds to perturb, and frames of sequences, for their tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, FollowUp, PreparedSeed
from medtest.core.plugins import parts
from medtest.relations.corruptions.base import Corruption
from medtest.testing import SUITE_SEED, synthetic_seed

PREFIX = "corruption_"
NAMES = sorted(name for name, info in parts("relations").items() if ".corruptions." in info.target)
TYPES = [name.removeprefix(PREFIX) for name in NAMES]
VARIANTS = ("paper", "released", "imagenet_p")


def built(name: str, **settings: Any) -> Corruption:
    """Return a perturbation by its bare name, with the settings of its YAML file and others."""
    info = parts("relations")[PREFIX + name]
    relation_class = info.load()
    relation: Corruption = relation_class(relation_class.Settings(**{**info.defaults, **settings}))
    return relation


def sequence_of(name: str, variant: str = "paper", **settings: Any) -> Corruption:
    """Return a perturbation in form ``sequence``."""
    return built(name, form="sequence", variant=variant, **settings)


def seed_of(image: NDArray[np.uint8], wide: NDArray[np.uint8] | None = None) -> PreparedSeed:
    """Return a prepared seed of any picture, with or without a wider one."""
    shape = image.shape[:2]
    return replace(
        synthetic_seed(),
        image=np.ascontiguousarray(image),
        wide=wide,
        mask=None,
        original_mask=None,
        frame=np.zeros(shape, np.bool_),
        grey=np.zeros(shape, np.float32),
        _memo={},
    )


def smooth_picture(height: int, width: int, random: int = 0) -> NDArray[np.uint8]:
    """Return a picture of slow waves, so that sub-pixel errors differ from rounding."""
    rng = np.random.default_rng(random)
    rows, columns = np.mgrid[0:height, 0:width]
    planes = []
    for _ in range(3):
        fx, fy, phase = rng.uniform(0.02, 0.12), rng.uniform(0.02, 0.12), rng.uniform(0, 6)
        planes.append(128 + 90 * np.sin(fx * columns + fy * rows + phase))
    return np.rint(np.stack(planes, axis=2)).astype(np.uint8)


def address_of(frame: int = 0, severity: int = 1, repeat: int = 0, seed_id: str = "s0") -> Address:
    """Return an address of a perturbed case."""
    return Address(dataset="d", seed_id=seed_id, relation="x", severity=severity, frame=frame, repeat=repeat)


def frame_params(relation: Corruption, seed: PreparedSeed, frame: int, severity: int = 1) -> dict[str, Any]:
    """Draw the parameters of a frame as the runner does."""
    at = address_of(frame, severity)
    return relation.sample_frame(seed, severity, frame, at.generator(SUITE_SEED), at.sequence_generator(SUITE_SEED))


def frame_of(relation: Corruption, seed: PreparedSeed, frame: int, severity: int = 1) -> FollowUp:
    """Make a frame as the runner does."""
    return relation.apply(seed, frame_params(relation, seed, frame, severity))


def level_of(relation: Corruption, seed: PreparedSeed, severity: int, repeat: int = 0) -> FollowUp:
    """Make a level as the runner does."""
    return relation.follow_up(seed, severity, address_of(0, severity, repeat).generator(SUITE_SEED))
