"""Sprites of furniture, vessels, plants and other things."""

from __future__ import annotations

import numpy as np

from medtest.phantoms.drawing import unit
from medtest.phantoms.scenes.shapes import Shape, arc, bar, hoop, oval, poly, rect, rounded, soft, taper


def ball(rng: np.random.Generator) -> list[Shape]:
    """Draw a beach ball with light stripes."""
    turn = float(rng.uniform())
    stripes = []
    for k in range(3):
        ends = [unit(turn + (k + share) / 3.0) for share in (0.0, 0.09, 0.18)]
        stripes.append(poly("snow", (0.46, 0.42), *((0.5 + 0.5 * c, 0.5 + 0.5 * s) for c, s in ends)))
    return [oval("main", 0.5, 0.5, 0.5), *stripes, oval("main", 0.46, 0.42, 0.1)]


def bed(rng: np.random.Generator) -> list[Shape]:
    """Draw a bed from the side: boards, a pillow and a coloured blanket."""
    fold = float(rng.uniform(0.3, 0.4))
    return [
        rect("wood", 0.0, 0.0, 0.06, 1.0), rect("wood", 0.94, 0.3, 1.0, 1.0), rect("wood", 0.04, 0.74, 0.96, 0.86),
        rounded("cream", 0.05, 0.5, 0.95, 0.76, 0.04), rounded("snow", 0.08, 0.3, 0.32, 0.54, 0.09),
        soft("main", (fold, 0.42), (0.6, 0.34), (0.9, 0.4), (0.96, 0.6), (0.94, 0.86), (0.6, 0.88),
            (fold - 0.02, 0.84)),
        bar("light", 0.05, (fold + 0.03, 0.44), (fold + 0.02, 0.83)),
    ]  # fmt: skip


def bench(rng: np.random.Generator) -> list[Shape]:
    """Draw a park bench: coloured slats on iron legs."""
    gap = float(rng.uniform(0.14, 0.17))
    return [
        *(bar("ink", 0.04, (x, 0.02), (x, 1.0)) for x in (0.1, 0.9)),
        *(bar("ink", 0.03, (x, 0.66), (x, 0.96)) for x in (0.22, 0.78)),
        *(rounded("main", 0.0, 0.05 + k * gap, 1.0, 0.15 + k * gap, 0.02) for k in range(3)),
        rounded("dark", 0.0, 0.55, 1.0, 0.67, 0.02),
    ]  # fmt: skip


def book(rng: np.random.Generator) -> list[Shape]:
    """Draw an open book: a coloured cover around two pages."""
    lines = [
        bar("metal", 0.02, (left, 0.2 + 0.14 * k), (right, 0.26 + 0.14 * k))
        for k in range(4)
        for left, right in ((0.12, 0.42),)
    ]
    return [
        poly("main", (0.0, 0.06), (0.5, 0.2), (1.0, 0.06), (1.0, 0.88), (0.5, 1.0), (0.0, 0.88)),
        soft("cream", (0.07, 0.04), (0.3, 0.03), (0.49, 0.16), (0.49, 0.86), (0.3, 0.78), (0.07, 0.78)),
        soft("cream", (0.93, 0.04), (0.7, 0.03), (0.51, 0.16), (0.51, 0.86), (0.7, 0.78), (0.93, 0.78)),
        *lines, *(bar("metal", 0.02, (0.58, 0.26 + 0.14 * k), (0.88, 0.2 + 0.14 * k)) for k in range(4)),
        poly("main", (0.74, 0.0), (0.82, 0.0), (0.82, 0.4), (0.78, 0.34), (0.74, 0.4)),
    ]  # fmt: skip


def bottle(rng: np.random.Generator) -> list[Shape]:
    """Draw a bottle with a label and a cork."""
    shoulder = float(rng.uniform(0.34, 0.42))
    return [
        rect("wood", 0.36, 0.0, 0.64, 0.08), rounded("dark", 0.3, 0.06, 0.7, 0.12, 0.02),
        poly("main", (0.34, 0.1), (0.66, 0.1), (0.66, 0.24), (0.98, shoulder), (0.98, 0.96), (0.92, 1.0),
            (0.08, 1.0), (0.02, 0.96), (0.02, shoulder), (0.34, 0.24)),
        rect("cream", 0.02, 0.54, 0.98, 0.8), rect("light", 0.14, shoulder + 0.02, 0.26, 0.52),
            bar("metal", 0.025, (0.2, 0.64), (0.8, 0.64)),
        bar("metal", 0.025, (0.3, 0.71), (0.7, 0.71)),
    ]  # fmt: skip


