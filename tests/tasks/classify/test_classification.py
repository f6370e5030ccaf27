"""Tables of classifiers against scikit-learn, statsmodels and counts by hand, and properties for any answers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_records import CAPSULE, CHEST, TYPES, label_row, make_label_records
from statsmodels.stats.contingency_tables import mcnemar

from medtest.results.published.retraining import WITHOUT
from medtest.results.records.records_io import Records
from medtest.tasks.classify.tables import auroc
from medtest.tasks.classify.tables.classification import COLUMNS, WITH, classification_table

metrics = pytest.importorskip("sklearn.metrics")


def row(table, relation, severity="all", dataset="all"):
    rows = table[(table.relation == relation) & (table.severity == severity) & (table.dataset == dataset)]
    assert len(rows) == 1
    return rows.iloc[0]


def cases(frame, relation, severity=None):
    chosen = frame[(frame.relation == relation) & frame.label.notna() & frame.expected.notna()]
    return chosen if severity is None else chosen[chosen.severity == severity]


def indicator(column, classes):
    return np.array([[name in text.split("|") for name in classes] for text in column])


def test_columns_and_rows():
    table = classification_table(Records.of(make_label_records(seeds=8, severities=(1, 2))))
    assert list(table.columns) == list(COLUMNS)
    shown = table[(table.dataset == "all") & (table.severity == "all")]
    assert shown.relation.tolist() == ["original", *TYPES, WITHOUT, WITH]
    assert row(table, "scale", "2").cases == 8
    assert row(table, "original").cases == 8


def test_one_label_an_image_is_scikit_learn():
    frame = make_label_records(seeds=70, severities=(1, 3), errors=0.03, skips=0.02, skill=1.0, random=2)
    table = classification_table(Records.of(frame))
    for relation in ("source", *TYPES):
        for severity in (None, 3) if relation != "source" else (None,):
            chosen = cases(frame, relation, severity)
            name = "original" if relation == "source" else relation
            rates = row(table, name, "all" if severity is None else "3")
            truth, answer = chosen.expected, chosen.label
            assert rates.cases == len(chosen)
            assert rates.accuracy == pytest.approx(metrics.accuracy_score(truth, answer), abs=1e-6)
            assert rates.kappa == pytest.approx(metrics.cohen_kappa_score(truth, answer), abs=1e-6)
            assert rates.f1 == pytest.approx(metrics.f1_score(truth, answer, average="weighted"), abs=1e-6)
            p = np.array([[json.loads(text)[n] for n in sorted(CAPSULE)] for text in chosen.probabilities])
            area = metrics.roc_auc_score(truth, p / p.sum(1, keepdims=True), multi_class="ovr", average="macro")
            assert rates.auroc == pytest.approx(area, abs=1e-6)
            assert np.isnan(rates.label_share)
            for measure in ("accuracy", "kappa", "f1"):
                assert rates[f"{measure}_low"] <= rates[measure] <= rates[f"{measure}_high"]
            wrong = frame[(frame.relation == relation) & (frame.verdict == "ERROR")]
            assert rates.errors == (len(wrong) if severity is None else (wrong.severity == severity).sum())


def test_several_labels_an_image_are_scikit_learn():
    frame = make_label_records(classes=CHEST, multi=True, seeds=80, errors=0.03, random=4)
    table = classification_table(Records.of(frame))
    for relation in TYPES:
        chosen = cases(frame, relation)
        truth, answer = indicator(chosen.expected, CHEST), indicator(chosen.label, CHEST)
        p = np.array([[json.loads(text)[n] for n in CHEST] for text in chosen.probabilities])
        rates = row(table, relation)
        assert rates.accuracy == pytest.approx(metrics.accuracy_score(truth, answer), abs=1e-6)
        assert rates.label_share == pytest.approx(1 - metrics.hamming_loss(truth, answer), abs=1e-6)
        assert rates.f1 == pytest.approx(metrics.f1_score(truth, answer, average="weighted"), abs=1e-6)
        assert rates.auroc == pytest.approx(metrics.roc_auc_score(truth, p, average="macro"), abs=1e-6)
        assert np.isnan(rates.kappa)
        assert rates.auroc_low < rates.auroc < rates.auroc_high


def test_mcnemar_and_rates_against_the_source():
    frame = make_label_records(seeds=90, skill=1.0, random=6)
    table = classification_table(Records.of(frame))
    for relation in TYPES:
        chosen = cases(frame, relation)
        before, after = chosen.source_label == chosen.expected, chosen.label == chosen.expected
        counts = pd.crosstab(before, after).reindex(index=[True, False], columns=[True, False], fill_value=0)
        rates = row(table, relation)
        assert (rates.became_wrong, rates.became_right) == (counts.loc[True, False], counts.loc[False, True])
        assert rates.p_mcnemar == pytest.approx(mcnemar(counts.to_numpy(), exact=True).pvalue, rel=1e-5)
        assert rates.p_holm >= rates.p_mcnemar
        assert rates.fall == pytest.approx(before.mean() - after.mean(), abs=1e-6)
        assert rates.efr_source_percent == pytest.approx(100 * (chosen.label != chosen.source_label).mean(), abs=1e-4)
        assert rates.efr_truth_percent == pytest.approx(100 * (~after[before]).mean(), abs=1e-4)
    from medtest.results.cube.paired import holm

    shown = table[(table.dataset == "all") & (table.severity == "all") & table.p_mcnemar.notna()]
    assert shown.p_holm.tolist() == pytest.approx(holm(shown.p_mcnemar.tolist()), rel=1e-5)


def test_the_averages_with_and_without_the_original():
    table = classification_table(Records.of(make_label_records(seeds=40, severities=(1, 2), skill=1.0)))
    each = [row(table, name) for name in TYPES]
    original = row(table, "original")
    for measure in ("accuracy", "kappa", "f1"):
        values = [rates[measure] for rates in each]
        assert row(table, WITHOUT)[measure] == pytest.approx(np.mean(values), abs=1e-6)
        assert row(table, WITH)[measure] == pytest.approx(np.mean([original[measure], *values]), abs=1e-6)
    level = [row(table, name, "2").accuracy for name in TYPES]
    assert row(table, WITHOUT, "2").accuracy == pytest.approx(np.mean(level), abs=1e-6)
    assert row(table, WITHOUT).accuracy_low < row(table, WITHOUT).accuracy < row(table, WITHOUT).accuracy_high


def test_unchanged_is_in_no_average():
    relations = {**TYPES, "unchanged": ("floor", 0.0)}
    table = classification_table(Records.of(make_label_records(seeds=30, relations=relations, skill=1.0)))
    assert row(table, "unchanged").accuracy == row(table, "original").accuracy
    assert row(table, WITHOUT).accuracy == pytest.approx(np.mean([row(table, n).accuracy for n in TYPES]), abs=1e-6)


def test_the_interval_of_accuracy_is_a_bootstrap_over_seeds():
    frame = make_label_records(seeds=80, severities=(1, 2, 3), skill=1.0, random=8)
    rates = row(classification_table(Records.of(frame)), "scale")
    chosen = frame[frame.relation == "scale"]
    right = (chosen.label == chosen.expected).groupby(chosen.seed_id).mean().to_numpy()
    rng = np.random.default_rng(1)
    low, high = np.quantile(right[rng.integers(80, size=(4000, 80))].mean(1), [0.025, 0.975])
    assert (rates.accuracy_low, rates.accuracy_high) == (pytest.approx(low, abs=0.012), pytest.approx(high, abs=0.012))


def test_kappa_with_a_single_class():
    rows = []
    for number in range(6):
        more = {"expected": ("normal",), "source_label": ("normal",), "label": ("normal",)}
        rows += [label_row("d", f"s{number}", name, **more) for name in ("source", "brightness")]
    rows.append(label_row("d", "s0", "scale", expected=("normal",), source_label=("normal",), label=("vascular",)))
    rates = row(classification_table(Records.of(pd.DataFrame(rows))), "brightness")
    assert rates.accuracy == rates.f1 == 1.0
    assert np.isnan(rates.kappa) and np.isnan(rates.auroc)  # 0 / 0: the network cannot be told from a constant


def test_unlabelled_seeds_have_rates_against_the_source_alone():
    table = classification_table(Records.of(make_label_records(seeds=30, labelled=False, skill=0.5)))
    rates = row(table, "scale")
    assert rates.cases == 0 and np.isnan(rates.accuracy) and np.isnan(rates.p_mcnemar)
    assert rates.efr_source_percent > 0
    assert np.isnan(rates.efr_truth_percent)


def test_labels_without_probabilities():
    table = classification_table(Records.of(make_label_records(seeds=30, probabilities=False)))
    assert np.isnan(row(table, "scale").auroc) and row(table, "scale").accuracy > 0


def test_two_data_sets_are_pooled_by_case():
    frame = make_label_records(seeds=20, datasets=("a", "b"), skill=1.0)
    more = frame[(frame.dataset == "a") | (frame.seed_id < "seed0010")]
    table = classification_table(Records.of(more))
    first, second, both = (row(table, "scale", dataset=name) for name in ("a", "b", "all"))
    assert (first.cases, second.cases, both.cases) == (20, 10, 30)
    assert both.accuracy == pytest.approx((20 * first.accuracy + 10 * second.accuracy) / 30, abs=1e-5)
    assert (first.became_wrong + second.became_wrong) == both.became_wrong


def test_a_source_without_follow_ups_counts_in_the_original_row():
    frame = make_label_records(seeds=12)
    part = frame[(frame.relation == "source") | (frame.seed_id < "seed0006")]
    table = classification_table(Records.of(part))
    assert (row(table, "original").cases, row(table, "scale").cases) == (12, 6)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=30), st.integers(0, 2**32 - 1))
def test_auroc_counts_ties_half_and_weights_are_repeats(pairs, seed):
    truth = np.array([[t] for t, _ in pairs])
    scores = np.array([[s / 4] for _, s in pairs])
    weights = np.random.default_rng(seed).integers(0, 4, len(pairs))
    area = auroc.auroc(truth, scores)[0]
    if truth.any() and not truth.all():
        assert area == pytest.approx(metrics.roc_auc_score(truth[:, 0], scores[:, 0]), abs=1e-12)
        repeated = np.repeat(np.arange(len(pairs)), weights)
        again = auroc.weighted(truth, scores, weights[None].astype(float))[0, 0]
        if 0 < truth[repeated].sum() < len(repeated):
            assert again == pytest.approx(metrics.roc_auc_score(truth[repeated, 0], scores[repeated, 0]), abs=1e-12)
        else:
            assert np.isnan(again)
    else:
        assert np.isnan(area)
