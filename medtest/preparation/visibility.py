"""Visibility of a lesion: the colour step across its outline, against the noise of the source image.

The outline of each lesion is cut into 32 sectors around the lesion's centroid. In every sector, the mean colour of a
band just inside the outline is compared with that of a band just outside it (CIEDE2000,
:mod:`medtest.preparation.colour_difference`). The visibility of a lesion is the median of the sectors, divided by the
source's local noise or by 1, whichever is larger; that of an image with several lesions is the lowest one.

A change cannot add contrast that the tissue does not have: in every sector a follow-up counts at most as much as its
source. Lower contrast therefore lowers the visibility, and blur never raises it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Effect, Image, Mask, PreparedSeed
from medtest.core.oracles.moves import moved_points
from medtest.core.portable import portable_opencv
from medtest.core.recent import Recent, per_seed
from medtest.preparation.colour_difference import colour_differences, lab_colours

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Places = tuple[Integers, Integers]
"""Rows and columns of pixels."""

SECTORS = 32
BAND = 0.05
"""Width of a band as fraction of the lesion's diameter, that of the disc of its area."""
NARROWEST_BAND = 2.0
"""Least width of a band in pixels."""
PIXELS = 40
"""Pixels of a band's sector whose mean is taken, evenly spread over it; one with fewer lends some of them twice."""
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
LESION_CLIPPED = 0.3
"""Largest share of a lesion's area that a follow-up may burn out."""
CLIPPED = 250
"""Least level of all three channels of a burnt-out pixel."""

_TURNS = [2.0 * math.pi * k / SECTORS for k in range(SECTORS)]
_BORDERS = np.array(
    [
        -math.cos(turn) / (abs(math.cos(turn)) + abs(math.sin(turn)))
        if turn <= math.pi
        else 2.0 + math.cos(turn) / (abs(math.cos(turn)) + abs(math.sin(turn)))
        for turn in _TURNS
    ]
)
"""Beginnings of the sectors, clockwise from the top, as :func:`_sectors` compares directions."""

ABSOLUTE_FLOOR = 0.8
"""Least visibility of a lesion whose source reaches it."""
RELATIVE_FLOOR = 0.35
"""Least share of its source's visibility that a lesion keeps."""


@dataclass(frozen=True, eq=False)
class _Outlines:
    """Bands of all lesions of a seed, and the source's own colour differences.

    Attributes:
        pixels: Flat indices of the bands' pixels, :data:`PIXELS` a sector: sectors inside the outlines, then outside.
        lesions: First sector of each lesion, and the number of all sectors.
        noise: Divisor of each lesion's colour differences.
        colours: Colours of the source, uint8 N×1×3.
        steps: Colour differences of the source, one a sector.
        recent: The colours that were measured last, as bytes, and their visibility: a relation's check and the factor
            table ask about the same ones.
    """

    pixels: Integers
    lesions: tuple[int, ...]
    noise: tuple[float, ...]
    colours: Image
    steps: Floats
    recent: Recent[bytes, float | None] = field(default_factory=lambda: Recent(1))

    def visibility(self, colours: Image, in_image: NDArray[np.bool_] | None = None) -> float | None:
        """Return the visibility of the least visible lesion.

        Args:
            colours: Colours of the bands' pixels, uint8 N×1×3.
            in_image: False for pixels that have left the image; None if all are in it.
        """
        if in_image is not None:
            return self._visibility(colours, in_image)
        key = colours.tobytes()
        if key not in self.recent:
            self.recent[key] = self._visibility(colours, None)
        return self.recent[key]

    def _visibility(self, colours: Image, in_image: NDArray[np.bool_] | None) -> float | None:
        steps, usable = _steps(colours, in_image)
        steps = np.minimum(steps, self.steps)
        values = []
        for lesion, noise in enumerate(self.noise):
            place = slice(self.lesions[lesion], self.lesions[lesion + 1])
            chosen = steps[place] if usable is None else steps[place][usable[place]]
            if len(chosen) >= FEWEST_SECTORS:
                values.append(_median(chosen) / noise)
        return round(min(values), 4) if values else None


@per_seed
def source_visibility(seed: PreparedSeed) -> float | None:
    """Return the visibility of a seed's lesions, rounded to four decimals; None without lesion or outline in view."""
    outlines = _outlines(seed)
    return None if outlines is None else outlines.visibility(outlines.colours)


def visibility(seed: PreparedSeed, image: Image, effect: Effect = Effect()) -> float | None:  # noqa: B008 - frozen
    """Return the visibility of a seed's lesions in a follow-up, at most that of the source.

    Args:
        seed: The prepared seed, uint8 RGB.
        image: uint8 H×W×3.
        effect: Effect of the relation; the bands move with the expected mask.

    Returns:
        The colour step in units of the source's noise, rounded to four decimals; None as in :func:`source_visibility`,
        and if every lesion has left the image.
    """
    outlines = _outlines(seed)
    if outlines is None:
        return None
    if not effect.moves:
        return outlines.visibility(_taken(image, outlines.pixels))
    rows, columns = np.divmod(outlines.pixels, seed.width)
    points = np.rint(moved_points(np.stack([columns, rows], axis=1), effect))
    in_image = np.all((points >= 0) & (points < (seed.width, seed.height)), axis=1)
    columns, rows = np.where(in_image[:, None], points, 0).astype(np.int64).T
    return outlines.visibility(_taken(image, rows * seed.width + columns), in_image)


