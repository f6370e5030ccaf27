"""The command line of a run: help, mistakes, plans, sweeps and their exit codes. No system is run here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from medtest.cli.bootstrap import DEFECT, opencv_advice
from medtest.cli.run.jobs import gravest
from medtest.cli.run.launch import main
from medtest.core.files.paths import suites_folder
from medtest.suite.reading.library import suite_names

ROOT = Path(__file__).parents[3]
HEAVY = (
    "torch",
    "torchvision",
    "mlflow",
    "pandas",
    "hydra",
    "omegaconf",
    "matplotlib",
    "cv2",
    "numpy",
    "pyarrow",
    "yaml",
)
SUITE = """\
name: good
version: "1"
seed: 1
seeds: {phantoms: {count: 4}}
relations: {blur: {severities: [1, 2]}, text: {severities: [3]}}
systems: [pranet]
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty working directory, and a team's folder of suites beside it."""
    folder, suites = tmp_path / "work", tmp_path / "suites"
    folder.mkdir()
    suites.mkdir()
    (suites / "good.yaml").write_text(SUITE)
    (suites / "bad.yaml").write_text(SUITE.replace("blur", "blurr"))
    (suites / "folder.yaml").write_text("extends: good\nseeds: {phantoms: false, mine: {source: image_mask_folders}}\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    return folder


def run(*typed: str) -> int:
    return main(list(typed), command="python run.py")


def test_help_imports_nothing_heavy_and_names_the_next_command() -> None:
    code = (
        "import sys; from medtest.cli.run.launch import main; code = main(['--help']);"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules], code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "LOADED [] 0" in done.stdout
    for words in ("suite=polyp_seg limit=2", "plan=true", "checkpoint=FILE", "Exit codes", "data=PATH"):
        assert words in done.stdout


def test_help_lists_every_option() -> None:
    from medtest.cli.run.launch import HELP
    from medtest.suite.commandline.overrides import NAME, SYSTEM_NAME
    from medtest.suite.schema import RunBlock

    typed = [NAME if name == SYSTEM_NAME else name for name in RunBlock.model_fields]
    unnamed = [
        name
        for name in typed
        if name != "tracking" and not re.search(rf"\b{name}[=.]", HELP.read_text(encoding="utf-8"))
    ]
    assert unnamed == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert re.fullmatch(r"medtest \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ([], "type suite=NAME"),
        (["suite=polyp_sag"], "did you mean: polyp_seg"),
        (["suite=polyp_sag", "dta=here"], "did you mean: data"),
        (["suite=polyp_sag", "limit=two"], "a whole number"),
        (["suite=polyp_sag", "model=ssformr"], "did you mean: ssformer"),
        (["suite=polyp_seg", "modle=pranet"], "did you mean: model"),
        (["suite=polyp_seg", "--multirunn"], "did you mean: --multirun"),
        (["suite=polyp_seg", "--config-dir", "nowhere"], "--config-dir"),
        (["suite=polyp_seg", "suite_dir=nowhere"], "suite_dir"),
        (["suite=polyp_seg_folder"], "data=PATH"),
        (["suite=polyp_seg_folder", "data=nowhere"], "an existing folder"),
        (["suite=polyp_seg", "data=."], "type suite=polyp_seg_folder"),
        (["suite=adversarial_gap", "data=."], "medtest list suites"),
        (["suite=polyp_seg", "checkpoint=a", "model=[pranet,ssformer]"], "systems.pranet.checkpoint"),
        (["suite=polyp_seg", "model=pranet", "checkpoint=nowhere.pth"], "nowhere.pth"),
        (["suite=polyp_seg", "device=gpu"], "CUDA"),
        (["suite=polyp_seg", "only=blur"], "relation:ID"),
    ],
)
def test_mistakes_end_with_2_and_one_message(
    typed: list[str], words: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*typed) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert "Traceback" not in shown.err + shown.out
    assert list(work.iterdir()) == []


