"""Separately installed packages add a relation, a system and tables without a change of medtest's files.

They are written from the code blocks of docs/add-a-relation.md and docs/add-a-table.md, so the pages are tested too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SUITE = """\
name: foreign_parts
version: "1"
description: Parts of another package.
seed: 5
seeds: {phantoms: {count: 2}}
relations:
  vignette: {severities: [1, 5]}
  mirror: {}
  nudge: {}
systems: {redness: {threshold: 50}}
oracles: {primary: {score: dice, threshold: 0.25, against: source}}
"""


PROMPTS = """\
name: foreign_prompts
version: "1"
description: A relation of prompts of another package.
seed: 5
seeds: {made: {source: caption_phantoms, count: 6}}
relations: {recolour: {repeats: 2}}
systems: {simlab_images: {size: 128x128}}
oracles:
  oracle: scenes
  primary: {score: whole, against: source}
  reader: {use: nothing}
  figures: {pictures: none}
"""


SEES_NOTHING = """\
from medtest.readers.pictures.base import PictureReader
from medtest.core.scenes import Scene


class Nothing(PictureReader):
    def open(self, *, device, threads):
        pass

    def look(self, images, contents):
        return [Scene() for _ in images]
"""


BROKEN = """\
from medtest.results.installed import Table


class Broken(Table):
    def make(self, records):
        raise ValueError("no light")
"""


def _blocks(language: str, page: str = "add-a-relation.md") -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write, build and install the package of the docs into a separate folder."""
    source = tmp_path_factory.mktemp("medtest-vignette")
    package = source / "medtest_vignette"
    package.mkdir()
    (package / "__init__.py").touch()
    relation, moving, prompts, crafted, _, system = _blocks("python")
    (package / "nudge.py").write_text(crafted, encoding="utf-8")
    (package / "vignette.py").write_text(relation, encoding="utf-8")
    (package / "mirror.py").write_text(moving, encoding="utf-8")
    (package / "redness.py").write_text(system, encoding="utf-8")
    (package / "vignette.yaml").write_text(_blocks("yaml")[0], encoding="utf-8")
    (package / "recolour.py").write_text(prompts, encoding="utf-8")
    (package / "recolour.yaml").write_text(_blocks("yaml")[1], encoding="utf-8")
    (package / "nothing.py").write_text(SEES_NOTHING, encoding="utf-8")
    entry = '\n[project.entry-points."medtest.systems"]\nredness = "medtest_vignette.redness:Redness"\n'
    entry += '\n[project.entry-points."medtest.readers"]\nnothing = "medtest_vignette.nothing:Nothing"\n'
    (source / "pyproject.toml").write_text(_blocks("toml")[0] + entry, encoding="utf-8")
    tables = tmp_path_factory.mktemp("medtest-light")
    package = tables / "medtest_light"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "table.py").write_text(_blocks("python", "add-a-table.md")[0], encoding="utf-8")
    (package / "light.yaml").write_text(_blocks("yaml", "add-a-table.md")[0], encoding="utf-8")
    (package / "broken.py").write_text(BROKEN, encoding="utf-8")
    entry = 'broken = "medtest_light.broken:Broken"\nworst = "medtest_light.table:Light"\n'
    (tables / "pyproject.toml").write_text(_blocks("toml", "add-a-table.md")[0] + entry, encoding="utf-8")
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--target",
            str(target),
            str(source),
            str(tables),
        ],
        check=True,
        capture_output=True,
    )
    return target


def _run(site: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "MEDTEST_HOME": str(home), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "medtest", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=home,
        check=False,
    )


@pytest.mark.slow
def test_foreign_parts_are_listed(site: Path, tmp_path: Path) -> None:
    relations = _run(site, tmp_path, "list", "relations")
    assert "vignette" in relations.stdout and "medtest-vignette" in relations.stdout
    assert "the edge of the field gets darker" in relations.stdout
    assert "redness" in _run(site, tmp_path, "list", "systems").stdout
    tables = _run(site, tmp_path, "list", "tables").stdout
    assert "loss of Dice by the brightness of the source image" in tables and "medtest-light" in tables


