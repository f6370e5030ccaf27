"""Failing slices: the search, the test by cluster, both halves, planted slices, and all kinds of answers."""

from __future__ import annotations

import sys
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from label_records import label_row
from slice_records import slice_records

from medtest.results.cube.axes import axes
from medtest.results.cube.excess import excess, two_sided
from medtest.results.rates import slice_search
from medtest.results.rates.factors import counted_cases
from medtest.results.rates.slices import MISSING, MOST_TESTED, FailingSlices, failing_slices, second_half
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

pytest.importorskip("sliceline")
PRIMARY = Criterion(score="dice", threshold=0.25, against="truth")


def slices_of(frame: pd.DataFrame, primary: Criterion = PRIMARY, **options: object) -> FailingSlices:
    records = Records.of(frame)
    return failing_slices(records, primary, axes(records), **options)


def is_planted(words: str) -> bool:
    parts = words.split(" & ")
    return len(parts) == 2 and "centre a" in parts and any(_lowest(part) for part in parts)


def _lowest(part: str) -> bool:
    name, low, *_ = part.split()
    return name == "polyp_area" and float(low) < 0.05


# ------------------------------------------------------------------------------------------------------------ search


def every_slice(codes: np.ndarray, violated: np.ndarray) -> dict[tuple[tuple[int, int], ...], float]:
    """Return the score of every combination of up to three factors, one after another."""
    total, mean = len(codes), violated.mean()
    scores = {}
    for count in (1, 2, 3):
        for chosen in combinations(range(codes.shape[1]), count):
            for values in product(*(range(codes[:, at].max() + 1) for at in chosen)):
                inside = np.ones(total, bool)
                for at, value in zip(chosen, values, strict=True):
                    inside &= codes[:, at] == value
                size = inside.sum()
                if size and size >= slice_search.SMALLEST_SHARE * total and violated[inside].any():
                    alpha = slice_search.ALPHA
                    gain = violated[inside].mean() / mean - 1
                    scores[tuple(zip(chosen, values, strict=True))] = alpha * gain - (1 - alpha) * (total / size - 1)
    return {key: score for key, score in scores.items() if score > 1e-9}


@pytest.mark.parametrize("random", range(6))
def test_the_search_finds_the_best_of_every_combination(random: int) -> None:
    rng = np.random.default_rng(random)
    codes = np.stack([rng.integers(0, bins, 700) for bins in (2, 3, 4, 5, 3)], axis=1)
    violated = rng.random(700) < 0.15 + 0.5 * ((codes[:, 1] == 2) & (codes[:, 2] == 1)) + 0.2 * (codes[:, 0] == 1)
    scores = every_slice(codes, violated)
    returned = slice_search.search_slices(codes, violated)
    assert len(returned) == len(set(returned)) >= min(60, len(scores))
    assert [scores[key] for key in returned] == pytest.approx(sorted(scores.values(), reverse=True)[: len(returned)])


def test_a_missing_value_is_in_no_slice() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, (600, 3))
    violated = rng.random(600) < np.where(codes[:, 0] == -1, 0.9, 0.1)
    assert all(code >= 0 for chosen in slice_search.search_slices(codes, violated) for _, code in chosen)


def test_with_many_factors_the_planted_triple_is_found() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (4000, 14))
    own = (codes[:, 11] == 2) & (codes[:, 4] == 0) & (codes[:, 9] == 1)
    violated = rng.random(4000) < np.where(own, 0.9, 0.1)
    assert slice_search.search_slices(codes, violated)[0] == ((4, 0), (9, 1), (11, 2))


# -------------------------------------------------------------------------------------------------- the test by cluster


