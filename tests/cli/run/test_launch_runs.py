"""Whole runs from the command line with a system of a few lines: folders, reuse, sweeps, exit codes."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from forked_program import command
from PIL import Image

from medtest.cli.run.launch import main

ROOT = Path(__file__).parents[3]
CANARY = "canary-9c1d-value-of-the-environment"
SUITE = """\
name: tiny
version: "1"
seed: 1
seeds: {phantoms: {count: 3}}
relations: {contrast: {severities: [1, 5]}}
systems: [pranet]
"""
NET = """\
import pathlib, time
import numpy as np

def red(image):
    rgb = image.astype(float)
    return rgb[..., 0] - rgb[..., 1:].mean(-1) > 60

def all_of_it(image):
    return np.ones(image.shape[:2], dtype=bool)

def brittle(image):
    return np.full(image.shape[:2], image.mean() > 60.0)

def broken(image):
    raise RuntimeError("no answer today")

def slow(image):
    pathlib.Path("started").touch()
    time.sleep(1.0)
    return np.ones(image.shape[:2], dtype=bool)
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working directory with a suite and a network in a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MEDTEST_CANARY", CANARY)
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "hash.key"))
    (tmp_path / "tiny.yaml").write_text(SUITE)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def run(*typed: str, function: str = "all_of_it") -> int:
    always = ["suite=tiny.yaml", "model=callable", f"target=net.py:{function}", "workers=1", "tracking=none"]
    return main([*always, *typed], command="python run.py")


def folders(work: Path) -> list[Path]:
    return sorted(path.parent for path in work.glob("outputs/*/*/*/run.json"))