@pytest.mark.slow
def test_the_schema_of_suites_names_foreign_parts(site: Path, tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator  # parses a grammar when it is imported, which takes seconds

    validator = Draft202012Validator(json.loads(_run(site, tmp_path, "schema").stdout))
    suite = json.loads(json.dumps(yaml.safe_load(SUITE)))
    assert [error.message for error in validator.iter_errors(suite)] == []
    suite["relations"]["vignette"]["severities"] = "all"
    assert not validator.is_valid(suite)
    assert validator.is_valid(yaml.safe_load(PROMPTS))


@pytest.mark.slow
def test_its_own_test_of_the_page_passes(site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_vignette.py").write_text(_blocks("python")[4], encoding="utf-8")
    program = """
import sys, pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "test_vignette.py"])
from medtest.testing import check_system, synthetic_seed
from medtest_vignette.redness import Redness, Settings
assert len(check_system(Redness("redness", Settings()), synthetic_seed())) == 2
assert "torch" not in sys.modules and "mlflow" not in sys.modules
sys.exit(code)
"""
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_foreign_parts_run(site: Path, tmp_path: Path) -> None:
    import pandas as pd

    suites = tmp_path / "team"
    suites.mkdir()
    (suites / "foreign_parts.yaml").write_text(SUITE, encoding="utf-8")
    done = _run(site, tmp_path, "run", "suite=foreign_parts", f"suite_dir={suites}")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (records,) = tmp_path.glob("outputs/foreign_parts/redness/*/records.parquet")
    table = pd.read_parquet(records)
    nudged = table[table["relation"] == "nudge"]
    assert (nudged["linf"] <= 4).all() and (nudged["crafted_on"] == "redness").all() and (nudged["queries"] == 11).all()
    assert (nudged["loss_after"] >= nudged["loss_before"]).all()
    assert len(list(records.parent.glob("crafted/images/*/*.png"))) == len(nudged) == 2
    assert sorted(table["relation"].unique()) == ["mirror", "nudge", "source", "unchanged", "vignette"]
    mirror = table[table["relation"] == "mirror"]
    assert (mirror["self_dice"] == 1.0).all() and (mirror["verdict"] == "PASS").all()  # the answer moved as well
    vignette = table[table["relation"] == "vignette"]
    assert sorted(vignette["scale"].unique()) == [15.0, 75.0]
    assert set(vignette["verdict"]) <= {"PASS", "FAIL", "SKIP"}

    # Their table is among medtest's; one that fails or has a name of medtest's gets a message and is left out.
    folder, output = records.parent, " ".join((done.stdout + done.stderr).split())
    light = (folder / "tables" / "light.csv").read_bytes()
    assert light.startswith(b"relation,light,cases,loss\n") and b"vignette" in light
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert (
        '<section id="light"><details><summary><h2>Loss by light</h2>' in page
        and '<a href="#light">Loss by light</a>' in page
    )
    notices = (
        "Table &#39;broken&#39; of the package medtest-light is left out: ValueError: no light",
        "Table &#39;worst&#39; of the package medtest-light is left out: the name belongs to a table of medtest",
    )
    assert all(words in page and words.replace("&#39;", "'") in output for words in notices), output
    (archive,) = (tmp_path / "mlruns").rglob("files.zip")
    assert "tables/light.csv" in zipfile.ZipFile(archive).namelist()
    (folder / "tables" / "light.csv").unlink()
    again = _run(site, tmp_path, "tables", str(folder))
    assert (folder / "tables" / "light.csv").read_bytes() == light
    assert notices[0].replace("&#39;", "'") in " ".join(again.stdout.split())
    view = ("oracles.primary.threshold=0.5", "track=false")
    _run(site, tmp_path, "run", "suite=foreign_parts", f"suite_dir={suites}", *view)
    (viewed,) = (folder / "views").glob("*/tables/light.csv")
    assert viewed.read_bytes() == light


PROMISES = """
from medtest.testing import check_relation, load_relation, synthetic_prompt
made = [one for number in range(3) for one in check_relation(load_relation("recolour"), synthetic_prompt(number))]
assert len(made) == 6
for one in made:
    assert one.prompt.text.count(one.params["new"]) == 1 and one.params["old"] not in one.prompt.text
"""


@pytest.mark.slow
def test_a_foreign_relation_of_prompts_runs(site: Path, tmp_path: Path) -> None:
    import pandas as pd

    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    subprocess.run([sys.executable, "-c", PROMISES], check=True, cwd=tmp_path, env=environment)
    (tmp_path / "foreign_prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    done = _run(site, tmp_path, "run", "suite=foreign_prompts", f"suite_dir={tmp_path}", "track=false")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (records,) = tmp_path.glob("outputs/foreign_prompts/*/*/records.parquet")
    table = pd.read_parquet(records)
    changed = table[table["relation"] == "recolour"]
    assert len(changed) == 12 and set(changed["verdict"]) <= {"PASS", "FAIL", "SKIP"}
    judged = changed[changed["verdict"] != "SKIP"]
    assert len(judged) and (judged["prompt"] != "").all()
    for record in judged.itertuples():
        params = json.loads(record.params)
        assert params["new"] in record.prompt and params["old"] != params["new"]


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "severities"), [("vignette", "1, 2, 3, 4, 5"), ("mirror", "1")])
def test_an_unknown_severity_is_refused_before_a_run(
    site: Path, tmp_path: Path, relation: str, severities: str
) -> None:
    (tmp_path / "foreign_parts.yaml").write_text(SUITE, encoding="utf-8")
    overrides = ("suite=foreign_parts", f"suite_dir={tmp_path}", f"relations.{relation}.severities=[6]")
    done = _run(site, tmp_path, "check", *overrides)
    assert done.returncode == 2 and f"severities that have a level: {severities}; not 6" in done.stdout + done.stderr
