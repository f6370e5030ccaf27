"""Images made for a study: an erased lesion, unnatural colours, outlines for the page."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from medtest.core.cases import Image, Mask
from medtest.relations.controls.erasing import erase


def erase_lesion(image: Image, lesion: Mask, frame: Mask, rng: np.random.Generator) -> Image | None:
    """Return the image with the lesion replaced by tissue, or None if there is no room (:func:`erase`).

    Args:
        image: uint8 H×W×3 RGB.
        lesion: bool H×W.
        frame: bool H×W, the black frame, which provides no tissue.
        rng: Random generator of the direction in which tissue is looked for first.
    """
    return erase(image, lesion, frame, float(rng.random()))


def unnatural(image: Image, frame: Mask) -> Image:
    """Return the image with hues inside the field rotated by 180°, so that tissue becomes blue and green."""
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(np.int64) + 90) % 180
    turned = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    return np.where(frame[..., None], image, turned).astype(np.uint8)


def outlines(mask: Mask | None, tolerance: float = 0.75) -> list[list[list[int]]]:
    """Return a mask's simplified contours as lists of [x, y] in pixels, longest first, at most 40."""
    if mask is None or not mask.any():
        return []
    contours: Any = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)[0]
    simple = [cv2.approxPolyDP(contour, tolerance, True)[:, 0].tolist() for contour in contours]
    return sorted((points for points in simple if len(points) > 2), key=len, reverse=True)[:40]


def png(image: Image) -> bytes:
    """Return a uint8 RGB image as PNG, without metadata."""
    good, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 4])
    if not good:  # pragma: no cover - OpenCV encodes every uint8 image
        raise ValueError("an image could not be encoded")
    return bytes(data.tobytes())
