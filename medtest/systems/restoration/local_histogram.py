"""Quantiles of smoothed local histograms, which the smoothed median and the smoothed shock filter share."""

from __future__ import annotations

import math

import cv2
import numpy as np

from medtest.systems.restoration.grid import Field, blur, in_bands, reach_of

SPACING = 2.5
"""Distance of the tonal samples, in scales of the tonal kernel."""
MOST_SAMPLES = 96
_EDGE = 1e-6
_LARGEST_EXPONENT = 80.0


def smoothed_quantile(u: Field, share: float, *, sigma: float, tonal: float) -> Field:
    """Return the grey level below which a share of every pixel's smoothed local histogram lies.

    Kass, Solomon: Smoothed local histogram filters. ACM Trans. Graphics 29 (2010), section 3: the histogram around p is
    Σ_q K(I_q - s) W(p - q), so that its integral up to s, at all p at once, is the image C(s - I) smoothed by W, where
    C is the integral of K. It is sampled at levels s_i; the quantile lies between the two samples around the share.

    Here W is a Gaussian and K a logistic density. With it the logit of C is linear in s, and interpolating logits
    between samples gives a constant neighbourhood its own grey level back. A share other than one half would still be
    biased by K's own quantile (on a constant image the 90 % quantile lies above the constant); that is subtracted.

    Args:
        u: Float H×W or H×W×C in grey levels.
        share: In (0, 1).
        sigma: Standard deviation of W, pixels.
        tonal: Standard deviation of K, grey levels.

    Returns:
        Same shape and type as ``u``.
    """
    return in_bands(lambda band: quantile_of(band, share, span_of(u), sigma=sigma, tonal=tonal), u, reach_of(sigma))


def span_of(u: Field) -> tuple[float, float]:
    """Return the darkest and the brightest value."""
    return float(u.min()), float(u.max())


def quantile_of(
    u: Field, share: Field | float, span: tuple[float, float], *, sigma: float, tonal: float, extreme: float = 0.5
) -> Field:
    """Return :func:`smoothed_quantile` of one band of an image.

    Args:
        u: The band.
        share: One number, or a field of ``u``'s shape.
        span: Darkest and brightest value of the whole image, so that all bands have the same samples.
        sigma: Standard deviation of W, pixels.
        tonal: Standard deviation of K, grey levels.
        extreme: Where ``share`` is a field, its largest value or one minus its smallest, whichever is larger.
    """
    low, high = span
    if low == high:
        return u.copy()
    scale = tonal * math.sqrt(3) / math.pi
    lowest, highest = (share, share) if isinstance(share, float) else (1 - extreme, extreme)
    start = low - scale * (1 + max(0.0, -_logit(lowest)))
    end = high + scale * (1 + max(0.0, _logit(highest)))
    step = max(SPACING * scale, (end - start) / MOST_SAMPLES)
    # Channels lie side by side for all but the blur: masks of OpenCV are fastest in two dimensions.
    flat = (u.shape[0], -1)
    lower, upper = np.zeros_like(u).reshape(flat), np.ones_like(u).reshape(flat)
    wanted = share if isinstance(share, float) else share.reshape(flat)
    count = np.zeros(lower.shape, dtype=np.uint8)
    before = np.ones(lower.shape, dtype=np.uint8)
    exponent = (u - start) * (1 / scale)
    # One exponential serves all samples, exp(a - b) being exp(a) exp(-b), where single precision can hold it.
    power = cv2.exp(exponent) if (end - start) / scale < _LARGEST_EXPONENT else None
    for index in range(math.ceil((end - start) / step) + 1):
        level = index * step / scale
        ratio = cv2.exp(exponent - level) if power is None else power * math.exp(-level)
        ratio += 1
        integral = blur(np.reciprocal(ratio, out=ratio), sigma).reshape(flat)
        below = np.less(integral, wanted).view(np.uint8)
        cv2.copyTo(integral, below, lower)
        cv2.copyTo(integral, before & (below ^ 1), upper)
        count += below
        before = below
    first = _logits(lower)
    between = np.full_like(lower, _logit(wanted)) if isinstance(wanted, float) else _logits(wanted)
    target = scale * between
    between -= first
    between /= np.maximum(_logits(upper) - first, _EDGE)
    np.clip(between, 0, 1, out=between)
    between += count
    found: Field = (start - step) + step * between - target
    return found.reshape(u.shape)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _logits(share: Field) -> Field:
    kept = np.clip(share, _EDGE, 1 - _EDGE)
    found: Field = np.asarray(cv2.log(kept / (1 - kept)), dtype=share.dtype)
    return found
