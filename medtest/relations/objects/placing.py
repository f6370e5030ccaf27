"""Choice and placement of objects: similar to the target, outside the lesion, instruments cut by the field's rim.

All random numbers come from the case's generator; values that depend only on the seed are cached with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Mask, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.portable import exp
from medtest.core.recent import per_seed
from medtest.relations.objects.cutouts import Variant, coarse, cutout, pose, size_factor, size_step, visible_box
from medtest.relations.objects.library import ObjectInfo, ObjectLibrary
from medtest.relations.placement import Box, FreePlaces, draw_place, field_box, free_places, keep_out

CELLS = 64
"""Cells along the image's longer side in the coarse grid for placing instruments."""
LIKENESS = (0.08, 0.06, 0.04)
"""Differences in brightness, contrast and colour shares that count as one standard deviation."""
LOWEST_SHARE = 0.70
"""Smallest share of a severity's nominal area that is acceptable if room is short."""
FACTORS = (0.12, 2.0)
"""Bounds on the scale factor of an object's side, to avoid specks and magnified pixels."""
FREE_ANGLE = 15
"""Angle step in degrees for freely rotated objects."""
SHAFT_ANGLE = 5
"""Angle step in degrees for instruments."""
OVERLAP = 0.15
"""Largest overlap of objects' boxes, as share of their sides."""
_TRIES = 14


class PlacedObject(TypedDict):
    """Placed object in a case's parameters: angle in degrees, size step, top-left pixel, mirroring, brightness gain."""

    name: str
    angle: int
    size: int
    x: int
    y: int
    flip: bool
    gain: float


@dataclass(frozen=True, kw_only=True)
class FieldLook:
    """Appearance of the target's field.

    Attributes:
        brightness: Mean luma, 0–1.
        contrast: Standard deviation of luma, 0–1.
        colour: Shares of R, G and B in the mean colour.
        pixels: Pixels of the field.
    """

    brightness: float
    contrast: float
    colour: tuple[float, float, float]
    pixels: int


@per_seed
def field_look(seed: PreparedSeed) -> FieldLook:
    """Return the appearance of the seed's field."""
    return measure_field(seed.image, np.logical_not(seed.frame))


def measure_field(image: NDArray[np.uint8], field: Mask) -> FieldLook:
    """Return the appearance of the pixels of ``image`` (uint8 H×W×3 RGB) selected by ``field``.

    Raises:
        NotApplicable: The field is empty.
    """
    pixels = int(np.count_nonzero(field))
    if pixels == 0:
        raise NotApplicable("no field of view: the whole image is black frame")
    inside = field.view(np.uint8)
    mean = np.array(cv2.mean(image, inside)[:3])
    luma_mean, luma_spread = cv2.meanStdDev(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), mask=inside)
    shares = mean / max(float(mean.sum()), 1e-6)
    return FieldLook(
        brightness=float(luma_mean[0, 0]) / 255,
        contrast=float(luma_spread[0, 0]) / 255,
        colour=(float(shares[0]), float(shares[1]), float(shares[2])),
        pixels=pixels,
    )


def likeness(look: FieldLook, infos: Sequence[ObjectInfo]) -> NDArray[np.float64]:
    """Return each object's probability of being chosen, which grows with the similarity of its original field.

    Report 4.5 imposes similarity of brightness, contrast and colour without figures; the widths are ours
    (``LIKENESS``). Of n objects, at least one, float64 of shape (n,), in [0, 1], with sum 1.
    """
    brightness, contrast, colour = LIKENESS
    rows = np.array([[i.field_brightness, i.field_contrast, *i.field_colour] for i in infos])
    target = np.array([look.brightness, look.contrast, *look.colour])
    away = (((rows - target) / np.array([brightness, contrast, colour, colour, colour])) ** 2).sum(axis=1)
    weights = exp((away.min() - away) / 2)
    return np.asarray(weights / weights.sum(), np.float64)