def test_a_run_writes_the_files_of_the_contract_and_is_found_again(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    (folder,) = folders(work)
    assert folder.parts[-4:-1] == ("outputs", "tiny", "net-all_of_it")
    assert re.fullmatch(r"[0-9a-f]{24}", folder.name)
    for name in ("records.parquet", "records.csv", "suite.yaml", "manifest.sha256", "report.html", "tables/efr.csv"):
        assert (folder / name).is_file()
    assert f"Report:  {(folder / 'report.html').relative_to(work)}" in shown
    assert "12 cases run" in shown  # 3 sources, 3 unchanged, 6 of contrast
    assert "Exit code 0" in shown
    for path in (*folder.rglob("*"), *work.glob("outputs/*.html")):
        if path.suffix in {".csv", ".json", ".yaml", ".html", ".sha256"}:
            text = path.read_text(encoding="utf-8")
            assert str(work) not in text, path
            assert CANARY not in text, path

    before = pq.read_table(folder / "records.parquet")
    assert run() == 0
    assert "No case to run; 12 were finished before." in capsys.readouterr().out
    assert pq.read_table(folder / "records.parquet").equals(before)
    assert folders(work) == [folder]


@pytest.mark.slow
def test_a_part_first_then_the_rest(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("limit=1") == 0
    assert "partial" in capsys.readouterr().out
    assert run("only=severity:5") == 0
    capsys.readouterr()
    assert run() == 0
    shown = capsys.readouterr().out
    assert "partial" not in shown
    assert len(folders(work)) == 1
    assert pq.read_table(folders(work)[0] / "records.parquet").num_rows == 12


@pytest.mark.slow
def test_a_failed_gate_ends_with_1(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = "gates=[{relation: contrast, severity: 5, max_percent: 0, bound: efr_percent}]"
    assert run(gate, function="brittle") == 1
    assert "Exit code 1: a gate failed." in capsys.readouterr().out
    assert run(gate, function="all_of_it") == 0


def test_a_system_that_fails_ends_with_3(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(function="broken") == 3
    shown = capsys.readouterr().out
    assert "too many cases" in shown
    assert "most frequent failure: RuntimeError: no answer today." in shown
    assert run("max_error_percent=100", function="broken") == 0


def test_a_sweep_over_thresholds_runs_no_system_again(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", "oracles.primary.threshold=0.25,0.5", "oracles.primary.score=dice,iou") == 0
    shown = capsys.readouterr().out
    assert len(re.findall(r"12 cases run", shown)) == 1
    assert len(re.findall(r"No case to run", shown)) == 3
    assert "4 jobs" in shown
    (folder,) = folders(work)
    views = list((folder / "views").iterdir())
    assert len(views) == 3  # the fourth is the suite's own
    assert all((view / "report.html").is_file() and (view / "tables" / "efr.csv").is_file() for view in views)


def own_files(folder: Path) -> dict[str, bytes]:
    """Return the files in a run's folder that follow the suite's own oracle."""
    files = [folder / "records.parquet", folder / "suite.yaml", *folder.glob("samples/*"), *folder.glob("tables/*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_run_records_its_model_and_name_renames_it(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = hashlib.sha256((work / "net.py").read_bytes()).hexdigest()
    assert run("limit=1") == 0
    (folder,) = folders(work)
    assert json.loads((folder / "run.json").read_text())["model"] == {"file": "net.py:all_of_it", "sha256": digest}
    assert f"net.py:all_of_it, SHA-256 {digest}" in (folder / "report.html").read_text()
    # a folder of the version before, which called every function by the name of its adapter
    (work / "outputs/tiny/callable").mkdir()
    old = folder.rename(work / "outputs/tiny/callable" / folder.name)
    before = json.loads((old / "run.json").read_text())
    (old / "run.json").write_text(json.dumps({**before, "system": "callable"}))
    capsys.readouterr()
    assert run("limit=1") == 0
    shown = capsys.readouterr().out
    assert "No case to run" in shown
    place = f"outputs/tiny/callable/{old.name}"
    assert f"net-all_of_it: this run started as callable and continues in {place}." in " ".join(shown.split())
    assert folders(work) == [old]
    assert run("limit=1", "name=v2") == 0  # no name is in the digest
    assert folders(work) == [old]
    assert json.loads((old / "run.json").read_text())["system"] == "v2"
    assert set(pq.read_table(old / "records.parquet")["system"].to_pylist()) == {"v2"}
    assert run("limit=1", "name=v2", "fresh=true") == 0
    (fresh,) = [folder_ for folder_ in folders(work) if ".old-" not in folder_.name]
    assert fresh == work / "outputs/tiny/v2" / old.name
    assert not old.exists()


def test_another_oracle_leaves_the_folder_of_the_suites_own_unchanged(work: Path) -> None:
    assert run(function="brittle") == 0
    (folder,) = folders(work)
    before = own_files(folder)
    command = json.loads((folder / "run.json").read_text())["command"]
    strict = ["oracles.primary.threshold=0.01", "oracles.primary.against=source", "oracles.thresholds=[0.01]"]
    assert run(*strict, function="brittle") == 0
    assert folders(work) == [folder]
    assert own_files(folder) == before
    assert json.loads((folder / "run.json").read_text())["command"] == command
    assert command.startswith("python run.py suite=tiny.yaml model=callable")


def test_a_folder_made_under_another_oracle_is_still_the_suites_own(work: Path) -> None:
    strict = ["oracles.primary.threshold=0.01", "oracles.primary.against=source", "seeds.phantoms.count=3"]
    assert run(*strict, function="brittle") == 0
    (folder,) = folders(work)
    assert yaml.safe_load((folder / "suite.yaml").read_text())["oracles"]["primary"]["threshold"] == 0.25
    command = json.loads((folder / "run.json").read_text())["command"]
    assert "oracles" not in command
    assert "seeds.phantoms.count=3" in command
    assert (folder / "report.html").is_file()  # cases ran: the folder's own tables are of them, beside the view
    first = pq.read_table(folder / "records.parquet")
    assert run("seeds.phantoms.count=3", function="brittle") == 0
    assert pq.read_table(folder / "records.parquet").equals(first)


def test_jobs_of_a_sweep_are_replayed_by_their_own_commands(work: Path) -> None:
    assert run("-m", "relations.contrast.severities=[1],[1,5]", "seed=3", "limit=1") == 0
    by_command = {json.loads((folder / "run.json").read_text())["command"]: folder for folder in folders(work)}
    for levels in ("1", "1,5"):
        (folder,) = (
            by_command[c] for c in by_command if f"'relations.contrast.severities=[{levels}]' seed=3 limit=1" in c
        )
        command = (folder / "report.html").read_text().partition("medtest replay ")[2].partition("<")[0]
        assert unescape(command).startswith("suite=tiny.yaml 'relations.contrast.severities=[" + levels + "]' seed=3 ")
    assert len(by_command) == 2 and not any(" -m " in command for command in by_command)


@pytest.mark.slow
def test_a_sweep_ends_with_the_gravest_and_runs_every_job(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = "gates=[{relation: contrast, severity: 5, max_percent: 0, bound: efr_percent}]"
    typed = ["-m", "suite=tiny.yaml", "model=callable", "target=net.py:broken,net.py:all_of_it,net.py:brittle", gate]
    assert main([*typed, "tracking=none", "workers=1"], command="python run.py") == 3
    summary = capsys.readouterr().out.partition("3 jobs")[2]
    assert re.search(r"0.*broken.*too many errors", summary)
    assert re.search(r"1.*all_of_it.*done", summary)
    assert re.search(r"2.*brittle.*gate failed", summary)


@pytest.mark.slow
def test_two_functions_side_by_side(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "+systems.other={use: callable, target: net.py:red}"
    assert run(other) in (0, 3)
    assert "Comparison:  outputs/tiny/comparison.html" in capsys.readouterr().out
    assert [folder.parent.name for folder in folders(work)] == ["net-all_of_it", "other"]


def test_paths_with_any_sign(work: Path) -> None:
    odd = work / "my nets, [v2] (a=b) {c}"
    odd.mkdir()
    (odd / "it's net.py").write_text(NET)
    typed = ["suite=tiny.yaml", "model=callable", f"target={odd}/it's net.py:all_of_it", "tracking=none", "workers=1"]
    assert main([*typed, "limit=1"], command="python run.py") == 0


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("dataset:fantoms", "did you mean: phantoms"),
        ("seed:phantom-00002", "did you mean: phantom-0002"),
        ("severity:3", "found:   severity:3"),  # contrast has the severities 1 and 5
        ("relation:unchanged,severity:5", "found:   relation:unchanged, severity:5"),
    ],
)
@pytest.mark.parametrize("plan", ["true", "false"])
def test_a_selection_without_a_case_is_a_mistake(
    work: Path, capsys: pytest.CaptureFixture[str], only: str, words: str, plan: str
) -> None:
    assert run(f"only={only}", f"plan={plan}") == 2
    assert words in capsys.readouterr().err
    assert not (work / "outputs").exists()


def test_an_empty_selection_names_no_patient(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("only=seed:phantom-00002", "privacy.seed_ids=hashed") == 2
    assert "phantom-0002" not in capsys.readouterr().err.replace("seed:phantom-00002", "")


def test_a_folder_that_cannot_be_written(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "outputs").write_text("a file where a folder should be")
    assert run() == 2
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert "cannot be written" in shown.err


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [False, True])
def test_ctrl_c_ends_with_130_and_keeps_what_was_finished(work: Path, sweep: bool) -> None:
    typed = ["suite=tiny.yaml", "model=callable", "target=net.py:slow", "tracking=none", "workers=1", "batch_size=1"]
    typed += ["-m", "seed=1,2"] if sweep else []
    process = command(ROOT / "run.py", *typed)
    wait_for((work / "started").exists, 120)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    if sweep:
        summary = out.partition("2 jobs")[2]
        assert "interrupted" in summary
        assert "not run" in summary


@pytest.mark.slow
def test_mlflow_holds_no_path_and_no_environment(work: Path) -> None:
    typed = ["suite=tiny.yaml", "model=callable", f"target={work}/net.py:all_of_it", "workers=1"]
    assert main([*typed, "-m", "oracles.primary.threshold=0.25,0.5"], command="python run.py") == 0
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{work}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert len(parents) == 1  # jobs of one sweep share it
    assert len(runs) == 3
    assert all(run.info.status == "FINISHED" for run in runs)
    for run_ in runs:
        held = f"{run_.data.params} {run_.data.tags} {run_.data.metrics}"
        assert str(work) not in held
        assert CANARY not in held


@pytest.mark.parametrize("hashed", [False, True])
def test_files_that_are_skipped_are_counted_and_named(
    work: Path, capsys: pytest.CaptureFixture[str], hashed: bool
) -> None:
    (work / "d" / "images").mkdir(parents=True)
    (work / "d" / "masks").mkdir()
    for name, with_mask in (("mueller-1", True), ("mueller-2", False)):
        picture = Image.new("RGB", (160, 128), (150, 90, 80))
        picture.save(work / "d" / "images" / f"{name}.png")
        if with_mask:
            mask = Image.new("L", picture.size)
            mask.paste(255, (40, 30, 90, 80))
            mask.save(work / "d" / "masks" / f"{name}.png")
    (work / "tiny.yaml").write_text(
        SUITE.replace("phantoms: {count: 3}", "d: {source: image_mask_folders, on_bad_seed: skip}")
    )
    typed = ["data=d", *(["privacy.seed_ids=hashed"] if hashed else [])]
    assert run(*typed) == 0
    shown = capsys.readouterr().out
    (folder,) = folders(work)
    report = (folder / "report.html").read_text()
    for text in (shown, report):
        assert "1 seed of d left out as unusable." in text
        assert ("images/mueller-2.png has no mask" in text) is not hashed
        assert "mueller" not in text or not hashed
