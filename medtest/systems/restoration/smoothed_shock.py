"""Smoothed shock filter, with quantiles of smoothed local histograms as dilation and erosion."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field, around, blur, channels_of, in_bands, laplacian, merged, reach_of
from medtest.systems.restoration.local_histogram import quantile_of, span_of


def smoothed_shock(
    image: Field,
    *,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 3,
    edge_sigma: Annotated[float, Setting(ge=0.0, le=20.0)] = 1.5,
    sigma: Annotated[float, Setting(ge=0.3, le=30.0)] = 0.8,
    tonal: Annotated[float, Setting(ge=1.0, le=200.0)] = 16.0,
    share: Annotated[float, Setting(ge=0.5, le=0.99)] = 0.55,
) -> Field:
    """Filter by smoothed dilation where the smoothed Laplacian is negative and smoothed erosion where it is positive.

    Vacavant, Albouy-Kissi, Menguy, Solomon: Fast smoothed shock filtering. ICPR 2012; Vacavant: Smoothed shock
    filtering: algorithm and applications. J. Imaging 7 (2021) 56. The step of a shock filter, u_t = -sign(ΔG_σ * u)
    |∇u|, is a dilation or an erosion by a small disc. Here it is smoothed in the sense of Kass and Solomon: the
    quantile
    at ``share`` (dilation) or 1 - ``share`` (erosion) of the smoothed local histogram replaces the maximum or the
    minimum.
    A share of one half gives an iterated smoothed median, 1 the morphological shock filter.

    The scheme is from the two papers, the parameters are ours (see docs/denoising-study.md for how they were chosen).

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        iterations: Steps.
        edge_sigma: Standard deviation of G, pixels.
        sigma: Standard deviation of the histogram's spatial window, pixels.
        tonal: Standard deviation of its tonal kernel, grey levels.
        share: In [0.5, 1).

    Returns:
        The same shape and type.
    """
    reach = max(reach_of(sigma), reach_of(edge_sigma) + 1)
    planes = channels_of(image)
    for _ in range(iterations):
        span = span_of(planes)

        def once(band: Field, span: tuple[float, float] = span) -> Field:
            smooth = blur(band, edge_sigma)
            side = np.negative(np.sign(laplacian(smooth, around(smooth))))
            return quantile_of(band, share, span, sigma=sigma, tonal=tonal, side=side)

        planes = [in_bands(once, plane, reach) for plane in planes]
    return merged(planes)


class SmoothedShock(ImageFilter):
    """Shock filter with smoothed dilation and erosion by Vacavant et al."""

    revision: ClassVar[int] = 2
    function = staticmethod(smoothed_shock)
