"""False positives on frames without lesion: the oracle, its table, and the suite from the command to the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from medtest.cli.run.launch import main
from medtest.core.cases import Effect, MaskOutput, PreparedSeed, Verdict
from medtest.core.plugins import parts
from medtest.suite.compose import load_suite
from medtest.suite.model import Criterion
from medtest.tasks.segment.lesion_free import LesionFree
from medtest.tasks.segment.tables import MaskReport, MaskTables
from medtest.testing import synthetic_seed

ORACLE = LesionFree(LesionFree.Settings(), primary=Criterion(score="clear", threshold=0.0, against="truth"))


def empty_seed() -> PreparedSeed:
    seed = synthetic_seed(0, height=200, width=200, framed=False)
    frame = np.zeros((200, 200), np.bool_)
    frame[:, :100] = True
    return replace(seed, frame=frame, mask=np.zeros((200, 200), np.bool_), _memo={})


def scores_of(answer: np.ndarray, seed: PreparedSeed) -> dict[str, float | None]:
    return ORACLE.score(answer=MaskOutput(mask=answer), source=None, seed=seed, effect=Effect())


def test_area_is_a_share_of_the_field_and_specks_are_no_regions() -> None:
    answer = np.zeros((200, 200), np.bool_)
    assert scores_of(answer, empty_seed()) == {
        "clear": 1.0, "clear_share": 1.0, "false_area": 0.0, "false_regions": 0.0,
    }  # fmt: skip
    answer[10:13, 120:126] = True  # 18 of 20,000 pixels of the field; a region begins at 20 of 40,000
    scores = scores_of(answer, empty_seed())
    assert scores["false_area"] == pytest.approx(18 / 20_000)
    assert (scores["clear"], scores["false_regions"]) == (1.0, 0.0)
    answer[50:54, 120:125] = True
    answer[80:90, 120:130] = True
    scores = scores_of(answer, empty_seed())
    assert (scores["clear"], scores["false_regions"]) == (0.0, 2.0)
    assert scores["clear_share"] == pytest.approx(1 - 138 / 20_000)


def test_many_specks_are_not_clear() -> None:
    answer = np.zeros((200, 200), np.bool_)
    answer[::10, 100::4] = True  # 500 single pixels: 2.5 % of the field
    scores = scores_of(answer, empty_seed())
    assert (scores["clear"], scores["false_regions"]) == (0.0, 0.0)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_frame_with_a_lesion_or_without_truth_has_no_scores(labelled: bool) -> None:
    seed = synthetic_seed(0, labelled=labelled)
    scores = scores_of(np.zeros(seed.frame.shape, np.bool_), seed)
    assert set(scores.values()) == {None}
    assert ORACLE.verdict(scores)[0] is Verdict.SKIP


@pytest.mark.parametrize("before", [0.0, 1.0])
def test_the_verdict_does_not_depend_on_the_source(before: float) -> None:
    assert ORACLE.verdict({"clear": 0.0, "source_clear": before})[0] is Verdict.FAIL
    assert ORACLE.verdict({"clear": 1.0, "source_clear": before})[0] is Verdict.PASS


def test_the_table_counts_by_relation_and_severity() -> None:
    columns = {"dataset": "d", "clear": 1.0, "false_area": 0.0, "false_regions": 0.0}
    sources = pd.DataFrame([{**columns, "relation": "source", "severity": 0}])
    cases = [
        {"relation": "smoke", "severity": 1},
        {"relation": "smoke", "severity": 2, "clear": 0.0, "false_area": 0.04, "false_regions": 3.0},
        {"relation": "smoke", "severity": 2, "clear": None, "false_area": None, "false_regions": None},
    ]
    records = SimpleNamespace(sources=sources, followups=pd.DataFrame([{**columns, **case} for case in cases]))
    (table,) = MaskTables().frames(records).values()
    assert [(row.relation, row.severity, row.cases, row.not_clear) for row in table.itertuples()] == [
        ("source", "0", 1, 0), ("smoke", "1", 1, 0), ("smoke", "2", 1, 1), ("smoke", "all", 2, 1),
    ]  # fmt: skip
    last = table.iloc[-1]
    assert (last["not_clear_percent"], last["area_percent"], last["largest_area_percent"]) == (50.0, 2.0, 4.0)
    assert last["regions"] == 1.5
    (section,) = MaskReport().sections({"false_positives.csv": table})
    assert len(section.rows) == 4
    assert len(section.rows[0]) == len(section.columns)


def test_other_oracles_have_no_such_table() -> None:
    frame = pd.DataFrame([{"dataset": "d", "relation": "smoke", "severity": 1, "dice": 1.0, "false_regions": 0.0}])
    assert not MaskTables().frames(SimpleNamespace(sources=frame, followups=frame))
    assert not MaskReport().sections({})


def test_the_suite_has_lesion_free_phantoms_and_every_artefact() -> None:
    suite, wide = load_suite("polyp_negatives"), load_suite("polyp_seg_wide")
    assert suite.oracle.part.info is not parts("oracles")["masks"]
    assert [plan.id for plan in suite.relations] == [plan.id for plan in wide.relations]
    source = suite.build_seeds(None)[0]
    refs = source.refs()
    assert len(refs) == 24
    for ref in refs[:2]:
        expected = source.load(ref).expected
        assert expected is not None
        assert not expected.any()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_suite_runs_from_command_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    only = "relations=[smoke,bubbles]"
    assert main(["suite=polyp_negatives", "model=pranet", "limit=2", only, "tracking=none"]) == 0
    (folder,) = (path.parent for path in (tmp_path / "outputs" / "polyp_negatives").glob("*/*/tables"))
    table = pd.read_csv(folder / "tables" / "false_positives.csv")
    assert {"source", "unchanged", "smoke", "bubbles"} == set(table["relation"])
    rates = pd.read_csv(folder / "tables" / "efr.csv").query("score == 'clear' and dataset == 'phantoms'")
    for name in ("smoke", "bubbles"):
        row, rate = (
            frame[(frame["relation"] == name) & (frame["severity"] == "all")].iloc[0] for frame in (table, rates)
        )
        assert (row["cases"], row["not_clear"]) == (rate["cases"], rate["violations"])
    assert "False positives on frames without lesion" in (folder / "report.html").read_text(encoding="utf-8")
