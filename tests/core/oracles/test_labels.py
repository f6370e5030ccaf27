"""The oracle of labels against hand computation and the criterion ``label`` against its definition."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from medtest.core.cases import Classes, Effect, LabelOutput, MaskOutput, PreparedSeed, ReasonCode, SeedRef, Verdict
from medtest.core.oracles import criteria
from medtest.suite.model import Criterion
from medtest.tasks.classify.oracle import Labels
from medtest.tasks.segment.oracle import overlap

THREE = Classes(names=("normal", "vascular", "inflammatory"))
MANY = Classes(names=("mass", "nodule", "edema", "hernia"), multi=True)
BLANK = np.zeros((6, 6), np.bool_)


def seed_of(labels, classes=THREE, mask=None):
    return PreparedSeed(
        ref=SeedRef(dataset="d", seed_id="s"),
        image=np.zeros((6, 6, 3), np.uint8),
        mask=mask,
        original_mask=None,
        frame=BLANK,
        grey=BLANK.astype(np.float32),
        kind="label",
        classes=classes,
        labels=labels,
    )


def answer_of(labels, probabilities=None, classes=THREE, mask=None):
    given_ = None if probabilities is None else np.array(probabilities, np.float32)
    return LabelOutput(classes=classes, labels=labels, probabilities=given_, mask=mask)


def oracle(score="label", threshold=0.0, against="source"):
    return Labels(Labels.Settings(), primary=Criterion(score=score, threshold=threshold, against=against))


def test_single_label_by_hand():
    source = answer_of(("vascular",), [0.1, 0.7, 0.2])
    answer = answer_of(("inflammatory",), [0.05, 0.35, 0.6])
    scores = oracle().score(answer=answer, source=source, seed=seed_of(("vascular",)), effect=Effect())
    assert (scores["agreement"], scores["label_share"]) == (0.0, 0.0)
    assert scores["probability"] == pytest.approx(0.35)
    assert scores["confidence"] == pytest.approx(0.6)
    assert (scores["self_agreement"], scores["self_label_share"]) == (0.0, 0.0)
    assert scores["self_probability"] == pytest.approx(0.35)
    assert scores["dice"] is None and scores["iou"] is None
    assert set(scores) == {*Labels.scores, *(f"self_{name}" for name in Labels.self_scores)}


def test_several_labels_by_hand():
    source = answer_of(("mass",), [0.9, 0.2, 0.1, 0.4], MANY)
    answer = answer_of(("mass", "edema"), [0.8, 0.3, 0.6, 0.0], MANY)
    scores = oracle().score(answer=answer, source=source, seed=seed_of(("mass", "nodule"), MANY), effect=Effect())
    assert scores["agreement"] == 0.0
    assert scores["label_share"] == 0.5, "mass and hernia are as expected, nodule and edema are not"
    assert scores["probability"] == pytest.approx((0.8 + 0.3 + 0.4 + 1.0) / 4)
    assert scores["self_label_share"] == 0.75
    assert scores["self_probability"] == pytest.approx((0.8 + 0.7 + 0.4 + 1.0) / 4)
    assert scores["confidence"] == pytest.approx((0.8 + 0.7 + 0.6 + 1.0) / 4)


def test_no_finding_is_an_answer_and_unlabelled_is_not():
    none = answer_of((), [0.1, 0.2, 0.1, 0.4], MANY)
    judge = oracle()
    scores = judge.score(answer=none, source=none, seed=seed_of((), MANY), effect=Effect())
    assert scores["agreement"] == scores["label_share"] == scores["self_agreement"] == 1.0
    unlabelled = judge.score(answer=none, source=None, seed=seed_of(None, MANY), effect=Effect())
    assert unlabelled["agreement"] is None and unlabelled["self_agreement"] is None
    assert judge.describe(answer=none, source=none, seed=seed_of((), MANY), effect=Effect())["expected"] == ""
    assert judge.describe(answer=none, source=None, seed=seed_of(None, MANY), effect=Effect())["expected"] is None


def test_texts():
    answer = answer_of(("edema", "mass"), [0.8, 0.3, 0.123456789, 0.0], MANY)
    seed = seed_of(("mass", "nodule"), MANY)
    texts = oracle().describe(answer=answer, source=answer_of(("mass",), classes=MANY), seed=seed, effect=Effect())
    assert texts["expected"] == "mass|nodule" and texts["source_label"] == "mass"
    assert json.loads(texts["probabilities"]) == {"mass": 0.8, "nodule": 0.3, "edema": 0.1234568, "hernia": 0.0}
    assert (
        oracle().describe(answer=answer_of(("mass",), classes=MANY), source=None, seed=seed, effect=Effect())[
            "probabilities"
        ]
        == ""
    )
    nothing = oracle().describe(answer=None, source=None, seed=seed, effect=Effect())
    assert nothing == {"label": None, "source_label": None, "expected": "mass|nodule", "probabilities": None}
    assert set(nothing) == set(Labels.texts)


def test_the_mask_is_scored_where_both_exist():
    rng = np.random.default_rng(3)
    predicted, expected = rng.random((6, 6)) > 0.5, rng.random((6, 6)) > 0.5
    answer = answer_of(("normal",), [0.8, 0.1, 0.1], mask=MaskOutput(mask=predicted))
    seed = seed_of(("normal",), mask=expected)
    scores = oracle().score(answer=answer, source=answer, seed=seed, effect=Effect())
    assert (scores["dice"], scores["iou"]) == overlap(predicted, expected)
    moved = Effect(kind="move", data={"matrix": [[1, 0, 2], [0, 1, 0]]})
    shifted = np.zeros_like(expected)
    shifted[:, 2:] = expected[:, :-2]
    scores = oracle().score(answer=answer, source=answer, seed=seed, effect=moved)
    assert (scores["dice"], scores["iou"]) == overlap(predicted, shifted)


@pytest.mark.parametrize(
    ("before", "after", "expected", "source_says", "truth_says"),
    [
        ("normal", "normal", "normal", Verdict.PASS, Verdict.PASS),
        ("normal", "vascular", "normal", Verdict.FAIL, Verdict.FAIL),
        ("vascular", "normal", "normal", Verdict.FAIL, Verdict.SKIP),
        ("vascular", "vascular", "normal", Verdict.PASS, Verdict.SKIP),
    ],
)
def test_label_changed_and_label_wrong(before, after, expected, source_says, truth_says):
    for against, says in (("source", source_says), ("truth", truth_says)):
        judge = oracle(against=against)
        seed = seed_of((expected,))
        source, answer = answer_of((before,)), answer_of((after,))
        first = judge.score(answer=source, source=source, seed=seed, effect=Effect())
        row = judge.score(answer=answer, source=source, seed=seed, effect=Effect())
        row |= {f"source_{name}": first[name] for name in Labels.scores}
        verdict, reason = judge.verdict(row)
        assert verdict is says
        assert reason.code == (ReasonCode.SOURCE_WRONG if says is Verdict.SKIP else ReasonCode.NONE)


def test_a_fall_of_probability_starts_from_the_sources_own():
    """An answer that stays as unsure as before does not fall."""
    judge = oracle(score="probability", threshold=0.25)
    source = answer_of(("vascular",), [0.3, 0.4, 0.3])
    for after, says in (([0.3, 0.4, 0.3], Verdict.PASS), ([0.36, 0.28, 0.36], Verdict.FAIL), ([0.0, 1.0, 0.0], "PASS")):
        seed = seed_of(None)
        first = judge.score(answer=source, source=source, seed=seed, effect=Effect())
        row = judge.score(answer=answer_of(("normal",), after), source=source, seed=seed, effect=Effect())
        row |= {f"source_{name}": first[name] for name in Labels.scores}
        assert judge.verdict(row)[0] == says
    assert criteria.columns_needed("probability", "source") == ("self_probability", "source_confidence")


def test_a_rule_without_threshold_looks_at_none():
    columns = {"agreement": np.array([1.0, 0.0]), "source_agreement": np.array([1.0, 1.0])}
    for threshold in (0.0, 0.25, 0.999):
        judged = criteria.judge(columns, score="label", threshold=threshold, against="truth")
        assert judged.violated.tolist() == [False, True]
    assert criteria.criterion_name("label", 0.25) == "label"
    assert criteria.criterion_name("probability", 0.25) == "probability t=0.25"


@given(hnp.arrays(np.float64, 4, elements=st.floats(0, 1)), st.sets(st.sampled_from(MANY.names)))
def test_scores_stay_in_their_ranges(probabilities, expected):
    labels = tuple(n for n, p in zip(MANY.names, probabilities, strict=True) if p > 0.5)
    answer = answer_of(labels, probabilities, MANY)
    seed = seed_of(MANY.ordered(expected), MANY)
    scores = oracle().score(answer=answer, source=answer, seed=seed, effect=Effect())
    assert all(0 <= scores[name] <= 1 for name in ("agreement", "label_share", "probability", "confidence"))
    assert (scores["agreement"] == 1) == (set(labels) == expected) == (scores["label_share"] == 1)
    assert scores["self_agreement"] == 1 and scores["self_probability"] == scores["confidence"] >= 0.5 - 1e-6
