"""Equation 6 against exact fractions, and the rules against their definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.cases import ReasonCode, Verdict
from medtest.core.oracles import criteria

counts = st.tuples(st.integers(1, 4_000_000), st.integers(0, 4_000_000), st.integers(0, 4_000_000))


@given(before=counts, after=counts, threshold=st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1, 10)]))
def test_the_comparison_is_the_strict_one_of_fractions(before, after, threshold):
    def dice(pixels):
        shared, extra, missed = pixels
        return Fraction(2 * shared, 2 * shared + extra + missed)

    exact = (dice(before) - dice(after)) / dice(before) > threshold
    violation = criteria.loss_exceeds(float(dice(before)), float(dice(after)), float(threshold))
    assert bool(violation) == exact


@pytest.mark.parametrize(
    ("original", "artefact", "threshold"), [(0.8, 0.6, 0.25), (0.9, 0.45, 0.5), (0.6, 0.45, 0.25), (1.0, 0.75, 0.25)]
)
def test_a_loss_of_exactly_t_is_no_violation(original, artefact, threshold):
    assert not criteria.loss_exceeds(original, artefact, threshold)
    assert criteria.loss_exceeds(original, artefact - 1e-9, threshold)


def test_plain_floats_would_have_got_it_wrong():
    assert (0.8 - 0.6) / 0.8 > 0.25  # why the slack exists


def test_rules_against_their_definitions():
    # (source_dice, dice, source_iou, iou) → violation by dice, by iou at t = 0.25
    rows = [(0.9, 0.5, 0.8, 0.3), (0.9, 0.7, 0.82, 0.54), (0.9, 0.9, 0.8, 0.8)]
    names = ("source_dice", "dice", "source_iou", "iou")
    columns = dict(zip(names, np.array(rows).T, strict=True))

    def violated(score):
        return criteria.judge(columns, score=score, threshold=0.25, against="truth").violated.tolist()

    assert violated("dice") == [True, False, False]
    assert violated("iou") == [True, True, False]
    assert violated("both") == [True, False, False]
    assert violated("either") == [True, True, False]


@pytest.mark.parametrize("score", ["dice", "both", "either"])
@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"dice": 0.3, "source_dice": 0.0, "iou": 0.2, "source_iou": 0.0}, ReasonCode.SOURCE_SCORE_ZERO),
        ({"dice": 0.3, "source_dice": None, "iou": 0.2, "source_iou": None}, ReasonCode.NO_SOURCE_SCORE),
        ({"dice": None, "source_dice": None, "iou": None, "source_iou": None, "self_dice": 1.0}, ReasonCode.NO_TRUTH),
    ],
)
def test_cases_that_cannot_be_judged_are_skipped_with_the_reason(score, row, code):
    verdict, reason = criteria.verdict(row, score=score, threshold=0.25, against="truth")
    assert (verdict, reason.code) == (Verdict.SKIP, code) and reason.text


def test_against_source_the_original_score_is_one():
    row = {"self_dice": 0.7, "self_iou": 0.5, "dice": 0.9, "source_dice": 0.1}
    assert criteria.verdict(row, score="dice", threshold=0.25, against="source")[0] is Verdict.FAIL
    assert criteria.verdict(row, score="dice", threshold=0.5, against="source")[0] is Verdict.PASS
    verdict, reason = criteria.verdict({"self_dice": None}, score="dice", threshold=0.5, against="source")
    assert (verdict, reason.code) == (Verdict.SKIP, ReasonCode.NO_SOURCE_SCORE)
