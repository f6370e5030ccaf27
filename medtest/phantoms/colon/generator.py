"""Generator of a colon phantom from one random stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Json, Mask
from medtest.core.portable import key_generator, portable_opencv
from medtest.phantoms.colon.camera import develop, draw_frame
from medtest.phantoms.colon.details import draw_highlights, draw_liquid, draw_vessels
from medtest.phantoms.colon.frames import FRAME_KINDS, DrawnFrame, make_frame
from medtest.phantoms.colon.placing import PlacedPolyp, add_polyps, windows
from medtest.phantoms.colon.polyps import Look
from medtest.phantoms.colon.report import describe_lumen, describe_polyp
from medtest.phantoms.colon.tissue import Tissue, make_tissue
from medtest.phantoms.fields import Field, PixelGrid, as_field, resize, smoothstep, value_noise

REVISION = 1
"""Increased whenever the same random numbers give other pixels."""

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
"""Height, width and weight, as in real collections and common processors."""

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
"""Weights of 0, 1, 2 and 3 polyps."""
MIN_SIDE, MAX_SIDE = 64, 4096
"""Allowed pixels a side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ColonPhantom:
    """Synthetic colonoscopy image with its ground truth.

    Attributes:
        image: uint8 H×W×3 RGB.
        mask: bool H×W, True on every polyp; never on the frame.
        frame: bool H×W, True on the black frame.
        info: Description as JSON values: ``frame``, ``view`` (lumen or wall), ``hue``, ``exposure`` (1 is normal),
            ``underexposed``, ``vessels``, ``liquid`` and ``highlights`` (shares of the image), ``noise`` (grey
            levels), ``text``, ``lumen`` (x and y as shares of width and height, or None), ``polyp_count``, and
            ``polyps``: one entry each from :func:`~medtest.phantoms.colon.report.describe_polyp`.
    """

    image: Image
    mask: Mask
    frame: Mask
    info: dict[str, Json] = field(default_factory=dict)


def colon_rng(suite_seed: int, dataset: str, index: int) -> np.random.Generator:
    """Return the generator of one phantom, keyed by ``[suite_seed, "colon", dataset, index]``.

    The stream depends on nothing else, so a phantom does not depend on the number or order of phantoms.
    """
    return key_generator([int(suite_seed), "colon", dataset, int(index)])


def make_colon(
    rng: np.random.Generator,
    *,
    size: tuple[int, int] | None = None,
    polyps: int | None = None,
    frame: str | Sequence[str] | None = None,
    negatives: float | None = None,
) -> ColonPhantom:
    """Generate one phantom.

    Args:
        rng: Its random stream; see :func:`colon_rng`.
        size: Height and width in pixels, each in [64, 4096]; drawn from :data:`SIZES` if omitted.
        polyps: Number of polyps, 0 to 3; drawn from :data:`POLYP_WEIGHTS` if omitted.
        frame: One of :data:`FRAME_KINDS`, or several to draw from; by :data:`FRAME_WEIGHTS` from all if omitted.
        negatives: Share of phantoms without polyp, 0 to 1; that of :data:`POLYP_WEIGHTS` if omitted.

    Returns:
        The image with its ground truth.

    Raises:
        ValueError: A size, number, share or frame is out of range.
    """
    drawn_size = int(rng.choice(len(SIZES), p=[s[2] for s in SIZES]))
    drawn_count = int(rng.choice(len(POLYP_WEIGHTS), p=_polyp_weights(negatives)))
    kind = _draw_kind(rng, frame)
    height, width = size if size is not None else SIZES[drawn_size][:2]
    if not (MIN_SIDE <= height <= MAX_SIDE and MIN_SIDE <= width <= MAX_SIDE):
        raise ValueError(f"size {height}×{width} is outside {MIN_SIDE}–{MAX_SIDE} pixels a side")
    count = drawn_count if polyps is None else polyps
    if not 0 <= count < len(POLYP_WEIGHTS):
        raise ValueError(f"{count} polyps; 0 to {len(POLYP_WEIGHTS) - 1} are possible")
    with portable_opencv():
        return _render(rng, height, width, count, kind)


def _polyp_weights(negatives: float | None) -> tuple[float, ...]:
    if negatives is None:
        return POLYP_WEIGHTS
    if not 0.0 <= negatives <= 1.0:
        raise ValueError(f"a share of {negatives} without polyp; 0 to 1 is possible")
    rest = (1.0 - negatives) / sum(POLYP_WEIGHTS[1:])
    return (negatives, *(weight * rest for weight in POLYP_WEIGHTS[1:]))


