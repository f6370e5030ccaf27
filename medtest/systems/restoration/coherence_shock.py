"""Coherence-enhancing shock filter: sharpens across the dominant local structure instead of each pixel's gradient."""

from __future__ import annotations

from typing import Annotated

import cv2
import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import (
    Field,
    around,
    blur,
    channels_of,
    merged,
    reach_of,
    repeated,
    second,
    structure_tensor,
    upwind_slope,
)

LARGEST_STEP = 0.7
"""Just below 1 / √2, the bound of Godunov's scheme in two dimensions: no pixel may pass its neighbour."""


def coherence_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 10,
    step: Annotated[float, Setting(gt=0.0, le=LARGEST_STEP)] = 0.1,
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


class CoherenceShock(ImageFilter):
    """Coherence-enhancing shock filter by Weickert (2003)."""

    function = staticmethod(coherence_shock)
