"""Positions and sizes of polyps on the wall, and the wall's appearance under and beside them."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.colon.polyps import Look, Patch, PolypShape, draw_patch, make_look, make_shape
from medtest.phantoms.fields import Field, PixelGrid, as_field, direction, smoothstep

MEDIAN_SHARE = 0.115
"""Median area of a polyp as a share of the field; 0.127 on Kvasir-SEG's training images, all polyps together."""
MIN_SHARE, MAX_SHARE = 0.006, 0.35


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedPolyp:
    """Polyp on the working image.

    Attributes:
        look: Its material.
        shape: Its outline.
        patch: Its drawing.
        centre: Column and row of its centroid in the working image.
    """

    look: Look
    shape: PolypShape
    patch: Patch
    centre: tuple[float, float]


def windows(patch: Patch, shape: tuple[int, int]) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the window of a patch on an image of ``shape``, and the corresponding part of the patch."""
    side = patch.height.shape[0]
    top, left = max(0, patch.top), max(0, patch.left)
    bottom, right = min(shape[0], patch.top + side), min(shape[1], patch.left + side)
    outer = (slice(top, bottom), slice(left, right))
    inner = (slice(top - patch.top, bottom - patch.top), slice(left - patch.left, right - patch.left))
    return outer, inner


def _share(rng: np.random.Generator, count: int) -> float:
    """Return a polyp's area as a share of the field: log-normal, smaller if there are several."""
    share: float = MEDIAN_SHARE * 2.0 ** float(rng.normal(0.0, 1.2))
    return min(MAX_SHARE, max(MIN_SHARE, share)) / (1.0 if count == 1 else 1.7)


def _find_place(
    rng: np.random.Generator, free: NDArray[np.uint8], radius: float, light: Field
) -> tuple[int, int, float] | None:
    """Return row, column and the available radius; None without room for a visible polyp.

    Polyps are placed in lit areas, entirely within the field and apart from one another.
    """
    room = cv2.distanceTransform(free, cv2.DIST_L1, 3)
    allowance = np.float32(min(radius * 1.03 + 1.0, 0.92 * float(room.max())))
    fits = room >= allowance
    lit = fits & (light > 0.3)
    rows, columns = np.nonzero(lit if lit.any() else fits)
    if allowance < 5 or not len(rows):
        return None
    k = int(rng.integers(len(rows)))
    return int(rows[k]), int(columns[k]), min(radius, float(allowance) / 1.03)


def _draw_stalk(
    rng: np.random.Generator, grid: PixelGrid, light: Field, centre: tuple[float, float], radius: float
) -> None:
    """Draw the stalk of a pedunculated polyp from its head to the wall, in place; it is mucosa, not lesion."""
    dx, dy = direction(rng)
    length = radius * float(rng.uniform(1.4, 2.2))
    thick = radius * float(rng.uniform(0.28, 0.45))
    px = np.arange(grid.shape[1], dtype=np.float32)[None, :] - np.float32(centre[0])
    py = np.arange(grid.shape[0], dtype=np.float32)[:, None] - np.float32(centre[1])
    along = px * np.float32(dx) + py * np.float32(dy)
    bend = np.float32(float(rng.uniform(-0.25, 0.25)) / length)
    across = py * np.float32(dx) - px * np.float32(dy) + bend * along * along
    flare = thick * (1.0 + 0.9 * smoothstep(as_field(along), 0.6 * length, 1.25 * length))
    q = across / flare
    inside = np.clip(1.0 - q * q, 0.0, 1.0)
    fade = 1.0 - smoothstep(as_field(along), 0.75 * length, 1.2 * length)
    part = fade * (along > 0)
    base = np.float32(max(0.35, float(np.median(light))))
    alpha = smoothstep(as_field(inside), 0.0, 0.25) * part
    light *= 1.0 - 0.35 * part * np.clip(1.6 - np.abs(q), 0.0, 1.0)
    light += alpha * (base * (0.45 + 0.7 * np.sqrt(inside)) - light)


