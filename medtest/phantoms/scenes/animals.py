"""Sprites of animals and people, seen from the side; heads to the right."""

from __future__ import annotations

import numpy as np

from medtest.phantoms.scenes.shapes import XY, Shape, arc, bar, oval, poly, rect, rounded, soft, taper


def _legs(rng: np.random.Generator, where: tuple[float, ...], top: float, wide: float) -> list[Shape]:
    steps = rng.uniform(-0.035, 0.035, len(where))
    legs = []
    for index, (x, step) in enumerate(zip(where, steps, strict=True)):
        foot = x + float(step)
        legs.append(taper("dark" if index % 2 else "main", wide, 0.72 * wide, (x, top), (foot, 1.0)))
    return sorted(legs, key=lambda leg: leg.tone == "main")


def _eye(x: float, y: float, radius: float = 0.016) -> list[Shape]:
    return [oval("snow", x, y, 1.5 * radius, 1.7 * radius), oval("ink", x + 0.3 * radius, y, radius, 1.2 * radius)]


def bear(rng: np.random.Generator) -> list[Shape]:
    """Draw a bear."""
    return [
        *_legs(rng, (0.2, 0.33, 0.6, 0.72), 0.6, 0.17),
        soft("main", (0.08, 0.5), (0.16, 0.25), (0.4, 0.16), (0.66, 0.2), (0.8, 0.42), (0.7, 0.7), (0.4, 0.78),
            (0.14, 0.74)),
        oval("main", 0.06, 0.45, 0.04, 0.05),
        oval("dark", 0.7, 0.14, 0.055, 0.08), oval("dark", 0.84, 0.12, 0.055, 0.08),
        oval("main", 0.79, 0.33, 0.15, 0.2),
        oval("light", 0.89, 0.4, 0.1, 0.09), oval("ink", 0.965, 0.36, 0.035, 0.04),
        *_eye(0.82, 0.27),
    ]  # fmt: skip


def bird(rng: np.random.Generator) -> list[Shape]:
    """Draw a standing bird, sometimes with a lifted wing."""
    lift = float(rng.choice([0.0, 0.0, 0.42]))
    wing = soft("dark", (0.3, 0.48), (0.5, 0.42), (0.62, 0.55), (0.42, 0.68), (0.2, 0.66))
    if lift:
        wing = soft("dark", (0.38, 0.52), (0.3, 0.2), (0.2, 0.02), (0.48, 0.12), (0.62, 0.46))
    return [
        bar("wood", 0.03, (0.46, 0.72), (0.45, 0.98), (0.53, 0.98)), bar("wood", 0.03, (0.58, 0.72),
            (0.58, 0.98), (0.66, 0.98)),
        poly("dark", (0.28, 0.5), (0.0, 0.44), (0.02, 0.66), (0.3, 0.66)),
        soft("main", (0.2, 0.56), (0.4, 0.36), (0.62, 0.34), (0.74, 0.5), (0.66, 0.72), (0.44, 0.8), (0.26, 0.7)),
        oval("main", 0.73, 0.3, 0.15, 0.17),
        poly("glow", (0.86, 0.24), (1.0, 0.32), (0.86, 0.38)),
        wing, *_eye(0.77, 0.26, 0.02),
    ]  # fmt: skip


def cat(rng: np.random.Generator) -> list[Shape]:
    """Draw a sitting cat, facing the viewer, with its tail up."""
    tail = float(rng.uniform(0.05, 0.3))
    return [
        bar("dark", 0.075, (0.3, 0.92), (0.08, 0.84), (0.06, 0.58), (0.14, tail + 0.1), smooth=True),
        soft("main", (0.3, 0.6), (0.5, 0.42), (0.72, 0.52), (0.82, 0.8), (0.8, 0.98), (0.28, 0.98), (0.22, 0.8)),
        oval("light", 0.54, 0.76, 0.11, 0.17),
        oval("main", 0.43, 0.95, 0.08, 0.05), oval("main", 0.64, 0.95, 0.08, 0.05),
        poly("main", (0.3, 0.26), (0.28, 0.0), (0.5, 0.13)), poly("main", (0.6, 0.13), (0.82, 0.0), (0.8, 0.26)),
        poly("light", (0.34, 0.2), (0.33, 0.08), (0.43, 0.14)), poly("light", (0.67, 0.14), (0.77, 0.08),
            (0.76, 0.2)),
        oval("main", 0.55, 0.31, 0.27, 0.21),
        oval("glow", 0.45, 0.28, 0.05, 0.055), oval("glow", 0.65, 0.28, 0.05, 0.055),
        oval("ink", 0.45, 0.28, 0.018, 0.05), oval("ink", 0.65, 0.28, 0.018, 0.05),
        poly("ink", (0.52, 0.37), (0.58, 0.37), (0.55, 0.41)),
        bar("ink", 0.012, (0.36, 0.4), (0.16, 0.36)), bar("ink", 0.012, (0.36, 0.43), (0.17, 0.46)),
        bar("ink", 0.012, (0.74, 0.4), (0.94, 0.36)), bar("ink", 0.012, (0.74, 0.43), (0.93, 0.46)),
    ]  # fmt: skip


