"""Visibility of a lesion: the colour step across its outline, against the noise of the source image.

The outline of each lesion is cut into 32 sectors around the lesion's centroid. In every sector, the mean colour of a
band just inside the outline is compared with that of a band just outside it (CIEDE2000: G. Sharma, W. Wu, E. Dalal,
"The CIEDE2000 color-difference formula", Color Research and Application 30(1), 2005). The visibility of a lesion is the
median of the sectors, divided by the source's local noise or by 1, whichever is larger; that of an image with several
lesions is the lowest one.

A change cannot add contrast that the tissue does not have: in every sector a follow-up counts at most as much as its
source. Lower contrast therefore lowers the visibility, and blur never raises it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage.color import deltaE_ciede2000, rgb2lab

from medtest.core.cases import Image, Mask, PreparedSeed

SECTORS = 32
BAND = 0.05
"""Width of a band as fraction of the lesion's diameter, that of the disc of its area."""
NARROWEST_BAND = 2.0
"""Least width of a band in pixels."""
MOST_PIXELS = 40
"""Pixels of a band's sector whose mean is taken, evenly spread over it."""
FEWEST_PIXELS = 6
"""Pixels that both bands of a sector need; other sectors (at the rim of the field) are left out."""
FEWEST_SECTORS = 8
"""Sectors that a lesion needs; one with fewer has no visibility."""
LEAST_NOISE = 1.0
"""Lower limit of the noise: a difference of 1 is the smallest that observers notice."""
NOISE_SIGMA = 1.5
"""Standard deviation in pixels of the Gaussian that is subtracted to leave the noise."""
SMALLEST_LESION = 30
"""Pixels below which a connected region is noise of the mask."""
MOST_LESIONS = 16

ABSOLUTE_FLOOR = 0.8
"""Least visibility of a lesion whose source reaches it."""
RELATIVE_FLOOR = 0.35
"""Least share of its source's visibility that a lesion keeps."""


@dataclass(frozen=True, eq=False)
class _Lesion:
    """Bands of one lesion, in the sectors that have enough pixels on both sides.

    Attributes:
        pixels: Flat indices of the bands' pixels, sector by sector: first those inside the outline, then those outside.
        starts: First element of each sector in ``pixels``.
        counts: Pixels of each sector, float64 of shape (2·sectors, 1).
        noise: Divisor of the colour differences.
    """

    pixels: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.float64]
    noise: float

    def steps(self, image: Image) -> NDArray[np.float64]:
        """Return the colour difference across the outline in each sector."""
        colours = image.reshape(-1, 3).take(self.pixels, axis=0)
        means = np.add.reduceat(colours, self.starts, axis=0, dtype=np.int64) / self.counts
        lab = rgb2lab(means / 255.0)
        half = len(lab) // 2
        return np.asarray(deltaE_ciede2000(lab[:half], lab[half:]), np.float64)  # type: ignore[no-untyped-call]


def source_visibility(seed: PreparedSeed) -> float | None:
    """Return the visibility of a seed's lesions, rounded to four decimals; None without lesion or outline in view."""
    return _lowest([float(np.median(steps)) / lesion.noise for lesion, steps in _lesions(seed)])


def visibility(seed: PreparedSeed, image: Image) -> float | None:
    """Return the visibility of a seed's lesions in a follow-up, at most that of the source.

    Args:
        seed: The prepared seed, uint8 RGB.
        image: uint8 H×W×3, with every lesion at its place in the seed.

    Returns:
        The colour step in units of the source's noise, rounded to four decimals; None as in :func:`source_visibility`.
    """
    return _lowest(
        [float(np.median(np.minimum(lesion.steps(image), steps))) / lesion.noise for lesion, steps in _lesions(seed)]
    )


def keeps_lesion_visible(seed: PreparedSeed, image: Image) -> bool:
    """Return True if no lesion of a follow-up falls below the floors.

    A lesion keeps at least :data:`RELATIVE_FLOOR` of its source's visibility and, where the source reaches it,
    :data:`ABSOLUTE_FLOOR`. A seed without visibility has nothing to lose.
    """
    before, after = source_visibility(seed), visibility(seed, image)
    if before is None or after is None:
        return True
    return after >= max(RELATIVE_FLOOR * before, ABSOLUTE_FLOOR if before >= ABSOLUTE_FLOOR else 0.0)


def lesion_diameter(seed: PreparedSeed) -> float | None:
    """Return the diameter in pixels of the disc with the area of the smallest lesion; None without lesion."""
    areas = [int(np.count_nonzero(region)) for region in _regions(seed)]
    return 2.0 * math.sqrt(min(areas) / math.pi) if areas else None


def _lowest(values: list[float]) -> float | None:
    return round(min(values), 4) if values else None


