"""Random changes of a pair in the published trainings: flips, turns, crops, holes, tone, mask borders."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.training.further.recipe import Augment

Pixels = NDArray[np.uint8]


def change(rng: np.random.Generator, image: Pixels, mask: Pixels, augment: Augment) -> tuple[Pixels, Pixels]:
    """Return a changed copy of a pair, of the same side.

    Args:
        rng: Random number generator.
        image: uint8 S×S×3 RGB.
        mask: uint8 S×S, 0 or 255.
        augment: The changes and their probabilities.
    """
    if rng.random() < augment.flip:
        image, mask = image[:, ::-1], mask[:, ::-1]
    if rng.random() < augment.flip_vertical:
        image, mask = image[::-1], mask[::-1]
    if rng.random() < augment.quarter_turns:
        turns = int(rng.integers(1, 4))
        image, mask = np.rot90(image, turns), np.rot90(mask, turns)
    image, mask = np.ascontiguousarray(image), np.ascontiguousarray(mask)
    angle = float(rng.uniform(-augment.angle, augment.angle)) if rng.random() < augment.rotate else 0.0
    zoom = float(rng.uniform(*augment.zoom_range)) if rng.random() < augment.zoom else 1.0
    if angle or zoom != 1.0:
        image, mask = _warp(rng, image, mask, angle, zoom)
    if rng.random() < augment.dropout:
        image = _with_holes(rng, image, augment.holes, augment.hole_side)
    if augment.tone > 0:
        image = _tone(rng, image, augment)
    if rng.random() < augment.morph:
        mask = _morph(rng, mask)
    return image, mask


def _warp(rng: np.random.Generator, image: Pixels, mask: Pixels, angle: float, zoom: float) -> tuple[Pixels, Pixels]:
    """Rotate about the centre and show ``zoom`` times the side, shifted at random as far as the crop allows."""
    side = image.shape[0]
    middle = (side - 1) / 2
    matrix = cv2.getRotationMatrix2D((middle, middle), angle, 1.0 / zoom)
    matrix[:, 2] += rng.uniform(-0.5, 0.5, 2) * abs(1.0 / zoom - 1.0) * side
    moved = cv2.warpAffine(image, matrix, (side, side), flags=cv2.INTER_LINEAR)
    moved_mask = cv2.warpAffine(mask, matrix, (side, side), flags=cv2.INTER_NEAREST)
    return np.asarray(moved, np.uint8), np.asarray(moved_mask, np.uint8)


def _with_holes(rng: np.random.Generator, image: Pixels, holes: int, largest: int) -> Pixels:
    result = image.copy()
    for _ in range(int(rng.integers(1, max(1, holes) + 1))):
        height, width = (int(rng.integers(1, max(1, largest) + 1)) for _ in range(2))
        top = int(rng.integers(0, max(1, image.shape[0] - height)))
        left = int(rng.integers(0, max(1, image.shape[1] - width)))
        result[top : top + height, left : left + width] = 0
    return result


def _tone(rng: np.random.Generator, image: Pixels, changes: Augment) -> Pixels:
    """Raise contrast, sharpness and brightness, each with its probability, by a factor drawn from 1 to the maximum."""
    for kind in ("contrast", "sharpness", "brightness"):
        if rng.random() >= changes.tone:
            continue
        factor = float(rng.uniform(1.0, changes.tone_factor))
        if kind == "contrast":
            grey = float(round(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).mean()))
            image = np.asarray(cv2.addWeighted(image, factor, np.full_like(image, grey), 1.0 - factor, 0.0), np.uint8)
        elif kind == "sharpness":
            smooth = cv2.filter2D(image, -1, np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13)
            image = np.asarray(cv2.addWeighted(image, factor, smooth, 1.0 - factor, 0.0), np.uint8)
        else:
            image = np.asarray(cv2.convertScaleAbs(image, alpha=factor), np.uint8)
    return image


def _morph(rng: np.random.Generator, mask: Pixels) -> Pixels:
    side = int(rng.integers(2, 5))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))
    grown = cv2.dilate(mask, kernel) if rng.random() < 0.5 else cv2.erode(mask, kernel)
    return np.asarray(grown, np.uint8)
