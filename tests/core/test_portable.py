"""Arithmetic that rounds equally on every processor for which medtest promises equal bytes."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from medtest.core.portable import each, exp, fused, power, processor_notices, product
from medtest.relations.noise.imaging import gaussian_weights

numbers = st.one_of(st.just(0.0), st.floats(1e-60, 1e60), st.floats(-1e60, -1e-60))
x86 = pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="bytes are promised for x86-64")


def test_functions_are_those_of_the_c_library_for_any_shape() -> None:
    values = np.linspace(-40.0, 3.0, 140_001).reshape(-1, 3)
    assert exp(values).shape == values.shape
    assert exp(values).ravel().tolist() == [math.exp(value) for value in values.ravel().tolist()]
    assert power(-values[:9] + 4, 1.5).ravel().tolist() == [(4 - v) ** 1.5 for v in values[:9].ravel().tolist()]
    assert power(values, 2).tobytes() == (values * values).tobytes()
    assert each(math.cos, 0.0) == 1.0
    with pytest.raises(ValueError, match="math domain"):
        each(math.log, [-1.0])


@given(a=numbers, b=numbers, c=numbers)
def test_a_fused_product_is_rounded_once(a: float, b: float, c: float) -> None:
    for third in (c, -(a * b), -(a * b) * (1 + 2**-50)):
        result = float(fused(a, b, third))
        assert result == float(Fraction(a) * Fraction(b) + Fraction(third))


def test_products_of_matrices_are_right_to_the_last_few_bits() -> None:
    rng = np.random.default_rng(3)
    left_matrix, right_matrix = rng.normal(size=(40, 3)), rng.normal(size=(3, 5))
    exact = [
        [float(sum(map(lambda a, b: Fraction(a) * Fraction(b), row, column))) for column in right_matrix.T]
        for row in left_matrix
    ]
    np.testing.assert_allclose(product(left_matrix, right_matrix), exact, rtol=1e-12)


def test_weights_of_a_gaussian_are_scipys() -> None:
    middle = np.zeros(61)
    middle[30] = 1.0
    weights = np.pad(gaussian_weights(3.3), 30 - 13)
    np.testing.assert_allclose(weights, gaussian_filter(middle, 3.3, mode="reflect", truncate=4.0), atol=1e-16)


@x86
def test_a_processor_below_the_promise_is_reported() -> None:
    assert processor_notices() == ()
    code = "from medtest.core.portable import processor_notices; print(*processor_notices())"
    env = os.environ | {"OPENCV_CPU_DISABLE": "AVX2,FMA3"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert "no AVX2 and FMA" in ran.stdout
