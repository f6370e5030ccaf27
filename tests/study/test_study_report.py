"""Reports of studies on known answers: tables, page, MLflow."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from study_parts import answer_all, right

from medtest.study.model import Item, NewAnswer
from medtest.study.questions import Role
from medtest.study.results.ratings import read_ratings
from medtest.study.results.report import report_study
from medtest.study.results.tables import pair_tables
from medtest.study.store import StudyStore

NASTY = '<script>alert(1)</script> & "quoted"'


def _row(table: pd.DataFrame, **where: Any) -> dict[str, Any]:
    chosen = table
    for name, value in where.items():
        chosen = chosen.loc[(chosen[name] == value).to_numpy(bool)]
    assert len(chosen) == 1, f"{where} names {len(chosen)} rows"
    return dict(chosen.iloc[0])


@pytest.fixture
def answered(folder: Path) -> Path:
    """Answer by three annotators: two find one blur unrealistic, one changes the diagnosis for one text.

    Annotator 3 misses the erased lesions and changes one level when an item comes back.
    """
    with StudyStore(folder) as store:
        judged = [i for i in store.items() if i.phase == "main" and i.role is Role.ITEM]
        unreal = next(i for i in judged if i.relation == "blur").id
        disputed = next(i for i in judged if i.relation == "text").id

        def say(annotator: int, item: Item, showing: int) -> dict[str, Any]:
            answer = right(item)
            answer["elapsed_ms"] = 1000 * annotator
            if item.id == unreal and annotator < 3 and showing == 1:
                answer |= {"realism": 1, "comment": NASTY}
            if item.id == disputed and annotator == 2 and showing == 1:
                answer["diagnosis"] = 2
            if annotator == 3 and item.role is Role.ERASED:
                answer["diagnosis"] = 5
            if annotator == 3 and showing == 2:
                answer["diagnosis"] = 4
            return answer

        answer_all(store, say)
    return folder


def test_tables_of_known_answers(answered: Path) -> None:
    with StudyStore(answered) as store:
        ratings = read_ratings(store)
    tables = pair_tables(ratings)
    means = tables["means.csv"]
    blur = _row(means, relation="blur", question="realism")
    assert (blur["items"], blur["ratings"]) == (4, 12)
    assert blur["mean"] == pytest.approx((10 * 5 + 2 * 1) / 12, abs=1e-3)
    assert (blur["n1"], blur["n5"]) == (2, 10)
    overall = _row(means, relation="overall", question="diagnosis")
    assert overall["mean"] == pytest.approx((23 * 5 + 2) / 24, abs=1e-3)
    assert overall["ci_low"] <= overall["mean"] <= overall["ci_high"]
    assert (overall["published"], _row(means, relation="overall", question="realism")["published"]) == (4.5, 4.79)
    # κ on 5 levels: seven items agree, one has pairs 5 5, 5 2, 5 2: P = 1/3
    kappa = _row(tables["agreement.csv"], relation="overall", question="diagnosis", scale="5 levels")
    assert kappa["kappa"] == pytest.approx(((7 + 1 / 3) / 8 - 0.2) / 0.8, abs=1e-3)
    assert (kappa["items"], kappa["raters"], kappa["left_out"]) == (8, 3, 0)
    kappa = _row(tables["agreement.csv"], relation="overall", question="diagnosis", scale="agree or not")
    assert kappa["kappa"] == pytest.approx(((7 + 1 / 3) / 8 - 0.5) / 0.5, abs=1e-3)
    own = _row(tables["self_agreement.csv"], annotator=3, question="diagnosis")
    assert (own["items"], own["same_percent"], own["within_one_percent"], own["mean_distance"]) == (2, 0, 100, 1)
    assert own["kappa_agree"] == 1
    catches = tables["catches.csv"]
    assert _row(catches, annotator=3, catch="erased")["passed"] == 0
    assert _row(catches, annotator=3, catch="identical")["passed_percent"] == 100
    assert _row(catches, annotator=1, catch="erased")["passed_percent"] == 100
    assert _row(tables["times.csv"], by="annotator", name="2")["median_seconds"] == 2
    assert _row(tables["times.csv"], by="all")["answered"] == 36
    training = _row(tables["training.csv"], annotator=1)
    assert (training["items"], training["expected_at_first"]) == (4, 4)


def test_flags_and_disagreements(answered: Path) -> None:
    with StudyStore(answered) as store:
        tables = pair_tables(read_ratings(store))
    flagged = tables["flagged.csv"]
    assert list(flagged["reason"]) == ["unrealistic"]
    assert flagged["relation"].iloc[0] == "blur"
    assert len(flagged["followup_sha256"].iloc[0]) == 64
    disputed = tables["disagreements.csv"]
    assert sorted(disputed["on"]) == ["diagnosis", "realism"]
    assert _row(disputed, on="realism")["realism"] == "1 1 5"


def test_an_unfinished_study_and_a_left_out_annotator(answered: Path) -> None:
    with StudyStore(answered) as store:
        ratings = read_ratings(store, leave_out=[2])
        assert ratings.annotators == [1, 3]
        kappa = _row(pair_tables(ratings)["agreement.csv"], relation="overall", question="diagnosis", scale="5 levels")
        assert (kappa["kappa"], kappa["raters"]) == (1.0, 2)


def test_without_any_answer(folder: Path, tmp_path: Path) -> None:
    report = report_study(folder, home=tmp_path, track=False)
    assert "0 of 36 answers" in report.page.read_text(encoding="utf-8")
    assert report.tables["means.csv"].empty
    assert report.flagged is None


def test_one_answer(folder: Path, tmp_path: Path) -> None:
    with StudyStore(folder) as store:
        place = next(p for p in store.places() if p.annotator == 1 and p.phase == "main")
        store.save(1, "main", place.position, NewAnswer(diagnosis=4, realism=3, request="request-1"))
    report_study(folder, home=tmp_path, track=False)


def test_the_page_escapes_texts_and_opens_without_other_files(answered: Path, tmp_path: Path) -> None:
    report = report_study(answered, home=tmp_path, track=False)
    page = report.page.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "http://" not in page
    assert "4.79" in page
    assert "data:image/jpeg;base64," in page
    assert str(tmp_path) not in page
    with (report.page.parent / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36 + 12
    assert any(row["comment"] == NASTY for row in rows)


def test_comments_are_not_formulas_in_a_spreadsheet(folder: Path, tmp_path: Path) -> None:
    comments = ["=1+1", "+1", "-1", "@x", "fine = fine"]
    with StudyStore(folder) as store:
        for position, comment in enumerate(comments, start=1):
            answer = NewAnswer(diagnosis=5, realism=5, comment=comment, request=f"request-{position}")
            store.save(1, "main", position, answer)
    report = report_study(folder, home=tmp_path, track=False)
    with (report.page.parent / "answers.csv").open(encoding="utf-8", newline="") as file:
        written = [row["comment"] for row in csv.DictReader(file)]
    assert written == ["'=1+1", "'+1", "'-1", "'@x", "fine = fine"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mlflow_holds_the_figures_and_keeps_its_run(answered: Path, tmp_path: Path) -> None:
    from medtest.report.tracking import Tracker

    for _ in range(2):
        report = report_study(answered, home=tmp_path)
        assert report.problems == ()
    client = Tracker(tmp_path).client
    experiment = client.get_experiment_by_name("polyp_seg")
    runs = client.search_runs([experiment.experiment_id], "tags.study = 'pairs'")
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert len(children) == 1
    metrics = children[0].data.metrics
    assert metrics["mean/diagnosis/overall"] == pytest.approx((23 * 5 + 2) / 24, abs=1e-3)
    assert metrics["count/flagged"] == 1
    assert metrics["catches_passed_percent"] == pytest.approx(500 / 6)
    names = {entry.path for entry in client.list_artifacts(children[0].info.run_id)}
    assert {"report.html", "study"} <= names


def test_artefacts(frames_folder: Path, tmp_path: Path) -> None:
    """Six frames, three annotators: blood is marked by all on three frames, by two on one, by one on one."""
    with StudyStore(frames_folder) as store:
        frames = [i.id for i in store.items() if i.phase == "main" and i.relation == "source"]
        marked = {frames[0]: 3, frames[1]: 3, frames[2]: 3, frames[3]: 2, frames[4]: 1}

        def say(annotator: int, item: Item, showing: int) -> dict[str, Any]:
            if item.id in marked:
                return {"marks": ("blood",) if annotator <= marked[item.id] else ()}
            return {"marks": (item.part,)} if item.part == "text" else {"marks": ()}

        answer_all(store, say)
    report = report_study(frames_folder, home=tmp_path, track=False)
    table = report.tables["frequencies.csv"]
    blood = _row(table, artefact="blood")
    assert (blood["frames"], blood["found"], blood["percent"], blood["marked_by_any"]) == (6, 4, 66.67, 5)
    # P = 1, 1, 1, 1/3, 1/3, 1
    assert blood["kappa"] == pytest.approx(((4 + 2 / 3) / 6 - 0.5) / 0.5, abs=1e-3)
    some = _row(table, artefact="any artefact")
    assert (some["found"], some["published_percent"]) == (4, 46.96)
    recognised = report.tables["recognised.csv"]
    assert _row(recognised, relation="text", severity="all")["recognised"] == 2
    assert _row(recognised, relation="blur", severity="all")["recognised"] == 0
    consensus = report.tables["consensus.csv"]
    assert (consensus["consensus"] == "blood").sum() == 4
    assert "1,199 of 2,553" in report.page.read_text(encoding="utf-8")