def bowl(rng: np.random.Generator) -> list[Shape]:
    """Draw a bowl on a foot."""
    foot = float(rng.uniform(0.14, 0.2))
    return [
        rect("dark", 0.5 - foot, 0.86, 0.5 + foot, 1.0), arc("main", 0.5, 0.2, 0.5, 0.74, 0.0, 0.5),
        oval("light", 0.5, 0.2, 0.5, 0.18), oval("dark", 0.5, 0.22, 0.42, 0.12),
            bar("light", 0.06, (0.07, 0.52), (0.5, 0.6), (0.93, 0.52), smooth=True),
    ]  # fmt: skip


def chair(rng: np.random.Generator) -> list[Shape]:
    """Draw a chair from the side: a back with rungs, a seat and legs."""
    lean = float(rng.uniform(0.0, 0.08))
    return [
        bar("dark", 0.09, (0.24, 0.56), (0.24, 0.98)), bar("dark", 0.09, (0.9, 0.56), (0.9, 0.98)),
        bar("main", 0.11, (0.06, 0.02), (0.1 + lean, 0.54), (0.06, 1.0)), bar("main", 0.1, (0.78, 0.56),
            (0.78, 1.0)),
        bar("main", 0.1, (0.32, 0.04), (0.34, 0.5)),
        *(bar("main", 0.06, (0.06, y), (0.34, y + 0.01)) for y in (0.08, 0.22, 0.36)),
        poly("light", (0.06, 0.5), (0.88, 0.5), (1.0, 0.57), (0.14, 0.57)), rect("main", 0.1, 0.56, 1.0, 0.63),
            bar("dark", 0.05, (0.1, 0.8), (0.8, 0.8)),
    ]  # fmt: skip


def clock(rng: np.random.Generator) -> list[Shape]:
    """Draw an alarm clock: two bells, a coloured rim, a face and hands."""
    hands = []
    for length, turn in zip((0.26, 0.17), rng.uniform(0.0, 1.0, 2), strict=True):
        c, s = unit(float(turn))
        hands.append(bar("ink", 0.04, (0.5, 0.54), (0.5 + length * c, 0.54 + length * s)))
    ticks = [unit(k / 12.0) for k in range(12)]
    return [
        bar("ink", 0.07, (0.28, 0.84), (0.18, 1.0)), bar("ink", 0.07, (0.72, 0.84), (0.82, 1.0)),
        oval("dark", 0.22, 0.15, 0.17, 0.13), oval("dark", 0.78, 0.15, 0.17, 0.13),
            oval("metal", 0.5, 0.06, 0.05, 0.06),
        oval("main", 0.5, 0.54, 0.46, 0.44), oval("snow", 0.5, 0.54, 0.31, 0.3),
        *(oval("ink", 0.5 + 0.26 * c, 0.54 + 0.25 * s, 0.02) for c, s in ticks),
            *hands, oval("ink", 0.5, 0.54, 0.035),
    ]  # fmt: skip


def cup(rng: np.random.Generator) -> list[Shape]:
    """Draw a cup with a handle."""
    low = float(rng.uniform(0.12, 0.2))
    return [
        hoop("dark", 0.76, 0.46, 0.24, 0.26, 0.08, 0.09),
        poly("main", (0.0, 0.1), (0.76, 0.1), (0.76 - 0.5 * low, 0.94), (0.5 * low, 0.94)),
            arc("main", 0.38, 0.93, 0.38 - 0.5 * low, 0.07, 0.0, 0.5),
        oval("light", 0.38, 0.11, 0.38, 0.11), oval("wood", 0.38, 0.13, 0.31, 0.07),
            bar("light", 0.05, (0.15, 0.3), (0.2, 0.8)),
    ]  # fmt: skip


def flag(rng: np.random.Generator) -> list[Shape]:
    """Draw a waving flag on a pole."""
    wave = float(rng.uniform(0.03, 0.07))
    top = [(0.1 + 0.9 * k / 8.0, 0.08 + wave * unit(k / 8.0)[1]) for k in range(9)]
    low = [(x, y + 0.46) for x, y in reversed(top)]
    band = [(x, y + 0.16) for x, y in top] + [(x, y - 0.16) for x, y in low]
    return [
        rect("wood", 0.03, 0.02, 0.1, 1.0), oval("glow", 0.065, 0.02, 0.06, 0.035),
        poly("main", *top, *low), poly("light", *band), poly("metal", (0.0, 0.97), (0.14, 0.97), (0.14, 1.0),
            (0.0, 1.0)),
    ]  # fmt: skip


