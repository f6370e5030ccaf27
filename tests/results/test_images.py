"""Tables of failing images: one image a row, violations with their addresses, warnings on weak data sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from label_records import label_row
from records_maker import make_records

from medtest.results.rates.images import CaseLosses
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

PRIMARY = Criterion(score="dice", threshold=0.25, against="truth")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_records(seeds={"kvasir": 20, "colon": 6}, random=4)


def violations_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the violations by the definition: a loss of at least a quarter of the source's score."""
    cases = frame[~frame.relation.isin(["source"]) & (frame.source_dice > 0) & frame.verdict.isin(["PASS", "FAIL"])]
    return cases[cases.verdict == "FAIL"]


def test_every_violation_is_listed_with_its_address(frame: pd.DataFrame) -> None:
    table = CaseLosses(Records.of(frame), PRIMARY).violations()
    expected = {
        f"{r.dataset}/{r.seed_id}/{r.relation}_s{r.severity}_f{r.frame}_r{r.repeat}"
        for r in violations_of(frame).itertuples()
    }
    assert len(expected) > 30
    assert set(table.address) == expected
    assert len(table) == len(expected)
    assert table.violated.all()
    assert table.loss_percent.is_monotonic_decreasing


def test_an_image_a_row_the_worst_first(frame: pd.DataFrame) -> None:
    table = CaseLosses(Records.of(frame), PRIMARY).images()
    assert len(table) == 26
    assert table.violation_percent.dropna().is_monotonic_decreasing
    assert table.violation_percent.isna().tolist() == [False] * 25 + [True]  # no case of it could be judged
    bad = violations_of(frame)
    for row in table.to_dict("records"):
        own = bad[(bad.dataset == row["dataset"]) & (bad.seed_id == row["seed_id"])]
        assert row["violations"] == (own.relation != "unchanged").sum()
        for relation, count in own.relation.value_counts().items():
            assert row[f"violations_{relation}"] == count
        records = frame[(frame.dataset == row["dataset"]) & (frame.seed_id == row["seed_id"])]
        assert row["source_score"] == pytest.approx(records[records.relation == "source"].dice.iloc[0], abs=1e-6)
        if row["worst_address"]:
            loss = (records.source_dice - records.dice) / records.source_dice
            rest = loss[~records.relation.isin(["source", "unchanged"]) & records.verdict.isin(["PASS", "FAIL"])]
            assert row["worst_loss_percent"] == pytest.approx(100 * rest.max(), abs=1e-3)
            assert row["worst_address"].startswith(f"{row['dataset']}/{row['seed_id']}/")


def test_a_data_set_on_which_the_system_fails_is_warned_of(frame: pd.DataFrame) -> None:
    assert CaseLosses(Records.of(frame), PRIMARY).source_warnings() == ()
    weak = frame.copy()
    failing = (weak.dataset == "kvasir") & (weak.seed_id >= "seed00008")
    weak.loc[failing, ["dice", "source_dice"]] = 0.0
    weak.loc[failing & (weak.relation != "source"), "verdict"] = "SKIP"
    (line,) = CaseLosses(Records.of(weak), PRIMARY).source_warnings()
    assert line.startswith("kvasir: the mean dice of unchanged images is 0.")
    assert line.endswith("these figures rest on 8 of 20 images.")
    poor = frame.copy()
    scores = ["dice", "source_dice"]
    poor.loc[poor.dataset == "kvasir", scores] = 0.05 + 0.2 * poor.loc[poor.dataset == "kvasir", scores]
    (line,) = CaseLosses(Records.of(poor), PRIMARY).source_warnings()
    assert line.endswith("failures may be understated.")
    poor.loc[poor.dataset == "kvasir", scores] = 0.0  # as masks of 0 and 1 in uint8 score
    poor.loc[(poor.dataset == "kvasir") & (poor.relation != "source"), "verdict"] = "SKIP"
    (line,) = CaseLosses(Records.of(poor), PRIMARY).source_warnings()
    assert "rest on 0 of 20 images." in line and "uint8" in line and "bool" in line


def test_labels_have_the_same_tables() -> None:
    common = {"label": ("normal",), "expected": ("normal",), "source_label": ("normal",), "source_confidence": 0.8}
    changed = {**common, "label": ("vascular",)}
    rows = [
        label_row("d", "a", "source", **common),
        label_row("d", "b", "source", **common),
        label_row("d", "a", "brightness", **common),
        label_row("d", "b", "brightness", **changed),
        label_row("d", "b", "scale", **changed),
    ]
    primary = Criterion(score="label", threshold=0.0, against="source")
    records = Records.of(pd.DataFrame(rows))
    table = CaseLosses(records, primary).images()
    assert list(table.seed_id) == ["b", "a"]
    assert list(table.violations) == [2, 0]
    assert table.violations_scale.iloc[0] == 1
    assert np.isnan(table.violations_scale.iloc[1])  # no such case
    assert list(CaseLosses(records, primary).violations().relation) == ["brightness", "scale"]


def test_no_case_at_all_gives_empty_tables(frame: pd.DataFrame) -> None:
    sources = Records.of(frame[frame.relation == "source"])
    assert CaseLosses(sources, PRIMARY).violations().empty
    assert CaseLosses(sources, PRIMARY).images().empty
    broken = frame.copy()
    broken.loc[:, ["dice", "source_dice"]] = np.nan
    broken["verdict"] = "ERROR"
    table = CaseLosses(Records.of(broken), PRIMARY).images()
    assert set(table.violations) == {0}
    assert table.violation_percent.isna().all()
    assert CaseLosses(Records.of(broken), PRIMARY).source_warnings() == ()
