"""Factors of a seed that may explain failures (report 4.5, RQ4): lesion size, number and place, light, visible area."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.cases import SERIES_KINDS, PreparedSeed

MIN_LESION = 1e-4
"""Smallest part of the image that counts as a lesion of its own; less is noise of a JPEG mask's edge."""


def seed_factors(prepared: PreparedSeed) -> dict[str, float | None]:
    """Return the factor columns that belong to the seed, named as in ``records.SEED_FACTORS``.

    Area is a fraction of the field; the count is of 8-connected regions of at least ``MIN_LESION`` of the image;
    distance is that of the lesions' common centroid from the field's centroid, in radii of the disc that has the
    field's area, both axes measured in pixels of the prepared image; brightness and contrast are mean and standard
    deviation of grey levels (0-255, ITU-R BT.601 luma) in the field; visible area is the field's part of the image.
    The first three are None without a mask, the distance also with an empty one, and all but the visible area are None
    where there is no field. Series (denoising, volumes) have no such factors.
    """
    if prepared.kind in SERIES_KINDS:
        return {}
    field = ~prepared.frame
    pixels = int(np.count_nonzero(field))
    factors: dict[str, float | None] = {
        "factor_polyp_area": None,
        "factor_polyp_count": None,
        "factor_polyp_distance": None,
        "factor_brightness": None,
        "factor_contrast": None,
        "factor_visible_area": pixels / field.size,
    }
    if not pixels:
        return factors
    light = cv2.cvtColor(prepared.image, cv2.COLOR_RGB2GRAY)
    mean, deviation = cv2.meanStdDev(light, mask=field.view(np.uint8))
    factors["factor_brightness"] = float(mean[0, 0])
    factors["factor_contrast"] = float(deviation[0, 0])
    if prepared.mask is None:
        return factors
    lesion = (prepared.mask & field).view(np.uint8)
    area = int(np.count_nonzero(lesion))
    factors["factor_polyp_area"] = area / pixels
    factors["factor_polyp_count"] = float(_count(prepared.mask.view(np.uint8)))
    if area:
        here, centre = _centroid(lesion), _centroid(field.view(np.uint8))
        factors["factor_polyp_distance"] = float(np.hypot(*(here - centre)) / np.sqrt(pixels / np.pi))
    return factors


def _count(mask: NDArray[np.uint8]) -> int:
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    return int(np.count_nonzero(stats[1:, cv2.CC_STAT_AREA] >= max(1.0, MIN_LESION * mask.size)))


def _centroid(
    mask: NDArray[np.uint8],
) -> NDArray[np.float64]:
    moments = cv2.moments(mask, binaryImage=True)
    return np.array([moments["m10"], moments["m01"]]) / moments["m00"]
