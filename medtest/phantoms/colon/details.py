"""Details on the wall at full size: vessels, highlights, liquid, the display's text."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.phantoms.fields import Field, as_field, direction, resize, smoothstep, value_noise


def _branch(
    rng: np.random.Generator,
    canvas: NDArray[np.uint8],
    start: tuple[float, float, float, float],
    width: float,
    step: float,
    depth: int,
) -> None:
    x, y, dx, dy = start
    count = int(rng.integers(8, 20))
    turns = rng.normal(0.0, 0.32, count)
    splits = rng.random(count)
    points = [(x, y)]
    for k in range(count):
        turn = float(turns[k])
        dx, dy = dx - turn * dy, dy + turn * dx
        length = (dx * dx + dy * dy) ** 0.5
        dx, dy = dx / length, dy / length
        x, y = x + dx * step, y + dy * step
        points.append((x, y))
        if depth and splits[k] < 0.22:
            side = 0.8 if splits[k] < 0.11 else -0.8
            child = (x, y, dx - side * dy, dy + side * dx)
            _branch(rng, canvas, child, width * 0.7, step * 0.85, depth - 1)
    fixed = np.round(np.array(points) * 16.0).astype(np.int32).reshape(-1, 1, 2)
    strength = int(min(255, 110 + 60 * width))
    cv2.polylines(canvas, [fixed], False, strength, max(1, round(width)), cv2.LINE_AA, 4)


def draw_vessels(rng: np.random.Generator, shape: tuple[int, int]) -> Field:
    """Return branching vessels, float32 H×W in [0, 1]."""
    height, width = shape
    unit = min(height, width) / 500.0
    canvas = np.zeros(shape, np.uint8)
    for _ in range(int(rng.integers(3, 9))):
        dx, dy = direction(rng)
        x, y = float(rng.uniform(0, width)), float(rng.uniform(0, height))
        _branch(rng, canvas, (x, y, dx, dy), float(rng.uniform(1.0, 3.2)) * unit, 16.0 * unit, 2)
    canvas = cv2.GaussianBlur(canvas, (0, 0), max(0.5, 1.1 * unit)).astype(np.uint8)
    # Fine vessels: sign changes of smooth noise draw thin winding lines that meet.
    half = (shape[0] // 2 + 1, shape[1] // 2 + 1)
    patchy = smoothstep(value_noise(rng, half, 75 * unit), -1.0, 0.9)
    net = np.zeros(half, np.float32)
    for cell, thin in ((30.0, 0.10), (15.0, 0.13)):
        lines = value_noise(rng, half, cell * unit) + 0.35 * value_noise(rng, half, 0.35 * cell * unit)
        net += np.clip(1.0 - np.abs(lines) * np.float32(1.0 / thin), 0.0, 1.0)
    total = resize(as_field(np.minimum(net, 1.0) * np.float32(0.9)), shape, smooth=False)
    total += canvas * np.float32(1 / 255)
    return as_field(total * resize(patchy, shape, smooth=False))


def draw_highlights(rng: np.random.Generator, shape: tuple[int, int], facing: Field) -> Field:
    """Return wet highlights, float32 H×W in [0, 1], clustered where the wall faces the light.

    Args:
        rng: Source of random numbers.
        shape: Rows and columns at full size.
        facing: float32 h×w at working size, larger for likelier highlights, about 0 on average.
    """
    unit = min(shape) / 500.0
    small = facing.shape
    ratio = small[0] / shape[0]
    cell = float(rng.uniform(4.0, 8.5)) * unit * ratio
    clusters = value_noise(rng, small, 60 * unit * ratio) + 0.5 * value_noise(rng, small, 20 * unit * ratio)
    # Streaks: cells are longer in one direction.
    lean = float(rng.uniform(0.7, 1.5))
    fine_rows = max(4, int(small[0] / (cell * lean)))
    fine_columns = max(4, int(small[1] * lean / cell))
    fine = resize(rng.standard_normal((fine_rows, fine_columns), dtype=np.float32), small)
    density = float(rng.uniform(2.9, 4.3))
    level = as_field(fine + 1.1 * clusters + 0.9 * facing - density)
    level = resize(level, shape, smooth=False)
    level += 0.22 * value_noise(rng, shape, 3.5 * unit, smooth=False)
    return smoothstep(level, 0.0, 0.6)


def draw_liquid(rng: np.random.Generator, shape: tuple[int, int], dark: Field) -> Field:
    """Return yellow liquid and residue in hollows, float32 h×w in [0, 1], at working size."""
    unit = min(shape) / 500.0
    level = value_noise(rng, shape, 80 * unit) + 0.5 * value_noise(rng, shape, 22 * unit) + dark
    start = float(rng.uniform(1.1, 1.7))
    return smoothstep(as_field(level), start, start + float(rng.uniform(0.15, 0.8)))


def draw_text(rng: np.random.Generator, canvas: NDArray[np.uint8], top: float) -> None:
    """Write what endoscope displays show (date, time, counters) at the left edge, in place."""
    height = canvas.shape[0]
    scale = height / 530.0
    numbers = [int(v) for v in rng.integers(0, 60, 8)]
    lines = [
        f"{1 + numbers[0] % 28:02d}/{1 + numbers[1] % 12:02d}/{2010 + numbers[2] % 14}",
        f"{numbers[3] % 24:02d}:{numbers[4]:02d}:{numbers[5]:02d}",
        "",
        f"{numbers[6] % 3:02d}:{numbers[7]:02d}:{numbers[0]:02d}",
    ]
    if rng.random() < 0.5:
        lines = ["Sex:    Age:", "D.O.B.:", *lines]
    else:
        lines += [f"CVP:{numbers[1] % 9}", "D:N     A5"]
    x = round(4 * scale)
    y = top * height
    for line in lines:
        y += 17 * scale
        cv2.putText(canvas, line, (x, round(y)), cv2.FONT_HERSHEY_PLAIN, 0.95 * scale, 255, 1, cv2.LINE_AA)