def _draw_kind(rng: np.random.Generator, frame: str | Sequence[str] | None) -> str:
    """Draw one of the requested kinds of frame, always taking one number from the stream."""
    wished = FRAME_KINDS if frame is None else (frame,) if isinstance(frame, str) else tuple(frame)
    unknown = [name for name in wished if name not in FRAME_KINDS]
    if unknown or not wished:
        raise ValueError(f"unknown frame {', '.join(map(repr, unknown))}; any of {', '.join(FRAME_KINDS)}")
    kinds = [kind for kind in FRAME_WEIGHTS if kind in wished]
    total = 1.0 if len(kinds) == len(FRAME_WEIGHTS) else sum(FRAME_WEIGHTS[kind] for kind in kinds)
    return kinds[int(rng.choice(len(kinds), p=[FRAME_WEIGHTS[kind] / total for kind in kinds]))]


def _make_grid(
    frame: DrawnFrame, shape: tuple[int, int]
) -> tuple[PixelGrid, NDArray[np.uint8], tuple[float, float, float]]:
    """Return working coordinates centred on the field, the field at working size, and its centre and half side."""
    small = cv2.resize(frame.field, (shape[1], shape[0]), interpolation=cv2.INTER_AREA).astype(np.uint8)
    left, top, width, height = cv2.boundingRect((small > 127).astype(np.uint8))
    half = min(width, height) / 2
    x = (np.arange(shape[1], dtype=np.float32)[None, :] - np.float32(left + width / 2)) / np.float32(half)
    y = (np.arange(shape[0], dtype=np.float32)[:, None] - np.float32(top + height / 2)) / np.float32(half)
    grid = PixelGrid(x=as_field(x), y=as_field(y), step=1.0 / half)
    return grid, small, (left + width / 2, top + height / 2, half)


def _surface(rng: np.random.Generator, look: Look, side: int, scale: float) -> Field:
    """Return a polyp's surface texture, around 0, side×side; ``scale`` is working pixels per 1/500 of the field."""
    if look.surface == "smooth":
        return as_field(0.05 * value_noise(rng, (side, side), 5 * scale))
    base = value_noise(rng, (side, side), float(rng.uniform(4.0, 9.0)) * scale)
    if look.surface == "granular":
        return as_field(0.13 * base)
    ridges = np.clip(np.abs(base) * 2.2, 0.0, 1.0)
    return as_field((ridges - 0.6) * float(rng.uniform(0.25, 0.5)))


def _paint_polyp(
    rng: np.random.Generator, albedo: Field, wall: Field, tissue: Tissue, item: PlacedPolyp, unit: float
) -> None:
    """Paint a polyp's colour and texture, in place, and remove the wall there."""
    outer, inner = windows(item.patch, (wall.shape[0], wall.shape[1]))
    side = item.patch.height.shape[0]
    pixel = 1.0 / (side / 4.4)
    alpha = smoothstep(as_field(item.patch.height[inner]), -1.2 * pixel, 1.6 * pixel)
    texture = _surface(rng, item.look, side, unit)[inner]
    spread = value_noise(rng, (side, side), side / 7.0)[inner] * np.float32(0.11)
    for channel, weight in enumerate((0.55, 1.0, 1.0)):
        plane = albedo[outer][..., channel]
        own = tissue.albedo[channel] * item.look.gain[channel] * (1.0 + weight * (texture + spread))
        plane += alpha * (own - plane)
    np.minimum(wall[outer], 1.0 - alpha, out=wall[outer])


def _linear_colour(
    rng: np.random.Generator, grid: PixelGrid, tissue: Tissue, placed: list[PlacedPolyp]
) -> tuple[Field, Field, float]:
    """Return linear RGB h×w×3 at working size, the visible share of the wall (0 on polyps), and the share of liquid."""
    tint = tissue.tint
    albedo = np.empty((*grid.shape, 3), np.float32)
    albedo[..., 0] = tissue.albedo[0] * (1.0 + 0.15 * tint)
    albedo[..., 1] = tissue.albedo[1] * (1.0 - 1.3 * tint)
    albedo[..., 2] = tissue.albedo[2] * (1.0 - 1.1 * tint)
    wall = np.ones(grid.shape, np.float32)
    wet = 0.0
    if rng.random() < 0.28:
        liquid = draw_liquid(rng, grid.shape, as_field(0.5 - 0.5 * np.clip(tissue.light, 0, 2)))
        wet = float(liquid.mean())
        deep = float(rng.uniform(0.3, 0.9))
        for channel, target in enumerate((0.78, 0.40, 0.05)):
            plane = albedo[..., channel]
            plane += deep * liquid * (np.float32(target) - plane)
    for item in placed:
        _paint_polyp(rng, albedo, wall, tissue, item, 2.0 / grid.step / 500.0)
    return as_field(albedo * tissue.light[..., None]), wall, wet


