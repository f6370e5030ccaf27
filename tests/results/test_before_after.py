"""The before/after table: the slides' figures, and differences and intervals against other computations."""

from __future__ import annotations

import os
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from records_maker import RELATIONS, make_records, write_records
from scipy import stats

from medtest.core.errors import OutputProblem
from medtest.results.before_after import change as before_after
from medtest.results.before_after import words as before_after_words
from medtest.results.published import retraining
from medtest.results.records.records_io import Records

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[2].parent / "shared"))


def _one_decimal(points: float) -> Decimal:
    """Round half up, as the slides do (SANet's 1.55 is their 1.6)."""
    return Decimal(str(round(points, 6))).quantize(Decimal("0.1"), ROUND_HALF_UP)


@pytest.mark.parametrize(("family", "stated"), [("pranet", "4.9"), ("sanet", "1.6"), ("ssformer", "0.8")])
def test_the_slides_improvements_are_rebuilt(family, stated):
    improvement = retraining.mean_difference(family, "average", "dice")
    assert _one_decimal(100 * improvement) == Decimal(stated)


def test_average_rows_include_the_original():
    figures = retraining.figures()
    assert len(figures) == 3 * 2 * 11 * 2
    for average in (f for f in figures if f.relation == "average"):
        rest = [
            f
            for f in figures
            if (f.model, f.dataset, f.score) == (average.model, average.dataset, average.score)
            and f.relation != "average"
        ]
        assert len(rest) == 10
        for when in ("before", "after"):
            # one of the 24 printed averages (SSFormer, ColonDB, IoU, before) is 0.0013 away from its printed cells
            odd = (average.model, average.dataset, average.score, when) == ("SSFormer", "CVC-ColonDB", "iou", "before")
            close = pytest.approx(getattr(average, when), abs=0.0014 if odd else 0.00056)
            assert np.mean([getattr(f, when) for f in rest]) == close, average
        without = [f.before for f in rest if f.relation != "original"]
        assert len(without) == 9


def test_published_figures_are_found_by_family_and_data_set():
    blur = retraining.figure("pranet", "cvc_300", "blur", "dice")
    assert (blur.before, blur.after, blur.difference) == (0.706, 0.872, 0.166)
    assert retraining.figure("tganet", "CVC-300", "blur", "dice") is None
    assert retraining.figure("pranet", "kvasir", "blur", "dice") is None
    assert retraining.mean_difference("tganet", "blur", "dice") is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared folder with the documents' tables is not there")
def test_the_copy_is_the_shared_table():
    shared = SHARED / "reference" / "medtest_retraining_segmentation.csv"
    assert retraining.FILE.read_text() == shared.read_text()


def _improve(frame: pd.DataFrame, gain: dict[str, float], noise: float = 0.0) -> pd.DataFrame:
    """Raise Dice of some relations; sources are the relation ``source``."""
    rng = np.random.default_rng(5)
    after = frame.copy()
    for relation, value in gain.items():
        rows = (after["relation"] == relation) & after["dice"].notna()
        moved = after.loc[rows, "dice"] + value + noise * rng.standard_normal(int(rows.sum()))
        after.loc[rows, "dice"] = moved
    return after


def test_differences_by_hand(tmp_path):
    before = make_records(seeds=12, errors=0.0, skips=0.0)
    after = _improve(before, {"source": 0.01, "blur": 0.20, "text": -0.05})
    sides = [
        Records.read(write_records(side_frame, tmp_path / name)) for side_frame, name in ((before, "b"), (after, "a"))
    ]
    table = before_after.table_of(before_after.pair(*sides, order=list(RELATIONS)))
    assert list(table.columns) == list(before_after.COLUMNS)
    names = [name for name in RELATIONS if name != "unchanged"]
    assert list(table.loc[table["score"] == "dice", "relation"]) == ["original", *names, "relations", "average"]

    def row(name):
        return before_after.row_of(table, name)

    sources = before.loc[before["relation"] == "source", "dice"]
    assert row("original").before == pytest.approx(sources.mean(), abs=1e-6)
    assert row("original").difference == pytest.approx(0.01, abs=1e-6)
    assert row("blur").difference == pytest.approx(0.20, abs=1e-6)
    # nothing varies between seeds, so the paired interval is a point although the scores themselves vary a lot
    assert row("blur").ci_low == pytest.approx(0.20, abs=1e-5)
    assert row("blur").ci_high == pytest.approx(0.20, abs=1e-5)
    assert row("relations").difference == pytest.approx((0.20 - 0.05) / len(names), abs=1e-6)
    assert row("average").difference == pytest.approx((0.01 + 0.20 - 0.05) / (len(names) + 1), abs=1e-6)
    cells = [before.loc[before["relation"] == name, "dice"].mean() for name in ["source", *names]]
    assert row("average").before == pytest.approx(np.mean(cells), abs=1e-6)
    assert row("blur").cases == 60 and row("blur").seeds == 12
    iou = table.loc[table["score"] == "iou"]
    assert (iou["difference"] == 0).all()


