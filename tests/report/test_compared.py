"""``medtest compare``: two finished runs case by case: page, tables and exit code."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from report_parts import invocation, leave_run, make_suite, write_records
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from medtest.cli.results.compare import compare_runs
from medtest.cli.terminal import console
from medtest.core.errors import ExitCode, UserMistakes
from medtest.report.compared.named import find_run
from medtest.report.compared.pairs import compare_pair, read_material
from medtest.report.compared.unlike import differences
from medtest.report.finish import finish
from medtest.results.gating.gates import evaluate_paired
from medtest.results.rates.changed import BROKEN, FAILING, PASSING
from medtest.results.records.records_io import Records
from medtest.suite.compose import load_suite
from medtest.suite.model import PairedGate


def _two_runs(home: Path, *, seeds: int = 16, other_images: bool = False) -> tuple[Path, Path]:
    """Leave runs of alpha and beta, the second with the first's scores but for some that fall and some that rise."""
    outcome = leave_run(home, make_suite(), ("alpha", "beta"), seeds=seeds)
    first, second = (system_outcome.folder for system_outcome in outcome.systems)
    frame = pq.read_table(first / "records.parquet").to_pandas()
    rng = np.random.default_rng(7)
    frame["system"] = "beta"
    case = (frame.relation != "source") & frame.verdict.isin(["PASS", "FAIL"]) & (frame.source_dice > 0)
    worse = case & (frame.relation == "blur") & (rng.random(len(frame)) < 0.6)
    better = case & (frame.relation == "white_balance") & (rng.random(len(frame)) < 0.3)
    frame.loc[worse, "dice"] = 0.1 * frame.loc[worse, "source_dice"]
    frame.loc[better, "dice"] = frame.loc[better, "source_dice"]
    lost = frame.index[case & (frame.relation == "contrast")][:3]
    frame.loc[lost, "verdict"] = "ERROR"
    if other_images:
        frame.loc[frame.relation != "source", "followup_sha256"] = "3" * 64
    write_records(frame, second)
    return first, second


def _is_violation(frame: pd.DataFrame) -> pd.Series:
    return (frame.source_dice - frame.dice) / frame.source_dice > 0.25


def test_cells_agree_with_scipy_and_statsmodels(tmp_path: Path) -> None:
    folders = _two_runs(tmp_path, seeds=40)
    pair = compare_pair(*map(read_material, folders), ("alpha", "beta"))
    sides = [pq.read_table(folder / "records.parquet").to_pandas().set_index("address") for folder in folders]
    good = [side[side.verdict.isin(["PASS", "FAIL"]) & (side.source_dice > 0)] for side in sides]
    shared = good[0].index.intersection(good[1].index)
    before, after = (_is_violation(side.loc[shared]) for side in good)
    place = good[0].loc[shared, ["relation", "severity"]]
    expected: list[float] = []
    cells = pair.cells
    assert len(cells) == 30 and not cells.duplicated(["dataset", "relation", "severity"]).any()
    for row in cells.itertuples():
        in_cell = (place.relation == row.relation) & (place.severity == row.severity)
        assert (row.cases, row.only_first, row.only_second) == (
            in_cell.sum(),
            (after & ~before & in_cell).sum(),
            (before & ~after & in_cell).sum(),
        )
        assert row.difference == pytest.approx(100 * (after[in_cell].mean() - before[in_cell].mean()), abs=1e-3)
        changed = row.only_first + row.only_second
        expected.append(binomtest(int(row.only_first), int(changed)).pvalue if changed else 1.0)
        assert row.p == pytest.approx(expected[-1], rel=1e-4)
        table = [[0, row.only_first], [row.only_second, row.cases - changed]]  # a case a cluster
        assert row.p == pytest.approx(mcnemar(table, exact=True).pvalue, rel=1e-4)
    assert list(cells.p_holm) == pytest.approx(list(multipletests(expected, method="holm")[1]), rel=1e-4)
    assert set(cells.loc[cells.better == "alpha", "relation"]) == {"blur"}


def test_changed_cases_are_named_the_largest_change_first(tmp_path: Path) -> None:
    folders = _two_runs(tmp_path)
    changed = compare_pair(*map(read_material, folders), ("alpha", "beta")).changed
    sides = [pq.read_table(folder / "records.parquet").to_pandas().set_index("address") for folder in folders]
    by_kind = changed.groupby("change").address.agg(list)
    assert len(by_kind[BROKEN]) == 3 and len(by_kind[FAILING]) > 5 and by_kind[PASSING]
    for kind, wrong in ((FAILING, (False, True)), (PASSING, (True, False))):
        for side, violated in zip(sides, wrong, strict=True):
            assert (_is_violation(side.loc[by_kind[kind]]) == violated).all()
    falls = sides[1].loc[by_kind[FAILING]].dice / sides[1].loc[by_kind[FAILING]].source_dice
    moved = sides[0].loc[by_kind[FAILING]].dice / sides[0].loc[by_kind[FAILING]].source_dice - falls
    assert list(moved) == sorted(moved, reverse=True)


