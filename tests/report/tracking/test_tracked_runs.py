"""Content of MLflow's runs, and results that survive a failing store."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "report"))
from report_parts import invocation, leave_run, make_suite
from tracking_parts import client, runs

from medtest.cli.app import run_app
from medtest.cli.team.track import track_folders
from medtest.core.errors import ExitCode, UserMistakes
from medtest.core.records import KEY_COLUMNS
from medtest.report import tracking
from medtest.report.finish import finish
from medtest.report.mlflow.metrics import child_of
from medtest.report.mlflow.tracked import close_parents, track_failure
from medtest.report.pages.words import run_name
from medtest.report.tracking import runs_page
from medtest.runner.records.case_set import CaseSet
from medtest.suite.model import Gate

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_run_holds_the_content_of_the_contract(home):
    suite = make_suite(gates=(Gate(max_percent=99),))
    outcome = leave_run(home, suite, ("alpha", "beta"), seeds=8)
    result = finish(suite, invocation(home, track=True), outcome)
    assert (result.code, result.problems) == (ExitCode.OK, ())
    parents, children = runs(home)
    (parent,) = parents
    assert {run.info.run_name for run in children} == {"alpha", "beta"}
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    assert {run.info.status for run in (parent, *children)} == {"FINISHED"}
    for run, system_outcome, material in zip(
        sorted(children, key=lambda r: r.info.run_name), outcome.systems, result.materials, strict=True
    ):
        table = material.tables.efr
        row = table[(table.dataset == "all") & (table.relation == "blur") & (table.severity == "3")]
        row = row[(row.score == "dice") & (row.threshold == 0.25) & (row.against == "truth")].iloc[0]
        history = client(home).get_metric_history(run.info.run_id, "efr/blur")
        assert {point.step: point.value for point in history}[3] == row.efr_percent
        assert len(run.data.metrics) <= 40
        assert set(run.data.metrics) - {name for name in run.data.metrics if name.startswith("efr/")} == {
            "efr", "efr_low", "efr_high", "floor", "source_score",
        }  # fmt: skip
        head = table[(table.dataset == "all") & (table.relation == "overall") & (table.severity == "all")]
        head = head[(head.score == "dice") & (head.threshold == 0.25) & (head.against == "truth")].iloc[0]
        shown = [run.data.metrics[name] for name in ("efr", "efr_low", "efr_high")]
        assert shown == [head.efr_percent, head.ci_low, head.ci_high]
        assert run.data.tags["gate"] == "passed"
        assert run.data.tags["weakest_relation"].split(",")[0] in set(table.relation)
        assert (
            run.data.params["system.fingerprint.weights_sha256"]
            == json.loads((system_outcome.folder / "run.json").read_text())["covers"]["system"]["fingerprint"][
                "weights_sha256"
            ]
        )
        # beside what the digest covers only what MLflow is to sort by: it sorts by no tag
        assert run.data.params["suite"] == "synthetic"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", run.data.params["date"])
        assert "suite_version" not in run.data.params
        assert run.data.tags["suite_version"] == "1"
        assert json.loads((system_outcome.folder / "run.json").read_text())["mlflow_run_id"] == run.info.run_id
        (dataset,) = run.inputs.dataset_inputs
        assert dataset.dataset.name == "synthetic-seeds"
        names = {item.path for item in client(home).list_artifacts(run.info.run_id)}
        assert {
            "report.html",
            "records.parquet",
            "suite.yaml",
            "run.json",
            "tables",
            "images",
            "files.zip",
        } == names
        sheets = [item.path for item in client(home).list_artifacts(run.info.run_id, "images")]
        assert [name.endswith("+compressed.webp") for name in sheets] == [True, False] * 2  # of each kind of sample
        archive = zipfile.ZipFile(client(home).download_artifacts(run.info.run_id, "files.zip"))
        held = set(archive.namelist())
        assert {"manifest.sha256", "summary.md", "tables/seeds.csv", "samples/index.json", "samples/worst.png"} <= held
        assert archive.read("tables/efr.csv") == (system_outcome.folder / "tables" / "efr.csv").read_bytes()
        assert any(e["path"] == "tables/efr.json" for e in json.loads(run.data.tags["mlflow.loggedArtifacts"]))
    worst = max(children, key=lambda run: run.data.metrics["efr"])  # the parent carries its children's headline
    assert {name: parent.data.metrics[name] for name in ("efr", "efr_low", "efr_high", "floor", "source_score")} == {
        name: worst.data.metrics[name] for name in ("efr", "efr_low", "efr_high", "floor", "source_score")
    }
    assert parent.data.tags["weakest_relation"] == f"{worst.info.run_name}: {worst.data.tags['weakest_relation']}"
    assert parent.data.tags["gate"] == "passed"
    assert all(f"| {run.info.run_name} |" in parent.data.tags["mlflow.note.content"] for run in children)
    assert "comparison.html" in {item.path for item in client(home).list_artifacts(parent.info.run_id)}
    first, second = (run.inputs.dataset_inputs[0].dataset.digest for run in children)
    assert first == second  # both systems saw the same seeds: the UI shows it


@pytest.mark.slow
def test_a_second_invocation_goes_on_with_the_child_under_a_new_parent(home):
    suite = make_suite()
    outcome = leave_run(home, suite, seeds=6)
    finish(suite, invocation(home, track=True), outcome)
    first = runs(home)[1][0]
    (outcome.systems[0].folder / "tables" / "efr.csv").unlink()
    finish(suite, invocation(home, track=True), outcome)
    parents, children = runs(home)
    assert len(parents) == 2
    (child,) = children
    assert child.info.run_id == first.info.run_id
    assert child.data.tags["mlflow.parentRunId"] != first.data.tags["mlflow.parentRunId"]
    path = client(home).download_artifacts(child.info.run_id, "tables/efr.json")
    content = json.loads(Path(path).read_text())
    assert len(content["data"]) == len(result_rows(outcome))  # replaced, not appended


def result_rows(outcome):
    return (outcome.systems[0].folder / "tables" / "efr.csv").read_text().splitlines()[1:]


def test_the_page_of_runs_has_its_columns_from_the_experiment(home):
    suite = make_suite()
    tracker = tracking.Tracker(home)
    parents = tracker.parent(suite.name, "above", {})
    for name in ("alpha", "beta"):
        tracker.child(suite.name, parents, tracking.Child(name=name, tags={"system": name}, metrics={"efr": 1.0}))
    tracker.close(parents)
    store = client(home)
    experiment = store.get_experiment_by_name("synthetic")
    assert tracking.experiments(tracking.store_uri(home)) == [(experiment.experiment_id, "synthetic")]  # not MLflow's
    view = json.loads(experiment.tags[runs_page.TAG])
    columns = view["selectedColumns"]
    decides = ["metrics.`efr`", "tags.`gate`", "tags.`weakest_relation`", "metrics.`efr_low`", "metrics.`efr_high`"]
    assert columns[:5] == decides  # what a narrow screen shows
    assert columns[5:] == ["metrics.`floor`", "metrics.`source_score`", "params.`suite`", "params.`date`"]
    assert [name for name in view["columnOrder"] if name in columns] == columns
    first = view["columnOrder"][: view["columnOrder"].index(columns[3]) + 1]
    assert sum(view["columnWidths"][name] for name in first) <= 640  # 1280 pixels beside MLflow's open assistant
    rows = store.search_runs([experiment.experiment_id], view["searchFilter"], order_by=[f"{view['orderByKey']} DESC"])
    assert {run.info.run_name for run in rows} == {"alpha", "beta"}  # its systems, not the invocation above them
    assert runs_page.link("http://h:1", ["7"]).startswith("http://h:1/#/experiments/7/runs?viewStateShareKey=medtest&")
    assert "/#/compare-experiments/s?experiments=%5B%227%22%2C%228%22%5D&" in runs_page.link("http://h:1", ["7", "8"])


def test_an_unchanged_figure_is_logged_once_and_a_missing_one_ends_the_run(home):
    suite = make_suite()
    tracker = tracking.Tracker(home)
    parents = tracker.parent(suite.name, "above", {})
    first = tracking.Child(name="net", tags={"system": "net"}, metrics={"efr": 1.0, "efr/blur": {1: 0.0, 2: 5.0}})
    run = tracker.child(suite.name, parents, first)
    again = replace(first, run_id=run, metrics={"efr": 2.0, "efr/blur": {1: 0.0, 2: 5.0, 3: 7.0}})
    assert tracker.child(suite.name, parents, again) == run
    steps = [(point.step, point.value) for point in client(home).get_metric_history(run, "efr/blur")]
    assert sorted(steps) == [(1, 0.0), (2, 5.0), (3, 7.0)]
    assert client(home).get_run(run).data.metrics["efr"] == 2.0
    other = tracker.child(suite.name, parents, replace(again, metrics={"efr": 2.0}))
    assert other != run
    retired = client(home).get_run(run).data.tags
    assert (retired["replaced_by"], "system" in retired) == (other, False)
    tracker.close(parents)


def test_more_relations_than_there_is_room_for_leave_the_worst(home):
    suite = make_suite()
    material = finish(suite, invocation(home), leave_run(home, suite, seeds=2)).materials[0]
    table = material.tables.efr
    plain = table[table.relation == "blur"]
    many = [plain.assign(relation=f"r{number:02}", efr_percent=float(number)) for number in range(60)]
    wide = replace(material, tables=replace(material.tables, efr=pd.concat([table, *many], ignore_index=True)))
    child = child_of(wide, run_id=None, ended_well=True)
    assert len(child.metrics) == 40
    assert {"efr", "efr/r59", "efr/r40"} <= set(child.metrics)
    assert "efr/r01" not in child.metrics


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["above", "system"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_run_whose_creation_was_never_confirmed_is_found_and_not_duplicated(home, monkeypatch, lost, gone):
    suite = make_suite()
    outcome = leave_run(home, suite, seeds=6)
    create_run, search_runs, answers = MlflowClient.create_run, MlflowClient.search_runs, []

    def unanswered(self, *arguments, **named):
        run = create_run(self, *arguments, **named)
        if ("mlflow.parentRunId" in (named.get("tags") or {})) == (lost == "system") and not answers:
            answers.append(run.info.run_id)
            raise ConnectionError("the server was killed")
        return run

    def search(self, *arguments, **named):
        if gone:
            raise ConnectionError("the server was killed")
        return search_runs(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "create_run", unanswered)
        patch.setattr(MlflowClient, "search_runs", search)
        patch.setattr(MlflowClient, "log_batch", _refuse if gone else MlflowClient.log_batch)
        code = finish(suite, invocation(home, track=True), outcome).code
    assert (code is ExitCode.NOT_TRACKED) == gone
    monkeypatch.setenv("MEDTEST_HOME", str(home))
    track_folders([outcome.systems[0].folder], console=Console(quiet=True))
    parents, children = runs(home)
    assert len(children) == len(parents) == 1
    assert answers[0] in {run.info.run_id for run in parents + children}
    assert {run.info.status for run in parents + children} == {"FINISHED"}
    assert children[0].data.tags["mlflow.parentRunId"] == parents[0].info.run_id
    run = json.loads((outcome.systems[0].folder / "run.json").read_text())
    assert not {"mlflow_begun", "mlflow_parent_begun"} & set(run)


def _refuse(self, *arguments, **named):
    raise ConnectionError("the server was killed")


@pytest.mark.slow
def test_a_child_that_the_store_lacks_is_made_again(home):
    suite = make_suite()
    outcome = leave_run(home, suite, seeds=6)
    finish(suite, invocation(home, track=True), outcome)
    (child,) = runs(home)[1]
    client(home).delete_run(child.info.run_id)
    finish(suite, invocation(home, track=True), outcome)
    (again,) = runs(home)[1]
    assert again.info.run_id != child.info.run_id
    run_file = outcome.systems[0].folder / "run.json"
    run_file.write_text(run_file.read_text().replace(again.info.run_id, "0" * 32))
    assert finish(suite, invocation(home, track=True), outcome).problems == ()
    assert len(runs(home)[1]) == 2


@pytest.mark.slow
def test_a_view_has_its_own_child(home):
    suite = make_suite()
    outcome = leave_run(home, suite, seeds=6)
    finish(suite, invocation(home, track=True), outcome)
    for _ in range(2):
        finish(suite, invocation(home, track=True), outcome, view="0123456789abcdef")
    _, children = runs(home)
    names = {run.data.tags["view"]: run.info.run_name for run in children}
    assert names == {"suite": "alpha", "0123456789abcdef": "alpha, Dice threshold 0.25 against truth"}


def test_the_name_of_a_run_describes_it(tmp_path):
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, seeds=3)
    whole = finish(suite, invocation(tmp_path), outcome).materials[0]
    some = CaseSet(cases=pq.read_table(whole.folder / "records.parquet").select(KEY_COLUMNS).slice(0, 4))
    counts = replace(whole.tables.counts, images=1)
    tables, run = replace(whole.tables, counts=counts), {**whole.run, "seeds": 3, "cases_finished": 4}
    part = replace(whole, asked=some, view="a" * 64, tables=tables, run=run)
    assert [run_name(material) for material in (whole, part, replace(part, rejudged=True))] == [
        "alpha",
        "alpha, 1 of 3 images",
        "alpha, 1 of 3 images, Dice threshold 0.25 against truth",
    ]


@pytest.mark.slow
def test_jobs_of_a_sweep_share_one_parent_that_stays_open(home):
    suite = make_suite()
    first = finish(suite, invocation(home, track=True), leave_run(home, suite, ("alpha",), seeds=6), sweep=True)
    (parent,) = runs(home)[0]
    assert parent.info.status == "RUNNING"
    outcome = leave_run(home, suite, ("beta",), seeds=6)
    second = finish(suite, invocation(home, track=True), outcome, sweep=True, parents=first.parents)
    close_parents(home, second.parents)
    parents, children = runs(home)
    assert [run.info.status for run in parents] == ["FINISHED"]
    assert len(children) == 2


@pytest.mark.slow
def test_broken_runs_are_marked_failed(home):
    suite = make_suite()
    result = finish(suite, invocation(home, track=True), leave_run(home, suite, seeds=6, error_percent=50.0))
    assert result.code is ExitCode.TOO_MANY_ERRORS
    parents, children = runs(home)
    assert [run.info.status for run in (*parents, *children)] == ["FAILED", "FAILED"]
    track_failure(suite, invocation(home, track=True), "OutputProblem")
    failed = [run for run in runs(home)[0] if run.data.tags.get("failure") == "OutputProblem"]
    assert [run.info.status for run in failed] == ["FAILED"]


@pytest.mark.slow
def test_nothing_private_and_no_path_is_tracked(home, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "false")
    suite = make_suite()
    outcome = leave_run(home, suite, seeds=6)
    finish(suite, invocation(home, track=True), outcome)
    parents, children = runs(home)
    for run in (*parents, *children):
        tracked = json.dumps([run.data.tags, run.data.params, [i.dataset.source for i in run.inputs.dataset_inputs]])
        assert str(home) not in tracked
        assert str(ROOT) not in tracked
        assert not {"mlflow.user", "mlflow.source.name", "mlflow.source.git.commit"} & set(run.data.tags)
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


@pytest.mark.slow
def test_a_lost_server_costs_seconds_and_no_results(tmp_path, monkeypatch):
    for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, seeds=6)
    result = finish(suite, invocation(tmp_path, track=True, tracking_uri=f"http://u:pw@127.0.0.1:{port}"), outcome)
    assert result.code is ExitCode.NOT_TRACKED
    (problem,) = result.problems
    assert "complete on disk" in problem
    assert "pw" not in problem
    folder = outcome.systems[0].folder
    assert (folder / "report.html").is_file()
    assert "report.html" in (folder / "manifest.sha256").read_text()


def test_metric_names_are_those_every_store_takes():
    assert tracking.metric_name("efr/dice/t0.25/s3/overall") == "efr/dice/t0.25/s3/overall"
    assert tracking.metric_name("größe:x") == "gr__e_x"


def test_outputs_are_found_below_medtest_home_and_suggested_commands_differ_from_the_failed_one(
    home, tmp_path, monkeypatch, capsys
):
    cwd = tmp_path / "elsewhere"
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("MEDTEST_HOME", str(home))
    for words in (["track", "outputs"], ["tables", "outputs"], ["track", "outputs/nosuch"]):
        assert _suggested_command(words) == "medtest run suite=polyp_seg creates one"
    leave_run(home, make_suite(), seeds=6)
    (cwd / "outputs").mkdir()  # a folder of that name that holds no run
    for words in (["track", "nosuch"], ["tables", "nosuch"], ["track", str(cwd)]):
        mended = _suggested_command(words)
        assert mended == f"medtest {words[0]} {home / 'outputs'}"
    assert run_app(["track", "outputs"]) == 0
    assert "1 sent, 0 already" in capsys.readouterr().out


def _suggested_command(words):
    """Return the command that a failed one suggests."""
    with pytest.raises(UserMistakes) as caught:
        run_app(words)
    (line,) = [line.strip() for line in str(caught.value).splitlines() if "fix:" in line]
    return line.removeprefix("fix:").strip()
