"""Liver shapes: a training population, and a cohort with evenly spread variability."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import key_generator
from medtest.phantoms.abdomen.shapes import MODES, Field3, Grid3, fitted_liver
from medtest.phantoms.abdomen.variability import Placement, StandardBox, Volume, mean_box

Coefficients: TypeAlias = tuple[float, ...]


MEASURE = Grid3(shape=(54, 52, 72), spacing=(4.0, 5.0, 5.0))
"""Grid for measuring shapes: fine enough for variability to be right within about 0.1 percentage points."""

TRAINING = 30
"""Number of livers in the training population."""

SEARCH = Grid3(shape=(36, 36, 48), spacing=(6.0, 260 / 36, 7.5))
"""Grid for searching shapes of a target variability: coarser, since results are measured again."""

_MOST_ATTEMPTS, _LARGEST, _STEPS = 200, 4.5, 8


def stream(*key: object) -> np.random.Generator:
    """Return the generator of a key."""
    return key_generator(["abdomen", *key])


def training_coefficients(count: int = TRAINING) -> tuple[Coefficients, ...]:
    """Return the fixed shapes of the training population: standard normal coefficients."""
    drawn = stream("training").standard_normal((count, len(MODES)))
    return tuple(tuple(float(c) for c in np.clip(row, -2.5, 2.5)) for row in drawn)


def shape_mask(coefficients: Sequence[float], *, shift: Sequence[float] = (0.0, 0.0, 0.0)) -> Volume:
    """Return a liver in its body as a mask on a grid."""
    return fitted_liver(MEASURE, coefficients, shift=shift) < 0


@lru_cache(maxsize=4)
def box_of_training_livers() -> StandardBox:
    """Return the standard box: mean dimensions of the training population."""
    return mean_box((shape_mask(coefficients), MEASURE.spacing) for coefficients in training_coefficients(TRAINING))


@lru_cache(maxsize=1024)
def draw_liver(
    suite_seed: int, dataset: str, index: int, variability: float, placement: Placement = "centroid"
) -> tuple[Coefficients, tuple[float, ...]]:
    """Return shape and position of a liver of about the requested variability.

    A direction in the space of coefficients and a position in the body are drawn; starting from the mean liver, the
    direction is followed outwards until the variability is reached. Directions that do not reach it within 4.5 standard
    deviations per mode, or whose liver would leave a field of 216 mm, are drawn again.

    Args:
        suite_seed: The suite's seed.
        dataset: The data set's id.
        index: Number of the liver.
        variability: Requested variability, per cent.
        placement: Placement of the standard box.

    Returns:
        The coefficients of its shape (:mod:`medtest.phantoms.abdomen.shapes`), and its displacement from the mean
        position: z, y, x in millimetres.

    Raises:
        ValueError: No such shape was found.
    """
    rng = stream(int(suite_seed), dataset, index, "shape")
    box = box_of_training_livers()
    for _ in range(_MOST_ATTEMPTS):
        direction = rng.standard_normal(len(MODES))
        shift = tuple(float(s) for s in np.clip(rng.standard_normal(3), -2, 2) * (5.0, 3.0, 4.0))
        amount = _reach(direction, shift, variability, box, placement)
        if amount is not None:
            return tuple(float(c) for c in direction * amount), shift
    raise ValueError(f"no liver with a variability of {variability:.2f} % was found in {_MOST_ATTEMPTS} attempts")


def _outside(distance: Field3, box: StandardBox, placement: Placement) -> float:
    """Return variability on the coarse grid, counting voxels at the box's faces in part."""
    share = np.clip(0.5 - distance / np.float32(2.0), 0, 1)
    inside, total = share, float(share.sum())
    for axis, step in enumerate(SEARCH.spacing):
        profile = share.sum(axis=tuple(n for n in range(3) if n != axis))
        place = (np.arange(profile.size) + 0.5) * step
        start = float((place * profile).sum()) / total + (box.offset[axis] if box.offset else 0.0) - box.size[axis] / 2
        if placement == "corner":
            filled = np.flatnonzero(profile > 0.5)
            start = float(filled[0]) * step
        part = np.clip(
            (np.minimum(place + step / 2, start + box.size[axis]) - np.maximum(place - step / 2, start)) / step, 0, 1
        )
        inside = inside * part.reshape([-1 if n == axis else 1 for n in range(3)])
    return 100.0 * (total - float(inside.sum())) / total


def _reach(
    direction: NDArray[np.float64], shift: Sequence[float], target: float, box: StandardBox, placement: Placement
) -> float | None:
    """Return the distance to follow a direction; None if it does not reach the target."""

    def at(amount: float) -> float:
        distance = fitted_liver(SEARCH, [float(c) for c in direction * amount], shift=shift)
        if distance.min() >= 0 or min(distance[0].min(), distance[-1].min()) < 0:
            return np.nan
        return _outside(distance, box, placement)

    longest = _LARGEST / float(np.abs(direction).max())
    steps = np.linspace(0.0, longest, 4)
    below = at(0.0)
    if below > target:
        # The mean liver is already above a very small target: take the nearest shape of this direction.
        offers = [(abs(at(float(a)) - target), float(a)) for a in np.linspace(0.0, longest, 7)[:4]]
        best = min((offer for offer in offers if np.isfinite(offer[0])), default=(np.inf, 0.0))
        return best[1] if best[0] < 0.3 else None
    for low, high in zip(steps[:-1], steps[1:], strict=True):
        above = at(float(high))
        if np.isnan(above):
            return None
        if above > target:
            a, b = float(low), float(high)
            for _ in range(_STEPS):
                middle = (a + b) / 2
                a, b = (middle, b) if at(middle) <= target else (a, middle)
            return (a + b) / 2
    return None
