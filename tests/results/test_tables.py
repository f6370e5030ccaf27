"""Tables from a folder: curves, factors, gates, pivots, strata, worst cases, and the choice of a suite."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from label_records import label_row
from records_maker import RELATIONS, make_records, write_records

from medtest.core import records as contract
from medtest.core.errors import OutputProblem
from medtest.core.files.written import LIST, WrittenFiles
from medtest.results.gating import gates
from medtest.results.rates import curves, factors
from medtest.results.rates.images import CaseLosses
from medtest.results.records.records_io import Records, read_table
from medtest.results.records.wanted import Wanted
from medtest.results.tables import make_tables
from medtest.suite.model import Criterion, Gate
from medtest.tasks.segment.oracle import Masks

PRIMARY = Criterion(score="dice", threshold=0.25, against="truth")


def wanted_tables(**changes):
    base = {
        "suite": "synthetic",
        "version": "1",
        "seeds": {"phantoms": "phantoms"},
        "relations": {name: name for name in RELATIONS},
        "primary": PRIMARY,
        "scores": ("dice", "iou", "both", "either"),
        "thresholds": (0.25, 0.5),
        "against": ("truth", "source"),
    }
    return Wanted(**{**base, **changes})


@pytest.fixture(scope="module")
def frame():
    return make_records(seeds={"kvasir": 24, "colon": 12}, random=4)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    return write_records(frame, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def tables(folder):
    return make_tables(folder, wanted_tables(gates=(Gate(max_percent=90), Gate(max_percent=1))))


def test_every_table_is_written_and_stale_ones_go(tables, tmp_path):
    WrittenFiles(tmp_path / "tables").write({"stale.csv": b"a\n1\n", "stale.tex": b"a"})
    (tmp_path / "tables" / "mine.csv").write_text("a\n1\n")
    written = tables.write(tmp_path)
    names = {path.name for path in written}
    assert {"efr.csv", "severity.csv", "alpha_sigma.csv", "factors.csv", "factors_model.csv", "strata.csv"} <= names
    assert {"pivot_truth_t0.25.csv", "pivot_source_t0.5.csv", "gates.csv", "worst.csv", "seeds.csv"} <= names
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {*names, "mine.csv", LIST}
    back = pd.read_csv(tmp_path / "tables" / "efr.csv", keep_default_na=False, na_values=[""])
    assert list(back.columns) == list(tables.efr.columns)
    assert (back.relation == "unchanged").any()  # pandas reads no relation as nothing


def test_tables_made_twice_agree_to_the_last_digit(folder, tables):
    again = make_tables(folder, wanted_tables(gates=(Gate(max_percent=90), Gate(max_percent=1))))
    for name, table in tables.frames().items():
        pd.testing.assert_frame_equal(table, again.frames()[name], check_exact=True)


def test_severity_curves_are_the_means_that_pandas_gives(frame, tables):
    judged = frame[(frame.relation != "source") & frame.dice.notna() & frame.source_dice.notna()]
    means = judged.groupby(["dataset", "relation", "severity"])[["dice", "source_dice"]].agg(["mean", "size"])
    table = tables.severity
    rows = table[(table.score == "dice") & (table.against == "truth") & (table.dataset != "all")]
    assert len(rows) == len(means)
    for row in rows.itertuples():
        expected = means.loc[(row.dataset, row.relation, row.severity)]
        assert row.mean == pytest.approx(expected["dice", "mean"], abs=1e-6)
        assert row.source_mean == pytest.approx(expected["source_dice", "mean"], abs=1e-6)
        assert row.cases == expected["dice", "size"]
        assert row.ci_low <= row.mean <= row.ci_high


def test_quartiles_hold_a_quarter_each_and_their_rates_are_counted(frame, tables):
    table = tables.factors
    cases = frame[
        ~frame.relation.isin(["source", "unchanged"]) & frame.dice.notna() & (frame.source_dice > 0)
        & (frame.verdict != "ERROR")
    ]  # fmt: skip
    violated = (cases.source_dice - cases.dice) / cases.source_dice > 0.25
    area = table[table.factor == "polyp_area"]
    assert len(area) == 4
    assert area.cases.sum() == len(cases)
    for row in area.itertuples():
        inside = (cases.factor_polyp_area >= row._4 - 1e-6) & (cases.factor_polyp_area <= row.to + 1e-6)
        assert row.cases == inside.sum()
        assert row.violations == violated[inside].sum()
        assert 0.15 < row.cases / len(cases) < 0.35
    distance = table[table.factor == "lesion_distance"]
    assert distance.cases.sum() == cases.factor_lesion_distance.notna().sum()
    assert table[table.factor == "polyp_count"]["from"].tolist() == [1.0, 2.0, 3.0]


def test_bins_share_equal_values():
    codes, count = factors.bins_of(np.array([1.0, 1, 1, 1, 1, 1, 2, 3, 4, 5, np.nan]))
    assert codes[-1] == -1
    assert len({int(c) for c in codes[:6]}) == 1
    assert count == len(set(codes[:-1].tolist()))
    assert factors.bins_of(np.array([2.0, 2.0]))[1] == 0


def test_the_logistic_model_finds_the_odds_that_made_the_data():
    """Violations are drawn with known log odds; estimates must lie near them, and agree with statsmodels' Logit."""
    import statsmodels.api as sm

    rng = np.random.default_rng(2)
    frame = make_records(seeds=400, severities=(3,), errors=0, skips=0, random=5)
    frame = frame[frame.relation.isin(["source", "blur", "contrast"])].copy()
    spread = frame.drop_duplicates("seed_id").factor_brightness
    level = (frame.factor_brightness - spread.mean()) / spread.std()
    odds = np.exp(-0.5 + 0.9 * level)
    fails = (rng.random(len(frame)) < odds / (1 + odds)) & (frame.relation != "source")
    frame["source_dice"] = frame["source_dice"].replace(0.0, 0.5)
    frame["dice"] = np.where(fails, 0.1, 1.0) * frame.source_dice
    model = factors.factor_model(Records.of(frame), PRIMARY).set_index("term")
    brightness = model.loc["brightness"]
    assert brightness.kind == "factor"
    assert brightness.ci_low < np.exp(0.9) < brightness.ci_high
    assert brightness.odds_ratio == pytest.approx(np.exp(0.9), rel=0.25)
    assert model.loc["polyp_area"].ci_low < 1 < model.loc["polyp_area"].ci_high
    cases = frame[frame.relation != "source"]
    names = ["polyp_area", "polyp_count", "polyp_distance", "brightness", "contrast", "visible_area"]
    columns = [cases[f"factor_{name}"] for name in names] + [cases.source_dice]
    design = np.column_stack([(c - c.mean()) / c.std(ddof=0) for c in columns] + [cases.relation == "contrast"])
    plain = sm.Logit(fails[cases.index].to_numpy(float), sm.add_constant(design.astype(float))).fit(disp=False)
    assert brightness.odds_ratio == pytest.approx(np.exp(plain.params[4]), rel=1e-3)