def _regions(seed: PreparedSeed) -> list[Mask]:
    """Return the seed's lesions as separate masks, largest first; cached."""

    def separate() -> list[Mask]:
        if seed.mask is None or seed.image.dtype != np.uint8 or seed.image.ndim != 3:
            return []
        _, labels, stats, _ = cv2.connectedComponentsWithStats(seed.mask.view(np.uint8), connectivity=8)
        areas = stats[1:, cv2.CC_STAT_AREA]
        order = np.argsort(-areas, kind="stable")[:MOST_LESIONS]
        return [labels == index + 1 for index in order if areas[index] >= SMALLEST_LESION]

    return seed.memo("visibility.regions", separate)


def _lesions(seed: PreparedSeed) -> tuple[tuple[_Lesion, NDArray[np.float64]], ...]:
    """Return each lesion with the source's own colour differences; cached."""

    def measure() -> tuple[tuple[_Lesion, NDArray[np.float64]], ...]:
        lesions = [_bands(seed, region) for region in _regions(seed)]
        return tuple((lesion, lesion.steps(seed.image)) for lesion in lesions if lesion is not None)

    return seed.memo("visibility.lesions", measure)


def _bands(seed: PreparedSeed, region: Mask) -> _Lesion | None:
    width = max(NARROWEST_BAND, BAND * 2.0 * math.sqrt(int(np.count_nonzero(region)) / math.pi))
    window = _window(region, pad=math.ceil(max(width, 4 * NOISE_SIGMA)) + 1)
    lesion, free = region[window], ~seed.frame[window]
    assert seed.mask is not None  # noqa: S101 - regions come from the mask
    inside = lesion & free & (_distance(lesion) <= width)
    outside = free & ~seed.mask[window] & (_distance(~lesion) <= width)
    rows, columns = np.nonzero(lesion)
    middle = (float(rows.mean()), float(columns.mean()))
    bands = [_sectors(inside, middle), _sectors(outside, middle)]
    usable = [k for k in range(SECTORS) if min(len(band[k][0]) for band in bands) >= FEWEST_PIXELS]
    if len(usable) < FEWEST_SECTORS:
        return None
    parts = [_evenly(band[k]) for band in bands for k in usable]
    rows, columns = (np.concatenate([part[axis] for part in parts]) for axis in (0, 1))
    counts = np.array([len(part[0]) for part in parts])
    return _Lesion(
        pixels=(rows + window[0].start) * seed.width + columns + window[1].start,
        starts=np.concatenate([[0], np.cumsum(counts)[:-1]]),
        counts=counts[:, None].astype(np.float64),
        noise=_noise(seed.image[window], lesion, rows, columns),
    )


def _window(region: Mask, pad: int) -> tuple[slice, slice]:
    left, top, width, height = cv2.boundingRect(region.view(np.uint8))
    return slice(max(top - pad, 0), top + height + pad), slice(max(left - pad, 0), left + width + pad)


def _distance(mask: Mask) -> NDArray[np.float32]:
    return np.asarray(cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)


def _sectors(band: Mask, middle: tuple[float, float]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the rows and columns of a band's pixels in each sector."""
    rows, columns = np.nonzero(band)
    turns = (np.arctan2(rows - middle[0], columns - middle[1]) + math.pi) / (2.0 * math.pi)
    sectors = np.minimum((turns * SECTORS).astype(np.int64), SECTORS - 1)
    order = np.argsort(sectors, kind="stable")
    ends = np.cumsum(np.bincount(sectors, minlength=SECTORS))[:-1]
    return list(zip(np.split(rows[order], ends), np.split(columns[order], ends), strict=True))


def _evenly(places: tuple[NDArray[np.int64], NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return at most :data:`MOST_PIXELS` of the places, evenly spread."""
    count = len(places[0])
    chosen = np.arange(min(count, MOST_PIXELS)) * count // min(count, MOST_PIXELS)
    return places[0][chosen], places[1][chosen]


def _noise(window: Image, lesion: Mask, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> float:
    """Return the robust standard deviation of the source's finest detail in the bands, as CIELAB distance.

    Both sides of the outline are smoothed apart, so that the step between them is not taken for noise.
    """
    lab = cv2.cvtColor(window.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2LAB)
    smooth = np.zeros_like(lab)
    for side in (lesion, ~lesion):
        share = side.astype(np.float32)
        total = cv2.GaussianBlur(lab * share[:, :, None], (0, 0), NOISE_SIGMA)
        smooth[side] = total[side] / cv2.GaussianBlur(share, (0, 0), NOISE_SIGMA)[side][:, None]
    fine = (lab - smooth)[rows, columns]
    spread = 1.4826 * np.median(np.abs(fine - np.median(fine, axis=0)), axis=0)
    return max(float(np.sqrt((spread * spread).sum())), LEAST_NOISE)
