"""Random changes of a classifier's training image and its mask: one warp, one colour map, blur and noise.

They are generic and mild, and not taken from medtest's own relations and corruptions, so that a suite still measures
changes on which a network was not trained.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.training.classification.recipe import Changes

Pixels = NDArray[np.uint8]


def changed(
    rng: np.random.Generator, image: Pixels, mask: Pixels, side: int, changes: Changes
) -> tuple[Pixels, Pixels]:
    """Return a changed copy of an image and its mask.

    Args:
        rng: Random number generator.
        image: uint8 S×S×3 RGB.
        mask: uint8 S×S, 0 or 255.
        side: Side of the result.
        changes: The changes.

    Returns:
        uint8 side×side×3 and uint8 side×side, 0 or 255.
    """
    matrix = _warp(rng, image.shape[0], side, changes)
    border = cv2.BORDER_REFLECT_101
    moved = np.asarray(cv2.warpAffine(image, matrix, (side, side), flags=cv2.INTER_LINEAR, borderMode=border), np.uint8)
    moved_mask = cv2.warpAffine(mask, matrix, (side, side), flags=cv2.INTER_NEAREST, borderMode=cv2.BORDER_CONSTANT)
    moved = _coloured(rng, moved, changes)
    if changes.blur > 0:
        sigma = float(rng.uniform(0, changes.blur))
        if sigma > 0.15:
            moved = np.asarray(cv2.GaussianBlur(moved, (0, 0), sigma), np.uint8)
    if changes.noise > 0:
        noise = rng.standard_normal(moved.shape, np.float32) * np.float32(rng.uniform(0, changes.noise))
        moved = np.asarray(cv2.add(moved, noise, dtype=cv2.CV_8U), np.uint8)
    return moved, np.asarray(moved_mask, np.uint8)


def centred(image: Pixels, mask: Pixels, share: float, side: int) -> tuple[Pixels, Pixels]:
    """Return the centre of an image and its mask at ``side``, as in validation and suites."""
    matrix = _matrix(image.shape[0], side, share)
    shown = image if _same(image, side, share) else cv2.warpAffine(image, matrix, (side, side), flags=cv2.INTER_LINEAR)
    small = mask if _same(image, side, share) else cv2.warpAffine(mask, matrix, (side, side), flags=cv2.INTER_NEAREST)
    return np.asarray(shown, np.uint8), np.asarray(small, np.uint8)


def _same(image: Pixels, side: int, share: float) -> bool:
    return share == 1 and image.shape[0] == side


def _matrix(
    was: int,
    side: int,
    share: float,
    *,
    turn: NDArray[np.float64] | None = None,
    shift: tuple[float, float] = (0.0, 0.0),
) -> NDArray[np.float64]:
    """Return the affine map from stored to output pixels: about the centre, shifted by pixels of the stored image."""
    linear = (np.eye(2) if turn is None else turn) * (side / (was * share))
    middle = np.array([(was - 1) / 2 + shift[0], (was - 1) / 2 + shift[1]])
    return np.column_stack([linear, (side - 1) / 2 - linear @ middle])


def _warp(rng: np.random.Generator, was: int, side: int, changes: Changes) -> NDArray[np.float64]:
    """Draw flips, quarter turns, rotation, shear, zoom and the position of the crop as one affine map."""
    angle = np.deg2rad(rng.uniform(-changes.angle, changes.angle)) if changes.angle else 0.0
    if changes.quarter_turns and rng.random() < changes.quarter_turns:
        angle += np.pi / 2 * int(rng.integers(1, 4))
    shear = np.tan(np.deg2rad(rng.uniform(-changes.shear, changes.shear))) if changes.shear else 0.0
    mirror = np.diag(
        [
            -1.0 if changes.flip and rng.random() < changes.flip else 1.0,
            -1.0 if changes.flip_vertical and rng.random() < changes.flip_vertical else 1.0,
        ]
    )
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn = turn @ np.array([[1.0, shear], [0.0, 1.0]]) @ mirror
    turn *= rng.uniform(*changes.zoom)
    room = (1 - changes.crop) * was / 2
    shift = (float(rng.uniform(-room, room)), float(rng.uniform(-room, room))) if room else (0.0, 0.0)
    return _matrix(was, side, changes.crop, turn=turn, shift=shift)


def _coloured(rng: np.random.Generator, image: Pixels, changes: Changes) -> Pixels:
    """Draw contrast, brightness and a shift of each channel, and apply them by a lookup table."""
    if not (changes.brightness or changes.contrast or changes.colour):
        return image
    gain = 1 + rng.uniform(-changes.contrast, changes.contrast)
    shift = rng.uniform(-changes.brightness, changes.brightness) + rng.uniform(-changes.colour, changes.colour, 3)
    middle = image.reshape(-1, 3)[::97].mean(axis=0)
    levels = np.arange(256, dtype=np.float64)[:, None]
    table = np.clip(np.rint((levels - middle) * gain + middle + shift), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(image, table[None]), np.uint8)
