"""Colours of drawn instruments across and along a tube, and of inflated metal parts."""

from __future__ import annotations

import numpy as np

from object_drawing.shading import Array, Canvas, Material, diffuse, glint, inflate, mix, normals


def _facing(across: Array) -> Array:
    return np.asarray(np.sqrt(np.clip(1 - across * across, 0, 1)), np.float32)


def _line(across: Array, centre: float, width: float) -> Array:
    return np.asarray(np.exp(-(((across - centre) / width) ** 2)), np.float32)


def steel(dim: float = 1.0) -> Material:
    """Polished steel: dark flanks that mirror the tissue, a broad sheen and one sharp line."""

    def shade(across: Array, along: Array) -> tuple[Array, Array]:
        facing = _facing(across)
        value = 0.12 + 0.42 * facing**1.6 + 0.50 * _line(across, -0.28, 0.16) + 0.16 * _line(across, 0.5, 0.13)
        rgb = mix((34, 30, 31), (226, 224, 220), value * dim)
        tissue = 0.20 * (1 - facing)[..., None] * np.array([0.75, 0.36, 0.30], np.float32)
        return np.asarray(rgb + tissue, np.float32), np.ones_like(across)

    return shade


def coil(pitch: float, growth: float = 0.0) -> Material:
    """A metal spring: steel with turns ``pitch`` stored pixels apart, wider towards the base by ``growth`` a pixel."""
    base = steel()

    def shade(across: Array, along: Array) -> tuple[Array, Array]:
        rgb, opacity = base(across, along)
        turn = along / (pitch * (1 + growth * along)) + 0.28 * across
        groove = 0.5 + 0.5 * np.cos(2 * np.pi * turn)
        return np.asarray(rgb * (0.42 + 0.58 * groove**0.7)[..., None], np.float32), opacity

    return shade


def plastic(
    body: tuple[float, float, float],
    edge: tuple[float, float, float],
    *,
    gloss: float = 0.5,
    bright: float = 0.30,
) -> Material:
    """An opaque smooth sheath; near the lens (large ``along``) it is lit until it is nearly white."""

    def shade(across: Array, along: Array) -> tuple[Array, Array]:
        facing = _facing(across)
        rgb = mix(edge, body, facing**0.9)
        near = np.clip(along / 330, 0, 1) * bright
        rgb = rgb * (0.74 + 0.26 * facing + near)[..., None]
        rgb = rgb + (gloss * (_line(across, -0.30, 0.10) + 0.45 * _line(across, 0.34, 0.08)))[..., None]
        return np.asarray(np.clip(rgb, 0, 1), np.float32), np.ones_like(across)

    return shade


def clear(tint: tuple[float, float, float], *, opacity: float = 0.42) -> Material:
    """A translucent catheter: milky at its walls, seen through in the middle, with two thin highlights."""

    def shade(across: Array, along: Array) -> tuple[Array, Array]:
        facing = _facing(across)
        wall = 1 - facing
        rgb = mix(tint, (246, 247, 250), 0.25 + 0.6 * wall)
        shine = _line(across, -0.35, 0.09) + 0.6 * _line(across, 0.42, 0.07)
        rgb = np.clip(rgb * (0.80 + 0.2 * facing)[..., None] + 0.6 * shine[..., None], 0, 1)
        cover = np.clip(opacity + 0.5 * wall**1.5 + 0.5 * shine, 0, 1)
        return np.asarray(rgb, np.float32), np.asarray(cover, np.float32)

    return shade


def banded(
    base: Material, bands: list[tuple[float, float]], colour: tuple[float, float, float], strength: float = 0.85
) -> Material:
    """A tube with painted rings between the given distances from its tip."""

    def shade(across: Array, along: Array) -> tuple[Array, Array]:
        rgb, opacity = base(across, along)
        light = rgb.mean(axis=2, keepdims=True)
        ring = np.asarray(colour, np.float32) / 255 * (0.35 + 0.75 * light)
        for low, high in bands:
            inside = ((along >= low) & (along < high)).astype(np.float32)[..., None] * strength
            rgb = rgb * (1 - inside) + ring * inside
        return np.asarray(rgb, np.float32), opacity

    return shade


def metal_part(
    canvas: Canvas,
    cover: Array,
    *,
    radius: float,
    tint: tuple[float, float, float] = (214, 212, 208),
    dark: tuple[float, float, float] = (38, 34, 35),
    rough: float = 0.0,
) -> None:
    """Draw a bulging metal part with the given coverage; ``radius`` is the width of its rounded edge, stored pixels."""
    normal = normals(inflate(cover, radius * 3))
    mirror = 0.5 + 0.5 * np.sin(normal[0] * 5.0 - normal[1] * 3.2 + 0.6)
    value = 0.10 + 0.55 * diffuse(normal) ** 2.2 + 0.22 * mirror * (1 - rough)
    rgb = mix(dark, tint, value) + (0.85 * glint(normal, 60))[..., None]
    tissue = 0.22 * (1 - normal[2])[..., None] * np.array([0.78, 0.36, 0.30], np.float32)
    canvas.over(np.asarray(rgb + tissue, np.float32), cover)
