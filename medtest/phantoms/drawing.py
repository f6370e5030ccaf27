"""Drawing tools shared by the labelled phantoms: planes, noise, blobs, lines, and the camera's last step.

Positions and lengths are in units of half the picture's side: (-1, -1) is the upper left corner, (1, 1) the lower right
one. Array operations are limited to those that IEEE 754 rounds exactly and OpenCV's, so that the bytes are the same on
every processor of an architecture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import portable_opencv as portable_opencv
from medtest.phantoms.fields import Field, PixelGrid, Point, as_field, ellipse_radius, harmonics, resize

Points: TypeAlias = "Sequence[Point] | NDArray[np.float64]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane(PixelGrid):
    """Coordinates of a square picture's pixels, or of a window of it.

    Attributes:
        size: Pixels a side of the whole picture.
        window: Rows and columns of the picture that this plane covers.
        zoom: Size of these units relative to the picture's half sides.
        shift: Position of (0, 0) in the picture's half sides.
    """

    size: int
    window: tuple[slice, slice]
    zoom: float = 1.0
    shift: Point = (0.0, 0.0)

    def around(self, x: float, y: float, reach: float) -> Plane:
        """Return the part of a whole picture's plane within ``reach`` of a point; at least one pixel."""
        slices = []
        for centre, moved in ((y, self.shift[1]), (x, self.shift[0])):
            low = round(((centre - reach) * self.zoom + moved + 1.0) * 0.5 * self.size)
            high = round(((centre + reach) * self.zoom + moved + 1.0) * 0.5 * self.size) + 1
            low = min(max(low, 0), self.size - 1)
            slices.append(slice(low, min(max(high, low + 1), self.size)))
        rows, columns = slices
        return replace(self, x=self.x[:, columns], y=self.y[rows], window=(rows, columns))


def plane(size: int, *, zoom: float = 1.0, shift: Point = (0.0, 0.0)) -> Plane:
    """Return the plane of a whole picture, its content enlarged by ``zoom`` and moved by ``shift``."""
    line = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(2.0 / size) - np.float32(1.0)
    x, y = (as_field((line - np.float32(moved)) * np.float32(1.0 / zoom)) for moved in shift)
    step, window = 2.0 / size / zoom, (slice(0, size), slice(0, size))
    return Plane(x=x[None, :], y=y[:, None], step=step, size=size, window=window, zoom=zoom, shift=shift)


def unit(turns: float) -> Point:
    """Return the unit vector at a share of a full turn, rounded to be the same with every C library."""
    return round(math.cos(2.0 * math.pi * turns), 9), round(math.sin(2.0 * math.pi * turns), 9)


def noise(rng: np.random.Generator, shape: tuple[int, int], cells: int, *, smooth: bool = True) -> Field:
    """Return noise of mean 0 with ``cells`` features a side; its standard deviation is 0.87, or 0.67 if not smooth."""
    drawn = rng.standard_normal((cells, cells), dtype=np.float32)
    return resize(drawn, shape, smooth=smooth)


def blob(
    where: Plane,
    x: float,
    y: float,
    radius: float,
    *,
    stretch: float = 1.0,
    turn: Point = (1.0, 0.0),
    weights: Sequence[Any] = (),
) -> Field:
    """Return a field that is 1 at a point, 0 at the edge of a rounded shape around it, and linear.

    Args:
        where: The pixels.
        x: Column of the centre.
        y: Row of the centre.
        radius: Distance of the edge along ``turn``.
        stretch: Factor by which the shape is narrower across ``turn``.
        turn: Unit vector of its axis.
        weights: Cosine and sine weights of the second, third, … harmonic by which the edge departs from an ellipse.
    """
    distance, c, s = ellipse_radius(where.x, where.y, (x, y), turn=turn, stretch=stretch)
    if weights:
        distance = as_field(distance * (1.0 + harmonics(c, s, weights)))
    return as_field(np.float32(1.0) - distance * np.float32(1.0 / radius))


def ripples(rng: np.random.Generator, count: int, amount: float) -> list[Point]:
    """Return random weights for :func:`blob`, smaller for higher harmonics."""
    drawn = rng.normal(0.0, amount, (count, 2))
    return [(float(a) / (1.0 + 0.5 * k), float(b) / (1.0 + 0.5 * k)) for k, (a, b) in enumerate(drawn)]


def soften(array: Field, radius: float, size: int) -> Field:
    """Return the field blurred by two boxes of about ``radius`` (half sides of the picture)."""
    kernel = 2 * max(0, round(radius * size * 0.25)) + 1
    if kernel == 1:
        return array
    return as_field(cv2.blur(cv2.blur(array, (kernel, kernel)), (kernel, kernel)))