def cow(rng: np.random.Generator) -> list[Shape]:
    """Draw a cow: horns, an udder and patches."""
    patch = "snow"
    return [
        bar("dark", 0.025, (0.08, 0.34), (0.02, 0.5), (0.04, 0.7), smooth=True),
            oval("ink", 0.04, 0.72, 0.022, 0.05),
        *_legs(rng, (0.16, 0.25, 0.58, 0.67), 0.6, 0.09), oval("skin", 0.36, 0.74, 0.09, 0.07),
        rounded("main", 0.06, 0.26, 0.74, 0.72, 0.14),
        oval(patch, 0.24, 0.42, 0.1, 0.11), oval(patch, 0.5, 0.56, 0.1, 0.09), oval(patch, 0.52, 0.33, 0.06, 0.05),
        poly("main", (0.62, 0.3), (0.78, 0.16), (0.86, 0.4), (0.7, 0.6)),
        bar("cream", 0.035, (0.76, 0.16), (0.7, 0.06), (0.75, 0.0), smooth=True),
        bar("cream", 0.035, (0.9, 0.16), (0.97, 0.07), (0.93, 0.0), smooth=True),
        poly("dark", (0.75, 0.18), (0.62, 0.16), (0.72, 0.27)),
        soft("main", (0.74, 0.16), (0.84, 0.12), (0.93, 0.18), (0.96, 0.42), (0.84, 0.44), (0.76, 0.34)),
        oval("skin", 0.91, 0.42, 0.085, 0.08), oval("ink", 0.94, 0.4, 0.014, 0.018),
        *_eye(0.85, 0.24),
    ]  # fmt: skip


def dog(rng: np.random.Generator) -> list[Shape]:
    """Draw a dog: a hanging ear, a muzzle and a raised tail."""
    tip = float(rng.uniform(0.0, 0.14))
    return [
        bar("main", 0.06, (0.14, 0.5), (0.05, 0.34), (0.07, 0.12 + tip), smooth=True),
        *_legs(rng, (0.19, 0.29, 0.57, 0.66), 0.58, 0.1),
        soft("main", (0.1, 0.52), (0.18, 0.42), (0.45, 0.44), (0.66, 0.36), (0.74, 0.52), (0.64, 0.72),
            (0.4, 0.68), (0.18, 0.74)),
        taper("main", 0.22, 0.18, (0.64, 0.56), (0.74, 0.26)),
        soft("main", (0.64, 0.14), (0.76, 0.06), (0.86, 0.16), (0.99, 0.24), (0.98, 0.35), (0.84, 0.38),
            (0.7, 0.36)),
        bar("light", 0.045, (0.63, 0.45), (0.77, 0.5)),
        soft("dark", (0.68, 0.1), (0.76, 0.12), (0.76, 0.34), (0.69, 0.44), (0.62, 0.34)),
        oval("ink", 0.975, 0.25, 0.028, 0.032), *_eye(0.83, 0.18),
    ]  # fmt: skip


def elephant(rng: np.random.Generator) -> list[Shape]:
    """Draw an elephant: a trunk, a tusk and a large ear."""
    curl = float(rng.uniform(-0.06, 0.06))
    return [
        bar("dark", 0.025, (0.06, 0.36), (0.01, 0.56), (0.03, 0.66), smooth=True),
        *_legs(rng, (0.18, 0.31, 0.5, 0.62), 0.6, 0.16),
        soft("main", (0.05, 0.44), (0.14, 0.16), (0.4, 0.06), (0.62, 0.14), (0.72, 0.4), (0.62, 0.74),
            (0.3, 0.78), (0.08, 0.7)),
        bar("main", 0.1, (0.84, 0.34), (0.93, 0.56), (0.9, 0.82), (0.97 + curl, 0.9), smooth=True),
        oval("main", 0.76, 0.28, 0.15, 0.22), poly("cream", (0.8, 0.46), (0.86, 0.44), (0.98, 0.6)),
        soft("dark", (0.6, 0.08), (0.72, 0.14), (0.74, 0.4), (0.64, 0.56), (0.52, 0.42), (0.5, 0.18)),
        *_eye(0.82, 0.24),
    ]  # fmt: skip


