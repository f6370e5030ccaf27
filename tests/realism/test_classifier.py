"""The fixed classifier compared with scikit-learn, and properties of its area under the ROC curve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from medtest.realism.classifier import RIDGE, Patches, Scored, auc_difference, auc_of, fit
from medtest.realism.features import FEATURES
from medtest.realism.patches import MADE, REAL, PatchTest


def _patches(shift: float, *, groups: int = 12, each: int = 10, features: int = 4, seed: int = 0) -> Patches:
    rng = np.random.default_rng(seed)
    patches = Patches()
    for group in range(groups):
        for label in (0, 1):
            patches.add(rng.normal(label * shift, 1, (each, features)), label, f"image {group}")
    return patches


def test_weights_are_those_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(300, 5)), (rng.random(300) < 0.3).astype(np.int64)
    rows[labels == 1, 0] += 1
    weights, mean, sd = fit(rows, labels)
    plain = np.clip((rows - mean) / sd, -4, 4)
    reference = linear_model.LogisticRegression(C=1 / RIDGE, class_weight="balanced", tol=1e-10, max_iter=1000)
    reference.fit(np.hstack([plain, (plain**2 - 1) / 4]), labels)
    np.testing.assert_allclose(weights[1:], reference.coef_[0], atol=1e-4)
    assert weights[0] == pytest.approx(reference.intercept_[0], abs=1e-4)


def test_the_area_is_that_of_scikit_learn_over_the_pairs_of_each_fold():
    metrics = pytest.importorskip("sklearn.metrics")
    scored = Scored(_patches(0.5), "area")
    areas, pairs = [], []
    for fold, scores in zip(scored.folds, scored.scores, strict=True):
        for own in (fold == place for place in range(fold.max() + 1)):
            areas.append(metrics.roc_auc_score(scored.labels[own], scores[own]))
            pairs.append(np.count_nonzero(scored.labels[own] == 1) * np.count_nonzero(scored.labels[own] == 0))
    assert scored.auc() == pytest.approx(np.average(areas, weights=pairs))


def test_equal_scores_count_a_half():
    patches = Patches()
    for group in range(6):
        for label in (0, 1):
            patches.add(np.ones((4, 3)), label, f"{group}")
    assert Scored(patches, "ties").auc() == 0.5


def test_groups_are_never_divided_between_folds():
    scored = Scored(_patches(0.5), "folds")
    for fold in scored.folds:
        assert len(set(fold)) == 5
        for group in range(len(scored.names)):
            assert len(set(fold[scored.group == group])) == 1


def test_equal_sorts_cover_a_half_and_different_ones_do_not():
    same = auc_of(_patches(0.0, groups=20), "same")
    assert same.low <= 0.5 <= same.high
    apart = auc_of(_patches(2.0), "apart")
    assert apart.low > 0.95
    assert (apart.counts, apart.groups) == ((120, 120), (12, 12))
    assert auc_of(_patches(2.0), "apart") == apart


def test_a_difference_of_spread_is_seen_by_the_squares():
    rng = np.random.default_rng(1)
    patches = Patches()
    for group in range(12):
        for label in (0, 1):
            patches.add(rng.normal(0, 1 + 2 * label, (10, 2)), label, f"{group}")
    assert auc_of(patches, "spread").value > 0.8


def test_the_difference_of_areas_is_drawn_with_the_same_groups():
    first, second, gain = auc_difference(_patches(1.0), _patches(1.0), "twins")
    assert first.value == pytest.approx(second.value, abs=0.05)
    assert gain.value == pytest.approx(first.value - second.value)
    assert gain.high - gain.low < 2 * (first.high - first.low)


def test_the_feature_that_differs_in_artefacts_alone_comes_first():
    test = PatchTest("feces", 1)
    rng = np.random.default_rng(2)
    for label in (MADE, REAL):
        for patches, column in ((test._artefact, 3), (test._clean, None)):
            rows = rng.normal(size=(2000, len(FEATURES)))
            rows[:, 5] += 2 * label  # cameras differ in this feature everywhere
            if column is not None:
                rows[:, column] += label
            patches.add(rows, label, f"{label}")
    (name, shift), *_ = test.differences()
    assert name == FEATURES[3]
    assert shift == pytest.approx(1 / np.sqrt(1.25), abs=0.15)
    assert PatchTest("feces", 1).differences() == []


def test_too_few_groups_give_no_figure():
    assert math.isnan(auc_of(Patches(), "none").value)
    lone = _patches(1.0, groups=1)
    assert math.isnan(auc_of(lone, "one").value)
    assert math.isnan(auc_difference(lone, _patches(1.0), "one of them")[2].value)
