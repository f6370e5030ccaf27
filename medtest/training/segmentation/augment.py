"""Random changes of training pairs: geometry, colour, sharpness.

They are generic and deliberately not medtest's own relations, so that a suite still measures changes on which the
network was not trained: colours are drawn per channel around identity (occasionally with a green or a purple cast, as
from light sources and white balance), exposure changes in both directions, and blur and noise are mild.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """Strength of the changes of training pairs.

    Attributes:
        zoom: Smallest and largest side of the crop, relative to the image's; above 1 shows the image smaller, on black.
        shift: Largest shift of the crop's centre, relative to the image's side.
        tilt: Largest rotation in degrees in addition to the quarter turns.
        colour: Probability of a change of colour.
        cast: Probability of a green or purple cast, given a change of colour.
        blur: Probability of a Gaussian blur of at most 2 pixels.
        noise: Probability of Gaussian noise of at most 10 grey levels.
    """

    zoom: tuple[float, float] = (0.7, 1.1)
    shift: float = 0.15
    tilt: float = 20.0
    colour: float = 0.7
    cast: float = 0.2
    blur: float = 0.1
    noise: float = 0.15


def augment(
    rng: np.random.Generator, image: Pixels, mask: Pixels, *, size: int, changes: Augmentation
) -> tuple[Pixels, Pixels]:
    """Return a changed copy of a pair.

    Args:
        rng: Random number generator.
        image: uint8 S×S×3 RGB.
        mask: uint8 S×S, 0 or 255.
        size: Side of the result.
        changes: Strength of the changes.

    Returns:
        uint8 size×size×3 and uint8 size×size, 0 or 255.
    """
    matrix = _geometry(rng, image.shape[0], size, changes)
    moved = np.asarray(cv2.warpAffine(image, matrix, (size, size), flags=cv2.INTER_LINEAR), np.uint8)
    moved_mask = cv2.warpAffine(mask, matrix, (size, size), flags=cv2.INTER_LINEAR)
    moved = _colour(rng, moved, changes)
    if rng.random() < changes.blur:
        moved = np.asarray(cv2.GaussianBlur(moved, (0, 0), float(rng.uniform(0.4, 2.0))), np.uint8)
    if rng.random() < changes.noise:
        noise = rng.standard_normal(moved.shape, np.float32) * np.float32(rng.uniform(1.0, 10.0))
        moved = np.asarray(cv2.add(moved, noise, dtype=cv2.CV_8U), np.uint8)
    return moved, np.where(moved_mask > 127, 255, 0).astype(np.uint8)


def _geometry(rng: np.random.Generator, side: int, size: int, changes: Augmentation) -> NDArray[np.float64]:
    """Draw a crop, quarter turns, a flip and a small rotation as one affine map from image to result."""
    scale = size / (side * rng.uniform(*changes.zoom))
    angle = np.deg2rad(90.0 * int(rng.integers(4)) + rng.uniform(-changes.tilt, changes.tilt))
    flip = -1.0 if rng.random() < 0.5 else 1.0
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ np.diag([flip, 1.0]) * scale
    middle = (side - 1) / 2 + rng.uniform(-changes.shift, changes.shift, 2) * side
    offset = (size - 1) / 2 - turn @ middle
    return np.column_stack([turn, offset])


def _colour(rng: np.random.Generator, image: Pixels, changes: Augmentation) -> Pixels:
    """Draw exposure, contrast, saturation and a cast, and apply them as one affine map of the three channels."""
    if rng.random() >= changes.colour:
        return image
    gains = rng.uniform(0.88, 1.12, 3) * np.exp(rng.uniform(np.log(0.5), np.log(1.45)))
    if rng.random() < changes.cast:
        weak = rng.uniform(0.5, 0.95)
        gains *= np.array([weak, 1.0, weak]) if rng.random() < 0.5 else np.array([1.0, weak, 1.0])
    saturation = rng.uniform(0.6, 1.4)
    mix = saturation * np.eye(3) + (1.0 - saturation) * np.ones((3, 1)) @ _LUMA[None, :]
    matrix = np.diag(gains) @ mix
    contrast = rng.uniform(0.75, 1.25)
    offset = (1.0 - contrast) * (matrix @ image.reshape(-1, 3)[::37].mean(axis=0))
    affine = np.column_stack([contrast * matrix, offset + rng.uniform(-8, 8)]).astype(np.float32)
    return np.asarray(cv2.transform(image, affine), np.uint8)
