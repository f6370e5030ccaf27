"""Shared numerics of the filters: neighbours, differences, slopes, Gaussian smoothing, the structure tensor.

A field is float32 or float64, H×W or H×W×C, in grey levels; the pixel is the unit of length. Beyond the border a field
is extended by its outermost pixel (slopes across the border are 0). Structure directions are represented by the cosine
and sine of the double angle, which needs no trigonometry and has no discontinuity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Field: TypeAlias = NDArray[np.floating[Any]]
_BAND_BYTES = 1 << 19
TINY = 1e-12
"""Added to squared slopes (grey levels squared) to avoid division by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """Eight neighbours of every pixel, as views of one padded copy; ``north`` is the row above."""

    north: Field
    south: Field
    west: Field
    east: Field
    north_west: Field
    north_east: Field
    south_west: Field
    south_east: Field


def around(u: Field) -> Around:
    """Return the neighbours of every pixel of a field."""
    p: Field = np.asarray(cv2.copyMakeBorder(u, 1, 1, 1, 1, cv2.BORDER_REPLICATE), dtype=u.dtype)
    return Around(
        p[:-2, 1:-1],
        p[2:, 1:-1],
        p[1:-1, :-2],
        p[1:-1, 2:],
        p[:-2, :-2],
        p[:-2, 2:],
        p[2:, :-2],
        p[2:, 2:],
    )


def in_bands(step: Callable[[Field], Field], u: Field, reach: int) -> Field:
    """Return the result of a local step, computed band by band so that the intermediate fields fit the CPU cache.

    Args:
        step: Returns a field of its argument's shape; each pixel may depend only on rows within ``reach``.
        u: The field.
        reach: Rows.
    """
    height = u.shape[0]
    rows = max(_BAND_BYTES // (u[0].size * u.itemsize), 4 * reach, 1)
    if height <= rows + reach:
        return step(u)
    result = np.empty_like(u)
    for first in range(0, height, rows):
        last, top = min(height, first + rows), max(0, first - reach)
        band = step(u[top : min(height, last + reach)])
        result[first:last] = band[first - top : last - top]
    return result


def repeated(step: Callable[[Field], Field], u: Field, reach: int, times: int) -> Field:
    """Return a field after ``times`` applications of a local step; see :func:`in_bands`."""
    for _ in range(times):
        u = in_bands(step, u, reach)
    return u


def reach_of(sigma: float) -> int:
    """Return the radius of :func:`blur` in pixels."""
    return int(np.ceil(3 * sigma)) if sigma > 0 else 0


def laplacian(u: Field, n: Around) -> Field:
    """Return u_xx + u_yy by the five-point stencil."""
    return ((n.east + n.west) + (n.south + n.north)) - 4 * u


def _minmod(forward: Field, backward: Field) -> Field:
    """Return the magnitude of the smaller of two differences, 0 if their signs differ."""
    size = np.minimum(forward, backward)
    np.maximum(size, -np.maximum(forward, backward), out=size)
    return np.maximum(size, 0, out=size)


def minmod_slope(u: Field, n: Around) -> Field:
    """Return |∇u| from the minmod of forward and backward differences (Osher and Rudin 1990, section 3).

    It is 0 at a local extremum along an axis, so that a step against it creates no new extremum.
    """
    x = _minmod(n.east - u, u - n.west)
    y = _minmod(n.south - u, u - n.north)
    return np.asarray(cv2.magnitude(x, y), dtype=u.dtype)


def upwind_slope(u: Field, n: Around, sign: Field) -> Field:
    """Return |∇u| from the upwind side (Osher and Sethian 1988).

    Args:
        u: The field.
        n: Its neighbours.
        sign: Positive where u will fall (erosion), negative where it will rise (dilation).
    """
    x, y = _drop(n.west - u, n.east - u, sign), _drop(n.north - u, n.south - u, sign)
    return np.asarray(cv2.magnitude(x, y), dtype=u.dtype)


def _drop(near: Field, opposite: Field, sign: Field) -> Field:
    """Return the difference to the lower (sign > 0) or the higher (sign < 0) neighbour, 0 if there is none."""
    size = np.minimum(sign * near, sign * opposite)
    return np.maximum(np.negative(size, out=size), 0, out=size)


def blur(u: Field, sigma: float, *, out: Field | None = None) -> Field:
    """Smooth by a Gaussian truncated at three standard deviations.

    Args:
        u: The field.
        sigma: Standard deviation in pixels; 0 leaves the field unchanged.
        out: Output buffer, distinct from ``u``.
    """
    if sigma <= 0:
        return u
    side = 2 * reach_of(sigma) + 1
    kernel = cv2.getGaussianKernel(side, sigma, cv2.CV_64F)
    smooth = cv2.sepFilter2D(u, -1, kernel, kernel, dst=out, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(smooth, dtype=u.dtype)


def central(n: Around) -> tuple[Field, Field]:
    """Return u_x and u_y by central differences."""
    return 0.5 * (n.east - n.west), 0.5 * (n.south - n.north)


def second(u: Field, n: Around) -> tuple[Field, Field, Field]:
    """Return u_xx, u_yy and u_xy by central differences."""
    twice = 2 * u
    mixed = 0.25 * ((n.south_east + n.north_west) - (n.south_west + n.north_east))
    return n.east + n.west - twice, n.south + n.north - twice, mixed


def along_and_across(u: Field, n: Around) -> tuple[Field, Field, Field]:
    """Return |∇u|² u_ηη, |∇u|² u_ξξ and |∇u|²: η is the direction of the gradient, ξ the one along the contour."""
    x, y = central(n)
    xx, yy, xy = second(u, n)
    mixed = 2 * xy * (x * y)
    x *= x
    y *= y
    return xx * x + yy * y + mixed, xx * y + yy * x - mixed, x + y


def structure_tensor(planes: Sequence[Field], inner: float, outer: float) -> tuple[Field, Field]:
    """Return structure directions: J11 - J22 and 2 J12 of the tensor K_outer * (∇v ∇vᵀ), v = K_inner * u.

    The two are r cos 2φ and r sin 2φ, where φ is the angle of the dominant eigenvector (across the structure) and r the
    difference of the eigenvalues. The tensors of several channels are added (Weickert 1999, section 3.4).

    Args:
        planes: The channels of u, H×W each.
        inner: Noise scale, pixels.
        outer: Integration scale, pixels.

    Returns:
        Two H×W fields.
    """
    difference, product = np.zeros_like(planes[0]), np.zeros_like(planes[0])
    for plane in planes:
        x, y = central(around(blur(plane, inner)))
        product += x * y
        difference += x * x - y * y
    product *= 2
    return blur(difference, outer), blur(product, outer)


def channels_of(u: Field) -> list[Field]:
    """Return the contiguous channels of a field."""
    return [u] if u.ndim == 2 else [np.asarray(plane, dtype=u.dtype) for plane in cv2.split(u)]


def merged(planes: Sequence[Field]) -> Field:
    """Merge channels into one field."""
    if len(planes) == 1:
        return planes[0]
    return np.asarray(cv2.merge(list(planes)), dtype=planes[0].dtype)


def within_neighbours(new: Field, old: Field) -> Field:
    """Limit a step to the range of the old values of the pixel and its eight neighbours.

    A slope limiter: central differences of curvature satisfy no discrete maximum principle on a 3×3 stencil.
    """
    window = np.ones((3, 3), np.uint8)
    return np.clip(new, cv2.erode(old, window), cv2.dilate(old, window))
