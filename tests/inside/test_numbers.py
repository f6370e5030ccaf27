"""Numbers of features, saliency and attention against independent ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cosine as scipy_cosine
from scipy.stats import spearmanr

from medtest.inside import numbers

ARRAYS = st.integers(2, 40).flatmap(lambda n: st.tuples(*[st.lists(st.integers(-6, 6), min_size=n, max_size=n)] * 2))


@settings(max_examples=60, deadline=None)
@given(ARRAYS)
def test_cosine_and_rank_correlation_are_scipys(pair):
    first, second = (np.asarray(values, np.float64) for values in pair)
    cosine = numbers.cosine(first, second)
    if first.any() and second.any():
        assert cosine == pytest.approx(1 - scipy_cosine(first, second), abs=1e-9)
    else:
        assert cosine is None
    ranked = numbers.rank_correlation(first, second)
    if np.ptp(first) and np.ptp(second):
        assert ranked == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)
    else:
        assert ranked is None


def test_distance_is_relative_to_the_source():
    assert numbers.relative_distance([3.0, 4.0], [3.0, 4.0]) == 0
    assert numbers.relative_distance([3.0, 4.0], [3.0, 14.0]) == pytest.approx(2)
    assert numbers.relative_distance([0.0], [1.0]) is None


def test_share_inside_a_lesion_by_hand():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert numbers.share_inside(values, np.array([[True, False], [False, True]])) == pytest.approx(0.5)
    # a lesion of twice the size that covers half of the lower left place, and no other
    mask = np.zeros((4, 4), bool)
    mask[2:4, 0] = True
    assert numbers.share_inside(values, mask) == pytest.approx(1.5 / 10)
    assert numbers.share_inside(values, np.ones((4, 4), bool)) == pytest.approx(1)
    assert numbers.share_inside(values, np.zeros((4, 4), bool)) is None
    assert numbers.share_inside(values, None) is None
    assert numbers.share_inside(np.zeros((2, 2)), np.ones((2, 2), bool)) is None
