"""What a picture itself is like: glaring, blurred, bloody. The product's defects depend on it."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.simlab.sight import Traits
from medtest.simlab.view import View

GLARE = 0.30
"""Share of the field with a channel at its limit above which a picture is saturated."""
SHARP = 2.0
"""Fine detail (grey levels) below which a picture is blurred."""
BLOOD = 0.006
"""Share of the field that is dark wet red above which a picture is bloody."""


def traits_of(picture: NDArray[np.uint8], view: View) -> Traits:
    """Return what a picture is like."""
    values = measured(picture, view)
    return Traits(saturated=values[0] > GLARE, blurred=values[1] < SHARP, bloody=values[2] > BLOOD)


def measured(picture: NDArray[np.uint8], view: View) -> tuple[float, float, float]:
    """Return what :func:`traits_of` compares: glare, sharpness, blood."""
    field = view.field
    glare = float((view.rgb[field].max(axis=1) >= 252).mean()) if field.any() else 0.0
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    coarse = cv2.GaussianBlur(grey, (0, 0), 1.0)
    detail = abs(coarse - cv2.GaussianBlur(grey, (0, 0), 2.5))
    inner = cv2.erode(field.astype(np.uint8), np.ones((9, 9), np.uint8))
    inside = cv2.resize(inner, (grey.shape[1], grey.shape[0]), interpolation=cv2.INTER_NEAREST).astype(np.bool_)
    sharp = float(np.percentile(detail[inside], 99.0)) if inside.any() else 0.0
    blood = field & (view.light > 30) & (view.light < 150) & (view.warm > 1.0) & (abs(view.blue) < 0.5)
    return glare, sharp, float(blood.sum()) / max(1, int(field.sum()))