def test_page_and_tables_of_three_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    _two_runs(tmp_path)
    compare_runs(
        ["synthetic/alpha", "synthetic/beta", "synthetic/alpha"], out=tmp_path / "page", strips=0, console=console()
    )
    html = (tmp_path / "page" / "compare.html").read_text(encoding="utf-8")
    text = " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.S)).split())
    assert "Newly failing:" in text and "Newly passing:" in text and "New errors: 3 cases" in text
    assert "Differences of configuration" in text and "None: suite, system, weights" in text
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", html)
    summary = (tmp_path / "page" / "compare.md").read_text(encoding="utf-8")
    assert (
        "## beta (2) compared with alpha (1)" in summary
        and "- newly an error: 3 cases" in summary
        and " more in " in summary
    )
    rows = pd.read_csv(tmp_path / "page" / "compare.csv")
    assert set(rows.name) >= {"overall", "blur"}
    cells = pd.read_csv(tmp_path / "page" / "compare_cells.csv")
    assert len(cells) == 60
    assert len(pd.read_csv(tmp_path / "page" / "compare_changed.csv")) > 8


def test_runs_without_a_shared_case_are_one_mistake(tmp_path: Path) -> None:
    folders = _two_runs(tmp_path, other_images=True)
    with pytest.raises(
        UserMistakes, match="share no judged case; .* have the same address but different images"
    ) as caught:
        compare_pair(*map(read_material, folders), ("alpha", "beta"))
    assert int(caught.value.exit_code) == 2


def test_runs_are_found_by_folder_name_and_mlflow_id(tmp_path: Path) -> None:
    first, second = _two_runs(tmp_path, seeds=2)
    run = json.loads((second / "run.json").read_text(encoding="utf-8")) | {"mlflow_run_id": "0123456789abcdef" * 2}
    (second / "run.json").write_text(json.dumps(run), encoding="utf-8")
    assert find_run("synthetic/alpha", tmp_path, key="runs") == first
    assert find_run(str(second), tmp_path, key="runs") == second
    assert find_run("0123456789abcdef" * 2, tmp_path, key="runs") == second
    assert find_run("f" * 32, tmp_path, key="runs") is None
    with pytest.raises(UserMistakes, match="synthetic/alpha"):
        find_run("synthetic/alphaa", tmp_path, key="runs")
    with pytest.raises(UserMistakes, match="2 runs"):
        find_run(str(tmp_path / "outputs"), tmp_path, key="runs")


def test_what_differs_names_settings_and_leaves_out_what_is_alike(tmp_path: Path) -> None:
    first, second = _two_runs(tmp_path, seeds=2)
    named = {name for name, _, _ in differences(first, second)}
    assert "system" in named and any("weights_sha256" in name for name in named)
    assert not any(name.startswith("suite: relations") for name in named)
    assert differences(first, first) == []