def flower(rng: np.random.Generator) -> list[Shape]:
    """Draw a flower: coloured petals on a stem with leaves."""
    count, turn = int(rng.integers(5, 8)), float(rng.uniform())
    around = [unit(turn + k / count) for k in range(count)]
    return [
        bar("leaf", 0.055, (0.5, 0.4), (0.52, 0.7), (0.5, 1.0), smooth=True),
        soft("leaf", (0.52, 0.84), (0.7, 0.66), (0.94, 0.68), (0.76, 0.84)), soft("leaf", (0.5, 0.92),
            (0.3, 0.74), (0.06, 0.76), (0.24, 0.92)),
        *(oval("main", 0.5 + 0.3 * c, 0.3 + 0.19 * s, 0.19, 0.12) for c, s in around),
        oval("dark", 0.5, 0.3, 0.2, 0.125), oval("glow", 0.5, 0.3, 0.15, 0.095),
    ]  # fmt: skip


def hat(rng: np.random.Generator) -> list[Shape]:
    """Draw a hat with a brim and a ribbon."""
    dent = float(rng.uniform(0.02, 0.14))
    return [
        soft("main", (0.0, 0.8), (0.12, 0.72), (0.5, 0.8), (0.88, 0.72), (1.0, 0.8), (0.84, 0.96), (0.5, 1.0),
            (0.16, 0.96)),
        soft("main", (0.24, 0.84), (0.26, 0.3), (0.34, 0.04), (0.5, dent), (0.66, 0.04), (0.74, 0.3),
            (0.76, 0.84), (0.5, 0.9)),
        poly("dark", (0.24, 0.6), (0.5, 0.66), (0.76, 0.6), (0.765, 0.8), (0.5, 0.87), (0.235, 0.8)),
    ]  # fmt: skip


def house(rng: np.random.Generator) -> list[Shape]:
    """Draw a house: coloured walls, a dark roof, a door and a window."""
    door = float(rng.choice([0.2, 0.56]))
    other = 0.76 - door
    return [
        rect("wood", 0.7, 0.06, 0.82, 0.34), rect("main", 0.09, 0.4, 0.91, 1.0), poly("dark", (0.0, 0.44),
            (0.5, 0.0), (1.0, 0.44)),
        rect("wood", door, 0.62, door + 0.22, 1.0), oval("glow", door + 0.18, 0.82, 0.02),
            rect("glass", other, 0.58, other + 0.24, 0.82),
        bar("snow", 0.025, (other + 0.12, 0.58), (other + 0.12, 0.82)), bar("snow", 0.025, (other, 0.7),
            (other + 0.24, 0.7)), oval("glass", 0.5, 0.27, 0.075),
    ]  # fmt: skip


def lamp(rng: np.random.Generator) -> list[Shape]:
    """Draw a table lamp: a coloured shade on a foot."""
    top = float(rng.uniform(0.22, 0.3))
    return [
        rect("metal", 0.45, 0.4, 0.55, 0.92), rounded("metal", 0.22, 0.9, 0.78, 1.0, 0.04),
            oval("glow", 0.5, 0.46, 0.16, 0.08),
        poly("main", (top, 0.0), (1.0 - top, 0.0), (1.0, 0.46), (0.0, 0.46)), poly("light", (top + 0.06, 0.0),
            (0.46, 0.0), (0.4, 0.46), (0.16, 0.46)),
        bar("ink", 0.025, (0.68, 0.46), (0.68, 0.62)),
    ]  # fmt: skip


def laptop(rng: np.random.Generator) -> list[Shape]:
    """Draw an open laptop: a coloured lid around a screen, and keys."""
    deep = float(rng.uniform(0.02, 0.08))
    keys = [
        rect("ink", 0.2 + 0.1 * k + shift, y, 0.275 + 0.1 * k + shift, y + 0.05)
        for y, shift in ((0.78, 0.0), (0.86, 0.0))
        for k in range(6)
    ]
    return [
        rounded("main", 0.12, 0.0, 0.88, 0.7, 0.05), rect("screen", 0.19, 0.09, 0.81, 0.61),
            poly("glass", (0.22, 0.12), (0.5, 0.12), (0.3, 0.58), (0.22, 0.58)),
        poly("light", (0.12, 0.71), (0.88, 0.71), (1.0 - 0.5 * deep, 0.94), (0.5 * deep, 0.94)),
            rect("dark", 0.5 * deep, 0.93, 1.0 - 0.5 * deep, 1.0), *keys,
    ]  # fmt: skip


