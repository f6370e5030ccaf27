"""McNemar's test against statsmodels, and whole clusters against all their exchanges written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from medtest.results.cube.paired import SMALLEST, clustered, exact


@given(st.integers(0, 60), st.integers(0, 60))
def test_exact_is_statsmodels(b, c):
    expected = 1.0 if b + c == 0 else mcnemar([[9, b], [c, 4]], exact=True).pvalue
    assert exact(b, c) == pytest.approx(expected, rel=1e-9)
    assert clustered([1] * b + [-1] * c + [0] * 5) == pytest.approx(exact(b, c), rel=1e-9)


@given(st.lists(st.integers(-6, 6), min_size=0, max_size=9))
def test_clusters_against_every_exchange(net):
    sums = [abs(sum(s * v for s, v in zip(signs, net, strict=True))) for signs in product((1, -1), repeat=len(net))]
    expected = np.mean([value >= abs(sum(net)) for value in sums])
    assert clustered(net) == pytest.approx(expected, abs=1e-9)


def test_pairs_of_one_seed_are_not_counted_as_independent():
    # ten seeds, each with five follow-ups that all changed alike: eight one way, two the other
    assert clustered([5] * 8 + [-5] * 2) == pytest.approx(exact(8, 2), abs=1e-9)
    assert exact(40, 10) < 1e-4 < clustered([5] * 8 + [-5] * 2)
    assert clustered([7] * 200) == SMALLEST
