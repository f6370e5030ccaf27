"""Selections with ``limit`` and ``only`` in folders with more cases: shown cases, views, and folders' own tables."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from medtest.cli.results.tables import remake_tables
from medtest.cli.run.launch import main
from medtest.report.pages.material import read_run

SUITE = """\
name: tiny
version: "1"
seed: 1
seeds: {phantoms: {count: 4}}
relations: {contrast: {severities: [1, 5]}}
systems: [pranet]
"""
NET = """\
import numpy as np

def all_of_it(image):
    return np.ones(image.shape[:2], dtype=bool)

def brittle(image):
    return np.full(image.shape[:2], image.mean() > 60.0)

def broken_on_some(image):
    if image.mean() > 90.0:
        raise RuntimeError("no answer today")
    return np.full(image.shape[:2], image.mean() > 60.0)
"""
ROW = 4
"""Cases of a seed: the source, the unchanged image, two severities."""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working directory with a suite and systems in a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "hash.key"))
    (tmp_path / "tiny.yaml").write_text(SUITE)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def run(*typed: str, function: str = "brittle", track: bool = False) -> int:
    always = ["suite=tiny.yaml", "model=callable", f"target=net.py:{function}", "workers=1", "device=cpu"]
    return main([*always, *([] if track else ["tracking=none"]), *typed], command="python run.py")


def folder_of(work: Path) -> Path:
    (run_folder,) = (path.parent for path in work.glob("outputs/tiny/*/*/run.json"))
    return run_folder


def count_generated(target: Path) -> int:
    """Return the number of cases behind a folder's overall rate."""
    table = pd.read_csv(target / "tables" / "efr.csv")
    rows = table[(table.relation == "overall") & (table.dataset == "all") & (table.severity == "all")]
    return int(rows.generated.iloc[0])