def _texture(rng: np.random.Generator, shape: tuple[int, int], unit: float) -> Field:
    """Return the fine grain of mucosa at full size, around 0."""
    coarse = value_noise(rng, shape, max(2.0, 7.0 * unit))
    fine = value_noise(rng, shape, max(1.5, 2.6 * unit), smooth=False)
    grain = float(rng.uniform(0.0, 0.03)) * coarse + float(rng.uniform(0.01, 0.05)) * fine
    # Slopes of the same relief, lit from the upper left, give a wet instead of a printed look.
    slope = np.float32(float(rng.uniform(0.0, 0.04)) * max(2.0, 7.0 * unit) * 0.6)
    grain[1:, 1:] += slope * (coarse[1:, 1:] - coarse[:-1, :-1])
    return as_field(grain)


def _add_details(
    rng: np.random.Generator, linear: Field, wall: Field, facing: Field, exposure: float, unit: float
) -> dict[str, Json]:
    """Add grain, vessels and highlights to linear RGB at full size, in place, and return a description."""
    shape = (linear.shape[0], linear.shape[1])
    wall_full = resize(wall, shape, smooth=False)
    grain = _texture(rng, shape, unit)
    has_vessels = bool(rng.random() < 0.8)
    if has_vessels:
        strength = float(rng.uniform(0.12, 0.7))
        vessels = draw_vessels(rng, shape) * (np.float32(strength) * (0.35 + 0.65 * wall_full))
    else:
        vessels = np.zeros(shape, np.float32)
    for channel, (grainy, red) in enumerate(((0.6, 0.3), (1.0, 0.85), (1.0, 0.7))):
        linear[..., channel] *= 1.0 + np.float32(grainy) * grain - np.float32(red) * vessels
    share = 0.0
    if rng.random() < 0.9:
        shine = draw_highlights(rng, shape, facing)
        share = float(shine.mean())
        halo = cv2.blur(shine, (max(3, round(7 * unit)),) * 2)
        shine = as_field(np.minimum(shine + 0.35 * halo, 1.0))
        linear += (shine * np.float32(1.1 * max(0.65, min(1.0, exposure))))[..., None]
    return {"vessels": has_vessels, "highlights": round(share, 5)}


def _render(rng: np.random.Generator, height: int, width: int, count: int, kind: str) -> ColonPhantom:
    """Render a phantom: smooth fields at working size (0.6 of full size, at most 640 pixels), details at full size."""
    frame = make_frame(rng, kind, height, width)
    long = max(height, width)
    ratio = min(640.0, max(min(240.0, long), 0.6 * long)) / long
    shape = (max(32, round(height * ratio)), max(32, round(width * ratio)))
    grid, small, (centre_x, centre_y, half) = _make_grid(frame, shape)
    tissue = make_tissue(rng, grid)
    light = tissue.light
    light *= np.float32(1.0 / max(1e-3, float(np.median(light[small > 127]))))
    placed, relief = add_polyps(rng, grid, small, light, count)
    # Contrast as set by endoscope processors.
    light[...] = 0.1 * light + 0.9 * light * np.sqrt(np.maximum(light, 0.0))
    underexposed = bool(rng.random() < 0.12)
    exposure: float = float(rng.uniform(0.22, 0.5)) if underexposed else 2.0 ** float(rng.normal(0.0, 0.3))
    linear_small, wall, wet = _linear_colour(rng, grid, tissue, placed)
    facing = as_field(np.clip(light, 0.0, 2.2) - 1.0 + 0.5 * (1.0 - wall))
    linear = resize(linear_small * np.float32(0.4 * exposure), (height, width), smooth=False)
    unit = 2.0 / grid.step / ratio / 500.0
    details = _add_details(rng, linear, wall, facing, exposure, unit)
    picture, noise = develop(rng, linear)
    text = draw_frame(rng, picture, frame)
    black = frame.black
    mask = (resize(np.clip(relief, -1.0, 1.0), (height, width), smooth=False) > 0) & ~black
    info: dict[str, Json] = {
        "revision": REVISION,
        "frame": kind,
        "frame_share": round(float(black.mean()), 4),
        "view": tissue.view,
        "hue": tissue.hue,
        "exposure": round(exposure, 4),
        "underexposed": underexposed,
        "liquid": round(wet, 4),
        **details,
        "noise": round(noise, 3),
        "text": text,
        "lumen": describe_lumen(tissue, small, centre_x, centre_y, half),
        "polyp_count": len(placed),
        "polyps": [describe_polyp(item, small, centre_x, centre_y, half) for item in placed],
    }
    return ColonPhantom(image=picture, mask=mask, frame=black, info=info)
