"""One phantom from one stream of random numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.cases import Image, Json, Mask
from medtest.phantoms.colon.details import draw_highlights, draw_liquid, draw_text, draw_vessels
from medtest.phantoms.colon.fields import Field, Grid, as_field, direction, resize, smoothstep, value_noise
from medtest.phantoms.colon.frames import FRAME_KINDS, Frame, make_frame
from medtest.phantoms.colon.polyps import Look, Patch, draw_patch, make_look, make_shape
from medtest.phantoms.colon.tissue import Tissue, make_tissue

REVISION = 1
"""Raised whenever the same numbers give other pixels."""

SIZES: tuple[tuple[int, int, float], ...] = (
    (531, 622, 0.42),
    (529, 579, 0.14),
    (432, 487, 0.08),
    (288, 384, 0.12),
    (576, 720, 0.10),
    (1024, 1280, 0.06),
    (1080, 1350, 0.03),
    (1072, 1920, 0.05),
)
"""Height, width and weight; sizes of real collections and of common processors."""

FRAME_WEIGHTS: dict[str, float] = {
    "none": 0.10,
    "round": 0.15,
    "octagonal": 0.25,
    "rectangular": 0.08,
    "cut_corners": 0.12,
    "inset": 0.18,
    "stepped": 0.12,
}
POLYP_WEIGHTS: tuple[float, ...] = (0.06, 0.78, 0.11, 0.05)
MIN_SIDE, MAX_SIDE = 64, 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class ColonPhantom:
    """A made colonoscopy image with everything that is known about it.

    Attributes:
        image: uint8 H×W×3 RGB.
        mask: bool H×W, True on every polyp; never on the frame.
        frame: bool H×W, True on the black frame.
        info: What was drawn, as JSON values: ``frame``, ``polyps`` (one entry each), ``exposure``, ``hue``, …
    """

    image: Image
    mask: Mask
    frame: Mask
    info: dict[str, Json] = field(default_factory=dict)


def colon_rng(suite_seed: int, dataset: str, index: int) -> np.random.Generator:
    """Return the generator of one phantom: PCG64 seeded by the SHA-256 of ``[suite_seed, "colon", dataset, index]``.

    The list is written as JSON without spaces, in ASCII, and the digest is read as a big-endian integer. The stream
    depends on nothing else, so a phantom is the same however many are made and in whatever order.
    """
    key = json.dumps([int(suite_seed), "colon", dataset, int(index)], ensure_ascii=True, separators=(",", ":"))
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest(), "big")))


@contextmanager
def _portable_opencv() -> Iterator[None]:
    """Keep OpenCV from Intel's IPP, which rounds differently on different processors of one architecture."""
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    try:
        yield
    finally:
        cv2.ipp.setUseIPP(before)


def _grid(frame: Frame, shape: tuple[int, int]) -> tuple[Grid, NDArray[np.uint8]]:
    """Return working coordinates centred on the field, and the field at working size."""
    small = cv2.resize(frame.field, (shape[1], shape[0]), interpolation=cv2.INTER_AREA).astype(np.uint8)
    left, top, width, height = cv2.boundingRect((small > 127).astype(np.uint8))
    half = min(width, height) / 2
    x = (np.arange(shape[1], dtype=np.float32)[None, :] - np.float32(left + width / 2)) / np.float32(half)
    y = (np.arange(shape[0], dtype=np.float32)[:, None] - np.float32(top + height / 2)) / np.float32(half)
    return Grid(x=as_field(x), y=as_field(y), step=1.0 / half), small


def _area(rng: np.random.Generator, count: int) -> float:
    """Return a polyp's share of the field: log-normal, median 11 %, as measured on Kvasir-SEG's training images."""
    share = 0.115 * 2.0 ** float(rng.normal(0.0, 1.2))
    return min(0.35, max(0.006, share)) / (1.0 if count == 1 else 1.7)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Placed:
    look: Look
    patch: Patch
    centre: tuple[float, float]


