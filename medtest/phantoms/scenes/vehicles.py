"""Sprites of vehicles and other moving things, seen from the side, with fronts to the right."""

from __future__ import annotations

import numpy as np

from medtest.phantoms.scenes.shapes import Shape, bar, hoop, oval, poly, rect, rounded, soft, wheel


def airplane(rng: np.random.Generator) -> list[Shape]:
    """Draw an aeroplane: fuselage, two wings and a tail fin."""
    sweep = float(rng.uniform(-0.05, 0.05))
    return [
        poly("dark", (0.44, 0.4), (0.34 + sweep, 0.06), (0.42 + sweep, 0.06), (0.62, 0.42)),
        poly("main", (0.04, 0.1), (0.14, 0.1), (0.28, 0.42), (0.08, 0.46)),
        soft("main", (0.02, 0.44), (0.2, 0.38), (0.7, 0.36), (0.92, 0.42), (1.0, 0.52), (0.9, 0.6),
            (0.6, 0.63), (0.2, 0.58)),
        poly("glass", (0.86, 0.41), (0.93, 0.45), (0.93, 0.5), (0.84, 0.49)),
        *(oval("glass", x, 0.47, 0.018, 0.028) for x in (0.34, 0.42, 0.5, 0.58, 0.66, 0.74)),
        poly("light", (0.4, 0.55), (0.6, 0.54), (0.36 + sweep, 0.98), (0.24 + sweep, 0.98)),
        poly("dark", (0.04, 0.48), (0.16, 0.48), (0.06, 0.66), (0.0, 0.66)),
    ]  # fmt: skip


def bike(rng: np.random.Generator) -> list[Shape]:
    """Draw a bicycle: two open wheels and a frame."""
    seat = float(rng.uniform(0.1, 0.18))
    return [
        *(hoop("tyre", x, 0.68, 0.21, 0.32, 0.035, 0.05) for x in (0.21, 0.79)),
        *(bar("metal", 0.012, (x - dx, 0.68 - dy),
            (x + dx, 0.68 + dy)) for x in (0.21, 0.79) for dx, dy in ((0.17, 0.0), (0.0, 0.26))),
        bar("main", 0.055, (0.21, 0.68), (0.34, 0.3), (0.66, 0.3), (0.46, 0.68), (0.21, 0.68)),
        bar("main", 0.05, (0.46, 0.68), (0.32, seat + 0.06)), bar("main", 0.055, (0.79, 0.68), (0.65, 0.12)),
        rounded("ink", 0.22, seat, 0.42, seat + 0.08, 0.03), bar("ink", 0.045, (0.58, 0.04), (0.66, 0.1),
            (0.75, 0.06)),
        oval("metal", 0.46, 0.68, 0.05, 0.075),
    ]  # fmt: skip


def boat(rng: np.random.Generator) -> list[Shape]:
    """Draw a sailing boat: a coloured hull, a mast and sails."""
    fore = float(rng.uniform(0.3, 0.4))
    return [
        rect("wood", 0.47, 0.0, 0.51, 0.74),
        poly("cream", (0.53, 0.04), (0.93, 0.66), (0.53, 0.66)), poly("light", (0.45, 0.12), (0.45, 0.66),
            (0.45 - fore, 0.66)),
        poly("main", (0.0, 0.72), (1.0, 0.72), (0.84, 1.0), (0.14, 1.0)), poly("dark", (0.0, 0.72),
            (1.0, 0.72), (0.965, 0.79), (0.035, 0.79)),
    ]  # fmt: skip


