"""Arithmetic with identical bytes on every x86-64 processor with AVX2 and FMA, regardless of its other features.

NumPy uses other routines for ``exp``, ``log``, ``power`` and similar functions on processors with AVX-512, BLAS another
order of summation for each processor, and OpenCV's IPP yet other code; their last bits differ. Values that become
pixels, or decide where pixels go, are computed here instead: by the C library's functions, value by value, and by sums
in a fixed order.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

_AT_ONCE = 1 << 16
"""Number of array values converted to Python numbers at a time, 2 MB of them."""
_AVX2, _FMA3 = 11, 12
"""OpenCV's numbers of these instruction sets (CV_CPU_AVX2, CV_CPU_FMA3), which its Python module does not name."""
LESS_THAN_PROMISED = (
    "This processor has no AVX2 and FMA, or they are switched off: follow-ups and made images may differ in some bytes"
    " from those of other machines. The same run on this machine gives the same bytes again."
)


@contextmanager
def portable_opencv() -> Iterator[None]:
    """Disable Intel's IPP in OpenCV, which rounds differently on different processors of one architecture."""
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    try:
        yield
    finally:
        cv2.ipp.setUseIPP(before)


def key_generator(key: Sequence[object]) -> np.random.Generator:
    """Return PCG64 seeded by the SHA-256, read as a big-endian integer, of a key as ASCII JSON without spaces."""
    text = json.dumps(key, ensure_ascii=True, separators=(",", ":"))
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")))


def each(function: Callable[[float], float], values: ArrayLike) -> NDArray[np.float64]:
    """Apply a function of :mod:`math` to every value.

    Args:
        function: Takes and returns a float.
        values: Of any shape.

    Returns:
        float64 of that shape.

    Raises:
        ValueError: As raised by the function outside its domain.
    """
    array = np.asarray(values, np.float64)
    flat, results = array.reshape(-1), np.empty(array.size)
    for start in range(0, flat.size, _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        results[start : start + len(part)] = [function(value) for value in part.tolist()]
    return results.reshape(array.shape)


def exp(values: ArrayLike) -> NDArray[np.float64]:
    """Return e to the power of every value, float64 of the same shape; values above 709 raise OverflowError."""
    return each(math.exp, values)


def power(values: ArrayLike, exponent: float) -> NDArray[np.float64]:
    """Return every value to the power of one number, float64 of the same shape."""
    bases = np.asarray(values, np.float64)
    return bases * bases if exponent == 2 else each(lambda value: math.pow(value, exponent), bases)


def product(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the product of two small matrices, float64 n×m: terms are added from first to last, each fused.

    This is the order in which BLAS multiplies matrices on processors with FMA.

    Args:
        first: n×k.
        second: k×m.
    """
    left_matrix, right_matrix = np.asarray(first, np.float64), np.asarray(second, np.float64)
    total = np.zeros((left_matrix.shape[0], right_matrix.shape[1]))
    for index in range(len(right_matrix)):
        total = fused(left_matrix[:, index, None], right_matrix[None, index], total)
    return total


def fused(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> NDArray[np.float64]:
    """Return a b + c of float64 arrays, rounded once, as FMA instructions round it.

    S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd",
    IEEE Transactions on Computers 57(4), 2008. Values between 10⁻¹⁰⁰ and 10¹⁰⁰, and 0.
    """
    first, second, third = (np.asarray(value, np.float64) for value in (a, b, c))
    high, low = _exact_product(first, second)
    upper, residue = _exact_sum(third, low)
    top, middle = _exact_sum(high, upper)
    odd, lost = _exact_sum(middle, residue)
    # Rounded to odd: an inexact sum whose last bit is 0 moves one step towards the lost part.
    step = np.nextafter(odd, np.where(lost > 0, np.inf, -np.inf))
    rounded: NDArray[np.float64] = top + np.where((lost != 0) & (odd.view(np.int64) & 1 == 0), step, odd)
    return rounded


def _exact_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rounded sum and the rounding error."""
    total = np.asarray(a + b)
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exact_product(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rounded product and the rounding error."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rounded = np.asarray(a * b)
    return rounded, ((a_high * b_high - rounded) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split a number into two numbers of at most 26 bits each."""
    scaled = a * 134217729.0  # 2²⁷ + 1
    high = scaled - (scaled - a)
    return high, a - high


def processor_notices() -> tuple[str, ...]:
    """Return a notice if this processor lacks features required for identical bytes."""
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return ()
    supported = cv2.checkHardwareSupport(_AVX2) and cv2.checkHardwareSupport(_FMA3)
    return () if supported else (LESS_THAN_PROMISED,)
