"""What all drawn objects share: a supersampled canvas, tubes, inflated shapes, noise and light.

The light sits beside the camera, as it does at the tip of an endoscope: what faces the viewer is bright, what turns
away is dark, and highlights lie near the middle of whatever bulges towards the viewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Material = Callable[[Array, Array], tuple[Array, Array]]
SUPER = 3
LIGHTS = ((-0.28, -0.22, 0.93), (0.30, -0.12, 0.95))


@dataclass
class Canvas:
    """A picture with coverage, ``SUPER`` times as large as it will be stored.

    Attributes:
        width: Stored width in pixels.
        height: Stored height in pixels.
        rgb: float32, premultiplied by ``alpha``, in [0, 1].
        alpha: float32 in [0, 1].
        solid: float32 in [0, 1], coverage without shadows.
    """

    width: int
    height: int
    rgb: Array = field(init=False)
    alpha: Array = field(init=False)
    solid: Array = field(init=False)

    def __post_init__(self) -> None:
        self.rgb = np.zeros((self.height * SUPER, self.width * SUPER, 3), np.float32)
        self.alpha = np.zeros(self.rgb.shape[:2], np.float32)
        self.solid = np.zeros_like(self.alpha)

    def over(self, rgb: Array, alpha: Array, *, box: tuple[slice, slice] = (slice(None), slice(None))) -> None:
        """Lay straight colours with a coverage over what is in the box."""
        keep = 1.0 - alpha
        self.rgb[box] = np.clip(rgb, 0, 1) * alpha[..., None] + self.rgb[box] * keep[..., None]
        self.alpha[box] = alpha + self.alpha[box] * keep
        self.solid[box] = np.maximum(self.solid[box], alpha)

    def shadow(self, strength: float, offset: tuple[float, float], blur: float) -> None:
        """Put a soft dark copy of what is solid beneath everything drawn so far."""
        move = np.array([[1, 0, offset[0] * SUPER], [0, 1, offset[1] * SUPER]], np.float32)
        cast = cv2.warpAffine(self.solid, move, self.alpha.shape[::-1])
        cast = np.asarray(cv2.GaussianBlur(cast, (0, 0), blur * SUPER), np.float32) * strength
        tint = np.array([0.10, 0.03, 0.02], np.float32)
        behind = cast * (1.0 - self.alpha)
        self.rgb = self.rgb + tint * behind[..., None]
        self.alpha = self.alpha + behind

    def stored(self) -> NDArray[np.uint8]:
        """Return the picture at its stored size, H×W×4 uint8 RGBA with straight alpha."""
        size = (self.width, self.height)
        rgb = cv2.resize(self.rgb, size, interpolation=cv2.INTER_AREA)
        alpha = cv2.resize(self.alpha, size, interpolation=cv2.INTER_AREA)
        alpha = np.where(alpha < 0.012, 0, alpha)
        straight = rgb / np.maximum(alpha, 1e-4)[..., None]
        straight[alpha == 0] = 0
        # Two bits fewer than a byte halve the file and cannot be seen in a picture as soft as an endoscope's.
        colour = np.clip(np.round(straight * 85) * 3, 0, 255)
        opaque = np.clip(np.round(alpha * 85) * 3, 0, 255)
        return np.dstack([colour, opaque]).astype(np.uint8)


def grid(canvas: Canvas) -> tuple[Array, Array]:
    """Return x and y of every canvas pixel's centre, in stored pixels."""
    rows, columns = canvas.alpha.shape
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    return (x + 0.5) / SUPER, (y + 0.5) / SUPER


def noise(shape: tuple[int, int], scale: float, rng: np.random.Generator, octaves: int = 4) -> Array:
    """Return smooth fractal noise with mean 0 and standard deviation 1; ``scale`` is the largest bump in pixels."""
    total = np.zeros(shape, np.float32)
    for octave in range(octaves):
        step = max(scale / 2**octave, 1.5)
        rows, columns = int(shape[0] / step) + 3, int(shape[1] / step) + 3
        layer = cv2.resize(
            rng.standard_normal((rows, columns)).astype(np.float32), shape[::-1], interpolation=cv2.INTER_CUBIC
        )
        total += layer * 0.55**octave
    return np.asarray((total - total.mean()) / (total.std() + 1e-6), np.float32)