def test_the_statistic_is_the_score_test_of_generalised_estimating_equations() -> None:
    from statsmodels.genmod.generalized_estimating_equations import GEE  # takes a second to import

    frame, inside = slice_records(5, planted=True, clusters=60)
    violated = (frame["verdict"] == "FAIL").to_numpy()
    cluster = np.unique(frame["cluster"], return_inverse=True)[1]
    difference, z = excess(violated, inside, cluster, 60)
    design = np.column_stack([np.ones(len(inside)), inside])
    constraint = (np.array([[0.0, 1.0]]), np.array([0.0]))
    fitted = GEE(violated.astype(float), design, groups=cluster, constraint=constraint).fit()
    test = fitted.score_test()
    assert z**2 == pytest.approx(test["statistic"])
    assert two_sided(z) == pytest.approx(test["p-value"])
    assert difference == pytest.approx(violated[inside].mean() - violated[~inside].mean())


def test_few_violations_are_not_significant() -> None:
    violated = np.zeros(200, bool)
    violated[:3] = True  # three of ten in the slice, none of 190 others
    _, z = excess(violated, np.arange(200) < 10, np.arange(200), 200)
    assert 0 < z <= 1.05 * np.sqrt(3)


def test_without_a_case_on_one_side_nothing_is_shown() -> None:
    violated, cluster = np.array([True, False]), np.array([0, 1])
    assert excess(violated, np.array([True, True]), cluster, 2) == (0.0, 0.0)
    assert excess(np.array([True, True]), np.array([True, False]), cluster, 2)[1] == 0.0


# ------------------------------------------------------------------------------------------------------- planted slices


def test_a_planted_slice_is_found_and_its_figures_match_its_cases() -> None:
    frame, inside = slice_records(1, planted=True)
    shown = slices_of(frame)
    row = shown.frame.iloc[0]
    assert is_planted(row["slice"])
    assert row["factors"] == 2
    assert 1 <= shown.tested <= MOST_TESTED
    assert row["tested"] == shown.tested
    patients = frame.loc[inside, "cluster"].nunique()
    assert patients * 0.3 < row["clusters"] < patients * 0.7  # those of one half
    assert row["cases"] == 6 * row["clusters"]
    assert row["cases"] + row["rest_cases"] == 6 * 200
    assert row["efr_percent"] == pytest.approx(100 * row["violations"] / row["cases"], abs=1e-3)
    assert row["difference"] == pytest.approx(row["efr_percent"] - row["rest_percent"], abs=1e-3)
    assert 0 < row["difference_low"] < row["difference"] < row["difference_high"]
    assert row["p"] <= row["p_holm"] < 0.05
    failing = set(frame.loc[inside & (frame["verdict"] == "FAIL"), "seed_id"])
    worst = [address.split("/")[1] for address in shown.worst[0]]
    assert row["worst_address"] == shown.worst[0][0]
    assert len(set(worst)) == 3
    assert set(worst) <= failing


def test_slices_do_not_depend_on_the_order_of_the_records() -> None:
    frame, _ = slice_records(1, planted=True)
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    names = ["slice", "cases", "violations", "p", "difference"]
    pd.testing.assert_frame_equal(slices_of(shuffled).frame[names], slices_of(frame).frame[names])


def test_controls_are_not_cases_of_a_slice() -> None:
    frame, _ = slice_records(1, planted=True)
    control = frame.assign(relation="image_removed", group="controls", verdict="FAIL", dice=0.0)
    both = Records.of(pd.concat([frame, control[control["severity"] > 0]], ignore_index=True))
    cases = counted_cases(both, PRIMARY, None)
    assert len(cases.rows) == len(counted_cases(Records.of(frame), PRIMARY, None).rows)
    assert set(both.followups["relation"].iloc[cases.rows.index]) == set(frame["relation"]) - {"source"}


def test_the_confirming_half_decides() -> None:
    frame, inside = slice_records(1, planted=True)
    records = Records.of(frame)
    cases = counted_cases(records, PRIMARY, None)
    second = second_half(records, cases)
    halves = [set(frame.loc[part, "cluster"]) for part in (second, ~second)]
    assert not halves[0] & halves[1]
    assert [len(half) for half in halves] == [200, 200]
    flat = frame.assign(dice=np.where(second & inside, 0.85, frame["dice"]))
    assert not any(is_planted(words) for words in slices_of(flat).frame["slice"])


