"""The commands around a run: check, list, sheet, replay, tables."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.main import get_command

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_parts import invocation, leave_run, make_suite

from medtest.report.finish import finish

SUITE = """\
name: team
version: "1"
seed: 1
seeds: {mine: {source: image_mask_folders}}
relations: {blur: {severities: [1, 3]}, text: {severities: [2]}}
systems: [pranet]
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a suite and two images with masks, whose names hold signs that settings use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    odd = tmp_path / "a=b"
    odd.mkdir()
    (odd / "team.yaml").write_text(SUITE)
    for kind in ("images", "masks"):
        (tmp_path / "data" / kind).mkdir(parents=True)
    for seed, name in enumerate(("frame=1", "frame=2")):
        pixels = np.random.default_rng(seed).integers(90, 150, (128, 160, 3), dtype=np.uint8)
        pixels[30:80, 40:90] += np.uint8(60)  # a lesion that blur does not hide
        image = Image.fromarray(pixels)
        mask = Image.new("L", image.size)
        mask.paste(255, (40, 30, 90, 80))
        image.save(tmp_path / "data" / "images" / f"{name}.png")
        mask.save(tmp_path / "data" / "masks" / f"{name}.png")
    return tmp_path


def test_check_takes_files_in_folders_with_any_sign_and_settings(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(["check", "a=b/team.yaml"]) == 0
    assert "team 1: 3 relations, 4 cells, systems pranet" in capsys.readouterr().out
    assert run_app(["check", "a=b/team.yaml", "polyp_seg", "~relations.text", "relations.blur.severities=[1]"]) == 0
    shown = capsys.readouterr().out
    assert "team 1: 2 relations, 2 cells" in shown
    assert "polyp_seg 1.0: 9 relations, 37 cells" in shown


def test_check_ends_with_2_and_names_every_mistake_of_every_suite(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "worse.yaml").write_text(SUITE.replace("blur", "blurr").replace("version", "verzion"))
    assert run_app(["check", "worse.yaml", "polyp_seg", "polyp_sag"]) == 2
    shown = capsys.readouterr().out
    for words in ("did you mean: blur", "did you mean: version", "✓ polyp_seg", "did you mean: polyp_seg"):
        assert words in shown


def test_a_team_s_systems_are_listed(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "conf" / "model").mkdir(parents=True)
    (work / "conf" / "model" / "ours.yaml").write_text("use: pranet\nsummary: the third release\n")
    assert run_app(["list", "systems", "--config-dir", "conf"]) == 0
    shown = capsys.readouterr().out
    assert "ours" in shown and "release" in shown and "ssformer" in shown


def test_kinds_of_answers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["list", "tasks"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("answer", "image", "label", "mask", "region"))


def test_a_case_is_replayed_from_its_address(work: Path) -> None:
    address = "mine/frame_2/blur_s3_f0_r0"
    assert run_app(["replay", "suite=a=b/team.yaml", "data=data", address, "--out", "again"]) == 0
    assert json.loads((work / "again" / "params.json").read_text())["address"] == address
    with pytest.raises(UserMistakes, match="mistake") as caught:
        run_app(["replay", "suite=a=b/team.yaml", "data=data", "mine/frame_3/blur_s3_f0_r0"])
    assert "mine/frame_1" in str(caught.value)


NET = """\
import numpy as np


def segment(image):
    return image.mean(axis=2) / 255
"""


def test_a_replay_with_a_model_shows_truth_both_answers_and_the_score(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "net.py").write_text(NET)
    tokens = ["suite=a=b/team.yaml", "data=data", "mine/frame_2/blur_s3_f0_r0", "--out", "again"]
    assert run_app(["replay", *tokens, "model=callable", "target=net.py:segment", "device=cpu"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"strip-\S+\.png: \S+, (PASS|FAIL): dice 0\.\d{3} on the source, 0\.\d{3} on the follow-up", output
    )
    (strip,) = (work / "again").glob("strip-*.png")
    with Image.open(strip) as picture:
        assert picture.width > 4 * picture.height


def test_an_export_prints_the_command_for_its_results(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["suite=a=b/team.yaml", "data=data", "relations.blur.severities=[1]", "limit=1", "model=pranet", "to=out"]
    assert run_app(["export", *typed]) == 0
    back = "suite=a=b/team.yaml data=data 'relations.blur.severities=[1]' limit=1 model=predictions folder=YOUR_MAPS"
    assert back in capsys.readouterr().out
    assert (work / "out" / "mine" / "frame_1" / "blur_s1_f0_r0.png").is_file()
    assert not (work / "out" / "mine" / "frame_2.png").exists()


def test_a_sheet_of_any_seed(work: Path) -> None:
    typed = ["sheet", "suite=a=b/team.yaml", "data=data", "--out", "sheet.png", "--cell", "64"]
    assert run_app([*typed, "--seed", "mine/frame_2"]) == 0
    with Image.open("sheet.png") as sheet:
        assert min(sheet.size) > 3 * 64
    with pytest.raises(UserMistakes, match="mistake"):
        run_app([*typed, "--index", "2"])


@pytest.mark.slow
def test_tables_are_made_again_of_runs_and_of_no_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = make_suite()
    outcome = leave_run(tmp_path, suite, ("alpha", "beta"), seeds=6)
    finish(suite, invocation(tmp_path), outcome)
    finish(suite, invocation(tmp_path), outcome, view="0123456789abcdef")
    folder = outcome.systems[0].folder
    copy = tmp_path / "mlruns" / "1" / "2" / "artifacts"  # as MLflow keeps what a run logged
    copy.mkdir(parents=True)
    for name in ("records.parquet", "run.json", "suite.yaml"):
        (copy / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "outputs" / "a training").mkdir()
    (tmp_path / "outputs" / "a training" / "run.json").write_text("{}")
    before = {path: path.read_bytes() for path in folder.rglob("tables/*.csv")}
    assert {path.parents[1] for path in before} == {folder, folder / "views" / "0123456789abcdef"}
    for path in before:
        path.unlink()
    assert run_app(["tables", str(tmp_path)]) == 0
    assert {path: path.read_bytes() for path in folder.rglob("tables/*.csv")} == before
    assert sorted(path.name for path in copy.iterdir()) == ["records.parquet", "run.json", "suite.yaml"]
    assert capsys.readouterr().out.count("report.html") == 4  # two systems and their views


def test_help_groups_its_commands_and_cuts_no_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from medtest.cli.app import app
    from medtest.cli.terminal import HEADINGS

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    assert run_app(["--help"]) == 0
    page = capsys.readouterr().out
    places = [page.index(f"{heading}:") for heading in HEADINGS]
    assert places == sorted(places) and "Commands:" not in page
    listed = page[places[0] :]
    assert "..." not in listed and max(map(len, page.splitlines())) <= 80
    commands = get_command(app).commands
    assert len(commands) >= 17
    whole = " ".join(page.split())
    for name, command in commands.items():
        assert f"{name} {' '.join((command.short_help or command.help or '').split())}" in whole