def test_the_model_of_many_cases_matches_that_of_few(monkeypatch):
    records = Records.of(make_records(seeds={"kvasir": 60, "colon": 40}, random=3))
    plain = factors.factor_model(records, PRIMARY)
    assert set(plain.kind) == {"factor", "adjustment"}
    monkeypatch.setattr(factors, "MANY_CASES", 1000)
    pd.testing.assert_frame_equal(factors.factor_model(records, PRIMARY), plain, rtol=1e-5)


def test_texts_have_numbers_in_the_order_of_their_first_rows():
    frame = make_records(seeds=4, errors=0)
    frame["cluster"] = ["b", "", None, "a"] * (len(frame) // 4)
    for frame_ in (frame, frame.assign(cluster=frame["cluster"].astype("category"))):
        records = Records.of(frame_)
        codes, names = records.codes("cluster")
        assert records.texts("cluster").tolist() == [text or "" for text in records.followups["cluster"].fillna("")]
        assert [names[code] for code in codes] == records.texts("cluster").tolist()
        assert list(dict.fromkeys(records.texts("cluster"))) == list(names)


def test_too_few_violations_give_a_note_and_no_model():
    model = factors.factor_model(Records.of(make_records(seeds=3, errors=0)), PRIMARY)
    assert model.kind.tolist() == ["none"]
    assert "not fitted" in model.note.iloc[0]


def test_gates(tables):
    held, lost = tables.gates
    assert (held.held, lost.held) == (True, False)
    assert "above 1 %" in lost.reason
    none = gates.evaluate([Gate(max_percent=99, relation="blood"), Gate(max_percent=99, severity="4")], tables.efr)
    assert [(g.held, "no judged case" in g.reason) for g in none] == [(False, True), (True, False)]
    assert len(gates.gates_table(none)) == 2


def test_a_gate_with_too_few_cases_is_not_held():
    frame = make_records(seeds=12, errors=0, skips=0)
    frame.loc[frame.source_dice == 0, ["source_dice", "dice"]] = 0.9
    tables_ = make_tables_of(frame, gates_=(Gate(max_percent=10, relation="text"),))
    (result,) = tables_.gates
    upper = 100 * 3.841458820694124 / (12 + 3.841458820694124)  # Wilson's end at 0 of 12: z² / (n + z²)
    assert not result.held
    assert result.percent == pytest.approx(upper, abs=1e-3)
    assert result.reason.endswith("the rate itself is 0.0 % (0 of 60 cases), too few cases for this bound")
    assert "even without" not in result.reason  # that is the case at hand
    (by_rate,) = gates.evaluate([Gate(max_percent=10, relation="text", bound="efr_percent")], tables_.efr)
    assert by_rate.held


def test_the_verdict_of_a_gate_is_a_full_sentence():
    columns = ["dataset", "relation", "severity", "score", "threshold", "against", "cases", "violations"]
    rates = pd.DataFrame([["all", "overall", "all", "dice", 0.25, "truth", 300, 71]], columns=columns)
    rates["efr_percent"], rates["ci_low"], rates["ci_high"] = 100 * 71 / 300, 19.1, 26.3
    rates["ci_method"], rates["source_failed"] = "cluster_bootstrap", 33
    strict, exact, near = gates.evaluate(
        [Gate(max_percent=20), Gate(max_percent=30, bound="efr_percent"), Gate(max_percent=26.29)], rates
    )
    assert strict.sentence == (
        "EFR by dice t=0.25 against truth, all relations, all severities, all data sets: the upper end of the 95 % "
        "interval, 26.3 %, is above 20 %; the rate itself is 23.7 % (71 of 300 cases)"
    )
    assert exact.held and exact.reason == "the rate, 23.7 % (71 of 300 cases), is not above 30 %"
    assert "26.30 %, is above 26.29 %" in str(near) or "26.3 %, is above 26.29 %" in str(near)
    at_limit, below = gates.evaluate([Gate(max_percent=26.3), Gate(max_percent=26.2)], rates)
    assert at_limit.held and not below.held  # max_percent itself is allowed


def make_tables_of(frame, gates_=()):
    from medtest.results.tables import tables_of

    return tables_of(Records.of(frame), wanted_tables(gates=gates_))


def test_gates_bring_their_own_thresholds():
    shown = wanted_tables(gates=(Gate(max_percent=5, threshold=0.1, score="mean_dice_256"),)).criteria
    assert shown.thresholds == (0.1, 0.25, 0.5)
    assert "mean_dice_256" in shown.scores


def test_pivots_have_the_reports_form_and_mark_training_data(folder):
    tables_ = make_tables(folder, wanted_tables(trained_on=("CVC-Colon", "Kvasir")))
    pivot = tables_.pivots["pivot_truth_t0.25.csv"]
    assert list(pivot.columns[:4]) == ["relation", "group", "kvasir (trained on) dice", "kvasir (trained on) iou"]
    assert "colon dice" in pivot.columns
    assert pivot.relation.tolist() == [*RELATIONS, "overall", "overall_cells"]
    cell = tables_.efr.query(
        "dataset == 'kvasir' and relation == 'blur' and severity == 'all' and score == 'iou' and threshold == 0.25 "
        "and against == 'truth'"
    )
    assert pivot.set_index("relation").loc["blur", "kvasir (trained on) iou"] == cell.efr_percent.iloc[0]


def test_strata_split_the_cases(frame, tables):
    overall = tables.strata.query("dataset == 'all' and relation == 'overall'")
    whole = tables.efr.query(
        "dataset == 'all' and relation == 'overall' and severity == 'all' and score == 'dice' and threshold == 0.25 "
        "and against == 'truth'"
    ).iloc[0]
    assert set(overall.value) == {"f", "m"}
    assert overall.cases.sum() == whole.cases
    assert overall.violations.sum() == whole.violations
    none = frame.drop(columns="stratum_sex")
    assert curves.strata_table(Records.of(none), PRIMARY).empty


def test_worst_cases_are_the_largest_losses(frame, tables):
    worst = tables.worst
    assert worst.loss_percent.is_monotonic_decreasing
    cases = frame[~frame.relation.isin(["source", "unchanged"]) & (frame.source_dice > 0)]
    loss = 100 * (cases.source_dice - cases.dice) / cases.source_dice
    assert worst.loss_percent.iloc[0] == pytest.approx(loss.max(), abs=1e-3)
    first = cases.loc[loss.idxmax()]
    assert worst.address.iloc[0] == f"{first.dataset}/{first.seed_id}/{first.relation}_s{first.severity}_f0_r0"


def test_counts(frame, tables):
    counts = tables.counts
    followups = frame[frame.relation != "source"]
    assert counts.verdicts == {v: int((followups.verdict == v).sum()) for v in ("PASS", "FAIL", "ERROR", "SKIP")}
    assert counts.seeds == {"kvasir": 24, "colon": 12}
    assert counts.reasons[0][3] == max(count for *_, count in counts.reasons)


def test_shards_are_read_and_the_newest_row_of_a_case_counts(frame, tmp_path):
    schema = contract.schema(Masks.scores, Masks.self_scores, ("sex",))
    (tmp_path / "records").mkdir()

    def write(rows, name):
        table = pa.Table.from_pandas(rows, schema=schema, preserve_index=False)
        pq.write_table(table, tmp_path / "records" / name)

    first = frame.copy()
    first.loc[first.index[5], "verdict"] = "ERROR"
    write(first.iloc[:40], "shard-00000001.parquet")
    write(frame.iloc[5:], "shard-00000002.parquet")
    table = read_table(tmp_path, ["relation", "verdict", "dice"])
    assert table.num_rows == len(frame)
    assert table.column_names == ["relation", "verdict", "dice"]
    assert table["verdict"].to_pylist().count("ERROR") == (frame.verdict == "ERROR").sum()


def test_a_folder_without_records_or_with_garbage_is_a_mistake(tmp_path):
    with pytest.raises(OutputProblem, match="holds no records"):
        make_tables(tmp_path, wanted_tables())
    (tmp_path / "records.parquet").write_text("not parquet")
    with pytest.raises(OutputProblem, match="cannot be read"):
        make_tables(tmp_path, wanted_tables())
    with pytest.raises(OutputProblem, match=r"suite\.yaml cannot be read"):
        Wanted.from_folder(tmp_path)
    (tmp_path / "suite.yaml").write_text("name: [1\n")
    with pytest.raises(OutputProblem, match=r"suite\.yaml is not"):
        Wanted.from_folder(tmp_path)


def test_the_tables_that_a_suite_wants_are_read_back_from_a_run(tmp_path):
    from medtest.suite.compose import load_suite

    suite = load_suite("polyp_seg", ["model=pranet"])
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(dict(suite.composed), sort_keys=False))
    (name,) = (plan.id for plan in suite.systems)
    assert Wanted.from_folder(tmp_path) == Wanted.of(suite, name)


