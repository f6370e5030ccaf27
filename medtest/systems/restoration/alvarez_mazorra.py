"""Enhanced shock filter: edges are detected in a smoothed copy, and diffusion acts along contours."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import (
    TINY,
    Field,
    along_and_across,
    around,
    blur,
    minmod_slope,
    reach_of,
    repeated,
    within_neighbours,
)


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


class EnhancedShock(ImageFilter):
    """Shock filter by Alvarez and Mazorra."""

    function = staticmethod(enhanced_shock)