def _place(
    rng: np.random.Generator, free: NDArray[np.uint8], radius: float, light: Field
) -> tuple[int, int, float] | None:
    """Return row, column and the radius there is room for; None where there is no room for a visible polyp.

    Polyps lie where there is light, whole in the field, and apart from one another.
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


def _windows(patch: Patch, shape: tuple[int, int]) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    side = patch.height.shape[0]
    top, left = max(0, patch.top), max(0, patch.left)
    bottom, right = min(shape[0], patch.top + side), min(shape[1], patch.left + side)
    outer = (slice(top, bottom), slice(left, right))
    inner = (slice(top - patch.top, bottom - patch.top), slice(left - patch.left, right - patch.left))
    return outer, inner


def _stalk(rng: np.random.Generator, grid: Grid, light: Field, centre: tuple[float, float], radius: float) -> None:
    """Draw the stalk of a pedunculated polyp from its head to the wall, in place; it is normal mucosa, not lesion."""
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


def _add_polyps(
    rng: np.random.Generator, grid: Grid, small: NDArray[np.uint8], tissue: Tissue, count: int
) -> tuple[list[_Placed], Field]:
    """Put polyps on the wall; changes ``tissue.light`` and returns them with their joint height field."""
    height = np.full(grid.shape, -9.0, np.float32)
    free = (small > 250).astype(np.uint8)
    free[0, :] = free[-1, :] = 0
    free[:, 0] = free[:, -1] = 0
    field_pixels = float((small > 127).sum())
    placed: list[_Placed] = []
    for _ in range(count):
        look = make_look(rng)
        shape = make_shape(rng, look.kind)
        share = _area(rng, count)
        scale = (share * field_pixels / shape.area) ** 0.5
        found = _place(rng, free, shape.radius * scale, tissue.light)
        if found is None:
            continue
        row, column, radius = found
        scale = radius / shape.radius
        centre = (column + 0.5, row + 0.5)
        lx, ly = direction(rng)
        lean = float(rng.uniform(0.1, 0.6))
        patch = draw_patch(shape, look, centre=centre, scale=scale, light=(lx * lean, ly * lean))
        if look.kind == "pedunculated":
            _stalk(rng, grid, tissue.light, centre, (shape.area**0.5) * 0.56 * scale)
        outer, inner = _windows(patch, grid.shape)
        near = tissue.light[outer]
        level = float(np.median(near))
        level = min(2.2, max(0.5, level) * look.brightness)
        # Three quarters of the polyp's light is its own: the folds behind it shine through no more than that.
        own = level * patch.light[inner]
        if look.kind == "flat":
            # A flat one lies on the wall and takes its slow light, without the folds.
            kernel = 2 * (min(near.shape) // 4) + 1
            blurred = cv2.blur(near, (kernel, kernel))
            own = 0.4 * own + 0.6 * look.brightness * np.maximum(blurred, 0.4) * patch.light[inner]
        local = patch.height[inner]
        pixel = np.float32(2.0 / scale)
        alpha = smoothstep(as_field(local), -0.8 * float(pixel), 0.8 * float(pixel))
        near *= patch.shade[inner] * (1 - alpha) + alpha
        near += alpha * (own - near)
        np.maximum(height[outer], local, out=height[outer])
        reach = round(radius * 1.1) + 2
        cv2.circle(free, (column, row), reach, 0, -1)
        placed.append(_Placed(look=look, patch=patch, centre=centre))
    return placed, height


def _surface(rng: np.random.Generator, look: Look, side: int, scale: float) -> Field:
    """Return the polyp's own texture, around 0, side×side."""
    if look.surface == "smooth":
        return as_field(0.05 * value_noise(rng, (side, side), 5 * scale))
    base = value_noise(rng, (side, side), float(rng.uniform(4.0, 9.0)) * scale)
    if look.surface == "granular":
        return as_field(0.13 * base)
    ridges = np.clip(np.abs(base) * 2.2, 0.0, 1.0)
    return as_field((ridges - 0.6) * float(rng.uniform(0.25, 0.5)))