def bus(rng: np.random.Generator) -> list[Shape]:
    """Draw a bus: a long box with a row of windows and a door."""
    count = int(rng.integers(4, 6))
    step = 0.66 / count
    return [
        rounded("main", 0.0, 0.02, 1.0, 0.86, 0.08), rect("dark", 0.0, 0.62, 1.0, 0.7),
        *(rounded("glass", 0.05 + k * step, 0.16, 0.05 + (k + 0.82) * step, 0.46, 0.02) for k in range(count)),
        rounded("glass", 0.74, 0.16, 0.84, 0.8, 0.02), poly("glass", (0.88, 0.16), (0.97, 0.16), (0.98, 0.48),
            (0.88, 0.48)),
        *wheel(0.2, 0.85, 0.085, 0.15), *wheel(0.68, 0.85, 0.085, 0.15), oval("glow", 0.975, 0.68, 0.02, 0.04),
    ]  # fmt: skip


def car(rng: np.random.Generator) -> list[Shape]:
    """Draw a car: a low body with a cabin."""
    roof = float(rng.uniform(-0.04, 0.04))
    return [
        soft("main", (0.17, 0.44), (0.28 + roof, 0.06), (0.6 + roof, 0.04), (0.78, 0.42), (0.5, 0.5)),
        soft("main", (0.01, 0.55), (0.1, 0.42), (0.5, 0.4), (0.8, 0.4), (0.97, 0.5), (0.99, 0.78), (0.5, 0.82),
            (0.02, 0.78)),
        poly("glass", (0.25, 0.4), (0.32 + roof, 0.15), (0.45, 0.14), (0.45, 0.4)), poly("glass", (0.49, 0.4),
            (0.49, 0.14), (0.59 + roof, 0.14), (0.7, 0.4)),
        bar("dark", 0.025, (0.06, 0.6), (0.95, 0.6)), bar("ink", 0.03, (0.52, 0.5), (0.58, 0.5)),
        *wheel(0.23, 0.78, 0.115, 0.215), *wheel(0.77, 0.78, 0.115, 0.215), oval("glow", 0.955, 0.55, 0.025, 0.045),
    ]  # fmt: skip


def motorcycle(rng: np.random.Generator) -> list[Shape]:
    """Draw a motorcycle: two fat wheels, a tank and an exhaust pipe."""
    bars_ = float(rng.uniform(0.0, 0.08))
    return [
        *wheel(0.2, 0.7, 0.2, 0.3), *wheel(0.8, 0.7, 0.2, 0.3),
        bar("metal", 0.06, (0.82, 0.7), (0.68, 0.16)), bar("ink", 0.05, (0.56, 0.05 + bars_),
            (0.66, 0.1 + bars_), (0.74, 0.04)),
        rounded("metal", 0.36, 0.54, 0.6, 0.8, 0.06), bar("metal", 0.06, (0.5, 0.8), (0.3, 0.86), (0.06, 0.84)),
        soft("main", (0.0, 0.42), (0.1, 0.34), (0.36, 0.42), (0.56, 0.24), (0.72, 0.3), (0.68, 0.52),
            (0.4, 0.58), (0.16, 0.5)),
        soft("ink", (0.08, 0.34), (0.22, 0.3), (0.42, 0.34), (0.42, 0.42), (0.2, 0.42)),
            oval("glow", 0.76, 0.26, 0.045, 0.07),
    ]  # fmt: skip


def train(rng: np.random.Generator) -> list[Shape]:
    """Draw a steam engine: a boiler, a chimney, a cab and a row of wheels."""
    stack = float(rng.uniform(0.74, 0.82))
    return [
        poly("dark", (stack - 0.04, 0.34), (stack - 0.065, 0.02), (stack + 0.065, 0.02), (stack + 0.04, 0.34)),
        rounded("dark", 0.47, 0.22, 0.57, 0.4, 0.03),
        rounded("main", 0.28, 0.32, 0.95, 0.72, 0.08), rect("main", 0.03, 0.06, 0.36, 0.74),
            rect("dark", 0.0, 0.0, 0.4, 0.09),
        rect("glass", 0.1, 0.18, 0.29, 0.42), *(rect("light", x, 0.32, x + 0.025, 0.72) for x in (0.52, 0.68)),
        rect("ink", 0.02, 0.7, 0.98, 0.8), poly("dark", (0.9, 0.72), (1.0, 0.98), (0.86, 0.98)),
        *wheel(0.16, 0.83, 0.09, 0.165), *wheel(0.37, 0.83, 0.09, 0.165), *wheel(0.58, 0.87, 0.065, 0.125),
            *wheel(0.76, 0.87, 0.065, 0.125),
        oval("glow", 0.955, 0.42, 0.03, 0.06),
    ]  # fmt: skip