def test_a_narrower_slice_is_shown_only_where_it_fails_more_than_the_wider_one() -> None:
    frame, inside = slice_records(2, planted=False, clusters=800)
    rng = np.random.default_rng(0)
    blur = (frame["relation"] == "relation1").to_numpy()
    for extra in (0.0, 0.5):
        rate = np.where(blur, 0.4 + extra * inside, 0.05)
        failed = rng.random(len(frame)) < rate
        shown = slices_of(frame.assign(dice=np.where(failed, 0.3, 0.85)))
        nested = [words for words in shown.frame["slice"] if "relation relation1" in words]
        assert "relation relation1" in nested
        assert any("centre a" in words and "polyp_area" in words for words in nested) == bool(extra)
        assert extra or len(nested) == 1


def test_ages_are_shown_as_ranges() -> None:
    frame, _ = slice_records(4, planted=False)
    old = frame["stratum_age"].astype(int) > 72
    shown = slices_of(frame.assign(dice=np.where(old, 0.3, frame["dice"])))
    assert shown.frame["slice"].iloc[0] == "age 70 to 88"


def test_a_class_is_a_factor_of_labels() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for number in range(120):
        expected = ("vascular",) if number % 3 == 0 else ("normal",)
        for relation in ("brightness", "scale"):
            wrong = rng.random() < (0.7 if number % 3 == 0 else 0.1)
            label = ("inflammatory",) if wrong else expected
            rows.append(
                label_row("capsule", f"s{number}", relation, label=label, expected=expected, source_label=expected)
            )
    primary = Criterion(score="agreement", threshold=0.0, against="truth")
    shown = slices_of(pd.DataFrame(rows), primary, categories=("expected",))
    assert shown.frame["slice"].iloc[0] == "expected vascular"


def test_without_a_slice_nothing_is_shown() -> None:
    shown = slices_of(slice_records(0, planted=False, clusters=200)[0])
    assert shown.frame.empty
    assert not shown.addresses
    assert not shown.notices


def test_too_few_patients_show_nothing_even_where_one_group_always_fails() -> None:
    frame, _ = slice_records(0, planted=False, clusters=39)
    dark = frame["factor_brightness"] < 100
    assert slices_of(frame.assign(dice=np.where(dark, 0.1, 0.9))).frame.empty


def test_a_group_of_a_few_patients_is_never_a_slice() -> None:
    frame, _ = slice_records(0, planted=False, clusters=200, rates=(0.1, 0.1))
    rare = frame["cluster"].isin(frame["cluster"].unique()[:18])
    shown = slices_of(
        frame.assign(dice=np.where(rare, 0.1, frame["dice"]), stratum_name=np.where(rare, "only here", "elsewhere"))
    )
    assert not any("only here" in words for words in shown.frame["slice"])


def test_a_notice_without_the_extra_tells_how_to_get_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sliceline", None)
    frame, _ = slice_records(1, planted=True)
    shown = slices_of(frame)
    assert shown.frame.empty
    assert shown.notices == (MISSING,)
    assert "pip install 'medtest[slices]'" in MISSING
    few, _ = slice_records(1, planted=True, clusters=20)
    assert not slices_of(few).notices  # the table would be empty anyway


# ----------------------------------------------------------------------------------------------------------- simulation


@pytest.mark.slow
@pytest.mark.parametrize("planted", [True, False])
def test_of_a_hundred_runs_95_find_a_planted_slice_and_5_show_one_that_is_not(planted: bool) -> None:
    shown = [slices_of(slice_records(1000 + number, planted=planted)[0]).frame["slice"] for number in range(100)]
    if planted:
        assert sum(any(map(is_planted, words)) for words in shown) >= 95
    else:
        assert sum(not words.empty for words in shown) <= 5
