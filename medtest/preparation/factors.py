"""Factors of a seed that may explain failures (report 4.5, RQ4).

For seeds that expect a mask: lesion size, number and position, light, visible area. For seeds that expect a label or
ask questions: light, sharpness, salient area, lesion size if known, visible area.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask, PreparedSeed
from medtest.core.portable import each
from medtest.core.tasks.base import task_of

MIN_LESION = 1e-4
"""Smallest part of the image that counts as a separate lesion; smaller ones are noise at a JPEG mask's edge."""


SALIENCY_SIDE = 64
"""Side of the image for computing saliency, as in the paper."""


def seed_factors(prepared: PreparedSeed) -> dict[str, float | None]:
    """Return the factor columns of the seed's task; none for a series."""
    return task_of(prepared.kind).border.factors(prepared)


def lesion_factors(prepared: PreparedSeed) -> dict[str, float | None]:
    """Return the factors of a seed that expects a mask, named as in ``records.SEED_FACTORS``.

    Area is a fraction of the field; the count is of 8-connected regions of at least ``MIN_LESION`` of the image;
    distance is that of the lesions' common centroid from the field's centroid, in radii of the disc that has the
    field's area, both axes measured in pixels of the prepared image; brightness and contrast are mean and standard
    deviation of grey levels (0-255, ITU-R BT.601 luma) in the field; visible area is the field's part of the image.
    The first three are None without a mask, the distance also for an empty one, and all but the visible area are None
    without a field.
    """
    field, pixels, light, factors = _of_field(prepared, ("polyp_area", "polyp_count", "polyp_distance"))
    if not pixels or prepared.mask is None:
        return factors
    lesion = (prepared.mask & field).view(np.uint8)
    area = int(np.count_nonzero(lesion))
    factors["factor_polyp_area"] = area / pixels
    factors["factor_polyp_count"] = float(_count(prepared.mask.view(np.uint8)))
    if area:
        lesion_centre, centre = _centroid(lesion), _centroid(field.view(np.uint8))
        factors["factor_polyp_distance"] = float(np.hypot(*(lesion_centre - centre)) / np.sqrt(pixels / np.pi))
    return factors


def picture_factors(prepared: PreparedSeed) -> dict[str, float | None]:
    """Return the factors of a seed that expects a label or asks questions, named as in ``records.LABEL_FACTORS``.

    Brightness and contrast are those of :func:`lesion_factors`. Sharpness is the variance of the Laplacian of grey
    levels in the field (J. L. Pech-Pacheco et al., "Diatom autofocusing in brightfield microscopy", ICPR 2000). The
    salient area is the fraction of the field whose spectral residual exceeds three times its mean (X. Hou, L. Zhang,
    "Saliency detection: a spectral residual approach", CVPR 2007). The lesion's area is a fraction of the field, None
    without a mask.
    """
    field, pixels, light, factors = _of_field(prepared, ("sharpness", "salient_area", "lesion_area"))
    if not pixels:
        return factors
    # The field's edge is not sharpness of the picture, so only pixels with all neighbours in the field count.
    within = cv2.erode(field.view(np.uint8), np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=1)
    if within.any():
        _, spread = cv2.meanStdDev(cv2.Laplacian(light, cv2.CV_64F), mask=within)
        factors["factor_sharpness"] = float(spread[0, 0] ** 2)
    factors["factor_salient_area"] = _salient_area(light, field)
    if prepared.mask is not None:
        factors["factor_lesion_area"] = int(np.count_nonzero(prepared.mask & field)) / pixels
    return factors


def _of_field(
    prepared: PreparedSeed, more: Sequence[str]
) -> tuple[Mask, int, NDArray[np.uint8], dict[str, float | None]]:
    """Return the field, its pixels, grey levels, and factors: light and visible area, and ``more`` as None."""
    field = ~prepared.frame
    pixels = int(np.count_nonzero(field))
    factors: dict[str, float | None] = {f"factor_{name}": None for name in ("brightness", "contrast", *more)}
    factors["factor_visible_area"] = pixels / field.size
    light = np.asarray(cv2.cvtColor(prepared.image, cv2.COLOR_RGB2GRAY), np.uint8)
    if pixels:
        mean, deviation = cv2.meanStdDev(light, mask=field.view(np.uint8))
        factors |= {"factor_brightness": float(mean[0, 0]), "factor_contrast": float(deviation[0, 0])}
    return field, pixels, light, factors


def _salient_area(light: NDArray[np.uint8], field: Mask) -> float:
    """Return the salient fraction of the field; the outside is filled with the mean so that it is not salient."""
    filled = np.where(field, light, np.uint8(round(float(light[field].mean())))).astype(np.uint8)
    small = cv2.resize(filled, (SALIENCY_SIDE, SALIENCY_SIDE), interpolation=cv2.INTER_AREA).astype(np.float64)
    spectrum = np.fft.fft2(small)
    amplitude = each(math.log, np.abs(spectrum) + 1e-9)
    residual = amplitude - cv2.blur(amplitude, (3, 3), borderType=cv2.BORDER_REFLECT)
    turns = np.array([cmath.phase(value) for value in spectrum.ravel().tolist()]).reshape(spectrum.shape)
    raw = np.abs(np.fft.ifft2(np.exp(residual + 1j * turns))) ** 2
    saliency = cv2.GaussianBlur(raw, (0, 0), SALIENCY_SIDE / 25)
    inside = cv2.resize(field.view(np.uint8), (SALIENCY_SIDE, SALIENCY_SIDE), interpolation=cv2.INTER_NEAREST) > 0
    if not inside.any():
        return 0.0
    return float((saliency[inside] > 3 * saliency[inside].mean()).mean())


def _count(mask: NDArray[np.uint8]) -> int:
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    return int(np.count_nonzero(stats[1:, cv2.CC_STAT_AREA] >= max(1.0, MIN_LESION * mask.size)))


def _centroid(mask: NDArray[np.uint8]) -> NDArray[np.float64]:
    moments = cv2.moments(mask, binaryImage=True)
    return np.array([moments["m10"], moments["m01"]]) / moments["m00"]
