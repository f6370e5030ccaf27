"""Quantiles of smoothed local histograms, for the smoothed median and the smoothed shock filter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.systems.restoration.grid import Field, blur, channels_of, in_bands, merged, reach_of

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
