"""Complex shock filter: the imaginary part of a complex diffusion indicates edges and their certainty."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import TINY, Around, Field, around, central, minmod_slope, repeated, second


def complex_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 10,
    step: Annotated[float, Setting(gt=0.0, le=0.25)] = 0.1,
    across: Annotated[float, Setting(ge=0.0, le=0.5)] = 0.1,
    along: Annotated[float, Setting(ge=0.0, le=0.5)] = 0.5,
    theta: Annotated[float, Setting(gt=0.0, le=0.2)] = 0.005,
    sharpness: Annotated[float, Setting(gt=0.0, le=100.0)] = 2.0,
) -> Field:
    """Filter by I_t = -(2/π) arctan(a Im(I) / θ) |∇I| + λ I_ηη + λ̃ I_ξξ with λ = r exp(iθ), and return Re(I).

    Gilboa, Sochen, Zeevi: Image enhancement and denoising by complex diffusion processes. IEEE Trans. PAMI 26 (2004),
    section on shock filters; first in Regularized shock filters and complex diffusion, ECCV 2002. For small θ the
    imaginary part tends to θ times a smoothed second derivative that grows with time. The arctan is therefore a soft
    sign where the derivative is small, and persistent edges gain weight over time.

    Directions (η along the gradient, ξ along the contour) and |∇I| (by minmod) are those of the real part; the authors'
    code uses magnitudes of complex slopes, which are nearly equal for small θ.

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        iterations: Steps.
        step: Time step; stable for step · (r + λ̃) ≤ 0.25.
        across: r, magnitude of the complex diffusion across contours.
        along: λ̃, real diffusion along contours.
        theta: θ in radians, small.
        sharpness: a, per grey level: steepness of the arctan.

    Returns:
        The same shape and type.
    """
    cosine, sine = across * math.cos(theta), across * math.sin(theta)

    def once(pair: Field) -> Field:
        real, imaginary = (np.ascontiguousarray(part) for part in np.split(pair, 2, axis=1))
        n = around(real)
        x, y = central(n)
        gradient, contour = _directed(real, n, x, y)
        slow, along_slow = _directed(imaginary, around(imaginary), x, y)
        shock = np.arctan(imaginary * (sharpness / theta))
        shock *= 2 / math.pi
        shock *= minmod_slope(real, n)
        real += step * (cosine * gradient - sine * slow + along * contour - shock)
        imaginary += step * (sine * gradient + cosine * slow + along * along_slow)
        return np.concatenate([real, imaginary], axis=1)

    pair = np.concatenate([image, np.zeros_like(image)], axis=1)
    pair = repeated(once, pair, 1, iterations)
    return np.ascontiguousarray(pair[:, : image.shape[1]])


def _directed(u: Field, n: Around, x: Field, y: Field) -> tuple[Field, Field]:
    """Return second derivatives across and along the contours of another field with the given slopes x and y.

    Where that field is flat, there is no direction and each is half of the Laplacian.
    """
    xx, yy, xy = second(u, n)
    x_square, y_square = x * x, y * y
    total = xx + yy
    contour = xx * y_square + yy * x_square
    contour -= 2 * xy * (x * y)
    contour += (0.5 * TINY) * total
    x_square += y_square
    x_square += TINY
    contour /= x_square
    total -= contour
    return total, contour


class ComplexShock(ImageFilter):
    """Shock filter by Gilboa, Sochen and Zeevi."""

    function = staticmethod(complex_shock)
