"""Third-party packages bring a kind of answer and a reader, without an edit of medtest.

They are written from the code blocks of docs/add-a-task.md and docs/add-a-reader.md, so the pages are tested too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-task.md").read_text(encoding="utf-8")
READER_PAGE = (ROOT / "docs" / "add-a-reader.md").read_text(encoding="utf-8")
QUESTIONS = """\
name: shaded_questions
version: "1"
seed: 5
seeds: {question_phantoms: {count: 1}}
relations: {shade: {severities: [1]}}
systems: [simlab]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write, build and install the package of the page into its own folder."""
    target = tmp_path_factory.mktemp("site")
    sources = []
    for name, page, count in (("boxes", PAGE, 7), ("cells", READER_PAGE, 4)):
        source = tmp_path_factory.mktemp(f"medtest-{name}")
        (source / f"medtest_{name}").mkdir()
        (source / f"medtest_{name}" / "__init__.py").touch()
        files = re.findall(
            r"^`([\w./]+\.(?:toml|py|yaml))`[^\n]*\n\n```\w+\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE
        )
        assert len(files) == count
        for place, content in files:
            (source / place).write_text(content, encoding="utf-8")
        sources.append(str(source))
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*install, str(target), *sources], check=True, capture_output=True)
    return target


def run(site: Path, home: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "MEDTEST_HOME": str(home), "COLUMNS": "200"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning:medtest_boxes", "-m", "medtest", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=home,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def home(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the page's suite in a folder."""
    home = tmp_path_factory.mktemp("home")
    for name, page in (("bright_boxes", PAGE), ("box_places", READER_PAGE)):
        blocks = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
        (suite,) = (text for text in blocks if text.startswith("name:"))
        (home / f"{name}.yaml").write_text(suite, encoding="utf-8")
    (home / "shaded_questions.yaml").write_text(QUESTIONS, encoding="utf-8")
    output = run(site, home, "run", "suite=bright_boxes", f"suite_dir={home}", "device=cpu")
    assert "Traceback" not in output
    return home


def folder_of(home: Path) -> Path:
    (records,) = home.glob("outputs/bright_boxes/bright_parts/*/records.parquet")
    return records.parent


def test_a_foreign_task_is_run_and_judged_by_its_own_oracle(home: Path) -> None:
    table = pd.read_parquet(folder_of(home) / "records.parquet")
    assert len(table) == 4 * (1 + 1 + 2 + 1 + 1)
    assert set(table["verdict"]) == {"PASS", "FAIL"}
    sources = table[table["relation"] == "source"]
    assert (sources["overlap"] > 0.97).all() and sorted(sources["boxes"]) == [1, 1, 2, 2]
    dark = table[(table["relation"] == "shade") & (table["severity"] == 5)]
    assert (dark["verdict"] == "FAIL").all() and (dark["boxes"] == 0).all()
    mild = table[(table["relation"] == "shade") & (table["severity"] == 1)]
    assert (mild["verdict"] == "PASS").all() and (mild["self_overlap"] > 0.99).all()
    assert not [name for name in table.columns if name.startswith("factor_polyp")]
    assert (sources["near"] == 1).all() and (dark["distance"] == 1).all() and (dark["near"] == 0).all()


def test_an_answer_that_follows_a_moved_lesion_passes(home: Path) -> None:
    table = pd.read_parquet(folder_of(home) / "records.parquet").set_index(["seed_id", "relation"])
    moved = table.xs("corruption_translate", level="relation")
    assert (moved["verdict"] == "PASS").all()
    assert (moved["overlap"] > 0.9).all() and (moved["self_overlap"] > 0.9).all() and (moved["distance"] < 0.01).all()
    assert (moved["expected_boxes"] != table.xs("source", level="relation")["expected_boxes"]).all()


def test_the_strip_and_the_sheet_outline_the_expected_boxes(site: Path, home: Path) -> None:
    from PIL import Image

    index = json.loads((folder_of(home) / "samples" / "index.json").read_text())
    (name, *_) = (entry["file"] for entry in index if entry["relation"] == "corruption_translate")
    run(site, home, "sheet", "suite=bright_boxes", f"suite_dir={home}", "--out", str(home / "sheet.png"))
    for file in (folder_of(home) / "samples" / name, home / "sheet.png"):
        with Image.open(file) as picture:
            pixels = np.asarray(picture.convert("RGB")).astype(int)
        assert (np.abs(pixels - (0, 230, 118)).max(axis=-1) < 60).sum() > 100, file.name


def test_records_are_judged_again_under_another_setting_of_the_oracle(site: Path, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "outputs", tmp_path / "outputs")
    words_ = ("suite=bright_boxes", f"suite_dir={home}", "device=cpu", "track=false", "oracles.primary.score=near")
    near, far = (run(site, tmp_path, "run", *words_, f"oracles.reach={reach}") for reach in (0.1, 0.00001))
    for output, mean in ((near, "near 1.000"), (far, "near 0.000")):
        assert "No case to run" in output and mean in output