class Canvas:
    """Canvas for lines and shapes with soft edges; drawn at double size for small pictures."""

    def __init__(self, size: int, *, zoom: float = 1.0, shift: Point = (0.0, 0.0)) -> None:
        self.size = size
        self._zoom = zoom
        self._side = size * (2 if size <= 512 else 1)
        self.pixels: NDArray[np.uint8] = np.zeros((self._side, self._side), np.uint8)
        # Sixteenths of a pixel, as required by OpenCV; pixel centres are at whole numbers.
        self._steps = 8.0 * self._side * zoom
        self._origin = 8.0 * self._side * (np.array(shift, np.float64) + 1.0) - 8.0

    def _fixed(self, points: Points) -> NDArray[np.int32]:
        at = np.asarray(points, np.float64) * self._steps + self._origin
        return np.rint(at).astype(np.int32).reshape(-1, 1, 2)

    @classmethod
    def over(cls, where: Plane) -> Canvas:
        """Return a canvas in the units of a plane, as large as the whole picture."""
        return cls(where.size, zoom=where.zoom, shift=where.shift)

    def line(self, points: Points, width: float, value: float = 1.0) -> None:
        """Draw a line; lines thinner than a pixel are drawn fainter."""
        wide = width * self._zoom * 0.5 * self._side
        level = round(255.0 * value * min(1.0, wide))
        cv2.polylines(self.pixels, [self._fixed(points)], False, level, max(1, round(wide)), cv2.LINE_AA, 4)

    def polygon(self, points: Points, value: float = 1.0) -> None:
        """Fill a closed shape."""
        cv2.fillPoly(self.pixels, [self._fixed(points)], round(255.0 * value), lineType=cv2.LINE_AA, shift=4)

    def disc(self, x: float, y: float, radius: float, value: float = 1.0) -> None:
        """Fill a circle."""
        at = self._fixed([(x, y)])[0, 0]
        wide = max(1, round(radius * self._zoom * 0.5 * self._side * 16.0))
        cv2.circle(self.pixels, (int(at[0]), int(at[1])), wide, round(255.0 * value), -1, cv2.LINE_AA, 4)

    def field(self) -> Field:
        """Return the drawing, float32 size×size in [0, 1]."""
        small = self.pixels
        if self._side != self.size:
            small = cv2.resize(small, (self.size, self.size), interpolation=cv2.INTER_AREA).astype(np.uint8)
        return as_field(small * np.float32(1.0 / 255.0))


def octagon(reach: float, inner: float) -> list[Point]:
    """Return a square of half side ``reach`` without its corners; ``inner`` is half of a remaining side."""
    quarter = [(-inner, -reach), (inner, -reach), (reach, -inner), (reach, inner)]
    return quarter + [(-x, -y) for x, y in quarter]  # OpenCV's edges depend on the order of the points


def curve(points: Points, steps: int = 8, *, closed: bool = False) -> NDArray[np.float64]:
    """Return a Catmull-Rom spline through points, with ``steps`` points per piece."""
    at = np.asarray(points, np.float64)
    if closed:
        ring = np.concatenate([at[-1:], at, at[:2]])
    else:
        ring = np.concatenate([2.0 * at[:1] - at[1:2], at, 2.0 * at[-1:] - at[-2:-1]])
    t = (np.arange(steps, dtype=np.float64) / steps)[:, None, None]
    p0, p1, p2, p3 = ring[:-3], ring[1:-2], ring[2:-1], ring[3:]
    pieces = 0.5 * (
        2.0 * p1 + t * (p2 - p0) + t * t * (2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3)
        + t * t * t * (3.0 * p1 - p0 - 3.0 * p2 + p3)
    )  # fmt: skip
    line: NDArray[np.float64] = pieces.transpose(1, 0, 2).reshape(-1, 2)
    return line if closed else np.concatenate([line, at[-1:]])


def wander(
    rng: np.random.Generator, start: Point, heading: Point, *, step: float, count: int, bend: float, drift: float = 0.0
) -> NDArray[np.float64]:
    """Return ``count`` + 1 points of a line that turns a little at each step, by ``drift`` on average."""
    x, y = start
    dx, dy = heading
    points = [start]
    for turned in rng.normal(drift, bend, count):
        dx, dy = dx - float(turned) * dy, dy + float(turned) * dx
        length = (dx * dx + dy * dy) ** 0.5
        dx, dy = dx / length, dy / length
        x, y = x + dx * step, y + dy * step
        points.append((x, y))
    return np.array(points, np.float64)


def grain(rng: np.random.Generator, shape: tuple[int, int]) -> Field:
    """Return noise of mean 0 and standard deviation 1, from the sum of two random bytes (a triangle)."""
    drawn = np.frombuffer(rng.bytes(2 * shape[0] * shape[1]), np.uint8).reshape(2, *shape)
    return as_field((drawn[0].astype(np.float32) + drawn[1] - np.float32(255.0)) * np.float32(1.0 / 104.5))


def to_bytes(picture: Field) -> NDArray[np.uint8]:
    """Round grey levels to uint8, clipped to 0 and 255."""
    return np.asarray(cv2.convertScaleAbs(np.clip(picture, 0.0, 255.0)), np.uint8)


def blurred(picture: NDArray[np.uint8], sigma: float) -> NDArray[np.uint8]:
    """Return a picture defocused by ``sigma`` pixels."""
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), sigma), np.uint8) if sigma > 0.25 else picture


def soft_colour(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Reduce colour to half the resolution of brightness, as in JPEG."""
    side = (picture.shape[1], picture.shape[0])
    ycc = cv2.cvtColor(picture, cv2.COLOR_RGB2YCrCb)
    half = cv2.resize(ycc, ((side[0] + 1) // 2, (side[1] + 1) // 2), interpolation=cv2.INTER_AREA)
    soft = cv2.resize(half, side, interpolation=cv2.INTER_LINEAR)
    soft[..., 0] = ycc[..., 0]
    return np.asarray(cv2.cvtColor(soft, cv2.COLOR_YCrCb2RGB), np.uint8)


def mix(picture: Field, alpha: Field, colour: Sequence[float] | Any) -> None:
    """Blend a colour over h×w×3 in place with the opacity ``alpha``."""
    for channel in range(3):
        plane_ = picture[..., channel]
        plane_ += alpha * (np.float32(colour[channel]) - plane_)


def scale(picture: Field, alpha: Field, factors: Sequence[float]) -> None:
    """Multiply each channel of h×w×3 in place, by 1 at ``alpha`` 0 and by its factor at ``alpha`` 1."""
    for channel in range(3):
        picture[..., channel] *= np.float32(1.0) - alpha * np.float32(1.0 - factors[channel])