def _shade(light: Field, item: PlacedPolyp, scale: float) -> None:
    """Apply a polyp's light and its contact shadow to the wall's light, in place."""
    outer, inner = windows(item.patch, (light.shape[0], light.shape[1]))
    near = light[outer]
    level = min(2.2, max(0.5, float(np.median(near))) * item.look.brightness)
    own = level * item.patch.light[inner]
    if item.look.kind == "flat":
        # A flat polyp takes the wall's slow light without the folds.
        kernel = 2 * (min(near.shape) // 4) + 1
        blurred = cv2.blur(near, (kernel, kernel))
        own = 0.4 * own + 0.6 * item.look.brightness * np.maximum(blurred, 0.4) * item.patch.light[inner]
    pixel = float(np.float32(2.0 / scale))
    alpha = smoothstep(as_field(item.patch.height[inner]), -0.8 * pixel, 0.8 * pixel)
    near *= item.patch.shade[inner] * (1 - alpha) + alpha
    near += alpha * (own - near)


def _is_clear(patch: Patch, field: NDArray[np.uint8], height: Field) -> bool:
    """Return True if a polyp is entirely in the field and does not touch another.

    Placement uses city-block distances, which are too long across slanted edges, so a few polyps need this check.
    """
    outer, inner = windows(patch, (height.shape[0], height.shape[1]))
    polyp = patch.height > 0
    if int(polyp[inner].sum()) < int(polyp.sum()) or bool((polyp[inner] & (field[outer] <= 127)).any()):
        return False
    grown = cv2.dilate(polyp[inner].astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return not bool((grown & (height[outer] > 0)).any())


def add_polyps(
    rng: np.random.Generator, grid: PixelGrid, field: NDArray[np.uint8], light: Field, count: int
) -> tuple[list[PlacedPolyp], Field]:
    """Place polyps on the wall.

    Args:
        rng: Source of random numbers.
        grid: Coordinates of the working image.
        field: uint8 h×w, the field of view at working size, 255 inside.
        light: float32 h×w, the wall's light; changed in place.
        count: Number of polyps; fewer if there is no room.

    Returns:
        The polyps, and float32 h×w that is positive on them and negative elsewhere.
    """
    height = np.full(grid.shape, -9.0, np.float32)
    free = (field > 250).astype(np.uint8)
    free[0, :] = free[-1, :] = 0
    free[:, 0] = free[:, -1] = 0
    field_pixels = float((field > 127).sum())
    placed: list[PlacedPolyp] = []
    for _ in range(count):
        look = make_look(rng)
        shape = make_shape(rng, look.kind)
        scale: float = (_share(rng, count) * field_pixels / shape.area) ** 0.5
        position = _find_place(rng, free, shape.radius * scale, light)
        if position is None:
            continue
        row, column, radius = position
        scale = radius / shape.radius
        centre = (column + 0.5, row + 0.5)
        lx, ly = direction(rng)
        lean = float(rng.uniform(0.1, 0.6))
        patch = draw_patch(shape, look, centre=centre, scale=scale, light=(lx * lean, ly * lean))
        for _ in range(8):
            if _is_clear(patch, field, height):
                break
            scale *= 0.9
            patch = draw_patch(shape, look, centre=centre, scale=scale, light=(lx * lean, ly * lean))
        item = PlacedPolyp(look=look, shape=shape, patch=patch, centre=centre)
        if look.kind == "pedunculated":
            _draw_stalk(rng, grid, light, centre, (shape.area**0.5) * 0.56 * scale)
        _shade(light, item, scale)
        outer, inner = windows(patch, grid.shape)
        np.maximum(height[outer], patch.height[inner], out=height[outer])
        cv2.circle(free, (column, row), round(radius * 1.1) + 2, 0, -1)
        placed.append(item)
    return placed, height
