"""Smoothed median: the median of a smoothed local histogram."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field as Setting

from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field
from medtest.systems.restoration.local_histogram import smoothed_quantile


def smoothed_median(
    image: Field,
    *,
    sigma: Annotated[float, Setting(ge=0.3, le=30.0)] = 1.25,
    tonal: Annotated[float, Setting(ge=1.0, le=200.0)] = 20.0,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 1,
) -> Field:
    """Filter by the median of smoothed local histograms.

    Kass, Solomon: Smoothed local histogram filters. ACM Trans. Graphics 29 (2010), section on the median: the level at
    which the integral of the smoothed histogram is one half (see :mod:`.local_histogram`). Unlike the common median its
    window has no corners, and it is continuous when one value passes another.

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        sigma: Standard deviation of the spatial Gaussian, pixels.
        tonal: Standard deviation of the tonal kernel, grey levels: 0 would be the weighted median, large is the mean.
        iterations: Number of passes.

    Returns:
        The same shape and type.
    """
    u = image
    for _ in range(iterations):
        u = smoothed_quantile(u, 0.5, sigma=sigma, tonal=tonal)
    return u


class SmoothedMedian(ImageFilter):
    """Median of smoothed local histograms by Kass and Solomon."""

    revision: ClassVar[int] = 2
    function = staticmethod(smoothed_median)
