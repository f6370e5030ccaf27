"""Features of a patch, for the fixed classifier."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.realism.classifier import Rows
from medtest.realism.measures import gradient_of, highlights_of, lab_of

PATCH = 32
"""Side of a patch in pixels."""
BANDS = (0.7, 1.0, 2.0, 4.0, 8.0)
"""Standard deviations of the Gaussians whose differences are the bands of detail."""
DIRECTIONS = 8
FEATURES: tuple[str, ...] = (
    *(f"{value} of {channel}" for value in ("mean", "sd") for channel in ("L", "a", "b")),
    *(f"log detail of L, band {band}" for band in range(len(BANDS))),
    "log fine detail of a",
    "log fine detail of b",
    "mean gradient",
    "largest gradient",
    "gradient of one direction",
    "highlights",
    "largest step between halves",
    "largest difference of detail between halves",
    "step along its largest gradient",
)
"""Names of the features, in order. Details are standard deviations; steps are CIELAB differences of both halves."""

Places = Sequence[tuple[int, int]]


class PatchReader:
    """Reader of a picture's patches; maps of the whole picture are computed once.

    Args:
        image: uint8 H×W×3 RGB.
    """

    def __init__(self, image: Image) -> None:
        lab = lab_of(image)
        light = np.ascontiguousarray(lab[:, :, 0])
        smooth = [light, *(cv2.GaussianBlur(light, (0, 0), sigma) for sigma in BANDS)]
        fine = cv2.GaussianBlur(lab, (0, 0), BANDS[1])
        soft = np.asarray(cv2.GaussianBlur(light, (0, 0), BANDS[0]), np.float32)
        slope = [cv2.Sobel(soft, cv2.CV_32F, *order, scale=1 / 8) for order in ((1, 0), (0, 1))]
        self._lab = lab
        self._bands = np.stack([before - after for before, after in zip(smooth, smooth[1:], strict=False)], axis=2)
        self._chroma = lab[:, :, 1:] - fine[:, :, 1:]
        self._gradient = gradient_of(soft)
        self._slope = np.stack(slope, axis=2)
        self._spots = highlights_of(image)

    def read(self, places: Places) -> Rows:
        """Return the features of patches, float N×K.

        Args:
            places: Top and left of each patch, which lies inside the picture.
        """
        rows = [self._one(slice(top, top + PATCH), slice(left, left + PATCH)) for top, left in places]
        return np.array(rows, np.float64).reshape(len(rows), len(FEATURES))

    def _one(self, down: slice, across: slice) -> list[float]:
        lab = self._lab[down, across].reshape(-1, 3)
        bands = self._bands[down, across].reshape(-1, len(BANDS))
        chroma = self._chroma[down, across].reshape(-1, 2)
        gradient = self._gradient[down, across]
        slope = self._slope[down, across].reshape(-1, 2)
        tensor = slope.T @ slope
        spread = float(np.hypot(tensor[0, 0] - tensor[1, 1], 2 * tensor[0, 1]) / max(np.trace(tensor), 1e-9))
        sums = _HALVES @ np.hstack([lab, np.abs(bands[:, :2])])
        first, second = sums[:DIRECTIONS], sums[DIRECTIONS:]
        steps = np.linalg.norm(first[:, :3] - second[:, :3], axis=1)
        detail = np.abs(np.log((first[:, 3:] + 0.05) / (second[:, 3:] + 0.05))).max()
        turn = np.arctan2(2 * tensor[0, 1], tensor[0, 0] - tensor[1, 1]) / 2
        nearest = int(round(turn / np.pi * DIRECTIONS)) % DIRECTIONS
        return [
            *lab.mean(axis=0).tolist(),
            *lab.std(axis=0).tolist(),
            *np.log(bands.std(axis=0) + 0.05).tolist(),
            *np.log(chroma.std(axis=0) + 0.05).tolist(),
            float(gradient.mean()),
            float(np.log(np.quantile(gradient, 0.98) + 0.05)),
            spread,
            float(np.sqrt(self._spots[down, across].mean())),
            float(steps.max()),
            float(detail),
            float(steps[nearest]),
        ]


def free_places(allowed: Mask, count: int, rng: np.random.Generator, least: float = 1.0) -> list[tuple[int, int]]:
    """Return random places of patches that lie inside a region and hardly overlap.

    Args:
        allowed: bool H×W.
        count: Most places.
        rng: Random generator.
        least: Share of a patch that must be allowed.
    """
    return _spread_out(np.argwhere(_fitting(allowed, least)), count, rng)


def places_on(outline: Mask, view: Mask, count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return places of patches whose centre is on an outline, inside the field, as in :func:`free_places`.

    Args:
        outline: bool H×W.
        view: The field of view, bool H×W.
        count: Most places.
        rng: Random generator.
    """
    rows, columns = np.nonzero(outline)
    half = PATCH // 2
    height, width = outline.shape
    good = (rows >= half) & (columns >= half) & (rows <= height - half) & (columns <= width - half)
    corners = np.stack([rows[good] - half, columns[good] - half], axis=1)
    fitting = _fitting(view, 1.0)
    return _spread_out(corners[fitting[corners[:, 0], corners[:, 1]]], count, rng)


def _fitting(allowed: Mask, least: float) -> Mask:
    """Return for the top left corner of every patch whether a share of its pixels is allowed."""
    sums = cv2.integral(allowed.astype(np.uint8))
    if min(allowed.shape) < PATCH:
        return np.zeros((0, 0), np.bool_)
    whole = sums[PATCH:, PATCH:] - sums[:-PATCH, PATCH:] - sums[PATCH:, :-PATCH] + sums[:-PATCH, :-PATCH]
    return np.asarray(whole >= least * PATCH * PATCH, np.bool_)


def _spread_out(corners: NDArray[np.int64], count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return at most ``count`` random corners whose patches overlap by half a side at most."""
    chosen: list[tuple[int, int]] = []
    remaining = corners
    while len(remaining) and len(chosen) < count:
        top, across = remaining[int(rng.integers(len(remaining)))].tolist()
        chosen.append((top, across))
        far = np.abs(remaining - np.array([top, across])).max(axis=1) >= PATCH // 2
        remaining = remaining[far]
    return chosen


def _halves() -> Rows:
    """Return weights that average both halves of a patch, for each direction: 2·directions × pixels."""
    offset = np.arange(PATCH) - (PATCH - 1) / 2
    down, across = np.meshgrid(offset, offset, indexing="ij")
    turns = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    sides = np.cos(turns)[:, None] * across.ravel() + np.sin(turns)[:, None] * down.ravel()
    both = np.concatenate([sides > 1.0, sides < -1.0]).astype(np.float64)
    return np.asarray(both / both.sum(axis=1, keepdims=True))


_HALVES = _halves()