def test_a_raised_revision_of_its_oracle_judges_stored_answers_again(site: Path, home: Path, tmp_path: Path) -> None:
    before = pd.read_parquet(folder_of(home) / "records.parquet")
    shutil.copytree(home / "outputs", tmp_path / "home" / "outputs")
    shutil.copytree(site, tmp_path / "site")
    oracle, system = (tmp_path / "site" / "medtest_boxes" / name for name in ("oracle.py", "system.py"))
    text = oracle.read_text(encoding="utf-8")
    text = text.replace("revision: ClassVar[int] = 1", "revision: ClassVar[int] = 2")
    oracle.write_text(text.replace('{"overlap": overlap(', '{"overlap": 0.5 * overlap('), encoding="utf-8")
    text = system.read_text(encoding="utf-8")
    system.write_text(text.replace("return [self._boxes", "raise RuntimeError('asked'); return [self._boxes"))
    words_ = ("suite=bright_boxes", f"suite_dir={home}", "device=cpu", "track=false")
    plan = run(tmp_path / "site", tmp_path / "home", "run", *words_, "plan=true")
    assert "24 finished cases would be judged again from stored answers (oracle revision 2)" in " ".join(plan.split())
    output = " ".join(run(tmp_path / "site", tmp_path / "home", "run", *words_).split())
    assert "24 finished cases judged again from stored answers" in output and "No case to run" in output
    after = pd.read_parquet(folder_of(tmp_path / "home") / "records.parquet")
    assert set(before["oracle_revision"]) == {1} and set(after["oracle_revision"]) == {2}
    assert (after["overlap"] == 0.5 * before["overlap"]).all() and (after["near"] == before["near"]).all()
    assert after["elapsed_ms"].tolist() == before["elapsed_ms"].tolist()


def test_its_tables_section_and_strips_are_there_and_tracked(home: Path) -> None:
    folder = folder_of(home)
    rates = pd.read_csv(folder / "tables" / "efr.csv")
    assert set(rates["score"]) == {"overlap", "near"}
    own = pd.read_csv(folder / "tables" / "boxes.csv").set_index("relation")
    assert own.loc["shade", "source_boxes"] == 1.5 and own.loc["shade", "boxes"] == 0.75
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<section id="boxes"><details><summary><h2>Boxes</h2>' in page and '<a href="#boxes">Boxes</a>' in page
    assert '<td class="left">shade</td><td>1.50</td><td>0.75</td>' in page
    assert list((folder / "samples").glob("*.png"))
    with contextlib.closing(sqlite3.connect(home / "mlruns" / "mlflow.db")) as store:
        states = [state for (state,) in store.execute("SELECT status FROM runs WHERE name LIKE '%bright_parts%'")]
    assert states and set(states) == {"FINISHED"}
    archives = [zipfile.ZipFile(path).namelist() for path in (home / "mlruns").rglob("files.zip")]
    assert any("tables/boxes.csv" in names for names in archives)


def test_a_second_call_runs_nothing_and_tables_are_made_without_the_system(site: Path, home: Path) -> None:
    folder = folder_of(home)
    before = (folder / "tables" / "boxes.csv").read_bytes()
    run(site, home, "run", "suite=bright_boxes", f"suite_dir={home}", "device=cpu", "track=false")
    assert (folder / "tables" / "boxes.csv").read_bytes() == before
    assert yaml.safe_load((folder / "run.json").read_text())["cases_executed"] in (0, 24)
    run(site, home, "tables", str(folder))
    assert (folder / "tables" / "boxes.csv").read_bytes() == before


def test_a_foreign_reader_reads_answers_and_its_oracle_judges_the_readings(site: Path, home: Path) -> None:
    assert "box_cells" in run(site, home, "list", "readers")
    run(site, home, "run", "suite=box_places", f"suite_dir={home}", "device=cpu", "track=false")
    (records,) = home.glob("outputs/box_places/bright_parts/*/records.parquet")
    folder, before = records.parent, records.read_bytes()
    table = pd.read_parquet(records)
    assert "ERROR" not in set(table["verdict"])
    assert set(table.loc[table["relation"] == "source", "cells"]) == {"2-1", "2-1;3-3"}
    dark = table[(table["relation"] == "shade") & (table["severity"] == 5)]
    assert (dark["verdict"] == "FAIL").all() and dark["cells"].isna().all() and (dark["self_places"] == 0).all()
    assert set(pd.read_csv(folder / "tables" / "efr.csv")["score"]) == {"places"}
    with contextlib.closing(sqlite3.connect(home / "outputs" / ".answers" / "readings.sqlite")) as store:
        (stored,) = store.execute("SELECT COUNT(*) FROM answers").fetchone()
    assert 0 < stored == table["boxes_at"].nunique() < len(table)

    # Another grid: the records are read again for a view, no system is asked, and the records stay.
    command = ("run", "suite=box_places", f"suite_dir={home}", "device=cpu", "track=false", "oracles.reader.grid=5")
    output = " ".join(run(site, home, *command).split())
    assert f"box_cells read {stored} of {stored} different answers" in output and "No case to run" in output
    assert records.read_bytes() == before
    (view,) = (folder / "views").iterdir()
    readings = json.loads((view / "readings.json").read_text(encoding="utf-8"))
    cells = {columns["cells"] for columns in readings["columns"].values()}
    assert {"2-2", "2-2;4-4"} <= cells and not cells & {"2-1", "2-1;3-3"}
    rates = (view / "tables" / "efr.csv").read_bytes()
    run(site, home, "tables", str(folder))
    assert (view / "tables" / "efr.csv").read_bytes() == rates and records.read_bytes() == before


def test_an_effect_without_an_expectation_is_noted_in_a_suite_of_questions(site: Path, home: Path) -> None:
    output = run(site, home, "run", "suite=shaded_questions", f"suite_dir={home}", "plan=true")
    assert "Relation shade has the effect shade" in " ".join(output.split())


def test_a_system_of_another_task_is_refused_with_a_message(site: Path, home: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "MEDTEST_HOME": str(home), "COLUMNS": "200"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "medtest",
            "run",
            "suite=bright_boxes",
            f"suite_dir={home}",
            "model=pranet",
            "plan=true",
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=home,
        check=False,
    )
    words = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2 and "a system that gives a mask" in words and "one that gives boxes" in words