def test_a_limit_in_a_full_folder_is_shown_in_a_view(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    folder = folder_of(work)
    before = {name: (folder / name).read_bytes() for name in ("report.html", "tables/efr.csv", "suite.yaml")}
    capsys.readouterr()

    assert run("limit=1", "oracles.primary.threshold=0.5") == 0
    output = capsys.readouterr().out
    assert "1 of 4 images" in output
    assert f"No case to run; {ROW} were finished before." in output
    (view,) = (folder / "views").iterdir()
    assert f"Report:  {(view / 'report.html').relative_to(work)}" in output
    assert (count_generated(folder), count_generated(view)) == (8, 2)
    assert pq.read_table(view / "cases.parquet").num_rows == ROW
    assert (read_run(folder)["partial"], read_run(view)["partial"]) == (False, True)
    assert "1 of 4 images" in (view / "report.html").read_text()
    samples = json.loads((view / "samples" / "index.json").read_text())
    assert {entry["seed_id"] for entry in samples} == {"phantom-0000"}
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.slow
def test_a_view_is_of_a_set_of_cases_and_of_an_oracle(work: Path) -> None:
    assert run() == 0
    folder = folder_of(work)
    assert run("limit=1", "oracles.primary.threshold=0.5") == 0
    (view,) = (folder / "views").iterdir()
    # the same cases by another way to say so, and in another order
    assert run("only=seed:phantom-0000", "oracles.primary.threshold=0.5") == 0
    assert list((folder / "views").iterdir()) == [view]
    # gates are in no digest; another oracle, or other cases, are another view
    assert run("limit=1", "oracles.primary.threshold=0.5", "gates=[{max_percent: 100}]") == 0
    assert list((folder / "views").iterdir()) == [view]
    assert run("limit=1") == 0
    assert run("limit=2") == 0
    assert len(list((folder / "views").iterdir())) == 3


@pytest.mark.slow
def test_all_cases_under_another_oracle_keep_their_view(work: Path) -> None:
    assert run("limit=2", "oracles.primary.threshold=0.5") == 0  # all cases are selected: the oracle's own view
    folder = folder_of(work)
    (view,) = (folder / "views").iterdir()
    assert not (view / "cases.parquet").exists()
    assert count_generated(folder) == 4  # the folder's own tables are of the same cases
    assert read_run(folder)["command"].endswith("tracking=none limit=2")
    assert run("oracles.primary.threshold=0.5") == 0
    assert list((folder / "views").iterdir()) == [view]
    assert (count_generated(view), count_generated(folder)) == (8, 8)


@pytest.mark.slow
def test_a_case_that_ran_is_in_the_folders_own_tables_at_once(work: Path) -> None:
    assert run("limit=1") == 0
    folder = folder_of(work)
    assert count_generated(folder) == 2
    gate = "gates=[{relation: contrast, max_percent: 100, bound: efr_percent}]"
    assert (
        run("only=seed:phantom-0002", gate) == 0
    )  # the folder holds another image: a view, and new tables of the folder
    (view,) = (folder / "views").iterdir()
    assert (count_generated(folder), count_generated(view)) == (4, 2)
    assert "2 of 4 images: 8 of 16 cases of the suite are finished." in (folder / "report.html").read_text()
    assert read_run(folder)["cases_finished"] == 2 * ROW
    own = read_run(folder)["command"]
    assert "only=" not in own and "limit=" not in own  # neither choice gives both images
    assert "only=seed:phantom-0002" in read_run(view)["command"]
    lines = [json.loads(line) for line in (folder / "gates.jsonl").read_text().splitlines()]
    assert [line["view"] for line in lines] == [view.name]  # what was asked was judged, and nothing else


@pytest.mark.slow
def test_missing_tables_are_made_by_the_next_call(work: Path) -> None:
    assert run("limit=1") == 0
    folder = folder_of(work)
    run_file = folder / "run.json"
    content = json.loads(run_file.read_text())
    assert content.pop("tables_of")
    run_file.write_text(json.dumps(content))  # as a run leaves it that was killed before its tables
    (folder / "tables" / "efr.csv").unlink()
    assert run("only=seed:phantom-0000,severity:5") == 0
    assert count_generated(folder) == 2


@pytest.mark.slow
def test_one_full_and_one_partial_system_are_shown_alike(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "conf" / "model").mkdir(parents=True)
    preset = "use: callable\nsummary: nothing\ntarget: net.py:all_of_it\n"
    (work / "conf" / "model" / "nothing.yaml").write_text(preset)
    assert run() == 0
    full = folder_of(work)
    capsys.readouterr()
    both = ["model=[callable,nothing]", "systems.callable.target=net.py:brittle"]
    typed = ["--config-dir", "conf", "suite=tiny.yaml", *both, "workers=1", "device=cpu", "tracking=none", "limit=2"]
    assert main(typed, command="python run.py") == 0
    partial = next(path.parent for path in work.glob("outputs/tiny/nothing/*/run.json"))
    names = [{path.name for path in (folder / "views").iterdir()} for folder in (full, partial)]
    assert names[0] == names[1] and len(names[0]) == 1
    (digest,) = names[0]
    assert {count_generated(folder / "views" / digest) for folder in (full, partial)} == {4}
    assert (count_generated(full), count_generated(partial)) == (8, 4)
    assert read_run(partial)["command"].endswith("tracking=none limit=2")
    assert read_run(full)["command"].endswith("tracking=none")
    assert (work / "outputs" / "tiny" / f"comparison-{digest}.html").is_file()
    assert "2 of 4 images" in capsys.readouterr().out


@pytest.mark.slow
def test_errors_and_gates_of_other_cases_do_not_decide(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = "gates=[{relation: contrast, max_percent: 0, bound: efr_percent}]"
    assert run(gate, function="broken_on_some") == 3
    folder = folder_of(work)
    frame = pq.read_table(folder / "records.parquet").to_pandas()
    bad = set(frame.loc[frame.verdict == "ERROR", "relation"])
    assert bad
    capsys.readouterr()
    lines = [json.loads(line) for line in (folder / "gates.jsonl").read_text().splitlines()]
    assert [(line["view"], line["shown"]) for line in lines] == [("", "")]
    # the first image breaks nothing, and turns dark enough to be a violation
    assert run(gate, "only=seed:phantom-0000", function="broken_on_some") == 1
    # without gates: the report keeps what they found
    assert run("max_error_percent=100", function="broken_on_some") == 0
    report = (folder / "report.html").read_text()
    assert "No gate is set now" in report and lines[0]["time"] in report


@pytest.mark.slow
def test_medtest_tables_makes_views_again(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    assert run() == 0
    assert run("limit=1", "oracles.primary.threshold=0.01", "oracles.thresholds=[0.01]") == 0
    folder = folder_of(work)
    (view,) = (folder / "views").iterdir()
    tables = {path: path.read_bytes() for path in (view / "tables" / "efr.csv", folder / "tables" / "efr.csv")}
    report = (view / "report.html").read_text()
    for path in (*tables, view / "report.html"):
        path.unlink()
    assert remake_tables(work / "outputs" / "tiny", console=Console()) == 0
    assert {path: path.read_bytes() for path in tables} == tables
    assert "1 of 4 images" in report and "1 of 4 images" in (view / "report.html").read_text()
    assert str(view.name) in capsys.readouterr().out.replace("\n", "")