def truck(rng: np.random.Generator) -> list[Shape]:
    """Draw a lorry: a tall cargo box behind a lower cab."""
    end = float(rng.uniform(0.6, 0.66))
    return [
        rect("ink", 0.02, 0.74, 0.96, 0.84), rect("main", 0.0, 0.0, end, 0.76),
        *(rect("dark", x, 0.04, x + 0.02, 0.72) for x in (0.12, 0.25, 0.38, 0.51)),
        soft("light", (end + 0.03, 0.26), (end + 0.18, 0.22), (0.92, 0.46), (0.99, 0.56), (0.98, 0.8),
            (end + 0.04, 0.8)),
        poly("glass", (end + 0.11, 0.3), (end + 0.19, 0.3), (0.9, 0.5), (end + 0.11, 0.5)),
        *wheel(0.15, 0.84, 0.085, 0.16), *wheel(0.36, 0.84, 0.085, 0.16), *wheel(0.83, 0.84, 0.085, 0.16),
            oval("glow", 0.97, 0.66, 0.02, 0.045),
    ]  # fmt: skip


def skateboard(rng: np.random.Generator) -> list[Shape]:
    """Draw a skateboard from the side."""
    bent = float(rng.uniform(0.0, 0.1))
    return [
        *(rect("metal", x - 0.05, 0.45, x + 0.05, 0.7) for x in (0.25, 0.75)),
        bar("main", 0.24, (0.02, 0.1), (0.14, 0.34 + bent), (0.5, 0.4 + bent), (0.86, 0.34 + bent),
            (0.98, 0.1), smooth=True),
        *wheel(0.25, 0.8, 0.085, 0.2), *wheel(0.75, 0.8, 0.085, 0.2),
    ]  # fmt: skip


def surfboard(rng: np.random.Generator) -> list[Shape]:
    """Draw an upright surfboard."""
    return [
        soft("main", (0.5, 0.0), (0.8, 0.2), (0.96, 0.5), (0.84, 0.84), (0.5, 1.0), (0.16, 0.84), (0.04, 0.5),
            (0.2, 0.2)),
        poly("light", (0.3, 0.3), (0.7, 0.24), (0.78, 0.36), (0.22, 0.42)), poly("light", (0.2, 0.48),
            (0.8, 0.42), (0.82, 0.48), (0.18, 0.54)),
        bar("dark", 0.045, (0.5, 0.04), (0.5, 0.96)), poly("ink", (0.46, 0.82), (0.54, 0.82), (0.5, 0.92)),
    ]  # fmt: skip


def kite(rng: np.random.Generator) -> list[Shape]:
    """Draw a kite with a tail of bows."""
    sway = float(rng.uniform(-0.12, 0.12))
    tail = ((0.5, 0.62), (0.5 + sway, 0.74), (0.5 - sway, 0.86), (0.5 + sway, 0.98))
    bows = [
        poly("main", (x - 0.11, y - 0.03), (x + 0.11, y + 0.03), (x + 0.11, y - 0.03), (x - 0.11, y + 0.03))
        for x, y in tail[1:]
    ]
    return [
        bar("ink", 0.025, *tail, smooth=True),
        poly("main", (0.5, 0.0), (1.0, 0.26), (0.5, 0.64), (0.0, 0.26)),
        poly("light", (0.5, 0.0), (1.0, 0.26), (0.5, 0.26)), poly("dark", (0.0, 0.26), (0.5, 0.26),
            (0.5, 0.64)), *bows,
    ]  # fmt: skip