def test_run_py_prints_the_same(work: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "suite=polyp_seg", "limt=3"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "did you mean: limit" in done.stderr


def test_a_plan_names_cells_counts_and_intervals(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suite=good", "suite_dir=../suites", "plan=true") == 0
    shown = capsys.readouterr().out
    assert "Seeds: phantoms 4" in shown
    assert "4 source and 16 follow-up cases per system: 20 cases, 20 in all" in shown  # 3 cells and the floor
    assert "0 of 4: 0–49 %" in shown  # Wilson: z²/(n + z²) = 3.841/7.841
    assert "pranet" in shown
    assert list(work.iterdir()) == []


def test_a_plan_refuses_what_a_run_refuses(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing reference, and one that has no use."""
    assert run("suite=wce", "plan=true", "limit=1", "reference=dsinett") == 2
    message = capsys.readouterr().err
    assert (
        message.startswith("1 mistake:\ncommand line: reference\n  found:   dsinett\n")
        and "did you mean: dsinet" in message
    )
    assert run("suite=wce", "plan=true", "limit=1", "reference=dsinet") == 0
    assert run("suite=good", "suite_dir=../suites", "plan=true", "reference=pranet") == 2
    assert "only classifiers" in capsys.readouterr().err


def test_a_plan_lists_the_differences_it_can_show(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suite=good", "suite_dir=../suites", "plan=true") == 0
    shown = capsys.readouterr().out
    assert "Differences between two runs" in shown and "Worst case: every case differs" in shown
    assert run("suite=good", "suite_dir=../suites", "plan=true", "power.like=good/nothing") == 2
    output = capsys.readouterr()
    assert "power.like" in output.err and "can show" not in output.out


def test_a_plan_of_a_part(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suite=good", "suite_dir=../suites", "plan=true", "limit=2", "only=relation:blur,severity:2") == 0
    shown = capsys.readouterr().out
    assert "2 source and 2 follow-up cases per system: 4 cases of 20 in the suite" in shown
    assert "text" not in shown.partition("relation ")[2].partition("system")[0]


def test_a_sweep_lists_every_job_and_ends_with_the_gravest(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", "suite=bad,good", "suite_dir=../suites", "plan=true") == 2
    shown = capsys.readouterr()
    assert "blurr" in shown.err
    summary = shown.out.partition("2 jobs")[2]
    assert re.search(r"0\s+suite=bad.*mistake", summary)
    assert re.search(r"1\s+suite=good.*done", summary)
    assert list(work.iterdir()) == []


def test_every_suite_of_a_folder(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "suites" / "bad.yaml").unlink()
    some = "suite=glob([folder,good,polyp_seg_folder,polyp_seg_published])"
    assert run("-m", some, "suite_dir=../suites", "plan=true", "limit=1") == 0
    summary = capsys.readouterr().out.partition(" jobs")[2]
    assert re.search(r"suite=folder .*not run.*data=PATH", summary)
    assert re.search(r"suite=good .*done", summary)
    assert re.search(r"suite=polyp_seg_folder .*not run", summary)
    assert re.search(r"suite=polyp_seg_published .*done", summary)


@pytest.mark.slow
def test_every_suite_there_is_is_planned_by_one_line(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "suites" / "bad.yaml").unlink()
    assert run("-m", "suite=glob(*)", "suite_dir=../suites", "plan=true", "limit=1", "model=pranet") == 0
    summary = capsys.readouterr().out.partition(" jobs")[2]
    for name in suite_names([suites_folder(), work.parent / "suites"]):
        assert re.search(rf"suite={name} .*(done|not run)", summary), name


def test_suites_of_a_folder_for_other_systems_are_not_run(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work.parent / "suites" / "bad.yaml").unlink()
    typed = ["-m", "suite=glob([de*,polyp_seg])", "suite_dir=../suites", "plan=true", "limit=1", "model=pranet"]
    assert run(*typed) == 0
    summary = capsys.readouterr().out.partition(" jobs")[2]
    assert re.search(r"suite=denoising .*not run.*one that gives an image", summary)
    assert re.search(r"suite=polyp_seg .*done", summary)
    assert run("suite=denoising", "model=pranet", "plan=true") == 2
    assert "found:   a system that gives a mask" in capsys.readouterr().err


def test_sweeps_over_models_and_thresholds(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["-m", "suite=good", "suite_dir=../suites", "plan=true"]
    assert run(*typed, "model=pranet,ssformer", "oracles.primary.threshold=0.25,0.5") == 0
    shown = capsys.readouterr().out
    assert "4 jobs" in shown
    assert shown.count("falls by more than 0.5 ") == 2


def test_one_misspelt_system_keeps_no_other_job_from_running(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", "suite=good", "suite_dir=../suites", "plan=true", "model=pranet,ssformr,PraNet") == 2
    shown = capsys.readouterr()
    assert "did you mean: ssformer" in shown.err
    assert "did you mean: pranet" in shown.err
    summary = shown.out.partition("3 jobs")[2]
    assert re.search(r"0\s+.*model=pranet\s+done", summary)
    assert re.search(r"1\s+.*model=ssformr\s+mistake", summary)
    assert re.search(r"2\s+.*model=PraNet\s+mistake", summary)


def test_a_misspelt_system_is_one_mistake_of_model(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suite=good", "suite_dir=../suites", "model=[pranet,ssformr]") == 2
    message = capsys.readouterr().err
    assert message.startswith("1 mistake:\ncommand line: model\n  found:   ssformr\n")
    assert run("suite=good", "suite_dir=../suites", "model=ssformr") == 2
    assert capsys.readouterr().err.startswith("1 mistake:\ncommand line: model\n")


def test_ids_that_begin_with_a_digit_are_swept_over(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = SUITE.replace("blur: {severities: [1, 2]}", "3d: {relation: blur, severities: [1, 2]}")
    (work.parent / "suites" / "good.yaml").write_text(suite)
    typed = ["-m", "suite=good", "suite_dir=../suites", "plan=true"]
    assert run(*typed, "relations.3d.severities=[1],[1,3,5]", "relations.3d.repeats=choice(1,2)") == 0
    shown = capsys.readouterr().out
    assert "4 jobs" in shown
    cells = [line.split()[2:-1] for line in shown.splitlines() if re.match(r"3d +motion", line)]
    assert [line[: line.index("0")] for line in cells] == [
        ["1", "1", "4", "4"],
        ["1", "2", "8", "8"],
        ["1", "3", "5", "1", "12", "4"],
        ["1", "3", "5", "2", "24", "8"],
    ]


def test_a_sweeper_of_a_team_s_own_folder(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweeper's configuration may name any of Hydra's keys, those of the suite included."""
    folder = work.parent / "conf" / "hydra" / "sweeper"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("defaults: [basic]\nparams: {seed: '1,2', model: 'pranet,ssformer'}\n")
    typed = ["-m", "suite=good", "suite_dir=../suites", "plan=true", "--config-dir", str(work.parent / "conf")]
    assert run(*typed, "hydra/sweeper=mine") == 0
    shown = capsys.readouterr().out
    assert "4 jobs" in shown
    assert re.search(r"3\s+seed=2 model=ssformer suite=good .*done", shown)


def test_a_sweep_that_cannot_begin_reports_that_nothing_was_run(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", "suite=good", "suite_dir=../suites", "plan=true", "tracking=local,nowhere") == 2
    shown = capsys.readouterr()
    assert "did you mean" in shown.err or "local, none" in shown.err
    assert "no job was run" in shown.err


def test_a_job_never_writes_hydra_s_folders(work: Path) -> None:
    assert run("suite=good", "suite_dir=../suites", "plan=true") == 0
    assert run("-m", "suite=good", "suite_dir=../suites", "plan=true", "limit=1,2") == 0
    assert list(work.iterdir()) == []


def test_hydra_s_own_flags_pass_through(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--cfg", "job", "suite=good", "suite_dir=../suites") == 0
    assert "severities:" in capsys.readouterr().out
    assert run("--hydra-help", "suite=good", "suite_dir=../suites") == 0
    assert "Hydra" in capsys.readouterr().out


def test_flags_may_be_anywhere(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suite=good", "suite_dir=../suites", "-m", "plan=true", "limit=1,2") == 0
    assert "2 jobs" in capsys.readouterr().out


def test_the_gravest_exit_code() -> None:
    assert gravest([0, 1, 4, 5, 3, 2, 130]) == 130
    assert gravest([0, 1, 4, 5, 3, 2]) == 2
    assert gravest([0, 1, 4, 5, 3]) == 3
    assert gravest([0, 1, 4, 5]) == 5
    assert gravest([0, 1, 4]) == 4
    assert gravest([0, 1]) == 1
    assert gravest([0, 0]) == 0
    assert gravest([]) == 0
    assert gravest([2, DEFECT]) == DEFECT


@pytest.mark.parametrize(
    ("distribution", "command"),
    [
        ("debian", "apt-get install libgl1 libglib2.0-0"),
        ("linuxmint ubuntu debian", "apt-get install libgl1 libglib2.0-0"),
        ("rocky rhel centos fedora", "dnf install mesa-libGL glib2"),
        ("alpine", "apk add mesa-gl glib"),
    ],
)
def test_what_to_install_when_opencv_cannot_start(distribution: str, command: str) -> None:
    advice = opencv_advice("libGL.so.1: cannot open shared object file: No such file or directory", distribution)
    assert command in advice
    assert "opencv-python-headless" in advice
    others = opencv_advice("libgthread-2.0.so.0: cannot open shared object file", "")
    assert "apt-get" in others
    assert "apk" in others


def test_a_missing_system_library_gives_a_message_without_traceback(tmp_path: Path) -> None:
    (tmp_path / "cv2.py").write_text(
        "raise ImportError('libGL.so.1: cannot open shared object file: No such file or directory')\n"
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "suite=polyp_seg"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "libGL.so.1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["run", "suite=polyp_seg", "plan=true"], ["list", "suites"]])
def test_a_bug_is_reported_as_a_bug_and_not_as_a_gate(command: list[str], tmp_path: Path) -> None:
    """Python ends with 1 for an uncaught error, and 1 means that a gate failed."""
    (tmp_path / "sitecustomize.py").write_text(
        "from medtest.core.files import paths\n"
        "def broken():\n    raise LookupError('a bug')\n"
        "paths.suites_folder = broken\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "medtest", *command],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == DEFECT
    assert "LookupError: a bug" in done.stderr
    assert "Please report it" in done.stderr


def test_telemetry_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.cli.bootstrap import quiet_libraries

    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    quiet_libraries()
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_a_python_without_the_packages_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)  # as an import fails where it is not installed
    assert main(["suite=polyp_seg", "plan=true"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert sys.executable in message and "make install" in message
