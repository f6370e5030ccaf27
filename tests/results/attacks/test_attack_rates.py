"""Accuracy, AUROC and fooling rate of attacks, smallest ε, and rates at like similarity, against other libraries."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from attack_records import attack_records, chest_records, noise, pgd, square, tables_of
from sklearn.metrics import roc_auc_score
from statsmodels.duration.survfunc import SurvfuncRight
from statsmodels.stats.proportion import proportion_confint

from medtest.results.attacks.smallest import drawn_shares, flipped_share, median_of
from medtest.results.records.records_io import Records


def test_accuracy_and_fooling_with_wilsons_interval():
    table = tables_of(attack_records([pgd(2, 4, 12), noise(2, 4, 40)], wrong=5)).named["attacks.csv"]
    row = table[(table.dataset == "all") & (table.relation == "pgd")].iloc[0]
    assert (row.role, row.crafted_on, row.steps, row.measure) == ("white box", "attnmel", 4, "accuracy")
    assert row.accuracy == pytest.approx(12 / 48) and row.clean == pytest.approx(43 / 48, abs=1e-6)
    low, high = proportion_confint(12, 48, method="wilson")
    assert (row.accuracy_low, row.accuracy_high) == pytest.approx((low, high), abs=1e-6)
    # the first 36 are wrong now; of those 5 were wrong before, and of two classes that is no change
    assert row.fooling == pytest.approx(31 / 48, abs=1e-6)
    low, high = proportion_confint(31, 48, method="wilson")
    assert (row.fooling_low, row.fooling_high) == pytest.approx((low, high), abs=1e-6)


def test_auroc_is_scikit_learns():
    frame = attack_records([pgd(2, 4, 12)])
    table = tables_of(frame).named["attacks.csv"]
    row = table[(table.dataset == "all") & (table.relation == "pgd")].iloc[0]
    own = frame[frame.relation == "pgd"]
    probabilities = [json.loads(text)["melanoma"] for text in own.probabilities]
    expected = roc_auc_score((own.expected == "melanoma").astype(int), probabilities)
    assert row.auroc == pytest.approx(expected, abs=1e-6)
    assert row.auroc_low <= row.auroc <= row.auroc_high


def test_several_labels_are_counted_decision_by_decision():
    table = tables_of(chest_records()).named["attacks.csv"].query("dataset == 'all'").set_index("relation")
    assert table.loc["pgd"].measure == "right decisions"
    assert table.loc["pgd"].accuracy == pytest.approx(3 / 5) and table.loc["pgd"].fooling == pytest.approx(2 / 5)
    assert table.loc["uniform_noise"].accuracy == 1.0 and table.loc["uniform_noise"].fooling == 0.0


def test_unlabelled_seeds_keep_or_lose_their_answer():
    frame = attack_records([pgd(1, 4, 12)], wrong=0).assign(expected=None)
    table = tables_of(frame).named["attacks.csv"].query("dataset == 'all'").set_index("relation")
    assert (table.loc["pgd"].measure, table.loc["pgd"].clean) == ("answers kept", 1.0)
    assert table.loc["pgd"].accuracy == pytest.approx(12 / 48) and np.isnan(table.loc["pgd"].auroc)


SMALLEST = [*np.linspace(0.5, 6.0, 20), *[None] * 28]


def test_the_curve_of_smallest_epsilon_is_kaplan_and_meiers():
    tables = tables_of(attack_records([pgd(3, 8, 0, smallest=SMALLEST, params={"minimal": True})])).named
    row = tables["smallest_epsilon.csv"].query("dataset == 'all'").iloc[0]
    assert (row.cases, row.flipped, row.bound) == (48, 20, 8.0) and np.isnan(row["median"])
    curve = tables["smallest_epsilon_curve.csv"].query("dataset == 'all'")
    time = np.array([8.0 if epsilon is None else epsilon for epsilon in SMALLEST])
    other = SurvfuncRight(time, [epsilon is not None for epsilon in SMALLEST])
    assert curve.epsilon.tolist() == pytest.approx(other.surv_times.tolist(), abs=1e-6)
    assert curve.flipped_share.tolist() == pytest.approx((1 - other.surv_prob).tolist(), abs=1e-6)
    assert (curve.ci_low <= curve.flipped_share).all() and (curve.flipped_share <= curve.ci_high).all()


def test_bounds_that_differ_are_censored_each_where_it_ends():
    epsilon = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 8.0])
    flipped = np.array([True, False, True, True, False, True, False, True])
    (grid, share), other = flipped_share(epsilon, flipped), SurvfuncRight(epsilon, flipped)
    drawn = np.isin(other.surv_times, grid)
    assert share == pytest.approx(1 - other.surv_prob[drawn])
    assert median_of(grid, share) == other.quantile(0.5)
    assert np.allclose(drawn_shares(epsilon, flipped, np.ones((2, 8))), share)


def test_the_median_is_where_half_have_flipped():
    smallest = [1.0] * 10 + [2.0] * 15 + [5.0] * 23
    tables = tables_of(attack_records([pgd(3, 8, 0, smallest=smallest)])).named["smallest_epsilon.csv"]
    row = tables.query("dataset == 'all'").iloc[0]
    assert row["median"] == 2.0 and row.median_low <= 2.0 <= row.median_high


def test_patients_of_two_data_sets_are_counted_apart():
    settings = [pgd(3, 8, 0, smallest=SMALLEST)]
    frames = [attack_records(settings, clusters=12, dataset=dataset) for dataset in ("first", "second")]
    tables = tables_of(pd.concat(frames, ignore_index=True)).named["smallest_epsilon.csv"].set_index("dataset")
    assert tables.clusters.to_dict() == {"first": 12, "second": 12, "all": 24}


def test_relations_are_ranked_at_equal_similarity():
    blur = square(1, 3, 40, group="motion") | {"relation": "blur", "crafted_on": None, "ssim": 0.985}
    snow = blur | {"relation": "snow", "ssim": 0.6, "right": 10}
    table = tables_of(attack_records([pgd(1, 1, 4, ssim=0.986), blur, snow], wrong=0)).named["efr_at_ssim.csv"]
    rows = table.query("dataset == 'all'")
    alike = rows[rows.ssim_from == 0.98]
    assert alike.relation.tolist() == ["pgd", "blur"] and alike["rank"].tolist() == [1, 2]
    assert alike.violations.tolist() == [44, 8] and alike.efr_percent.tolist() == pytest.approx([91.6667, 16.6667])
    low, high = proportion_confint(8, 48, method="wilson")
    assert (alike.ci_low.iloc[1], alike.ci_high.iloc[1]) == pytest.approx((100 * low, 100 * high), abs=1e-3)
    assert alike.difference.iloc[1] == pytest.approx(-75.0) and alike.difference_high.iloc[1] < 0
    alone = rows[rows.relation == "snow"].iloc[0]
    assert pd.isna(alone["rank"]) and alone.ssim == pytest.approx(0.6)


@pytest.mark.parametrize("spoil", ["errors", "one seed", "one cluster", "one class", "no source"])
def test_degenerate_records_give_tables(spoil):
    settings = [pgd(1, 2, 3), pgd(2, 4, 1, smallest=SMALLEST), square(2, 4, 8), noise(2, 4, 40)]
    frame = attack_records(settings, seeds=1 if spoil == "one seed" else 48, wrong=0)
    if spoil == "errors":
        lost = ["label", "probabilities", "crafted_on", "linf", "l2", "ssim", "zero_gradient", "smallest_epsilon"]
        frame.loc[frame.relation != "source", lost] = None
        frame.loc[frame.relation != "source", "verdict"] = "ERROR"
    elif spoil == "one cluster":
        frame["cluster"] = "patient"
    elif spoil == "one class":
        frame = frame[frame.expected == "benign"]
    elif spoil == "no source":
        frame = frame[frame.relation != "source"]
    tables = tables_of(frame.reset_index(drop=True))
    named = tables.named
    if spoil == "errors":
        assert named["attack_checks.csv"].empty and not tables.notices
        return
    table = named["attacks.csv"].query("dataset == 'all'").set_index(["relation", "severity"])
    assert len(table) == 4 and (table.cases > 0).all()
    assert table.accuracy.notna().all()
    checks = named["attack_checks.csv"]
    if spoil == "one seed":
        assert (checks[checks["check"] == "epsilon"].verdict == "not checked").all()
    if spoil == "one class":
        assert table.auroc.isna().all()
    if spoil == "one cluster":
        assert named["smallest_epsilon_curve.csv"].ci_low.isna().all()


def test_labels_one_by_one_at_any_threshold():
    """The attack says yes with 0.6, the unchanged image with 0.9: at 0.7 every finding is gone."""
    from medtest.tasks.classify.tables.results import label_tables

    frame = chest_records()
    table = label_tables(Records.of(frame), thresholds=(0.5, 0.7)).frames()["attack_labels.csv"]
    rows = table.query("dataset == 'all' and relation == 'pgd'").set_index(["threshold", "label"])
    own = frame[frame.relation == "pgd"]
    for label in ("effusion", "hernia"):
        true = np.array([label in text.split("|") for text in own.expected])
        probabilities = np.array([json.loads(text)[label] for text in own.probabilities])
        for threshold in (0.5, 0.7):
            row = rows.loc[(threshold, label)]
            assert row.right == pytest.approx(float(((probabilities > threshold) == true).mean()), abs=1e-6)
            assert row.fooling == pytest.approx(float(((probabilities > threshold) != true).mean()), abs=1e-6)
            low, high = proportion_confint(round(row.right * 12), 12, method="wilson")
            assert (row.right_low, row.right_high) == pytest.approx((low, high), abs=1e-5)
            assert row.positives == true.sum()
            if 0 < true.sum() < 12:
                assert row.auroc == pytest.approx(roc_auc_score(true, probabilities), abs=1e-6)
    binary = label_tables(Records.of(attack_records([pgd(1, 4, 2)])))
    assert "attack_labels.csv" not in binary.frames()


def test_calibrated_relations_are_ranked_at_their_target():
    def at(relation, severity, right, ssim, target):
        solved = {"parameter": "sigma", "value": 2.0, "target": target, "ssim": ssim}
        own = {"relation": relation, "severity": severity, "right": right, "crafted_on": None, "ssim": None}
        return square(severity, 3, right, group="motion") | own | {"params": {"calibrated": solved}}

    cases = [at("blur", 1, 40, 0.905, 0.9), at("snow", 1, 10, 0.893, 0.9), at("blur", 2, 20, 0.8, 0.8)]
    frame = attack_records(cases, wrong=0)
    for records in (frame, frame.drop(columns=["ssim", "crafted_on"])):
        rows = tables_of(records).named["efr_at_ssim.csv"].query("dataset == 'all'")
        assert rows.target.tolist() == [0.9, 0.9, 0.8] and rows.relation.tolist() == ["snow", "blur", "blur"]
        assert rows.violations.tolist() == [38, 8, 28] and rows.ssim.tolist() == pytest.approx([0.893, 0.905, 0.8])
        assert rows["rank"].tolist()[:2] == [1, 2] and pd.isna(rows["rank"].iloc[2])
        assert (rows.ssim_from.iloc[0], rows.ssim_to.iloc[0]) == pytest.approx((0.89, 0.91))
