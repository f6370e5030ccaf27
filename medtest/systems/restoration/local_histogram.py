"""Filters by quantiles of smoothed local histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from medtest.systems.restoration.base import image_filter
from medtest.systems.restoration.grid import Field, around, blur, channels_of, in_bands, laplacian, merged, reach_of

SPACING = 2.5
"""Distance of the tonal samples, in scales of the tonal kernel."""
MOST_SAMPLES = 96
_EDGE = 1e-6
_LARGEST_EXPONENT = 80.0


def smoothed_quantile(u: Field, share: float, *, sigma: float, tonal: float) -> Field:
    """Return the given quantile of every pixel's smoothed local histogram, in grey levels.

    Kass, Solomon: Smoothed local histogram filters. ACM Trans. Graphics 29 (2010), section 3: the histogram around p is
    Σ_q K(I_q - s) W(p - q), so that its integral up to s, at all p at once, is the image C(s - I) smoothed by W, where
    C is the integral of K. It is sampled at levels s_i; the quantile lies between the two samples around the share.

    Here W is a Gaussian and K a logistic density, where the paper's K is a Gaussian. The logit of C is then linear in
    s, and interpolating logits between samples preserves the grey level of a constant neighbourhood. A share other than
    one half would be biased by K's own quantile (on a constant image the 90 % quantile lies above the constant); that
    bias is subtracted.

    Args:
        u: Float H×W or H×W×C in grey levels.
        share: In (0, 1).
        sigma: Standard deviation of W, pixels.
        tonal: Standard deviation of K, grey levels.

    Returns:
        Same shape and type as ``u``.
    """
    planes = channels_of(u)
    span = span_of(planes)
    once = partial(quantile_of, share=share, span=span, sigma=sigma, tonal=tonal)
    return merged([in_bands(once, plane, reach_of(sigma)) for plane in planes])


def span_of(planes: Sequence[Field]) -> tuple[float, float]:
    """Return the minimum and maximum over all channels, which share their samples."""
    return min(float(plane.min()) for plane in planes), max(float(plane.max()) for plane in planes)


def quantile_of(
    u: Field, share: float, span: tuple[float, float], *, sigma: float, tonal: float, side: Field | None = None
) -> Field:
    """Return :func:`smoothed_quantile` of one band of an image.

    Args:
        u: The band, H×W.
        share: In (0, 1).
        span: Minimum and maximum of the whole image, so that all bands use the same samples.
        sigma: Standard deviation of W, pixels.
        tonal: Standard deviation of K, grey levels.
        side: Of ``u``'s shape: 1 selects the quantile at ``share``, -1 at 1 - ``share``, 0 the median; None means 1
            everywhere.
    """
    low, high = span
    if low == high:
        return u.copy()
    scale = tonal * math.sqrt(3) / math.pi
    logit = math.log(share / (1 - share))
    lowest, highest = (logit, logit) if side is None else (-abs(logit), abs(logit))
    start = low - scale * (1 + max(0.0, -lowest))
    end = high + scale * (1 + max(0.0, highest))
    step = max(SPACING * scale, (end - start) / MOST_SAMPLES)
    target = share if side is None else side * (share - 0.5) + 0.5
    levels = [index * step / scale for index in range(math.ceil((end - start) / step) + 1)]
    count, lower, upper = _around(u, target, levels, start=start, scale=scale, sigma=sigma)
    before, after = _log_odds(lower), _log_odds(upper)
    after -= before
    np.maximum(after, _EDGE, out=after)
    # Position of the target logit between the samples below and above, from 0 to 1.
    way: Field = np.subtract(logit if side is None else side * logit, before, out=before)
    way /= after
    np.clip(way, 0, 1, out=way)
    way += count
    way *= step
    way += start - step
    way -= scale * logit if side is None else side * (scale * logit)
    return way


def _around(
    u: Field, target: Field | float, levels: Sequence[float], *, start: float, scale: float, sigma: float
) -> tuple[NDArray[np.uint8], Field, Field]:
    """Return the number of samples below a target share, and the integrals at the samples on both sides of it.

    Args:
        u: The band, H×W.
        target: The target share.
        levels: Samples above ``start``, in units of ``scale``.
        start: First sample, grey levels.
        scale: Scale of the tonal kernel, grey levels.
        sigma: Standard deviation of the window, pixels.
    """
    exponent = (u - start) * (1 / scale)
    # If single precision suffices, one exponential serves all samples: with a = (u - start) / scale, 1 / (1 + exp(a -
    # level)) is exp(level) / (exp(level) + exp(a)).
    power = cv2.exp(exponent) if levels[-1] < _LARGEST_EXPONENT else None
    lower, upper = np.zeros_like(u), np.ones_like(u)
    count = np.zeros(u.shape, dtype=np.uint8)
    before = np.ones(u.shape, dtype=np.uint8)
    share, smooth = np.empty_like(u), np.empty_like(u)
    for level in levels:
        if power is None:
            np.add(cv2.exp(exponent - level), 1, out=share)
            np.reciprocal(share, out=share)
        else:
            top = math.exp(level)
            np.add(power, top, out=share)
            np.divide(top, share, out=share)
        integral = blur(share, sigma, out=smooth)
        below = np.less(integral, target).view(np.uint8)
        cv2.copyTo(integral, below, lower)
        cv2.copyTo(integral, before & (below ^ 1), upper)
        count += below
        before = below
    return count, lower, upper


def _log_odds(share: Field) -> Field:
    """Return log(share / (1 - share)), clipped to stay finite; the argument is overwritten."""
    np.clip(share, _EDGE, 1 - _EDGE, out=share)
    share /= 1 - share
    return np.asarray(cv2.log(share), dtype=share.dtype)


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


SmoothedMedian = image_filter(smoothed_median, revision=2)
"""Median of smoothed local histograms by Kass and Solomon."""


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


SmoothedShock = image_filter(smoothed_shock, revision=2)
"""Shock filter with smoothed dilation and erosion by Vacavant et al."""
