"""A package from outside brings a kind of answer of its own, and nothing of ours is edited.

The package is written from the code blocks of docs/add-a-task.md, so the page is tested too.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-task.md").read_text(encoding="utf-8")
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
    """Write, build and install the package of the page into a folder of its own."""
    source, target = tmp_path_factory.mktemp("medtest-boxes"), tmp_path_factory.mktemp("site")
    (source / "medtest_boxes").mkdir()
    (source / "medtest_boxes" / "__init__.py").touch()
    files = re.findall(
        r"^`([\w./]+\.(?:toml|py|yaml))`[^\n]*\n\n```\w+\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE
    )
    assert len(files) == 7
    for name, content in files:
        (source / name).write_text(content, encoding="utf-8")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*install, str(target), str(source)], check=True, capture_output=True)
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
    """A folder in which the page's suite ran."""
    home = tmp_path_factory.mktemp("home")
    (suite,) = (text for text in re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL) if text.startswith("name:"))
    (home / "bright_boxes.yaml").write_text(suite, encoding="utf-8")
    (home / "shaded_questions.yaml").write_text(QUESTIONS, encoding="utf-8")
    said = run(site, home, "run", "suite=bright_boxes", f"suite_dir={home}", "device=cpu")
    assert "Traceback" not in said
    return home


def folder_of(home: Path) -> Path:
    (records,) = home.glob("outputs/bright_boxes/bright_parts/*/records.parquet")
    return records.parent


def test_a_foreign_task_is_run_and_judged_by_its_own_oracle(home: Path) -> None:
    table = pd.read_parquet(folder_of(home) / "records.parquet")
    assert len(table) == 4 * (1 + 1 + 2 + 1)
    assert set(table["verdict"]) == {"PASS", "FAIL"}
    sources = table[table["relation"] == "source"]
    assert (sources["overlap"] > 0.97).all() and sorted(sources["boxes"]) == [1, 1, 2, 2]
    dark = table[(table["relation"] == "shade") & (table["severity"] == 5)]
    assert (dark["verdict"] == "FAIL").all() and (dark["boxes"] == 0).all()
    mild = table[(table["relation"] == "shade") & (table["severity"] == 1)]
    assert (mild["verdict"] == "PASS").all() and (mild["self_overlap"] > 0.99).all()
    assert not [name for name in table.columns if name.startswith("factor_polyp")]


def test_its_tables_section_and_strips_are_there_and_tracked(home: Path) -> None:
    folder = folder_of(home)
    rates = pd.read_csv(folder / "tables" / "efr.csv")
    assert set(rates["score"]) == {"overlap"}
    own = pd.read_csv(folder / "tables" / "boxes.csv").set_index("relation")
    assert own.loc["shade", "source_boxes"] == 1.5 and own.loc["shade", "boxes"] == 0.75
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<section id="boxes"><h2>Boxes</h2>' in page and '<a href="#boxes">Boxes</a>' in page
    assert '<td class="left">shade</td><td>1.50</td><td>0.75</td>' in page
    assert list((folder / "samples").glob("*.png"))
    with contextlib.closing(sqlite3.connect(home / "mlruns" / "mlflow.db")) as store:
        states = [state for (state,) in store.execute("SELECT status FROM runs WHERE name LIKE '%bright_parts%'")]
    assert states and set(states) == {"FINISHED"}
    assert list((home / "mlruns").rglob("boxes.*"))


def test_a_second_call_runs_nothing_and_tables_are_made_without_the_system(site: Path, home: Path) -> None:
    folder = folder_of(home)
    before = (folder / "tables" / "boxes.csv").read_bytes()
    run(site, home, "run", "suite=bright_boxes", f"suite_dir={home}", "device=cpu", "track=false")
    assert (folder / "tables" / "boxes.csv").read_bytes() == before
    assert yaml.safe_load((folder / "run.json").read_text())["cases_executed"] in (0, 20)
    run(site, home, "tables", str(folder))
    assert (folder / "tables" / "boxes.csv").read_bytes() == before


def test_an_effect_that_no_expectation_names_is_said_in_a_suite_of_questions(site: Path, home: Path) -> None:
    said = run(site, home, "run", "suite=shaded_questions", f"suite_dir={home}", "plan=true")
    assert "Relation shade has the effect shade, of which no expectation speaks" in " ".join(said.split())


def test_a_system_of_another_task_is_refused_in_words(site: Path, home: Path) -> None:
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
    assert done.returncode == 2 and "a system that answers a mask" in words and "one that answers a boxes" in words