def test_a_gate_beside_a_finished_run_is_held_by_the_upper_end(tmp_path: Path) -> None:
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, ("alpha", "beta"), seeds=16)
    _two_runs(tmp_path)
    other = replace(outcome, systems=outcome.systems[1:])
    pair = compare_pair(
        *(read_material(system_outcome.folder) for system_outcome in outcome.systems), ("alpha", "beta")
    )
    codes = {}
    for relation, margin in (("blur", 2.0), ("blur", 99.9), ("saturation", 40.0)):
        gate = PairedGate(no_worse_than="synthetic/alpha", relation=relation, margin_percent=margin)
        finished = finish(replace(suite, gates=(gate,)), invocation(tmp_path), other)
        (result,) = finished.materials[0].tables.gates
        row = pair.relations.query("name == @relation").iloc[0]
        assert result.percent == pytest.approx(row.ci_high) and result.cases == row.cases
        assert result.held == (row.ci_high < margin)
        codes[relation, margin] = finished.code
    assert codes == {("blur", 2.0): 1, ("blur", 99.9): 0, ("saturation", 40.0): 0}
    log = (outcome.systems[1].folder / "gates.jsonl").read_text(encoding="utf-8")
    assert "synthetic/alpha (" in log and str(tmp_path) not in log


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"relation": "blur"},
        {"relation": "blur", "severity": "4"},
        {"severity": "2"},
        {"score": "iou", "threshold": 0.5, "relation": "blur"},
        {"against": "source", "relation": "blur", "dataset": "phantoms"},
    ],
    ids=str,
)
def test_each_part_of_a_paired_gate_chooses_its_cases(tmp_path: Path, parts: dict[str, Any]) -> None:
    folders = _two_runs(tmp_path, seeds=40)
    gate = PairedGate(no_worse_than="synthetic/alpha", **parts)
    base, own = (Records.read(folder) for folder in folders)
    result = evaluate_paired(gate, base, own, "alpha")
    sides = [pq.read_table(folder / "records.parquet").to_pandas().set_index("address") for folder in folders]
    name = f"self_{gate.score}" if gate.against == "source" else gate.score
    first, second = (
        side[
            (side.verdict != "ERROR")
            & (
                side.relation == gate.relation
                if gate.relation != "overall"
                else ~side.relation.isin(["unchanged", "source"])
            )
            & (side.severity.astype(str) == gate.severity if gate.severity != "all" else True)
            & side[name].notna()
            & (side[f"source_{gate.score}"] > 0 if gate.against == "truth" else True)
        ]
        for side in sides
    )
    shared = first.index.intersection(second.index)
    before, after = (_fell(cases.loc[shared], gate) for cases in (first, second))
    assert result.cases == len(shared) > 10
    moved = 100 * (after.mean() - before.mean())
    assert (f"{moved:+.1f} points" if abs(moved) >= 0.05 else " 0.0 points") in result.reason
    fails, passes = int((after & ~before).sum()), int((before & ~after).sum())
    assert f"{fails} newly fail, {passes} no longer" in result.reason
    net = (after.astype(int) - before.astype(int)).groupby(first.loc[shared].cluster).agg(["sum", "size"])
    if (net["sum"] != 0).sum() >= 10:  # resampled independently
        rng = np.random.default_rng(1)
        chosen = rng.integers(0, len(net), (4000, len(net)))
        draws = 100 * net["sum"].to_numpy()[chosen].sum(1) / net["size"].to_numpy()[chosen].sum(1)
        assert result.percent == pytest.approx(float(np.quantile(draws, 0.975)), abs=1.0)
    assert result.held == (result.percent is not None and result.percent < gate.margin_percent)


def _fell(frame: pd.DataFrame, gate: PairedGate) -> pd.Series:
    if gate.against == "source":
        return 1 - frame[f"self_{gate.score}"] > gate.threshold
    return (frame[f"source_{gate.score}"] - frame[gate.score]) / frame[f"source_{gate.score}"] > gate.threshold


def test_a_gate_whose_run_shares_no_case_is_a_mistake(tmp_path: Path) -> None:
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, ("alpha", "beta"), seeds=16)
    _two_runs(tmp_path, other_images=True)
    gate = PairedGate(no_worse_than="synthetic/alpha")
    other = replace(outcome, systems=outcome.systems[1:])
    finished = finish(replace(suite, gates=(gate,)), invocation(tmp_path, junit="cells"), other)
    junit = (outcome.systems[1].folder / "junit.xml").read_text(encoding="utf-8")
    assert 'name="no worse than synthetic/alpha by 2 points or more: ' in junit and 'type="error"' in junit
    assert finished.code is ExitCode.MISTAKE
    assert any("has a judged case in common with synthetic/alpha" in line for line in finished.problems)
    assert finished.reports[0].is_file()


def test_only_what_is_typed_may_name_a_finished_run(tmp_path: Path) -> None:
    typed = load_suite("polyp_seg", ["gates=[{no_worse_than: polyp_seg/pranet, relation: blur}]"])
    (gate,) = typed.gates
    assert isinstance(gate, PairedGate) and (gate.margin_percent, gate.relation) == (2.0, "blur")
    assert "gates" not in typed.composed
    own = tmp_path / "mine.yaml"
    own.write_text("extends: polyp_seg\nname: mine\ngates: [{no_worse_than: polyp_seg/pranet}]\n", encoding="utf-8")
    with pytest.raises(UserMistakes, match=r"no_worse_than[\s\S]*allowed: the command line"):
        load_suite(own)


def test_a_run_is_never_its_own_baseline(tmp_path: Path) -> None:
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, ("alpha",), seeds=4)
    for name in ("synthetic/alpha", str(outcome.systems[0].folder)):
        gated = replace(suite, gates=(PairedGate(no_worse_than=name),))
        finished = finish(gated, invocation(tmp_path), outcome)
        assert finished.code is ExitCode.MISTAKE and finished.reports[0].is_file()
        assert len(finished.problems) == 1 and f"{name} is not another finished run" in finished.problems[0]