def _chances(seed: PreparedSeed, library: ObjectLibrary, infos: Sequence[ObjectInfo]) -> NDArray[np.float64]:
    key = f"objects.likeness.{library.digest}.{infos[0].kind}.{len(infos)}"
    return seed.memo(key, lambda: likeness(field_look(seed), infos))


def brightness_gain(look: FieldLook, info: ObjectInfo, limits: tuple[float, float]) -> float:
    """Return the bounded ratio of the target's to the original field's brightness, rounded for JSON."""
    return round(min(max(look.brightness / info.field_brightness, limits[0]), limits[1]), 3)


def _without_replacement(weights: NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """Return a random order that favours likely objects (exponential race)."""
    return [int(i) for i in np.argsort(rng.exponential(size=weights.size) / np.maximum(weights, 1e-12), kind="stable")]


@dataclass(frozen=True, kw_only=True)
class PlacingOptions:
    """Options of placement.

    Attributes:
        margin: Least distance from the lesion in pixels.
        blur: Edge blur in pixels.
        gains: Bounds of the brightness gain.
        turn: Largest deviation of an instrument from its original angle, degrees.
        spread: Standard deviation of its position around the original one, fraction of the field's box.
        reach: Largest deviation from the original position, fraction of the field's box.
    """

    margin: int
    blur: float
    gains: tuple[float, float]
    turn: float = 0.0
    spread: float = 0.0
    reach: float = 0.0


def place_free(
    seed: PreparedSeed,
    rng: np.random.Generator,
    library: ObjectLibrary,
    infos: Sequence[ObjectInfo],
    *,
    area: float,
    count: int,
    options: PlacingOptions,
) -> list[PlacedObject]:
    """Place ``count`` objects outside the lesion and the frame, together covering a fraction of the field.

    Pieces without room are replaced by smaller ones, and missing area is filled with more small pieces, down to
    ``LOWEST_SHARE`` of the area; ``area`` is a fraction of the field, in (0, 1), ``infos`` are of one kind.

    Raises:
        NotApplicable: There is not enough room.
    """
    look = field_look(seed)
    chances = np.cumsum(_chances(seed, library, infos))
    places = free_places(seed, margin=options.margin)
    step = max(4, max(seed.height, seed.width) // CELLS)
    shares = np.sort(0.5 + rng.random(count))[::-1]
    sizes = [float(v) for v in shares / shares.sum() * area * look.pixels]
    nominal = area * look.pixels
    placed: list[PlacedObject] = []
    boxes: list[Box] = []
    done = 0.0
    for attempt in range(2 * count + 2):
        if attempt >= len(sizes):
            missing = nominal - done
            if missing < 0.08 * nominal:
                break
            sizes.append(missing / 2 if missing > 0.3 * nominal else missing)
        order = np.minimum(np.searchsorted(chances, rng.random(3) * chances[-1], side="right"), len(infos) - 1)
        turn, mirrored = int(rng.integers(360 // FREE_ANGLE)) * FREE_ANGLE, bool(rng.random() < 0.5)
        for index, reduced in zip(order, (1.0, 0.7, 0.45), strict=True):
            info = infos[int(index)]
            size = size_step(info, sizes[attempt] * reduced)
            if not FACTORS[0] <= size_factor(size) <= FACTORS[1]:
                continue
            variant = Variant(info=info, angle=turn, step=size, flip=mirrored)
            corner = _free_corner(places, rng, library, variant, boxes, step, options.blur)
            if corner is None:
                continue
            gain = brightness_gain(look, info, options.gains)
            placed.append(
                PlacedObject(name=info.name, angle=turn, size=size, x=corner[0], y=corner[1], flip=mirrored, gain=gain)
            )
            done += variant.pixels
            break
    if done < LOWEST_SHARE * nominal:
        raise NotApplicable(
            f"no room for {infos[0].kind} on {100 * area:.3g} % of the field off the lesion "
            f"({100 * done / look.pixels:.2g} % found room)"
        )
    return placed


def _free_corner(
    places: FreePlaces,
    rng: np.random.Generator,
    library: ObjectLibrary,
    variant: Variant,
    boxes: list[Box],
    step: int,
    blur: float,
) -> tuple[int, int] | None:
    """Return the rotated box's top-left pixel (x, y) at a free position and record the box; None without room."""
    left, top, width, height = visible_box(library, variant, pose(library, variant, blur))
    free = places.of_box(height, width, step=step)
    _block(free, boxes, height, width, step)
    if not free.any():
        # The upright box is too coarse here; the object's actual shape may fit.
        piece = cutout(library, variant, blur)
        left, top = piece.offset
        height, width = piece.visible.shape
        free = places.of_shape(piece.visible, step=step, bands=6)
        _block(free, boxes, height, width, step)
        if not free.any():
            return None
    row, column = draw_place(free, rng, label=variant.info.kind, step=step)
    boxes.append((row, column, row + height, column + width))
    return column - left, row - top


def _block(free: Mask, boxes: Sequence[Box], height: int, width: int, step: int) -> None:
    """Block the corners at which a box of this size would overlap one of ``boxes`` too much."""
    for top, left, bottom, right in boxes:
        slack_y = int(OVERLAP * min(height, bottom - top))
        slack_x = int(OVERLAP * min(width, right - left))
        first_row, first_column = top - height + slack_y, left - width + slack_x
        rows = slice(max(first_row // step + 1, 0), max(-(-(bottom - slack_y) // step), 0))
        columns = slice(max(first_column // step + 1, 0), max(-(-(right - slack_x) // step), 0))
        free[rows, columns] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class _Grid:
    """Field and keep-out region in coarse cells, padded by cells outside the image on every side."""

    cell: int
    pad: int
    field: NDArray[np.float32]
    blocked: NDArray[np.float32]


@per_seed
def _grid(seed: PreparedSeed, margin: int) -> _Grid:
    cell = max(4, max(seed.height, seed.width) // CELLS)
    rows, columns = -(-seed.height // cell), -(-seed.width // cell)
    pad = max(rows, columns)

    def cells(values: Mask) -> NDArray[np.float32]:
        whole = np.zeros((rows * cell, columns * cell), np.float32)
        whole[: seed.height, : seed.width] = values
        return np.asarray(whole.reshape(rows, cell, columns, cell).mean(axis=(1, 3)), np.float32)

    field = cells(np.logical_not(seed.frame))
    blocked = (cells(keep_out(seed, margin=margin)) > 0).astype(np.float32)
    return _Grid(cell=cell, pad=pad, field=np.pad(field, pad), blocked=np.pad(blocked, pad))


def place_instrument(
    seed: PreparedSeed,
    rng: np.random.Generator,
    library: ObjectLibrary,
    infos: Sequence[ObjectInfo],
    *,
    area: float,
    options: PlacingOptions,
) -> PlacedObject:
    """Place one instrument near its original position and orientation, its shaft cut by the rim of the field.

    Its visible part covers ``area``, a fraction of the field in (0, 1), or down to ``LOWEST_SHARE`` of it if room is
    short; ``infos`` are instruments, at least one.

    Raises:
        NotApplicable: No instrument of this size fits outside the lesion.
    """
    look = field_look(seed)
    grid = _grid(seed, options.margin)
    order = _without_replacement(_chances(seed, library, infos), rng)
    for share, info, turn in _proposals(infos, order, options.turn, rng):
        target = share * area * look.pixels
        # About a quarter of a shaft is hidden beyond the rim, more or less if that gives room.
        for visible in (0.74, 0.6, 0.88) if info.cut else (1.0,):
            size = size_step(info, target / visible)
            if not FACTORS[0] <= size_factor(size) <= FACTORS[1]:
                continue
            variant = Variant(info=info, angle=turn, step=size)
            corner = _shaft_corner(seed, rng, grid, library, variant, target, options)
            if corner is not None:
                gain = brightness_gain(look, info, options.gains)
                return PlacedObject(
                    name=info.name, angle=turn, size=size, x=corner[0], y=corner[1], flip=False, gain=gain
                )
    raise NotApplicable(
        f"no room for an instrument on {100 * area:.3g} % of the field, off the lesion and near its original position"
    )


def _proposals(
    infos: Sequence[ObjectInfo], order: Sequence[int], turn: float, rng: np.random.Generator
) -> Iterator[tuple[float, ObjectInfo, int]]:
    """Yield (share of the area, instrument, angle): every instrument at full size first, then smaller."""
    steps = int(turn // SHAFT_ANGLE)
    for share in (1.0, 0.85, LOWEST_SHARE / 0.95):
        for index in order[:_TRIES]:
            yield share, infos[index], SHAFT_ANGLE * int(rng.integers(-steps, steps + 1))


def _shaft_corner(
    seed: PreparedSeed,
    rng: np.random.Generator,
    grid: _Grid,
    library: ObjectLibrary,
    variant: Variant,
    target: float,
    options: PlacingOptions,
) -> tuple[int, int] | None:
    """Return the rotated box's top-left pixel (x, y) for the instrument; None without room.

    Conditions are tested from the cheapest: the tip in the field, the shaft's end outside, then the lesion and the
    visible area, as correlations on the coarse grid over the remaining positions.
    """
    info, cell, pad = variant.info, grid.cell, grid.pad
    where = pose(library, variant, options.blur)
    columns, rows = -(-where.size[0] // cell), -(-where.size[1] // cell)
    if max(rows, columns) > pad:
        return None
    points = where.place(np.array([[0.5, 0.5], info.tip, *info.cut])) / cell
    top, left, bottom, right = field_box(seed)
    high, wide = (bottom - top) / cell, (right - left) / cell
    ideal_x = left / cell + info.centre[0] * wide - points[0, 0]
    ideal_y = top / cell + info.centre[1] * high - points[0, 1]
    x0 = max(math.ceil(ideal_x - options.reach * wide), 1 - columns)
    y0 = max(math.ceil(ideal_y - options.reach * high), 1 - rows)
    x1 = min(math.floor(ideal_x + options.reach * wide), seed.width // cell)
    y1 = min(math.floor(ideal_y + options.reach * high), seed.height // cell)
    if x1 < x0 or y1 < y0:
        return None
    extent = (y1 - y0 + 1, x1 - x0 + 1)
    free = _cells(grid, points[1], (x0, y0), extent) > 0.98
    for point in points[2:]:
        free &= _cells(grid, point, (x0, y0), extent) < 0.02
    room = cv2.boundingRect(free.view(np.uint8))
    if room[2] == 0:
        return None
    x0, y0 = x0 + room[0], y0 + room[1]
    free = free[room[1] : room[1] + room[3], room[0] : room[0] + room[2]]
    window = (
        slice(y0 + pad, y0 + pad + room[3] + rows - 1),
        slice(x0 + pad, x0 + pad + room[2] + columns - 1),
    )
    cover, touched = coarse(library, variant, options.blur, cell)
    hit = cv2.matchTemplate(np.ascontiguousarray(grid.blocked[window]), touched, cv2.TM_CCORR)
    free = free & (hit < 0.5)
    if not free.any():
        return None
    visible = cv2.matchTemplate(np.ascontiguousarray(grid.field[window]), cover, cv2.TM_CCORR) * float(cell * cell)
    free &= (visible > 0.90 * target) & (visible < 1.12 * target) if info.cut else visible > 0.98 * variant.pixels
    if not free.any():
        return None
    near, spread = (ideal_y - y0, ideal_x - x0), options.spread * max(high, wide)
    row, column = draw_place(free, rng, label="an instrument", near=near, spread=spread)
    return (column + x0) * cell, (row + y0) * cell


def _cells(
    grid: _Grid, point: NDArray[np.float64], first: tuple[int, int], extent: tuple[int, int]
) -> NDArray[np.float32]:
    """Return the field's share in the cell under a point (x, y) of the cut-out, for every corner of the window."""
    limit = grid.field.shape
    row = min(max(first[1] + grid.pad + math.floor(point[1]), 0), limit[0] - extent[0])
    column = min(max(first[0] + grid.pad + math.floor(point[0]), 0), limit[1] - extent[1])
    return grid.field[row : row + extent[0], column : column + extent[1]]