def smoothstep(low: float, high: float, value: Array) -> Array:
    """Return 0 below ``low``, 1 above ``high`` and a smooth ramp between."""
    t = np.clip((value - low) / (high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def normals(height: Array) -> tuple[Array, Array, Array]:
    """Return the unit normals of a height field given in canvas pixels."""
    dx = cv2.Sobel(height, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    dy = cv2.Sobel(height, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    length = np.sqrt(dx * dx + dy * dy + 1)
    return -dx / length, -dy / length, np.asarray(1 / length, np.float32)


def glint(normal: tuple[Array, Array, Array], power: float) -> Array:
    """Return specular light in [0, 1] of the two lamps beside the camera."""
    total = np.zeros_like(normal[0])
    for lx, ly, lz in LIGHTS:
        half = np.array([lx, ly, lz + 1.0])
        half /= np.linalg.norm(half)
        total += np.clip(normal[0] * half[0] + normal[1] * half[1] + normal[2] * half[2], 0, 1) ** power
    return np.asarray(np.clip(total, 0, 1), np.float32)


def diffuse(normal: tuple[Array, Array, Array]) -> Array:
    """Return diffuse light in [0, 1]."""
    total = np.zeros_like(normal[0])
    for lx, ly, lz in LIGHTS:
        length = float(np.sqrt(lx * lx + ly * ly + lz * lz))
        total += np.clip((normal[0] * lx + normal[1] * ly + normal[2] * lz) / length, 0, 1)
    return np.asarray(total / len(LIGHTS), np.float32)


def inflate(cover: Array, radius: float) -> Array:
    """Return a height field that rises like a quarter circle within ``radius`` canvas pixels of the shape's edge."""
    inside = cv2.distanceTransform((cover > 0.5).astype(np.uint8), cv2.DIST_L2, 5)
    t = 1 - np.clip(inside / radius, 0, 1)
    return np.asarray(radius * np.sqrt(np.clip(1 - t * t, 0, 1)), np.float32)


def polygon(canvas: Canvas, points: Array) -> Array:
    """Return the coverage of a filled polygon given in stored pixels."""
    cover = np.zeros(canvas.alpha.shape, np.uint8)
    cv2.fillPoly(cover, [np.round(np.asarray(points) * SUPER * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
    return cover.astype(np.float32) / 255


def curve(points: Array, count: int = 48) -> Array:
    """Return a Catmull-Rom curve through the points, evenly sampled by parameter."""
    p = np.asarray(points, np.float64)
    p = np.vstack([2 * p[0] - p[1], p, 2 * p[-1] - p[-2]])
    out = []
    pieces = len(p) - 3
    for value in np.linspace(0, pieces, count):
        i = min(int(value), pieces - 1)
        t = value - i
        a, b, c, d = p[i : i + 4]
        out.append(0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3))
    return np.asarray(out, np.float32)


def tube(canvas: Canvas, points: Array, radii: Array, material: Material, *, flat_ends: bool = True) -> Array:
    """Draw a round tube along a polyline and return its coverage.

    Args:
        canvas: Where to draw.
        points: N×2, in stored pixels, from the tip to the base.
        radii: N radii in stored pixels.
        material: Gives colour and opacity from the place across the tube (−1…1) and along it (stored pixels).
        flat_ends: Whether the tube is cut straight at both ends; round otherwise.
    """
    x_all, y_all = grid(canvas)
    best = np.full(canvas.alpha.shape, 9.0, np.float32)
    across = np.zeros_like(best)
    along = np.zeros_like(best)
    gone = 0.0
    last = len(points) - 2
    for i in range(len(points) - 1):
        (ax, ay), (bx, by) = points[i], points[i + 1]
        length = float(np.hypot(bx - ax, by - ay))
        if length < 1e-6:
            continue
        wide = float(max(radii[i], radii[i + 1])) + 1
        rows = slice(max(int((min(ay, by) - wide) * SUPER), 0), max(int((max(ay, by) + wide) * SUPER) + 1, 0))
        columns = slice(max(int((min(ax, bx) - wide) * SUPER), 0), max(int((max(ax, bx) + wide) * SUPER) + 1, 0))
        here = (rows, columns)
        x, y = x_all[here], y_all[here]
        ux, uy = (bx - ax) / length, (by - ay) / length
        t = (x - ax) * ux + (y - ay) * uy
        side = (x - ax) * -uy + (y - ay) * ux
        inside = np.clip(t, 0, length)
        radius = radii[i] + (radii[i + 1] - radii[i]) * inside / length
        ratio = np.hypot(side, t - inside) / radius
        if flat_ends and i == 0:
            ratio = np.where(t < 0, 9.0, ratio)
        if flat_ends and i == last:
            ratio = np.where(t > length, 9.0, ratio)
        nearer = ratio < best[here]
        best[here] = np.where(nearer, ratio, best[here])
        across[here] = np.where(nearer, side / radius, across[here])
        along[here] = np.where(nearer, gone + inside, along[here])
        gone += length
    cover = (best < 1).astype(np.float32)
    used = (np.flatnonzero(cover.any(axis=1)), np.flatnonzero(cover.any(axis=0)))
    if used[0].size:
        box = (slice(used[0][0], used[0][-1] + 1), slice(used[1][0], used[1][-1] + 1))
        rgb, opacity = material(np.clip(across[box], -1, 1), along[box])
        canvas.over(rgb, cover[box] * opacity, box=box)
    return cover


def mix(low: tuple[float, float, float], high: tuple[float, float, float], t: Array) -> Array:
    """Return colours between two, given as 0–255 RGB, by ``t`` in [0, 1]."""
    a, b = np.asarray(low, np.float32) / 255, np.asarray(high, np.float32) / 255
    return np.asarray(a + (b - a) * np.clip(t, 0, 1)[..., None], np.float32)
