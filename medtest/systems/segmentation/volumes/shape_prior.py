"""Automatic segmenter of the liver with a learned shape prior.

Similar to, but not a copy of, MultiVarSeg (Lebre and others 2018), which the (α, σ) paper tests: a shape model learned
from many livers is fitted to the patient's intensities, then the surface follows the intensities nearby.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from medtest.core.cases import Image, ImageSpec, Json
from medtest.core.errors import BadOutput
from medtest.phantoms.abdomen.cohort import MEASURE, shape_mask, training_coefficients
from medtest.phantoms.abdomen.generator import REVISION as PHANTOMS
from medtest.systems.base import Segmenter, SystemSettings
from medtest.systems.segmentation.volumes.regions import largest_part, with_rim
from medtest.systems.segmentation.volumes.shape_fit import Fit, fit_shape
from medtest.systems.segmentation.volumes.shape_model import ShapeModel, learn_shape_model, sample

_SLAB = 8
"""Slices refined at once, to limit memory for tall volumes."""


class ShapePriorSettings(SystemSettings):
    """Settings of the shape prior.

    Attributes:
        shapes: Number of synthetic training livers of the shape model, from a population distinct from any suite.
        modes: Number of principal components.
        strength: Weight of the prior against the intensities.
        band: Maximum distance by which the intensities may move the surface from the fitted shape, millimetres.
        trust: Weight of a voxel's intensity against a millimetre of distance in that band.
        rim: Surface voxels are added if they are within this distance of the liver's level, Hounsfield units.
        lowest: Lowest level of the liver, Hounsfield units.
        highest: Highest level of the liver, Hounsfield units.
    """

    shapes: int = Setting(default=30, ge=5, le=500)
    modes: int = Setting(default=12, ge=1, le=60)
    strength: float = Setting(default=3.0, ge=0.0, le=1000.0)
    band: float = Setting(default=12.0, ge=0.0, le=30.0)
    trust: float = Setting(default=4.0, ge=0.0, le=50.0)
    rim: float = Setting(default=60.0, ge=0.0, le=500.0)
    lowest: float = Setting(default=70.0, ge=-100.0, le=300.0)
    highest: float = Setting(default=160.0, ge=-100.0, le=400.0)


class ShapePrior(Segmenter):
    """Fits a shape model, then lets the surface follow the intensities within a band."""

    Settings: ClassVar[type[SystemSettings]] = ShapePriorSettings
    settings: ShapePriorSettings
    _model: ShapeModel | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def fingerprint(self) -> dict[str, Json]:
        """Return the revision of the phantoms used for the shape model."""
        return {"phantoms": PHANTOMS}

    def open(self, *, device: str, threads: int) -> None:
        """Learn the shape model, which takes about a second."""
        training = [
            (shape_mask(coefficients), MEASURE.spacing) for coefficients in training_coefficients(self.settings.shapes)
        ]
        self._model = learn_shape_model(training, modes=self.settings.modes)

    def close(self) -> None:
        """Release the model."""
        self._model = None

    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Segment one volume (axes z, y, x: foot to head, front to back, right to left)."""
        if self._model is None:
            self.open(device="cpu", threads=1)
        assert self._model is not None  # noqa: S101 - set by open
        if volume.ndim != 3 or len(spec.spacing) != 3:
            raise BadOutput("needs a volume with three axes and the size of its voxels")
        settings = self.settings
        fit = fit_shape(
            volume, spec.spacing, self._model, expected=(settings.lowest, settings.highest), strength=settings.strength
        )
        mask = largest_part(_follow(volume, spec.spacing, self._model, fit, settings.band, settings.trust), fill=True)
        return with_rim(mask, volume, fit.evidence.level, settings.rim)


def _follow(
    volume: NDArray[Any], spacing: Sequence[float], model: ShapeModel, fit: Fit, band: float, trust: float
) -> NDArray[np.bool_]:
    """Return the voxels for which distance to the shape and smoothed evidence together indicate the organ."""
    from scipy import ndimage

    mask = np.zeros(volume.shape, np.bool_)
    places = [
        ((np.arange(n) + 0.5) * s - c) / m + (k - 1) / 2
        for n, s, c, m, k in zip(volume.shape, spacing, fit.centre, model.spacing, model.shape, strict=True)
    ]
    # Only the model's own box can contain the organ.
    low, high = zip(*(_kept(place, side) for place, side in zip(places, model.shape, strict=True)), strict=True)
    if min(h - lo for lo, h in zip(low, high, strict=True)) <= 0:
        return mask
    inner = (slice(low[1], high[1]), slice(low[2], high[2]))
    blur = [1.5 / s for s in spacing]
    margin = int(np.ceil(4 * blur[0]))
    for first in range(low[0], high[0], _SLAB):
        last = min(high[0], first + _SLAB)
        before, after = max(0, first - margin), min(volume.shape[0], last + margin)
        part = np.asarray(volume[(slice(before, after), *inner)], np.float32)
        smooth = ndimage.gaussian_filter(part, blur, mode="nearest")[first - before : last - before]
        distance = sample(fit.distance, [places[0][first:last], places[1][inner[0]], places[2][inner[1]]])
        score = np.float32(trust) * fit.evidence(smooth) - distance
        np.copyto(score, -distance, where=np.abs(distance) > band)
        mask[(slice(first, last), *inner)] = score > 0
    return mask


def _kept(place: NDArray[np.float64], side: int) -> tuple[int, int]:
    inside = np.flatnonzero((place >= 0) & (place <= side - 1))
    return (int(inside[0]), int(inside[-1]) + 1) if inside.size else (0, 0)
