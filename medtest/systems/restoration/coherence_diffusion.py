"""Coherence-enhancing diffusion: smoothing along flow-like structures, stronger where their direction is clearer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import cv2
from pydantic import Field as Setting

from medtest.systems.restoration.base import image_filter
from medtest.systems.restoration.grid import (
    Around,
    Field,
    around,
    channels_of,
    merged,
    reach_of,
    repeated,
    structure_tensor,
)

LARGEST_STEP = 0.25
"""Stability bound of the explicit scheme for diffusivities up to 1 (Weickert 1998, section 3.4)."""


def coherence_diffusion(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 30,
    step: Annotated[float, Setting(gt=0.0, le=LARGEST_STEP)] = 0.1,
    sigma: Annotated[float, Setting(ge=0.0, le=20.0)] = 0.5,
    rho: Annotated[float, Setting(gt=0.0, le=30.0)] = 4.0,
    alpha: Annotated[float, Setting(gt=0.0, lt=1.0)] = 0.001,
    contrast: Annotated[float, Setting(gt=0.0)] = 1.0,
) -> Field:
    """Filter by u_t = div(D(K_ρ * (∇u_σ ∇u_σᵀ)) ∇u).

    Weickert: Coherence-enhancing diffusion filtering. Int. J. Computer Vision 31 (1999), section 2. D has the tensor's
    eigenvectors; across the structure it has λ1 = α, along it λ2 = α + (1 - α) exp(-C / (μ1 - μ2)²), and α if the
    eigenvalues μ are equal. Explicit scheme with half-point differences, as in Weickert: Anisotropic diffusion in image
    processing (1998), section 3.4.

    Args:
        image: Float H×W or H×W×C in grey levels; channels share one tensor.
        iterations: Steps.
        step: Time step, at most 0.25.
        sigma: Noise scale, pixels.
        rho: Integration scale, pixels.
        alpha: α, the minimum diffusion, in (0, 1).
        contrast: C, in grey levels to the fourth power.

    Returns:
        The same shape and type; the mean grey level is preserved.
    """

    def once(u: Field) -> Field:
        planes = channels_of(u)
        tensor = _diffusion(planes, sigma, rho, alpha, contrast)
        return merged(
            [plane + step * change for plane, change in zip(planes, _divergence(planes, *tensor), strict=True)]
        )

    return repeated(once, image, reach_of(sigma) + reach_of(rho) + 3, iterations)


def _diffusion(
    planes: Sequence[Field], sigma: float, rho: float, alpha: float, contrast: float
) -> tuple[Field, Field, Field]:
    """Return the entries a = D11, b = D12, c = D22 of D, each H×W."""
    difference, product = structure_tensor(planes, sigma, rho)
    # Equal eigenvalues have no direction; the small constant yields the limit, where the excess is 0.
    size = cv2.magnitude(difference, product) + 1e-12
    excess = (1 - alpha) * cv2.exp(-contrast / (size * size + 1e-30))
    half = 0.5 * excess
    across, mixed = half * (difference / size), half * (product / size)
    return alpha + half - across, -mixed, alpha + half + across


def _divergence(planes: Sequence[Field], a: Field, b: Field, c: Field) -> list[Field]:
    """Return div(D ∇u) of every channel: half-point fluxes along the axes, central differences for the mixed terms."""
    na, nb, nc = around(a), _mirrored(b), around(c)
    east, west, south, north = 0.5 * (na.east + a), 0.5 * (na.west + a), 0.5 * (nc.south + c), 0.5 * (nc.north + c)
    south_east, north_west = 0.25 * (nb.east + nb.south), 0.25 * (nb.west + nb.north)
    north_east, south_west = 0.25 * (nb.east + nb.north), 0.25 * (nb.west + nb.south)
    divergences: list[Field] = []
    for u in planes:
        n = around(u)
        change = (east * (n.east - u) + west * (n.west - u)) + (south * (n.south - u) + north * (n.north - u))
        change += south_east * n.south_east + north_west * n.north_west
        change -= north_east * n.north_east + south_west * n.south_west
        divergences.append(change)
    return divergences


def _mirrored(b: Field) -> Around:
    """Return the neighbours of D12 with the sign flipped at the border, so that nothing flows across it."""
    n = around(b)
    n.north[0] *= -1
    n.south[-1] *= -1
    n.west[:, 0] *= -1
    n.east[:, -1] *= -1
    return n


CoherenceDiffusion = image_filter(coherence_diffusion)
"""Coherence-enhancing diffusion by Weickert (1999)."""