def test_paired_interval_agrees_with_scipy(tmp_path):
    before = make_records(seeds=60, errors=0.0, skips=0.0, severities=(3,))
    after = _improve(before, {"blur": 0.03}, noise=0.05)
    frames = [Records.of(frame) for frame in (before, after)]
    row = before_after.row_of(before_after.table_of(before_after.pair(*frames)), "blur")
    blur = before["relation"] == "blur"
    differences = (after.loc[blur, "dice"] - before.loc[blur, "dice"]).to_numpy()
    expected = stats.bootstrap(
        (differences,), np.mean, method="percentile", n_resamples=9999, rng=np.random.default_rng(0)
    ).confidence_interval
    assert row.difference == pytest.approx(differences.mean(), abs=1e-6)
    assert row.ci_low == pytest.approx(expected.low, abs=0.0015)
    assert row.ci_high == pytest.approx(expected.high, abs=0.0015)


def test_clusters_are_resampled_whole():
    """Seeds of one patient that all move together leave as many independent values as there are patients."""
    rng = np.random.default_rng(1)
    alone = make_records(seeds=60, errors=0.0, skips=0.0, severities=(3,))
    grouped = make_records(seeds=60, clusters=6, errors=0.0, skips=0.0, severities=(3,))
    shift = dict(zip(sorted(grouped["cluster"].unique()), rng.normal(0, 0.1, 6), strict=True))
    widths = []
    for frame in (alone, grouped):
        after = frame.copy()
        rows = after["relation"] == "blur"
        after.loc[rows, "dice"] += grouped.loc[rows, "cluster"].map(shift).to_numpy()
        paired = before_after.pair(Records.of(frame), Records.of(after))
        row = before_after.row_of(before_after.table_of(paired), "blur")
        widths.append(row.ci_high - row.ci_low)
    assert widths[1] > 2 * widths[0]


def test_cases_that_only_one_side_answered_are_left_out_of_both():
    before = make_records(seeds=20, errors=0.0, skips=0.1)
    after = _improve(before, {"blur": 0.1})
    broken = after.index[after["relation"] == "blur"][:7]
    after.loc[broken, ["dice", "iou"]] = np.nan
    after.loc[broken, "verdict"] = "ERROR"
    paired = before_after.pair(Records.of(before), Records.of(after))
    assert paired.unpaired == 7
    row = before_after.row_of(before_after.table_of(paired), "blur")
    assert row.cases == 93
    assert row.difference == pytest.approx(0.1, abs=1e-6)


def test_cases_that_only_one_side_has_are_counted():
    before = make_records(seeds=20, errors=0.0, skips=0.0)
    blur = before.index[before["relation"] == "blur"]
    paired = before_after.pair(Records.of(before.drop(blur[:3])), Records.of(before.drop(blur[3:6])))
    assert paired.unpaired == 6


def test_two_data_sets_are_pooled_by_case():
    before = make_records(seeds={"cvc-300": 10, "cvc-colondb": 30}, errors=0.0, skips=0.0)
    after = before.copy()
    rows = (after["relation"] == "blur") & (after["dataset"] == "cvc-300")
    after.loc[rows, "dice"] += 0.08
    table = before_after.table_of(before_after.pair(Records.of(before), Records.of(after)), "pranet")
    assert before_after.row_of(table, "blur").difference == pytest.approx(0.02, abs=1e-6)
    assert before_after.row_of(table, "blur", dataset="cvc-300").difference == pytest.approx(0.08, abs=1e-6)
    published = before_after.row_of(table, "blur", dataset="cvc-300")
    assert (published.published_before, published.published_after) == (0.706, 0.872)
    assert published.published_mean_difference == pytest.approx((0.166 + 0.113) / 2, abs=1e-6)
    assert np.isnan(before_after.row_of(table, "blur").published_before)
    wide = before_after_words.slides_table(table)
    assert "all iou difference" in wide.columns and list(wide["relation"])[0] == "original"
    text = before_after_words.markdown(table, title="PraNet")
    assert text.startswith("**PraNet**") and "| white balance |" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_other_images_are_refused():
    before = make_records(seeds=5, errors=0.0)
    after = before.copy()
    after.loc[after["relation"] == "text", "followup_sha256"] = "2" * 64
    with pytest.raises(OutputProblem, match="different images: 25 cases"):
        before_after.pair(Records.of(before), Records.of(after))
    with pytest.raises(OutputProblem, match="no case in common"):
        before_after.pair(Records.of(before), Records.of(before.assign(dataset="other")))


def test_seeds_without_masks_are_refused():
    frame = make_records(seeds=3, labelled=False).drop(columns=["dice", "iou"])
    with pytest.raises(OutputProblem, match="no expected masks"):
        before_after.pair(Records.of(frame), Records.of(frame))


def test_a_single_seed_has_no_interval():
    frame = make_records(seeds=1, errors=0.0, skips=0.0)
    row = before_after.row_of(before_after.table_of(before_after.pair(Records.of(frame), Records.of(frame))), "blur")
    assert row.ci_low is None or np.isnan(row.ci_low)
    assert before_after_words.points(row) == "+0.0"
