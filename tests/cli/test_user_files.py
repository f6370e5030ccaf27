"""Options with a command's target do not overwrite files of the user."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import medtest
from medtest.cli.app import run_app
from medtest.core.cases import Image
from medtest.core.errors import UserMistakes
from medtest.core.files.written import LIST
from medtest.report.compared.page import FILES

SMALL = ["suite=polyp_seg", "seeds.phantoms.count=1", "relations=[blur]"]
ANSWERS = "question,answer\nIs there a polyp?,yes\n"
SERIES = "noise,1,2,3\nA,0.9,0.8,0.6\nB,0.8,0.7,0.7\n"


def reddish(image: Image) -> np.ndarray:
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.clip((red - green) / 128, 0, 1)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text(ANSWERS)
    (tmp_path / "series.csv").write_text(SERIES)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["sheet", *SMALL, "--out", "out/mine.png"], "out/mine.png"),
        (["replay", *SMALL, "phantoms/phantom-0000/blur_s3_f0_r0", "--out", "out"], "out/followup.png"),
        (["replay", *SMALL, "phantoms/phantom-0000/blur_s3_f0_r0", "--out", "out"], "out/params.json"),
        (["alpha-sigma", "series.csv", "--out", "out", "--csv"], "out/alpha_sigma.csv"),
        (["alpha-sigma", "series.csv"], "tab_rob.tex"),
        (["export", *SMALL, "relations.blur.severities=[1]", "to=out"], "out/mine.png"),
        (["data", "questions", "suite=medvqa", "limit=1", "to=out"], "out/images/mine.png"),
        (["data", "answers", "answers.csv", "--out", "out/read.csv"], "out/read.csv"),
        (["train", "model=pranet", "out=out"], "out/mine.npz"),
        (["train", "model=pranet", "out=out", "fresh=true"], "out/mine.npz"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)
def test_a_users_file_stays(work: Path, command: Sequence[str], file: str) -> None:
    path = work / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = sorted(work.rglob("*"))
    with pytest.raises(UserMistakes, match="which holds (something else|other files)|which medtest did not write"):
        run_app(command)
    assert path.read_text() == "mine"
    assert sorted(work.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["sheet", *SMALL, "--out", "out/mine.png"],
        ["replay", *SMALL, "phantoms/phantom-0000/blur_s3_f0_r0", "--out", "out"],
        ["alpha-sigma", "series.csv", "--out", "out", "--csv"],
        ["export", *SMALL, "relations.blur.severities=[1]", "to=out"],
        ["data", "questions", "suite=medvqa", "limit=1", "to=out"],
        ["data", "answers", "answers.csv", "--out", "out/read.csv"],
    ],
    ids=lambda value: " ".join(value[:2]),
)
def test_the_same_command_writes_its_own_files_again(work: Path, command: Sequence[str]) -> None:
    (work / "out").mkdir()
    assert run_app(command) == 0
    first = {path: path.read_bytes() for path in (work / "out").rglob("*") if path.is_file()}
    assert run_app(command) == 0
    assert {path: path.read_bytes() for path in (work / "out").rglob("*") if path.is_file()} == first
    changed = next(path for path in first if path.name not in (LIST, "questions.json") and path.suffix != ".txt")
    if command[0] != "export" and command[1] != "questions":  # those go on in a folder of their own
        changed.write_text("changed since")
        with pytest.raises(UserMistakes, match="changed since"):
            run_app(command)
        assert changed.read_text() == "changed since"


@pytest.mark.slow
def test_a_comparison_does_not_write_over_a_users_page(work: Path) -> None:
    for name in ("one", "two"):
        options = {"fingerprint": name, "home": work / name, "track": False, "workers": 1, "limit": 1}
        medtest.run("polyp_seg", reddish, relations={"blur": {"severities": [1]}}, **options)
    runs = [str(next((work / name).glob("outputs/*/*/*/run.json")).parent) for name in ("one", "two")]
    (work / "out").mkdir()
    (work / "out" / "compare.html").write_text("mine")
    command = ["compare", *runs, "--strips", "0", "--out", "out"]
    with pytest.raises(UserMistakes, match=r"compare\.html, which medtest did not write"):
        run_app(command)
    assert [path.name for path in (work / "out").iterdir()] == ["compare.html"]
    (work / "out" / "compare.html").rename(work / "out" / "compare_conditions.csv")
    with pytest.raises(UserMistakes, match=r"compare_conditions\.csv, which medtest did not write"):
        run_app(command)
    (work / "out" / "compare_conditions.csv").unlink()
    assert run_app(command) == 1  # one image shows no difference
    assert run_app(command) == 1
    assert {path.name for path in (work / "out").iterdir() if path.is_file()} >= set(FILES)


@pytest.mark.slow
def test_a_users_files_in_a_run_stay_and_do_not_travel(work: Path) -> None:
    """They go neither into MLflow nor into a pack; their user put them there for readers of the folder."""
    options = {"fingerprint": "one", "home": work / "home", "workers": 1, "limit": 1}
    folder = medtest.run("polyp_seg", reddish, relations={"blur": {"severities": [1]}}, **options)
    place = folder.outcome.systems[0].folder
    user_files = [place / "tables" / "mine.csv", place / "samples" / "mine.png", place / "notes.txt"]
    for path in user_files:
        path.write_text("mine")
    assert run_app(["tables", str(place)]) == 0
    medtest.run("polyp_seg", reddish, relations={"blur": {"severities": [1]}}, **{**options, "limit": 2})  # new strips
    assert [path.read_text() for path in user_files] == ["mine"] * 3
    assert run_app(["pack", f"run={place}", f"to={work / 'run.zip'}"]) == 0
    with zipfile.ZipFile(work / "run.zip") as archive:
        packed = archive.namelist()
    assert any(name.endswith(".png") for name in packed)
    sent = [path.name for path in (work / "home" / "mlruns").rglob("*")]
    assert "efr.csv" in sent or "report.html" in sent
    assert not [name for name in (*packed, *sent) if Path(name).name in ("mine.csv", "mine.png", "notes.txt", LIST)]
