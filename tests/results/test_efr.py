"""The EFR table against plain counting, for every kind of row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from records_maker import make_records
from statsmodels.stats.proportion import proportion_confint

from medtest.results.rates import efr
from medtest.results.records.records_io import Records

EVERY = efr.Criteria(scores=("dice", "iou", "both", "either"), thresholds=(0.25, 0.5), against=("truth", "source"))


def table_of(frame, criteria=EVERY):
    return efr.efr_table(Records.of(frame), criteria)


def row_of(table, **keys):
    chosen = table
    full = {"dataset": "all", "relation": "overall", "severity": "all", "score": "dice", "threshold": 0.25}
    for name, value in ({**full, "against": "truth"} | keys).items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1
    return chosen.iloc[0]


def count_row(cases, score, threshold, against):
    """Count one row case by case, in plain Python."""
    counts = dict.fromkeys(("cases", "violations", "errors", "skipped", "source_failed"), 0)
    for row in cases:
        if row["verdict"] == "ERROR":
            counts["errors"] += 1
            continue
        pairs = {}
        for name in ("dice", "iou"):
            pairs[name] = (1.0, row[f"self_{name}"]) if against == "source" else (row[f"source_{name}"], row[name])
        names = ["dice", "iou"] if score in ("both", "either") else [score]
        if any(np.isnan(pairs[n][1]) for n in names) and np.isnan(row["dice"]):
            counts["source_failed" if row["broken"] else "skipped"] += 1
        elif any(np.isnan(pairs[n][0]) or np.isnan(pairs[n][1]) or pairs[n][0] == 0 for n in names):
            counts["source_failed"] += 1
        else:
            counts["cases"] += 1
            worse = [(pairs[n][0] - pairs[n][1]) / pairs[n][0] > threshold + 1e-12 for n in names]
            counts["violations"] += any(worse) if score == "either" else all(worse)
    return counts


@pytest.fixture(scope="module")
def frame():
    records = make_records(seeds={"kvasir": 9, "colon": 5}, errors=0.06, skips=0.2, random=3)
    broken = records[(records.relation == "source") & (records.verdict == "ERROR")][["dataset", "seed_id"]]
    keys = set(map(tuple, broken.to_numpy()))
    assert keys, "the sample must hold a source that failed"
    records["broken"] = [pair in keys for pair in zip(records.dataset, records.seed_id, strict=True)]
    return records


@pytest.fixture(scope="module")
def table(frame):
    return table_of(frame.drop(columns="broken"))


def test_columns_match_the_contract(table):
    assert list(table.columns) == [
        "dataset", "relation", "group", "severity", "score", "threshold", "against", "cases", "violations",
        "efr_percent", "ci_low", "ci_high", "ci_method", "generated", "efr_generated_percent", "errors", "skipped",
        "source_failed",
    ]  # fmt: skip


def test_every_row_counts_what_plain_python_counts(frame, table):
    followups = frame[frame.relation != "source"].to_dict("records")
    checked = 0
    for row in table.itertuples():
        if row.severity not in ("all", "3", "0") or row.dataset == "colon":
            continue  # the other levels and the other data set go the same way
        pooled = row.relation in ("overall", "overall_cells")
        part = [
            case
            for case in followups
            if row.dataset in ("all", case["dataset"])
            and (case["relation"] != "unchanged" if pooled else case["relation"] == row.relation)
            and row.severity in ("all", str(case["severity"]))
        ]
        expected = count_row(part, row.score, row.threshold, row.against)
        assert {name: getattr(row, name) for name in expected} == expected, row
        assert row.generated == len(part)
        assert row.efr_generated_percent == pytest.approx(100 * expected["violations"] / len(part), abs=1e-4)
        checked += 1
    assert checked > 300


def test_there_is_a_row_for_every_combination(frame, table):
    combinations = 4 * 2 * 2
    relations = frame.relation.nunique() - 1
    per_dataset = (relations - 1) * 6 + 2 + 2 * 6  # unchanged has level 0 and all, the pools five levels and all
    assert len(table) == combinations * 3 * per_dataset


def test_overall_is_over_cases_and_overall_cells_over_cells(table):
    cells = table[
        (table.dataset != "all") & (table.severity == "all") & (table.score == "iou") & (table.threshold == 0.25)
        & (table.against == "truth") & ~table.relation.isin(["overall", "overall_cells", "unchanged"])
    ]  # fmt: skip
    whole = row_of(table, score="iou")
    assert whole.efr_percent == pytest.approx(100 * cells.violations.sum() / cells.cases.sum(), abs=1e-3)
    mean = row_of(table, score="iou", relation="overall_cells")
    assert mean.efr_percent == pytest.approx(cells.efr_percent.mean(), abs=1e-3)
    assert mean.cases == whole.cases


def test_unchanged_enters_no_pool():
    frame = make_records(seeds=12, errors=0, skips=0)
    ruined = frame.copy()
    ruined.loc[ruined.relation == "unchanged", ["dice", "iou", "self_dice", "self_iou"]] = 0.0
    before, after = table_of(frame), table_of(ruined)
    assert row_of(after, relation="unchanged").efr_percent == 100
    for relation in ("overall", "overall_cells"):
        assert row_of(before, relation=relation).equals(row_of(after, relation=relation))


def test_a_cell_with_one_case_a_cluster_has_wilsons_interval(table):
    row = row_of(table, dataset="kvasir", relation="white_balance", severity="5")
    low, high = proportion_confint(row.violations, row.cases, method="wilson")
    assert row.ci_method == "wilson"
    assert (row.ci_low, row.ci_high) == pytest.approx((100 * low, 100 * high), abs=1e-3)


def test_pools_resample_clusters_and_rare_events_count_clusters():
    frame = make_records(seeds=200, clusters=40, errors=0, skips=0)
    table = table_of(frame, efr.Criteria(scores=("dice",), thresholds=(0.25,), against=("truth",)))
    pool = row_of(table)
    assert pool.ci_method == "cluster_bootstrap"
    naive = proportion_confint(pool.violations, pool.cases, method="wilson")
    assert pool.ci_high - pool.ci_low > 100 * (naive[1] - naive[0])  # cases of one cluster are alike
    assert pool.ci_low < pool.efr_percent < pool.ci_high
    none = row_of(table, relation="text")
    low, high = proportion_confint(0, 40, method="wilson")
    assert (none.violations, none.ci_method) == (0, "wilson_clusters")
    assert (none.ci_low, none.ci_high) == pytest.approx((100 * low, 100 * high), abs=1e-3)


def test_bootstrap_of_a_pool_matches_a_plain_loop():
    """An independent bootstrap, cluster by cluster, gives the same interval within its own noise."""
    frame = make_records(seeds=60, clusters=30, errors=0, skips=0, random=8)
    pool = row_of(table_of(frame, efr.Criteria(scores=("dice",), thresholds=(0.25,), against=("truth",))))
    cases = frame[(frame.relation != "source") & (frame.relation != "unchanged") & (frame.source_dice > 0)]
    fails = (cases.source_dice - cases.dice) / cases.source_dice > 0.25
    grouped = fails.groupby(cases.cluster).agg(["sum", "count"]).to_numpy()
    rng = np.random.default_rng(0)
    draws = [grouped[rng.integers(len(grouped), size=len(grouped))].sum(0) for _ in range(4000)]
    low, high = np.quantile([100 * v / n for v, n in draws], (0.025, 0.975))
    assert (pool.ci_low, pool.ci_high) == pytest.approx((low, high), abs=0.06 * pool.efr_percent + 0.5)


def test_unlabelled_records_have_rows_against_source_alone():
    table = table_of(make_records(seeds=6, labelled=False))
    assert set(table.against) == {"source"}


def test_order_of_records_changes_nothing():
    frame = make_records(seeds={"a": 8, "b": 7})
    shuffled = frame.sample(frac=1, random_state=1)
    criteria = efr.Criteria(scores=("both",), thresholds=(0.25,), against=("truth",))
    keys = ["dataset", "relation", "severity"]
    ordered = table_of(frame, criteria).sort_values(keys).reset_index(drop=True)
    other = table_of(shuffled, criteria).sort_values(keys).reset_index(drop=True)
    for name in ("cases", "violations", "efr_percent", "errors", "skipped", "source_failed", "ci_method"):
        assert (ordered[name].fillna(-1) == other[name].fillna(-1)).all(), name


@given(seeds=st.integers(0, 5), errors=st.sampled_from([0.0, 0.5, 1.0]), random=st.integers(0, 50))
@example(seeds=0, errors=0.0, random=0)
@settings(max_examples=12)
def test_invariants_hold_for_tiny_and_broken_runs(seeds, errors, random):
    frame = make_records(seeds=seeds, severities=(1, 2), errors=errors, skips=0.5, random=random)
    if frame.empty:
        return
    table = table_of(frame, efr.Criteria(scores=("dice", "both", "either"), thresholds=(0.25,), against=("truth",)))
    total = table.cases + table.errors + table.skipped + table.source_failed
    assert (total == table.generated).all()
    assert (table.violations <= table.cases).all()
    judged = table[table.cases > 0]
    slack = 1e-3
    plain = judged[judged.relation != "overall_cells"]
    assert (plain.ci_low <= plain.efr_percent + slack).all()
    assert (plain.efr_percent <= plain.ci_high + slack).all()
    assert table[table.cases == 0].efr_percent.isna().all()
    either = judged[judged.score == "either"].violations.to_numpy()
    both = judged[judged.score == "both"].violations.to_numpy()
    assert (either >= both).all()