def keeps_lesion_visible(seed: PreparedSeed, image: Image) -> bool:
    """Return True if no lesion of a follow-up falls below the floors.

    A lesion keeps at least :data:`RELATIVE_FLOOR` of its source's visibility and, where the source reaches it,
    :data:`ABSOLUTE_FLOOR`. A seed without visibility has nothing to lose.

    Args:
        seed: The prepared seed.
        image: uint8 H×W×3, with every lesion at its place in the seed.
    """
    return not is_below_floors(source_visibility(seed), visibility(seed, image))


def keeps_recoloured_lesion_visible(seed: PreparedSeed, recolour: Callable[[Image], Image]) -> bool:
    """Return True if no lesion falls below the floors, for a change of colours alone; no image is made.

    Args:
        seed: The prepared seed.
        recolour: Changes colours, uint8 N×1×3, wherever they are.
    """
    outlines = _outlines(seed)
    if outlines is None:
        return True
    return not is_below_floors(source_visibility(seed), outlines.visibility(recolour(outlines.colours)))


def is_below_floors(before: float | None, after: float | None) -> bool:
    """Return True if a visibility is below the floors; False if either is unknown.

    Args:
        before: Visibility in the source.
        after: Visibility in the follow-up.
    """
    if before is None or after is None:
        return False
    return after < max(RELATIVE_FLOOR * before, ABSOLUTE_FLOOR if before >= ABSOLUTE_FLOOR else 0.0)


def burns_lesion_out(seed: PreparedSeed, recolour: Callable[[Image], Image]) -> bool:
    """Return True if a change of colours clips over 30 % of a lesion's area that was not clipped before.

    The mask of a question also covers instruments, which burn out in real frames too: there it returns False, and the
    floors alone count.

    Args:
        seed: The prepared seed.
        recolour: Changes colours, uint8 N×1×3, wherever they are.
    """
    if seed.asks:
        return False
    clipped = ((np.count_nonzero(_clipped(recolour(colours))), area) for colours, area in _lesion_colours(seed))
    return any(count > LESION_CLIPPED * area for count, area in clipped)


def lesion_diameter(seed: PreparedSeed) -> float | None:
    """Return the diameter in pixels of the disc with the area of the smallest lesion; None without lesion."""
    areas = [int(np.count_nonzero(region)) for region in _regions(seed)]
    return 2.0 * math.sqrt(min(areas) / math.pi) if areas else None


@per_seed
def _regions(seed: PreparedSeed) -> list[Mask]:
    """Return the seed's lesions as separate masks, largest first."""
    if seed.mask is None or seed.image.dtype != np.uint8 or seed.image.ndim != 3:
        return []
    window = _window(seed.mask, pad=0)
    part = np.ascontiguousarray(seed.mask[window]).view(np.uint8)
    if not part.size:
        return []
    _, labels, stats, _ = cv2.connectedComponentsWithStats(part, connectivity=8)
    areas = stats[1:, cv2.CC_STAT_AREA]
    order = np.argsort(-areas, kind="stable")[:MOST_LESIONS]
    regions = [np.zeros_like(seed.mask) for index in order if areas[index] >= SMALLEST_LESION]
    for region, index in zip(regions, order, strict=False):
        region[window] = labels == index + 1
    return regions


@per_seed
def _lesion_colours(seed: PreparedSeed) -> list[tuple[Image, int]]:
    """Return the colours of each lesion's pixels that are not clipped, uint8 N×1×3, and the lesion's area."""
    lesions = []
    for region in _regions(seed):
        window = _window(region, pad=0)
        image, lesion = seed.image[window], region[window]
        usable = lesion & ~seed.frame[window] & (_clipped(image) == 0)
        lesions.append((image[usable][:, None], int(np.count_nonzero(lesion))))
    return [(colours, area) for colours, area in lesions if len(colours)]


def _clipped(colours: Image) -> NDArray[np.uint8]:
    """Return 255 for burnt-out pixels and 0 for others, uint8 H×W."""
    return np.asarray(cv2.inRange(colours, (CLIPPED,) * 3, (255, 255, 255)), np.uint8)