def table(rng: np.random.Generator) -> list[Shape]:
    """Draw a table: a top, a drawer's board and four legs."""
    splay = float(rng.uniform(0.0, 0.05))
    return [
        *(taper("dark", 0.07, 0.05, (x, 0.2), (x, 0.86)) for x in (0.24, 0.76)),
        taper("main", 0.09, 0.06, (0.1, 0.2), (0.1 - splay, 1.0)), taper("main", 0.09, 0.06, (0.9, 0.2),
            (0.9 + splay, 1.0)),
        rect("dark", 0.06, 0.16, 0.94, 0.34), poly("light", (0.07, 0.0), (0.93, 0.0), (1.0, 0.12),
            (0.0, 0.12)), rect("main", 0.0, 0.11, 1.0, 0.2),
        oval("metal", 0.5, 0.27, 0.025, 0.03),
    ]  # fmt: skip


def tree(rng: np.random.Generator) -> list[Shape]:
    """Draw a tree: a coloured crown on a trunk."""
    humps = [
        oval(tone, 0.5 + dx + float(rng.uniform(-0.03, 0.03)), 0.36 + dy, 0.24, 0.19)
        for tone, dx, dy in (("dark", -0.24, 0.12), ("dark", 0.24, 0.12), ("main", -0.18, -0.08),
            ("main", 0.18, -0.08), ("main", 0.0, 0.12), ("main", 0.0, -0.17))
    ]  # fmt: skip
    return [
        poly("wood", (0.44, 0.5), (0.56, 0.5), (0.58, 0.9), (0.66, 1.0), (0.34, 1.0), (0.42, 0.9)),
        *humps, oval("light", 0.36, 0.22, 0.08, 0.05), oval("light", 0.56, 0.36, 0.08, 0.05),
            oval("light", 0.3, 0.46, 0.06, 0.04),
    ]  # fmt: skip


def umbrella(rng: np.random.Generator) -> list[Shape]:
    """Draw an open umbrella: a canopy with scallops on a crooked stick."""
    parts = []
    for k in range(4):
        left = k / 4.0
        parts.append(arc("main" if k % 2 else "light", left + 0.125, 0.5, 0.125, 0.07, 0.5, 1.0))
    crook = bar("wood", 0.05, (0.5, 0.3), (0.5, 0.86), (0.54, 0.97), (0.64, 0.97), (0.68, 0.86), smooth=True)
    canopy = [arc("main", 0.5, 0.52, 0.5, 0.46, 0.5, 1.0)]
    gores = [
        poly("light", (0.5, 0.06), (0.34, 0.2), (0.25, 0.5), (0.5, 0.5)), poly("dark", (0.5, 0.06),
            (0.66, 0.2), (0.75, 0.5), (0.86, 0.5), (0.8, 0.26)),
    ]  # fmt: skip
    hollow = float(rng.uniform(0.03, 0.06))
    rim = [oval("dark", 0.125 + 0.25 * k, 0.52, 0.125, hollow) for k in range(4)]
    return [bar("wood", 0.04, (0.5, 0.0), (0.5, 0.1)), crook, *canopy, *gores, *rim]


def vase(rng: np.random.Generator) -> list[Shape]:
    """Draw a vase with two bands."""
    belly = float(rng.uniform(0.5, 0.64))
    return [
        soft("main", (0.22, 0.04), (0.36, 0.2), (0.06, 0.4), (0.0, belly), (0.2, 0.88), (0.3, 1.0), (0.7, 1.0),
            (0.8, 0.88), (1.0, belly), (0.94, 0.4), (0.64, 0.2), (0.78, 0.04)),
        oval("dark", 0.5, 0.05, 0.29, 0.05), bar("light", 0.06, (0.05, 0.48), (0.5, 0.53), (0.95, 0.48),
            smooth=True),
        bar("light", 0.05, (0.06, 0.68), (0.5, 0.73), (0.94, 0.68), smooth=True),
            bar("dark", 0.03, (0.02, 0.58), (0.5, 0.63), (0.98, 0.58), smooth=True),
    ]  # fmt: skip
