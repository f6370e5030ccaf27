"""Images made for a study: an erased lesion, unnatural colours, outlines for the page."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask

Bytes: TypeAlias = NDArray[np.uint8]

LARGEST_ERASED = 0.2
"""Largest share of the field that a lesion may cover; beyond it too little tissue is left to replace it."""

_MARGIN = 0.025
_SHIFTS = 24
_FEATHER = 0.012
_EROSION = 3


def erase_lesion(image: Image, lesion: Mask, frame: Mask, rng: np.random.Generator) -> Image | None:
    """Return the image with the lesion replaced by tissue of the same image, or None if there is no room.

    A patch of the lesion's shape is taken from where brightness and colour along its rim match best, and blended in by
    Poisson cloning (P. Pérez, M. Gangnet, A. Blake, 2003, as OpenCV's ``seamlessClone``). If no patch fits, the hole is
    filled by inpainting (A. Telea, 2004) with the tissue's grain.

    Args:
        image: uint8 H×W×3 RGB.
        lesion: bool H×W.
        frame: bool H×W, the black frame, which provides no tissue.
        rng: Random generator of the grain and the tried positions.
    """
    field = ~frame
    area = int(np.count_nonzero(lesion))
    if area == 0 or area > LARGEST_ERASED * max(1, int(np.count_nonzero(field))):
        return None
    hole = _widened(lesion, max(3, round(_MARGIN * image.shape[0]))) & field
    patch = _best_patch(image, hole, field, rng)
    filled = _inpainted(image, hole, rng) if patch is None else _cloned(image, hole, patch)
    soft = cv2.GaussianBlur(hole.astype(np.float32), (0, 0), max(1.0, _FEATHER * image.shape[0]))[..., None]
    keep = np.where(hole[..., None], 1.0, soft) * field[..., None]
    return cast(Image, np.rint(image * (1 - keep) + filled * keep).astype(np.uint8))


def _widened(mask: Mask, radius: int) -> Mask:
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return cv2.dilate(mask.astype(np.uint8), kernel).astype(bool)


def _best_patch(image: Image, hole: Mask, field: Mask, rng: np.random.Generator) -> tuple[int, int] | None:
    """Return the shift (rows, columns) of the best matching tissue, or None."""
    rows, columns = np.nonzero(hole)
    height, width = hole.shape
    rim = _widened(hole, 3) & ~hole
    rim_rows, rim_columns = np.nonzero(rim & field)
    if rim_rows.size == 0:
        return None
    allowed = field & ~_widened(hole, 4)
    rim_colours = image[rim_rows, rim_columns].astype(np.float32)
    extent = max(int(np.ptp(rows)), int(np.ptp(columns))) + 8
    best: tuple[float, tuple[int, int]] | None = None
    for angle in np.linspace(0, 2 * np.pi, _SHIFTS, endpoint=False) + rng.random():
        for factor in (0.7, 1.0, 1.3, 1.7):
            down, right = round(extent * factor * np.sin(angle)), round(extent * factor * np.cos(angle))
            inside = (rows + down >= 0) & (rows + down < height) & (columns + right >= 0) & (columns + right < width)
            if not inside.all() or not allowed[rows + down, columns + right].all():
                continue
            r, c = np.clip(rim_rows + down, 0, height - 1), np.clip(rim_columns + right, 0, width - 1)
            unlike = float(np.abs(image[r, c].astype(np.float32) - rim_colours).mean())
            if best is None or unlike < best[0]:
                best = unlike, (down, right)
    return None if best is None else best[1]


def _cloned(image: Image, hole: Mask, shift: tuple[int, int]) -> Image:
    hole = _widened(hole, _EROSION + 1)  # seamlessClone shrinks its mask
    moved = np.roll(image, (-shift[0], -shift[1]), axis=(0, 1))
    pad = 8  # and it needs a border around the mask
    big = cv2.copyMakeBorder(image, pad, pad, pad, pad, cv2.BORDER_REFLECT)
    source = cv2.copyMakeBorder(moved, pad, pad, pad, pad, cv2.BORDER_REFLECT)
    mask = cv2.copyMakeBorder(hole.astype(np.uint8) * 255, pad, pad, pad, pad, cv2.BORDER_CONSTANT)
    left, top, width, height = cv2.boundingRect(mask)
    centre = (left + width // 2, top + height // 2)
    done = cv2.seamlessClone(source, big, mask, centre, cv2.NORMAL_CLONE)
    return cast(Image, done[pad:-pad, pad:-pad])


def _inpainted(image: Image, hole: Mask, rng: np.random.Generator) -> Image:
    smooth = cv2.inpaint(np.ascontiguousarray(image), hole.astype(np.uint8), 5, cv2.INPAINT_TELEA)
    rim = _widened(hole, max(6, image.shape[0] // 30)) & ~hole
    detail = image.astype(np.float32) - cv2.GaussianBlur(image, (0, 0), 2.0).astype(np.float32)
    spread = float(detail[rim].std()) if rim.any() else 0.0
    grain = cv2.GaussianBlur(rng.normal(size=image.shape[:2]).astype(np.float32), (0, 0), 1.0)
    strength = np.float32(spread / max(1e-6, float(grain.std())))
    noisy = smooth.astype(np.float32) + (strength * grain)[..., None] * hole[..., None]
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


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
