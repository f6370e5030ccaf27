"""Traits of a picture: glare, blur, blood. The product's defects depend on them."""

from __future__ import annotations

import cv2
import numpy as np

from medtest.simlab.seeing.sight import PictureTraits
from medtest.simlab.seeing.view import PictureView, brightest

GLARE = 0.42
"""Share of the field with a saturated channel above which a picture is saturated."""
CALM, GRAINY = 1.5, 10.0
"""Limits of fine detail in grey levels.

A picture below them has lost its edges; one above them was taken in motion, with the noise of a short exposure. Both
are blurred.
"""
BLOOD = 0.0062
"""Share of the field with dark wet red above which a picture is bloody."""
_MARGIN = 31


def traits_of(fine: PictureView) -> PictureTraits:
    """Return the traits of a picture at :data:`medtest.simlab.seeing.view.FINE`."""
    glare, detail, blood = measured(fine)
    return PictureTraits(saturated=glare > GLARE, blurred=not CALM <= detail <= GRAINY, bloody=blood > BLOOD)


def measured(fine: PictureView) -> tuple[float, float, float]:
    """Return the values that :func:`traits_of` compares.

    Returns:
        Share of the field with a channel at its limit; median absolute Laplacian in grey levels, away from the frame;
        share of the field that is dark red.
    """
    field = fine.field
    count = max(1, int(field.sum()))
    glare = float((brightest(fine.rgb) >= 252)[field].sum()) / count
    grey = cv2.cvtColor(fine.rgb, cv2.COLOR_RGB2GRAY).astype(np.float32)
    inner = cv2.erode(np.pad(field.astype(np.uint8), 1), np.ones((_MARGIN, _MARGIN), np.uint8))[1:-1, 1:-1].astype(bool)
    detail = float(np.median(abs(cv2.Laplacian(grey, cv2.CV_32F))[inner])) if inner.any() else CALM
    blood = field & (fine.light > 30) & (fine.light < 150) & (fine.warm > 1.0) & (abs(fine.blue) < 0.5)
    return glare, detail, float(blood.sum()) / count
