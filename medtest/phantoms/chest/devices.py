"""Incidental objects on a radiograph: leads, tubes, a skin fold, nipples, the side's letter; none is a finding."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from medtest.core.cases import Json
from medtest.phantoms.chest.anatomy import Chest
from medtest.phantoms.drawing import Canvas, blob, curve, unit, wander
from medtest.phantoms.fields import Field, as_field, smoothstep


def draw_devices(rng: np.random.Generator, total: Field, chest: Chest) -> list[Json]:
    """Draw the objects in place and return their names."""
    in_bed = chest.build.portable
    devices: list[tuple[str, float, Callable[[np.random.Generator, Field, Chest], None]]] = [
        ("leads", 0.5 if in_bed else 0.12, _draw_leads),
        ("catheter", 0.35 if in_bed else 0.06, _catheter),
        ("skin_fold", 0.14, _skin_fold),
        ("nipples", 0.14, _nipples),
        ("letter", 0.7, _letter),
    ]
    drawn: list[Json] = []
    for name, probability, draw in devices:
        if rng.random() < probability:
            draw(rng, total, chest)
            drawn.append(name)
    return drawn


def _draw_leads(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    canvas = Canvas.over(chest.where)
    for _ in range(int(rng.integers(2, 4))):
        x, y = float(rng.uniform(-0.6, 0.6)), float(rng.uniform(-0.6, 0.4))
        canvas.disc(x, y, 0.02)
        line = wander(rng, (x, y), unit(float(rng.random())), step=0.07, count=16, bend=0.12)
        canvas.line(line, 0.008, 0.7)
    total += 0.25 * canvas.field()


def _catheter(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    side = -1.0 if rng.random() < 0.7 else 1.0
    canvas = Canvas.over(chest.where)
    tip = float(rng.uniform(-0.25, 0.0))
    points = [(side * 0.7, -0.95), (side * 0.4, -0.62), (side * 0.14, -0.58), (side * 0.07, -0.42), (-0.06, tip)]
    canvas.line(curve(points), 0.012)
    total += 0.15 * canvas.field()


def _skin_fold(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    """Draw an edge that resembles the pleura in pneumothorax, but with vessels beyond it."""
    side = -1.0 if rng.random() < 0.5 else 1.0
    canvas = Canvas.over(chest.where)
    x, y = side * float(rng.uniform(0.35, 0.58)), float(rng.uniform(-0.6, -0.2))
    line = wander(rng, (x, y), (0.1 * side, 0.995), step=0.06, count=9, bend=0.05)
    canvas.line(line, 0.011)
    total += 0.07 * canvas.field()


def _nipples(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    """Draw both nipples, which resemble nodules but form a pair at the same height."""
    x, y = float(rng.uniform(0.38, 0.5)), float(rng.uniform(0.08, 0.24))
    radius = float(rng.uniform(0.022, 0.032))
    for side in (-1.0, 1.0):
        near = chest.where.around(side * x, y, radius * 2.0)
        total[near.window] += 0.11 * smoothstep(blob(near, side * x, y, radius), -0.1, 0.5)


def _letter(rng: np.random.Generator, total: Field, chest: Chest) -> None:
    size = total.shape[0]
    left = rng.random() < 0.5
    canvas = np.zeros(total.shape, np.uint8)
    x = float(rng.uniform(0.02, 0.08)) if not left else float(rng.uniform(0.88, 0.95))
    at = (round(x * size), round(float(rng.uniform(0.08, 0.2)) * size))
    cv2.putText(
        canvas, "L" if left else "R", at, cv2.FONT_HERSHEY_SIMPLEX, 0.55 * size / 256.0, 255,
        max(1, round(1.4 * size / 256.0)), cv2.LINE_AA,
    )  # fmt: skip
    bright = as_field(canvas * np.float32(1.0 / 255.0))
    total += bright * np.maximum(np.float32(0.0), np.float32(0.98) - total)
