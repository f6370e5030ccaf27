"""Paired differences of two systems, against SciPy and statsmodels, and the cases that they rest on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from label_records import CHEST, make_label_records
from records_maker import make_records
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from medtest.core.tasks.base import task_of
from medtest.results.cube.intervals import paired_score
from medtest.results.rates.differences import difference_table
from medtest.results.records.common_cases import common_cases
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion
from medtest.tasks.classify.tables.flips import flip_table

DICE = Criterion(score="dice", threshold=0.25, against="truth")


def _systems(**options: object) -> dict[str, pd.DataFrame]:
    """Return two systems on the same images, and a third that is worse than the second."""
    frames = {name: make_records(random=number, **options) for number, name in enumerate(("a", "b", "c"))}
    worse = frames["c"]
    hit = (worse.relation == "blur") & worse.dice.notna()
    worse.loc[hit, "dice"] = 0.3 * worse.loc[hit, "source_dice"]
    return {name: frame.assign(system=name) for name, frame in frames.items()}


def _table(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    common = common_cases([Records.of(frame) for frame in frames.values()])
    return difference_table(dict(zip(frames, common.records, strict=True)), DICE)


def _mark_violations(frame: pd.DataFrame) -> pd.DataFrame:
    """Count violations by the definition: source Dice above 0, both Dice there, no ERROR; loss above a quarter."""
    rows = frame[(frame.relation != "source") & (frame.relation != "unchanged")]
    rows = rows[rows.verdict.ne("ERROR") & rows.dice.notna() & (rows.source_dice > 0)]
    return rows.assign(violated=(rows.source_dice - rows.dice) / rows.source_dice > 0.25)


def _join_systems(frames: dict[str, pd.DataFrame], first: str, second: str) -> pd.DataFrame:
    keys = ["dataset", "seed_id", "cluster", "relation", "severity"]
    first_frame, second_frame = (_mark_violations(frames[name])[[*keys, "violated"]] for name in (first, second))
    return first_frame.merge(second_frame, on=keys, suffixes=("_1", "_2"))


def test_one_case_a_seed_is_mcnemar_of_statsmodels_and_holm_of_all_rows() -> None:
    frames = _systems(seeds=90, severities=(3,))
    table = _table(frames)
    rows = table[table.name != "overall"]
    expected = []
    for row in rows.itertuples():
        both = _join_systems(frames, row.first, row.second)
        both = both[both.relation == row.name]
        square = (
            pd.crosstab(both.violated_1, both.violated_2).reindex([False, True], axis=0).reindex([False, True], axis=1)
        )
        counts = square.fillna(0).to_numpy()
        assert (row.only_first, row.only_second, row.cases) == (counts[1, 0], counts[0, 1], len(both))
        assert row.difference == pytest.approx(100 * (both.violated_1.mean() - both.violated_2.mean()), abs=1e-4)
        expected.append(mcnemar(counts, exact=True).pvalue)
    assert rows.p.to_numpy() == pytest.approx(expected, rel=1e-5)
    assert rows.p_holm.to_numpy() == pytest.approx(multipletests(expected, method="holm")[1], rel=1e-5)
    over = table[table.name == "overall"]
    assert over.p_holm.to_numpy() == pytest.approx(multipletests(over.p.to_numpy(), method="holm")[1], rel=1e-5)
    assert set(table[(table.name == "blur") & (table.second == "c")].better) <= {"a", "b"}


def test_several_cases_a_patient_are_exchanged_and_resampled_together() -> None:
    frames = _systems(seeds=60, clusters=11)
    row = _table({name: frames[name] for name in "ac"}).query("name == 'overall'").iloc[0]
    both = _join_systems(frames, "a", "c")
    sums = both.groupby("cluster")[["violated_1", "violated_2"]].sum().to_numpy(float)
    sizes = both.groupby("cluster").size().to_numpy(float)
    exact = stats.permutation_test(
        (sums[:, 0], sums[:, 1]), lambda x, y: (x - y).sum(), permutation_type="samples", n_resamples=np.inf
    )
    assert row.p == pytest.approx(exact.pvalue, rel=1e-5)
    drawn = stats.bootstrap(
        (sums[:, 0], sums[:, 1], sizes),
        lambda x, y, n: 100 * (x.sum(-1) - y.sum(-1)) / n.sum(-1),
        paired=True, vectorized=False, method="percentile", n_resamples=9999, rng=1,
    ).confidence_interval  # fmt: skip
    assert row.ci_method == "cluster_bootstrap" and row.clusters == 11
    assert (row.ci_low, row.ci_high) == pytest.approx((drawn.low, drawn.high), abs=0.12 * (drawn.high - drawn.low))


@pytest.mark.parametrize(("b", "c", "n"), [(12, 2, 50), (0, 1, 44), (9, 3, 32), (0, 0, 30), (2.5, 0.5, 14)])
def test_the_score_interval_ends_at_the_bound_of_the_restricted_likelihood(b: float, c: float, n: float) -> None:
    low, high = paired_score(b, c, n)
    for end in (low, high):
        if abs(end) >= 1:
            continue

        def lost(second: float, end: float = end) -> float:
            """Return minus the log likelihood of the other proportion at this difference."""
            parts = ((b, second + end), (c, second), (n - b - c, 1 - 2 * second - end))
            return -sum(count * np.log(max(chance, 1e-300)) for count, chance in parts if count)

        inside = optimize.minimize_scalar(
            lost, bounds=(max(0.0, -end), (1 - end) / 2), method="bounded", options={"xatol": 1e-12}
        ).x
        variance = (2 * inside + end * (1 - end)) / n
        assert abs((b - c) / n - end) / np.sqrt(variance) == pytest.approx(stats.norm.ppf(0.975), rel=1e-3)


def test_systems_that_differ_on_few_seeds_get_an_interval_that_is_not_a_point() -> None:
    frames = _systems(seeds=30)
    row = _table({"a": frames["a"], "same": frames["a"].assign(system="same")}).query("name == 'overall'").iloc[0]
    assert (row.difference, row.only_first, row.p_holm, row.better) == (0, 0, 1, "")
    assert row.ci_method == "score_clusters" and row.ci_low == -row.ci_high < -5


def test_only_cases_that_all_finished_on_the_same_image_are_compared() -> None:
    frames = _systems(seeds=12)
    short = frames["b"]
    short = short[short.seed_id.isin(["seed00001", "seed00002"]) & (short.relation != "text")].copy()
    other = (short.seed_id == "seed00002") & (short.relation == "blur") & (short.severity == 4)
    short.loc[other, "followup_sha256"] = "2" * 64
    common = common_cases([Records.of(frames["a"]), Records.of(short)])
    assert common.finished == (12 * 31, 2 * 26) and (common.cases, common.unlike) == (51, 1)
    assert not common.whole and [len(records.sources) for records in common.records] == [2, 2]
    first, second = (records.followups[["seed_id", "relation", "severity"]] for records in common.records)
    pd.testing.assert_frame_equal(first, second)
    first_left, second_left = common.left_out
    assert first_left.cases == 12 * 31 - 51 and second_left.cases == 1
    assert (
        first_left.relations == ("text",)
        and len(first_left.seeds) == 10
        and first_left.seeds[0] == "phantoms/seed00000"
    )
    assert second_left.table.to_dict("records") == [
        {"dataset": "phantoms", "seed_id": "seed00002", "relation": "blur", "cases": 1}
    ]
    assert first_left.table.cases.sum() == first_left.cases


def test_systems_without_a_common_case_have_no_difference() -> None:
    frames = _systems(seeds=2)
    own, other = frames["a"], frames["b"].assign(seed_id="elsewhere")
    common = common_cases([Records.of(own), Records.of(other)])
    assert common.cases == 0
    assert difference_table({"a": common.records[0], "b": common.records[1]}, DICE).empty


@pytest.mark.parametrize("multi", [False, True])
def test_flips_of_sequences_are_compared_frame_by_frame(multi: bool) -> None:
    more = {"classes": CHEST, "multi": True} if multi else {}
    frames = {
        name: make_label_records(seeds=15, frames=6, random=number, **more).assign(system=name)
        for number, name in enumerate(("a", "b"))
    }
    common = common_cases([Records.of(frame) for frame in frames.values()])
    sides = dict(zip(frames, common.records, strict=True))
    label = Criterion(score="label", against="source")
    table = difference_table(sides, label, task=task_of("label")).query("measure == 'flips'").set_index("name")
    for row in table[table.index != "overall"].itertuples():
        for name, percent in (("a", row.first_percent), ("b", row.second_percent)):
            fp = flip_table(sides[name], rules=("auto",)).query(
                f"relation == {row.Index!r} and severity == 'all' and dataset == 'all'"
            )
            assert percent == pytest.approx(100 * fp.fp.iloc[0], abs=1e-3)
        assert row.difference == pytest.approx(row.first_percent - row.second_percent, abs=2e-4)
        assert row.ci_low <= row.difference <= row.ci_high
