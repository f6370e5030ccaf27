"""Random numbers for noise on whole pictures: normal values and photon counts from 16 random bits each, by tables.

Both map uniform integers to values by inverting a distribution function, several times faster than a generator that
draws value by value.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from medtest.core.portable import exp

_STEPS = 65536
_GUIDE_BITS = 12
_GUIDE = 1 << _GUIDE_BITS
_SEARCH = np.uint16(65535)
"""Mark of cells of the guide table that contain more than one count."""


def random_words(seed: int, count: int) -> NDArray[np.uint16]:
    """Return ``count`` independent uniform 16-bit integers, uint16 of shape (count,).

    They are the words of NumPy's SFC64 (C. Doty-Humphrey, PractRand), split in four, lowest bits first, on machines of
    either byte order.
    """
    words = np.random.SFC64(seed).random_raw(-(-count // 4)).astype("<u8", copy=False)
    return words.view("<u2")[:count]


@cache
def normal_quantiles() -> NDArray[np.float64]:
    """Return the 65,536 equally probable standard normal values indexed by a 16-bit integer.

    They are the quantiles in the middle of 65,536 equal steps, scaled to variance 1 exactly; the largest is 4.32.
    The distribution function differs from the normal one by less than 10⁻⁵ everywhere. float64 of shape (65536,),
    ascending, read-only.
    """
    normal = NormalDist()
    half = np.array([normal.inv_cdf((_STEPS // 2 + i + 0.5) / _STEPS) for i in range(_STEPS // 2)])
    quantiles = np.concatenate([-half[::-1], half])
    quantiles /= quantiles.std()
    quantiles.flags.writeable = False
    return quantiles


def photon_counts(image: NDArray[np.uint8], photons: float, seed: int) -> NDArray[np.uint16]:
    """Draw a Poisson count for every value of a picture of any shape.

    A guide table is used (H.-C. Chen and Y. Asau, AIIE Transactions 6(2), 1974): the upper 12 of 16 bits choose a cell
    of the inverse distribution function. A cell with a single count gives the draw directly; otherwise (some per cent)
    the other 4 bits and a further uniform number are looked up in the distribution function itself.

    Args:
        image: The picture.
        photons: Expected photons of a value of 255, > 0.
        seed: Seed of the draw.
    """
    below, guide = _poisson_tables(photons)
    words = random_words(seed, image.size)
    cells = image.ravel().astype(np.int32)
    cells <<= _GUIDE_BITS
    cells += words >> (16 - _GUIDE_BITS)
    counts = np.take(guide, cells)
    open_ = np.flatnonzero(counts == _SEARCH)
    finer = np.random.Generator(np.random.PCG64(seed)).random(len(open_))
    values = image.ravel()[open_].astype(np.float64)
    places = (words[open_] + finer) / _STEPS
    width = len(below) // 256
    ranks = np.searchsorted(below, values + places, side="left") - values.astype(np.int64) * width
    counts[open_] = np.clip(ranks, 0, width - 1)
    return counts.reshape(image.shape)


@lru_cache(maxsize=8)
def _poisson_tables(photons: float) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """Return distribution functions of the counts of all 256 values and their guide; 2 MB, the last eight are cached.

    Row r of the distribution functions is in (r, r + 1], so one search finds the count of any pixel.
    """
    means = np.arange(256) * (photons / 255.0)
    counts = np.arange(math.ceil(photons + 9.0 * math.sqrt(photons) + 12.0) + 1)
    log_factorial = np.array([math.lgamma(k + 1.0) for k in counts])
    logs = np.array([math.log(mean) if mean > 0 else 0.0 for mean in means.tolist()])  # mean 0 is set below
    exponent = np.where(counts == 0, 0.0, counts[None] * logs[:, None])
    mass = exp(exponent - means[:, None] - log_factorial)
    mass[0] = counts == 0
    below = np.minimum(np.cumsum(mass, axis=1), 1.0)
    below[:, -1] = 1.0
    flat = np.asarray(below + np.arange(256)[:, None], np.float64).ravel()
    return flat, np.concatenate([_guide_row(row) for row in below])


def _guide_row(below: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Return the count of each of the 4,096 cells of one distribution function, or the mark for several counts."""
    row = np.full(_GUIDE, _SEARCH, np.uint16)
    ends = np.floor(below * _GUIDE).astype(np.int64)
    starts = np.ceil(np.concatenate([[0.0], below[:-1]]) * _GUIDE).astype(np.int64)
    for count in np.flatnonzero(ends > starts):
        row[starts[count] : ends[count]] = count
    return row