def make_colon(
    rng: np.random.Generator, *, size: tuple[int, int] | None = None, polyps: int | None = None, frame: str | None = None
) -> ColonPhantom:
    """Make one phantom.

    Args:
        rng: Its stream of random numbers; see :func:`colon_rng`.
        size: Height and width in pixels, each in [64, 4096]; drawn from :data:`SIZES` when left out.
        polyps: How many polyps, 0 to 3; drawn from :data:`POLYP_WEIGHTS` when left out.
        frame: One of :data:`FRAME_KINDS`; drawn from :data:`FRAME_WEIGHTS` when left out.

    Returns:
        The image with its truth.

    Raises:
        ValueError: A size, a number or a frame that is not allowed.
    """
    drawn_size = int(rng.choice(len(SIZES), p=[s[2] for s in SIZES]))
    drawn_count = int(rng.choice(len(POLYP_WEIGHTS), p=POLYP_WEIGHTS))
    drawn_frame = list(FRAME_WEIGHTS)[int(rng.choice(len(FRAME_WEIGHTS), p=list(FRAME_WEIGHTS.values())))]
    height, width = size if size is not None else SIZES[drawn_size][:2]
    if not (MIN_SIDE <= height <= MAX_SIDE and MIN_SIDE <= width <= MAX_SIDE):
        raise ValueError(f"size {height}×{width} is outside {MIN_SIDE}–{MAX_SIDE} pixels a side")
    count = drawn_count if polyps is None else polyps
    if not 0 <= count < len(POLYP_WEIGHTS):
        raise ValueError(f"{count} polyps; 0 to {len(POLYP_WEIGHTS) - 1} are possible")
    kind = drawn_frame if frame is None else frame
    if kind not in FRAME_KINDS:
        raise ValueError(f"unknown frame {kind!r}; one of {', '.join(FRAME_KINDS)}")
    with _portable_opencv():
        return _render(rng, height, width, count, kind)


def _linear_colour(
    rng: np.random.Generator, grid: Grid, tissue: Tissue, placed: list[_Placed], info: dict[str, Json]
) -> tuple[Field, Field]:
    """Return linear RGB h×w×3 at working size, and how much of the wall's texture shows (0 on polyps)."""
    tint = tissue.tint
    albedo = np.empty((*grid.shape, 3), np.float32)
    albedo[..., 0] = tissue.albedo[0] * (1.0 + 0.15 * tint)
    albedo[..., 1] = tissue.albedo[1] * (1.0 - 1.3 * tint)
    albedo[..., 2] = tissue.albedo[2] * (1.0 - 1.1 * tint)
    wall = np.ones(grid.shape, np.float32)
    if rng.random() < 0.28:
        liquid = draw_liquid(rng, grid.shape, as_field(0.5 - 0.5 * np.clip(tissue.light, 0, 2)))
        info["liquid"] = round(float(liquid.mean()), 4)
        deep = float(rng.uniform(0.3, 0.9))
        for channel, target in enumerate((0.78, 0.40, 0.05)):
            plane = albedo[..., channel]
            plane += deep * liquid * (np.float32(target) - plane)
    for item in placed:
        outer, inner = _windows(item.patch, grid.shape)
        height = item.patch.height[inner]
        side = item.patch.height.shape[0]
        pixel = 1.0 / (side / 4.4)
        alpha = smoothstep(as_field(height), -1.2 * pixel, 1.6 * pixel)
        texture = _surface(rng, item.look, side, grid_unit(grid))[inner]
        spread = value_noise(rng, (side, side), side / 7.0)[inner] * np.float32(0.11)
        for channel, weight in enumerate((0.55, 1.0, 1.0)):
            plane = albedo[outer][..., channel]
            own = tissue.albedo[channel] * item.look.gain[channel] * (1.0 + weight * (texture + spread))
            plane += alpha * (own - plane)
        local = wall[outer]
        np.minimum(local, 1.0 - alpha, out=local)
    return as_field(albedo * tissue.light[..., None]), wall