def giraffe(rng: np.random.Generator) -> list[Shape]:
    """Draw a giraffe: a long neck and spots."""
    spots: tuple[XY, ...] = (
        (0.24, 0.56),
        (0.38, 0.53),
        (0.5, 0.6),
        (0.33, 0.64),
        (0.57, 0.45),
        (0.63, 0.33),
        (0.67, 0.22),
    )
    return [
        bar("dark", 0.03, (0.13, 0.54), (0.05, 0.62), (0.06, 0.74), smooth=True),
        *_legs(rng, (0.2, 0.28, 0.48, 0.56), 0.62, 0.085),
        soft("main", (0.1, 0.56), (0.2, 0.48), (0.42, 0.46), (0.6, 0.42), (0.64, 0.58), (0.5, 0.7), (0.22, 0.7)),
        taper("main", 0.2, 0.12, (0.55, 0.58), (0.74, 0.1)),
        *(oval("dark", x, y, 0.045, 0.032) for x, y in spots),
        bar("dark", 0.03, (0.73, 0.08), (0.71, 0.0)), bar("dark", 0.03, (0.8, 0.07), (0.8, 0.0)),
        soft("main", (0.67, 0.08), (0.78, 0.04), (0.98, 0.13), (0.97, 0.19), (0.8, 0.19), (0.69, 0.17)),
        *_eye(0.81, 0.1, 0.017),
    ]  # fmt: skip


def horse(rng: np.random.Generator) -> list[Shape]:
    """Draw a horse: a mane, a flowing tail and a long face."""
    return [
        soft("deep", (0.12, 0.4), (0.04, 0.44), (0.0, 0.66), (0.05, 0.78), (0.1, 0.6), (0.16, 0.5)),
        *_legs(rng, (0.18, 0.26, 0.56, 0.64), 0.6, 0.085),
        soft("main", (0.1, 0.46), (0.2, 0.36), (0.42, 0.4), (0.6, 0.34), (0.72, 0.46), (0.66, 0.64),
            (0.42, 0.66), (0.18, 0.68)),
        taper("main", 0.25, 0.16, (0.62, 0.52), (0.79, 0.15)),
        poly("main", (0.76, 0.1), (0.79, 0.0), (0.85, 0.1)),
        soft("main", (0.73, 0.1), (0.84, 0.07), (0.92, 0.2), (1.0, 0.34), (0.94, 0.4), (0.84, 0.32), (0.74, 0.26)),
        soft("deep", (0.76, 0.05), (0.7, 0.08), (0.56, 0.3), (0.5, 0.44), (0.6, 0.4), (0.72, 0.2)),
        *_eye(0.85, 0.17), oval("ink", 0.965, 0.34, 0.012),
    ]  # fmt: skip


def person(rng: np.random.Generator) -> list[Shape]:
    """Draw a person with clothes of the colour."""
    left_arm, right = (float(value) for value in rng.uniform(0.0, 0.12, 2))
    return [
        taper("dark", 0.2, 0.15, (0.39, 0.55), (0.34, 0.95)), taper("dark", 0.2, 0.15, (0.61, 0.55), (0.66, 0.95)),
        rounded("ink", 0.18, 0.94, 0.44, 1.0, 0.02), rounded("ink", 0.56, 0.94, 0.82, 1.0, 0.02),
        taper("main", 0.16, 0.12, (0.28, 0.27), (0.06 + left_arm, 0.5)), taper("main", 0.16, 0.12, (0.72, 0.27),
            (0.94 - right, 0.5)),
        oval("skin", 0.07 + left_arm, 0.525, 0.07, 0.03), oval("skin", 0.93 - right, 0.525, 0.07, 0.03),
        rounded("main", 0.24, 0.21, 0.76, 0.6, 0.1), rect("skin", 0.43, 0.16, 0.57, 0.23),
        oval("skin", 0.5, 0.105, 0.2, 0.09), arc("ink", 0.5, 0.095, 0.22, 0.095, 0.5, 1.0),
        oval("ink", 0.42, 0.115, 0.025, 0.01), oval("ink", 0.58, 0.115, 0.025, 0.01),
    ]  # fmt: skip


def sheep(rng: np.random.Generator) -> list[Shape]:
    """Draw a sheep: curly wool, a dark face and thin legs."""
    wool = [
        oval("main", 0.42 + dx, 0.43 + dy, 0.15, 0.17)
        for dx, dy in ((-0.25, 0.05), (-0.17, -0.16), (0.0, -0.22), (0.17, -0.16), (0.25, 0.04), (0.16, 0.18),
            (0.0, 0.22), (-0.17, 0.19))
    ]  # fmt: skip
    curls = [
        hump
        for x, y in ((0.3, 0.36), (0.5, 0.32), (0.38, 0.54), (0.56, 0.52))
        for hump in (oval("light", x, y, 0.07, 0.07),)
    ]
    legs = [
        bar("ink", 0.055, (x, 0.66), (x + float(step), 1.0))
        for x, step in zip((0.25, 0.35, 0.53, 0.62), rng.uniform(-0.02, 0.02, 4), strict=True)
    ]
    return [
        *legs, *wool, oval("main", 0.42, 0.43, 0.3, 0.26), *curls,
        poly("ink", (0.7, 0.24), (0.6, 0.34), (0.72, 0.36)), oval("ink", 0.83, 0.36, 0.14, 0.16),
        oval("main", 0.78, 0.2, 0.11, 0.08), oval("snow", 0.87, 0.32, 0.025, 0.03),
            oval("ink", 0.875, 0.325, 0.012, 0.016),
    ]  # fmt: skip
