"""Shock filters: dilation where the image is concave, erosion where it is convex."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import cv2
import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import image_filter
from medtest.systems.restoration.grid import (
    TINY,
    Around,
    Field,
    along_and_across,
    around,
    blur,
    central,
    channels_of,
    laplacian,
    merged,
    minmod_slope,
    reach_of,
    repeated,
    second,
    structure_tensor,
    upwind_slope,
    within_neighbours,
)

Detector = Literal["laplacian", "gradient"]
MINMOD_STEP = 0.5
"""Above it the scheme satisfies no maximum principle in two dimensions (Osher and Rudin 1990, section 3)."""


def original_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 10,
    step: Annotated[float, Setting(gt=0.0, le=MINMOD_STEP)] = 0.1,
    detector: Detector = "laplacian",
) -> Field:
    """Filter by u_t = -sign(L(u)) |∇u|.

    Osher, Rudin: Feature-oriented image enhancement using shock filters. SIAM J. Numerical Analysis 27 (1990), section
    3; slopes by minmod, so that no value leaves the range of its neighbourhood and the total variation does not grow.

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        iterations: Steps.
        step: Time step, at most 0.5; a shock moves by at most iterations times step pixels.
        detector: L: ``laplacian`` is u_xx + u_yy (used in the (α, σ) paper), ``gradient`` is u_ηη, the second
            derivative along the gradient.

    Returns:
        The same shape and type.
    """

    def once(u: Field) -> Field:
        n = around(u)
        edges = laplacian(u, n) if detector == "laplacian" else along_and_across(u, n)[0]
        slope = minmod_slope(u, n)
        slope *= step
        slope *= np.sign(edges)
        return u - slope

    return repeated(once, image, 1, iterations)


OriginalShock = image_filter(original_shock)
"""Shock filter by Osher and Rudin."""


def enhanced_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 10,
    step: Annotated[float, Setting(gt=0.0, le=0.25)] = 0.1,
    sigma: Annotated[float, Setting(ge=0.0, le=20.0)] = 1.0,
    diffusion: Annotated[float, Setting(ge=0.0, le=2.0)] = 1.0,
) -> Field:
    """Filter by u_t = -sign((G_σ * u)_ηη) |∇u| + c u_ξξ.

    Alvarez, Mazorra: Signal and image restoration using shock filters and anisotropic diffusion. SIAM J. Numerical
    Analysis 31 (1994), in two dimensions; η is the direction of the smoothed gradient, ξ the one along the contour.
    Slopes by minmod, u_ξξ by central differences, with each step limited to the range of the 3×3 neighbourhood, so that
    the maximum principle proved in the paper holds for this scheme too.

    Edges are those of the smoothed image. Some authors read the paper as smoothing the second derivative itself, G_σ *
    (u_ηη) (docs/denoising-study.md).

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        iterations: Steps.
        step: Time step, at most 0.25.
        sigma: Standard deviation of G, pixels.
        diffusion: c, weight of the diffusion along contours.

    Returns:
        The same shape and type.
    """

    def once(u: Field) -> Field:
        smooth = blur(u, sigma)
        n = around(u)
        edges = np.sign(along_and_across(smooth, around(smooth))[0])
        _, change, squared = along_and_across(u, n)
        squared += TINY
        change /= squared
        change *= diffusion
        change -= edges * minmod_slope(u, n)
        change *= step
        change += u
        return within_neighbours(change, u)

    return repeated(once, image, reach_of(sigma) + 1, iterations)


EnhancedShock = image_filter(enhanced_shock)
"""Shock filter by Alvarez and Mazorra."""


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


ComplexShock = image_filter(complex_shock)
"""Shock filter by Gilboa, Sochen and Zeevi."""


GODUNOV_STEP = 0.7
"""Just below 1 / √2, the bound of Godunov's scheme in two dimensions: no pixel may pass its neighbour."""


def coherence_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 10,
    step: Annotated[float, Setting(gt=0.0, le=GODUNOV_STEP)] = 0.1,
    sigma: Annotated[float, Setting(ge=0.0, le=20.0)] = 1.0,
    rho: Annotated[float, Setting(gt=0.0, le=30.0)] = 3.0,
) -> Field:
    """Filter by u_t = -sign(v_ww) |∇u|, v = K_σ * u, w the dominant eigenvector of the tensor K_ρ * (∇u ∇uᵀ).

    Weickert: Coherence-enhancing shock filters. Pattern Recognition (DAGM 2003), LNCS 2781, section 3. Slopes by the
    upwind scheme of Osher and Sethian, derivatives of v by central differences.

    Args:
        image: Float H×W or H×W×C in grey levels; channels share one structure tensor.
        iterations: Steps.
        step: Time step, at most 0.7.
        sigma: Structure scale, pixels: the size of the resulting patterns.
        rho: Integration scale, pixels: the window over which the direction of a structure is averaged.

    Returns:
        The same shape and type.
    """

    def once(u: Field) -> Field:
        planes = channels_of(u)
        tensor = structure_tensor(planes, 0.0, rho)
        return merged([_stepped(plane, *tensor, sigma, step) for plane in planes])

    return repeated(once, image, max(reach_of(rho), reach_of(sigma)) + 1, iterations)


def _stepped(u: Field, difference: Field, product: Field, sigma: float, step: float) -> Field:
    """Return one channel after one step."""
    v = blur(u, sigma)
    xx, yy, xy = second(v, around(v))
    # 2 r v_ww with r = |(difference, product)|: only its sign matters.
    sign = np.sign(cv2.magnitude(difference, product) * (xx + yy) + difference * (xx - yy) + 2 * product * xy)
    slope = upwind_slope(u, around(u), sign)
    slope *= sign
    slope *= step
    return u - slope


CoherenceShock = image_filter(coherence_shock)
"""Coherence-enhancing shock filter by Weickert (2003)."""