def test_sources_alone_make_empty_tables():
    frame = make_records(seeds=3)
    tables_ = make_tables_of(frame[frame.relation == "source"].reset_index(drop=True), gates_=(Gate(max_percent=5),))
    assert tables_.efr.empty
    assert [result.held for result in tables_.gates] == [False]
    assert list(tables_.frames()) == ["efr.csv", "gates.csv", "gate_conditions.csv", "seeds.csv"]


def test_labels_that_tie_rank_by_their_probability():
    common = {"label": ("normal",), "expected": ("normal",), "source_label": ("normal",), "source_confidence": 0.8}
    fallen = [
        label_row("d", "s", "brightness", frame=n, self_probability=p, **common) for n, p in enumerate((0.8, 0.4))
    ]
    other = {**common, "label": ("vascular",)}
    changed = [label_row("d", "s", "scale", frame=n, self_probability=p, **other) for n, p in enumerate((0.4, 0.1))]
    records = Records.of(pd.DataFrame([*fallen, *changed]))
    worst = CaseLosses(records, Criterion(score="label", threshold=0.0, against="source")).worst()
    assert [a.split("/")[-1] for a in worst.address] == [
        "scale_s1_f1_r0",
        "scale_s1_f0_r0",
        "brightness_s1_f1_r0",
        "brightness_s1_f0_r0",
    ]
    assert list(worst.loss_percent) == [100, 100, 0, 0], "the loss shown is the label's own"