@per_seed
def _outlines(seed: PreparedSeed) -> _Outlines | None:
    """Return the bands of a seed's lesions; None without lesion or outline in view."""
    with portable_opencv():
        lesions = [lesion for region in _regions(seed) if (lesion := _bands(seed, region)) is not None]
    if not lesions:
        return None
    sectors = [part for lesion in lesions for part in lesion[0]]
    sectors += [part for lesion in lesions for part in lesion[1]]
    pixels = np.concatenate([rows * seed.width + columns for rows, columns in sectors])
    colours = _taken(seed.image, pixels)
    return _Outlines(
        pixels=pixels,
        lesions=tuple(np.cumsum([0, *(len(lesion[0]) for lesion in lesions)]).tolist()),
        noise=tuple(lesion[2] for lesion in lesions),
        colours=colours,
        steps=_steps(colours, None)[0],
    )


def _taken(image: Image, pixels: Integers) -> Image:
    """Return the colours of pixels by their flat indices, uint8 N×1×3."""
    return image.reshape(-1, 3).take(pixels, axis=0)[:, None]


def _steps(colours: Image, in_image: NDArray[np.bool_] | None) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Return the colour difference across the outline in each sector, and True for sectors with enough pixels."""
    if in_image is None:
        total = cv2.reduce(colours.reshape(-1, PIXELS, 3), 1, cv2.REDUCE_SUM, dtype=cv2.CV_32S)[:, 0]
        return colour_differences(lab_colours(total / PIXELS)), None
    counts = in_image.reshape(-1, PIXELS).sum(axis=1)
    total = (colours[:, 0] * in_image[:, None]).reshape(-1, PIXELS, 3).sum(axis=1)
    enough = counts.reshape(2, -1).min(axis=0) >= FEWEST_PIXELS
    return colour_differences(lab_colours(total / np.maximum(counts, 1)[:, None])), enough


def _median(values: Floats) -> float:
    ordered, half = sorted(values.tolist()), len(values) // 2
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0


def _bands(seed: PreparedSeed, region: Mask) -> tuple[list[Places], list[Places], float] | None:
    """Return the bands inside and outside a lesion's outline by sector, and the noise; None without enough sectors."""
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
    sides = [[_evenly(band[k]) for k in usable] for band in bands]
    rows, columns = (np.concatenate([part[axis] for side in sides for part in side]) for axis in (0, 1))
    noise = _noise(seed.image[window], lesion, rows[::2], columns[::2])
    top, left = window[0].start, window[1].start
    within, beyond = ([(rows + top, columns + left) for rows, columns in side] for side in sides)
    return within, beyond, noise


def _window(region: Mask, pad: int) -> tuple[slice, slice]:
    left, top, width, height = cv2.boundingRect(region.view(np.uint8))
    return slice(max(top - pad, 0), top + height + pad), slice(max(left - pad, 0), left + width + pad)


def _distance(mask: Mask) -> NDArray[np.float32]:
    return np.asarray(cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)


def _sectors(band: Mask, middle: tuple[float, float]) -> list[Places]:
    """Return the rows and columns of a band's pixels in each sector.

    Directions are compared as shares of |x| + |y|, which grow with the angle and are alike on every processor.
    """
    rows, columns = np.nonzero(band)
    down, right = rows - middle[0], columns - middle[1]
    share = down / np.maximum(np.abs(down) + np.abs(right), 1e-9)
    turns = np.where(right >= 0, share, 2.0 - share)  # from -1 at the top, clockwise to 3
    sectors = np.clip(np.searchsorted(_BORDERS, turns, side="right") - 1, 0, SECTORS - 1)
    order = np.argsort(sectors, kind="stable")
    ends = np.cumsum(np.bincount(sectors, minlength=SECTORS))[:-1]
    return list(zip(np.split(rows[order], ends), np.split(columns[order], ends), strict=True))


def _evenly(places: Places) -> Places:
    """Return :data:`PIXELS` of the places, evenly spread."""
    chosen = np.arange(PIXELS) * len(places[0]) // PIXELS
    return places[0][chosen], places[1][chosen]


def _noise(window: Image, lesion: Mask, rows: Integers, columns: Integers) -> float:
    """Return the robust standard deviation of the source's finest detail in the bands, as CIELAB distance.

    Both sides of the outline are smoothed apart, so that the step between them is not taken for noise.
    """
    smooth = np.zeros((len(rows), 3), np.float32)
    within = lesion[rows, columns]
    for side, chosen in ((lesion, within), (~lesion, ~within)):
        share = side.astype(np.float32)
        place = rows[chosen], columns[chosen]
        part = cv2.bitwise_and(window, window, mask=side.view(np.uint8)).astype(np.float32)
        total = cv2.GaussianBlur(part, (0, 0), NOISE_SIGMA)[place]
        smooth[chosen] = total / cv2.GaussianBlur(share, (0, 0), NOISE_SIGMA)[place][:, None]
    fine = lab_colours(window[rows, columns]) - lab_colours(smooth)
    spread = 1.4826 * np.median(np.abs(fine - np.median(fine, axis=1)[:, None]), axis=1)
    light, a, b = (spread * spread).tolist()
    return max(math.sqrt(light + a + b), LEAST_NOISE)