def grid_unit(grid: Grid) -> float:
    """Return working pixels per 1/500 of the field's short side: what sizes of texture are stated in."""
    return 2.0 / grid.step / 500.0


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Field:
    """Return noise of mean 0 and standard deviation 1 from the sum of two random bytes (a triangle)."""
    count = int(np.prod(shape))
    drawn = np.frombuffer(rng.bytes(2 * count), np.uint8).reshape(2, *shape)
    total = drawn[0].astype(np.float32) + drawn[1]
    return as_field((total - 255.0) * np.float32(1.0 / 104.5))


def _develop(rng: np.random.Generator, linear: Field, info: dict[str, Json]) -> NDArray[np.uint8]:
    """Turn linear light into an 8-bit picture: soft shoulder, gamma, noise of the sensor, soft colour."""
    shape = (linear.shape[0], linear.shape[1])
    # A short shoulder, 1.15 x / (1 + 0.15 x), clipped at x = 1: red saturates first, so what is over-exposed goes
    # through orange to white, as on real sensors.
    picture = linear * np.float32(0.15)
    picture += np.float32(1.0)
    np.divide(linear, picture, out=picture)
    np.minimum(picture, np.float32(1.0 / 1.15), out=picture)
    picture *= np.float32(1.15 * 255.0 * 255.0)
    np.maximum(picture, np.float32(0.0), out=picture)
    np.sqrt(picture, out=picture)
    level = float(rng.uniform(0.8, 2.6))
    info["noise"] = round(level, 3)
    grain = _noise(rng, shape)
    grain = cv2.blur(grain, (2, 2)) * np.float32(2.0 * level) if shape[1] > 700 else grain * np.float32(level)
    picture += grain[..., None]
    np.maximum(picture, np.float32(0.0), out=picture)
    eight = cv2.convertScaleAbs(picture)
    # Colour at half resolution, as JPEG and video keep it.
    ycc = cv2.cvtColor(eight, cv2.COLOR_RGB2YCrCb)
    half = cv2.resize(ycc, ((shape[1] + 1) // 2, (shape[0] + 1) // 2), interpolation=cv2.INTER_AREA)
    soft = cv2.resize(half, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
    soft[..., 0] = ycc[..., 0]
    result: NDArray[np.uint8] = cv2.cvtColor(soft, cv2.COLOR_YCrCb2RGB).astype(np.uint8)
    return result


def _draw_frame(rng: np.random.Generator, picture: NDArray[np.uint8], frame: Frame, info: dict[str, Json]) -> None:
    """Lay the black frame, its boxes and the display's text over the picture, in place."""
    shape = frame.field.shape
    level = int(rng.integers(0, 5))
    soft = frame.field if rng.random() < 0.5 else cv2.blur(frame.field, (3, 3))
    dark = np.frombuffer(rng.bytes(frame.field.size), np.uint8).reshape(shape) & (3 if level > 2 else 1)
    floor = (dark + np.uint8(level)) * (frame.field < 128)
    cv2.multiply(picture, cv2.merge([soft, soft, soft]), dst=picture, scale=1.0 / 255.0)
    cv2.add(picture, cv2.merge([floor, floor, floor]), dst=picture)
    for left, top, right, bottom in frame.boxes:
        green = int(rng.integers(30, 100))
        cv2.rectangle(picture, (left, top), (right, bottom), (4, green, 16), -1 if rng.random() < 0.4 else 2)
    info["text"] = bool(rng.random() < (0.45 if frame.kind in ("octagonal", "inset", "stepped") else 0.12))
    if info["text"]:
        canvas = np.zeros(shape, np.uint8)
        draw_text(rng, canvas, float(rng.uniform(0.1, 0.35)))
        lit = canvas > 0
        picture[lit] = np.maximum(picture[lit], (canvas[lit][:, None] * np.float32(0.85)).astype(np.uint8))


def _texture(rng: np.random.Generator, shape: tuple[int, int], unit: float) -> Field:
    """Return the fine grain of mucosa at full size, around 0."""
    coarse = value_noise(rng, shape, max(2.0, 7.0 * unit))
    fine = value_noise(rng, shape, max(1.5, 2.6 * unit), smooth=False)
    grain = float(rng.uniform(0.0, 0.03)) * coarse + float(rng.uniform(0.01, 0.05)) * fine
    # Slopes of the same relief, lit from above left: what makes it look wet and not printed.
    slope = np.float32(float(rng.uniform(0.0, 0.04)) * max(2.0, 7.0 * unit) * 0.6)
    grain[1:, 1:] += slope * (coarse[1:, 1:] - coarse[:-1, :-1])
    return as_field(grain)


def _render(rng: np.random.Generator, height: int, width: int, count: int, kind: str) -> ColonPhantom:
    info: dict[str, Json] = {"revision": REVISION, "frame": kind}
    frame = make_frame(rng, kind, height, width)
    long = max(height, width)
    ratio = min(640.0, max(min(240.0, long), 0.6 * long)) / long
    shape = (max(32, round(height * ratio)), max(32, round(width * ratio)))
    grid, small = _grid(frame, shape)
    tissue = make_tissue(rng, grid)
    inside = small > 127
    tissue.light[...] *= np.float32(1.0 / max(1e-3, float(np.median(tissue.light[inside]))))
    placed, relief = _add_polyps(rng, grid, small, tissue, count)
    # Contrast of the scene as processors render it.
    tissue.light[...] = 0.1 * tissue.light + 0.9 * tissue.light * np.sqrt(np.maximum(tissue.light, 0.0))
    underexposed = bool(rng.random() < 0.12)
    exposure = float(rng.uniform(0.22, 0.5)) if underexposed else 2.0 ** float(rng.normal(0.0, 0.3))
    unit = 2.0 / grid.step / ratio / 500.0
    linear_small, wall = _linear_colour(rng, grid, tissue, placed, info)
    facing = np.clip(tissue.light, 0.0, 2.2) - 1.0 + 0.5 * (1.0 - wall)
    linear = resize(linear_small * np.float32(0.4 * exposure), (height, width), smooth=False)
    wall_full = resize(wall, (height, width), smooth=False)
    grain = _texture(rng, (height, width), unit)
    if rng.random() < 0.8:
        strength = float(rng.uniform(0.12, 0.7))
        vessels = draw_vessels(rng, (height, width)) * (np.float32(strength) * (0.35 + 0.65 * wall_full))
        info["vessels"] = True
    else:
        vessels = np.zeros((height, width), np.float32)
        info["vessels"] = False
    for channel, (grainy, red) in enumerate(((0.6, 0.3), (1.0, 0.85), (1.0, 0.7))):
        linear[..., channel] *= 1.0 + np.float32(grainy) * grain - np.float32(red) * vessels
    if rng.random() < 0.9:
        shine = draw_highlights(rng, (height, width), as_field(facing))
        halo = cv2.blur(shine, (max(3, round(7 * unit)),) * 2)
        shine = as_field(np.minimum(shine + 0.35 * halo, 1.0))
        linear += (shine * np.float32(1.1 * max(0.65, min(1.0, exposure))))[..., None]
        info["highlights"] = round(float(shine.mean()), 5)
    picture = _develop(rng, linear, info)
    _draw_frame(rng, picture, frame, info)
    black = frame.black
    mask = (resize(np.clip(relief, -1.0, 1.0), (height, width), smooth=False) > 0) & ~black
    info |= {
        "view": tissue.view,
        "hue": tissue.hue,
        "exposure": round(exposure, 4),
        "underexposed": underexposed,
        "polyp_count": len(placed),
    }
    return ColonPhantom(image=picture, mask=mask, frame=black, info=info)
