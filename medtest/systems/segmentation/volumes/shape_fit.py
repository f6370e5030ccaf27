"""Fit of a shape model to a CT volume: position, intensity and shape of the organ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.systems.segmentation.volumes.shape_model import ShapeModel, sample

Field3: TypeAlias = NDArray[np.float32]
TISSUE = (-50.0, 300.0)
"""Range of an organ's histogram in Hounsfield units."""
_BINS = 70
_WIDTH = 4.0
"""Width of the transition from inside to outside in the fit, millimetres."""
_MOST = 3.0
"""Limit on a voxel's evidence, in both directions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntensityEvidence:
    """Evidence of a voxel's value for the organ: log p(in) - log p(out).

    Attributes:
        level: Organ's typical value, Hounsfield units.
        spread: Its standard deviation.
        ratio: float32 table over :data:`TISSUE`.
    """

    level: float
    spread: float
    ratio: Field3

    def __call__(self, values: NDArray[Any]) -> Field3:
        """Return each value's evidence, float32, within ±3; values outside the table are clipped."""
        low, high = TISSUE
        place = np.clip((values - np.float32(low)) * np.float32(_BINS / (high - low)), 0, _BINS - 1)
        return self.ratio[place.astype(np.int16)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Fitted shape.

    Attributes:
        centre: The model's centre in the volume, millimetres from the outer corner of voxel 0 (z, y, x).
        weights: Standard deviations along each mode.
        distance: float32 on the model's grid, millimetres, negative inside.
        evidence: Evidence model of the organ's values.
    """

    centre: NDArray[np.float64]
    weights: NDArray[np.float64]
    distance: Field3
    evidence: IntensityEvidence


def fit_shape(
    volume: NDArray[Any],
    spacing: Sequence[float],
    model: ShapeModel,
    *,
    expected: tuple[float, float],
    strength: float,
    rounds: int = 4,
) -> Fit:
    """Fit position and shape.

    First the mean shape is placed where, over levels within ``expected``, most of it is as bright as that level and
    most
    of its surroundings are not (a correlation, by Fourier transform); the organ is searched in the patient's right
    half.
    Then the weights b of the modes and a shift minimise
    -a Σ H(-φ_b) ratio + ½ strength Σ b², where H passes from 0 to 1 over some millimetres (L-BFGS), and values are
    learned again from inside and around the shape; both steps alternate.

    Args:
        volume: D×H×W in Hounsfield units; axes z (foot to head), y (front to back), x (right to left).
        spacing: Millimetres per voxel.
        model: The shape model.
        expected: Lowest and highest level of the organ.
        strength: Weight of the prior.
        rounds: Number of alternations.
    """
    small = shrink(volume, spacing, model.spacing)
    centre, level = _locate(small, model, expected)
    weights = np.zeros(len(model.modes))
    distance = model.mean
    evidence = _learn(small, model, centre, distance, level, 16.0)
    for turn in range(rounds):
        field = _window(small, model, centre)
        weights, shift = _minimise(evidence(field), model, weights, strength)
        centre = centre + shift
        distance = shape_of(model, weights)
        if turn + 1 < rounds:
            evidence = _learn(small, model, centre, distance, evidence.level, evidence.spread)
    return Fit(centre=centre, weights=weights, distance=distance, evidence=evidence)


def shape_of(model: ShapeModel, weights: NDArray[np.float64]) -> Field3:
    """Return the signed distance of one shape."""
    return model.mean + np.tensordot(weights.astype(np.float32), model.modes, axes=1)


def shrink(volume: NDArray[Any], spacing: Sequence[float], coarse_spacing: Sequence[float]) -> Field3:
    """Return a volume at a coarser spacing over the same space, each voxel the mean of the area it covers.

    It works slice by slice, so that no second volume of the fine size is created.
    """
    import cv2

    extent = [n * s for n, s in zip(volume.shape, spacing, strict=True)]
    shape = [max(1, round(e / w)) for e, w in zip(extent, coarse_spacing, strict=True)]
    planes = np.zeros(shape, np.float32)
    weight = np.zeros(shape[0])
    ratio = shape[0] / volume.shape[0]
    mode = cv2.INTER_AREA if shape[1] <= volume.shape[1] and shape[2] <= volume.shape[2] else cv2.INTER_LINEAR
    for index, plane in enumerate(volume):
        reduced = cv2.resize(np.asarray(plane, np.float32), (shape[2], shape[1]), interpolation=mode)
        # A slice may overlap two coarse ones: each takes its share.
        low, high = index * ratio, (index + 1) * ratio
        for target in range(int(low), min(shape[0], int(np.ceil(high - 1e-9)))):
            share = min(high, target + 1) - max(low, target)
            planes[target] += np.float32(share) * reduced
            weight[target] += share
    planes /= weight.astype(np.float32)[:, None, None]
    return planes


def _places(model: ShapeModel, centre: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return index coordinates of the model's voxels in the small volume."""
    return [(axis + c) / s - 0.5 for axis, c, s in zip(model.axes(), centre, model.spacing, strict=True)]


def _window(small: Field3, model: ShapeModel, centre: NDArray[np.float64]) -> Field3:
    return sample(small, _places(model, centre), outside=-1000.0)


def _locate(small: Field3, model: ShapeModel, expected: tuple[float, float]) -> tuple[NDArray[np.float64], float]:
    from scipy import fft

    inside = model.mean < 0
    ring = (model.mean >= 4) & (model.mean < 16)
    kernel = inside / max(1, inside.sum()) - 0.6 * ring / max(1, ring.sum())
    shape = [fft.next_fast_len(a + b - 1, real=True) for a, b in zip(small.shape, kernel.shape, strict=True)]
    # Correlation: the kernel is reversed.
    spectrum = fft.rfftn(kernel[::-1, ::-1, ::-1].astype(np.float32), shape)
    body = small > -300
    columns = np.flatnonzero(body.any(axis=(0, 1)))
    middle = (columns[0] + columns[-1]) / 2 if columns.size else small.shape[2] / 2
    best = (-np.inf, (0, 0, 0), 0.0)
    for level in np.arange(expected[0], expected[1] + 1e-6, 8.0):
        bright = np.exp(-0.5 * ((small - np.float32(level)) / np.float32(14)) ** 2)
        score = fft.irfftn(fft.rfftn(bright, shape) * spectrum, shape)
        half = [n // 2 for n in kernel.shape]
        score = score[tuple(slice(h, h + n) for h, n in zip(half, small.shape, strict=True))].copy()
        score[:, :, int(np.ceil(middle)) :] = -np.inf
        place = np.unravel_index(int(score.argmax()), score.shape)
        if score[place] > best[0]:
            best = (float(score[place]), (int(place[0]), int(place[1]), int(place[2])), float(level))
    # Voxel n // 2 of an even kernel is half a voxel beyond its centre.
    shift = [0.5 if n % 2 == 0 else 0.0 for n in kernel.shape]
    centre = [(p + 0.5 - h) * s for p, h, s in zip(best[1], shift, model.spacing, strict=True)]
    return np.array(centre), best[2]


def _learn(
    small: Field3, model: ShapeModel, centre: NDArray[np.float64], distance: Field3, level: float, spread: float
) -> IntensityEvidence:
    """Learn the values deep within the shape, and those of its surroundings."""
    field = _window(small, model, centre)
    core = field[(distance < -8) & (np.abs(field - level) < 4 * spread)]
    if core.size > 50:
        level = float(np.median(core))
        spread = float(np.clip(1.4826 * np.median(np.abs(core - level)), 6.0, 25.0))
    low, high = TISSUE
    edges = np.linspace(low, high, _BINS + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    organ = np.exp(-0.5 * ((centres - level) / spread) ** 2)
    # Vessels and tumours: part of the organ has arbitrary values.
    organ = 0.92 * organ / organ.sum() + 0.08 / _BINS
    around = field[(distance > 5) & (distance < 29)]
    counts, _ = np.histogram(np.clip(around, low, high - 1e-3), bins=edges)
    counts = np.convolve(np.pad(counts, 2, mode="edge"), (0.1, 0.2, 0.4, 0.2, 0.1), mode="valid") + 1.0
    ratio = np.clip(np.log(organ) - np.log(counts / counts.sum()), -_MOST, _MOST)
    return IntensityEvidence(level=level, spread=spread, ratio=ratio.astype(np.float32))


def _minimise(
    evidence: Field3, model: ShapeModel, start: NDArray[np.float64], strength: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the best weights and the best small shift (millimetres), the shift to first order."""
    from scipy import optimize

    count = len(start)
    slopes = np.stack(list(np.gradient(model.mean, *model.spacing))).astype(np.float32)
    # φ(x - shift) = φ - shift · ∇φ; one unit is a voxel.
    basis = np.concatenate([model.modes, -slopes * np.float32(model.spacing[0])]).reshape(count + 3, -1)
    mean, ratio = model.mean.ravel(), evidence.ravel()
    # Neighbouring voxels are correlated: about thirty count as one.
    scale = 1 / 30

    def energy(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        distance = mean + p.astype(np.float32) @ basis
        inside = 1 / (1 + np.exp(np.clip(distance / np.float32(_WIDTH), -30, 30)))
        slope = inside * (1 - inside) * ratio
        prior = np.concatenate([p[:count], 0.2 * p[count:]])
        value = -scale * float(inside @ ratio) + 0.5 * strength * float(p @ prior)
        return value, scale / _WIDTH * (basis @ slope).astype(np.float64) + strength * prior

    bounds = [(-3.0, 3.0)] * count + [(-2.0, 2.0)] * 3
    begin = np.concatenate([start, np.zeros(3)])
    result = optimize.minimize(energy, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return result.x[:count], result.x[count:] * model.spacing[0]
