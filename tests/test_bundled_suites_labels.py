"""Bundled suites of labels, each run as its first line says, on one image and two relations.

Rates are not checked; the tables of a run are compared with its records, by formulas that are written here again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from medtest.cli.run.launch import main
from medtest.core.files.paths import package_folder, suites_folder
from medtest.phantoms import capsule, chest, fundus, skin
from medtest.suite.compose import load
from medtest.suite.reading.library import suite_names

FOLDERS = {"wce_folder": capsule, "skin_folder": skin, "fundus_folder": fundus, "chest_folder": chest}
"""Suites on a folder of the user's, and the generator of what is put into it."""
BENCHMARKS = [
    f"robust_benchmark_{images}{end}" for images in ("melanoma", "retinopathy", "chest") for end in ("", "_levels")
]
LABEL_SUITES = ("wce", *BENCHMARKS, *FOLDERS)
ATTACKED = {
    *("adversarial_melanoma", "adversarial_retinopathy", "adversarial_chest"),
    *("adversarial_gap", "natural_and_adversarial_melanoma", "robust_benchmark_melanoma_attacked"),
    *("defended_melanoma", "defended_retinopathy", "defended_chest"),
}
"""Those of test_bundled_suites_attacks.py, and of the tests of defences."""
CONTROLLED = {"skin_controls"}
"""That of tests/results/test_reliance.py."""
NEEDS_A_MODEL = {"medvqa_clef": ["model=openai_compatible"]}
"""Overrides for a suite without a system."""
CRITERIA = {"label", "probability"}
NOISE = "gaussian_noise"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def needs_weights(systems: list[str]) -> None:
    """Skip where the weights of a compact network are missing."""
    for name in systems:
        if not (package_folder() / "weights" / f"{name}-compact.safetensors").is_file():
            pytest.skip(f"the weights of {name}-compact do not ship yet: medtest train model={name}")


def write_images(folder: Path, generator) -> None:
    """Write four phantoms: in class folders, or with a table of labels where an image may have several."""
    rows = ["image,labels"]
    for index in range(4):
        phantom = generator.make(index, suite_seed=5, size=160)
        below = folder / ("images" if generator is chest else phantom.labels[0])
        below.mkdir(parents=True, exist_ok=True)
        Image.fromarray(phantom.image).save(below / f"{index}.png")
        rows.append(f"{index}.png,{'|'.join(phantom.labels) or 'No Finding'}")
    if generator is chest:
        (folder / "labels.csv").write_text("\n".join(rows), encoding="utf-8")


def test_no_suite_of_labels_is_forgotten() -> None:
    kinds = {name: load(name, NEEDS_A_MODEL.get(name, [])).suite.kind for name in suite_names([suites_folder()])}
    shipped = {name for name, kind in kinds.items() if kind == "label"}
    assert shipped == set(LABEL_SUITES) | ATTACKED | CONTROLLED


@pytest.mark.parametrize(
    "suite",
    [pytest.param(suite, marks=[] if number < 3 else [pytest.mark.long]) for number, suite in enumerate(LABEL_SUITES)],
)
def test_a_suite_runs_as_typed(suite: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed = [f"suite={suite}", "limit=1", "track=false", "workers=1"]
    if suite in FOLDERS:
        write_images(work / "data", FOLDERS[suite])
        typed.append(f"data={work / 'data'}")
    sequences = suite.startswith("robust_benchmark") and not suite.endswith("_levels")
    names = ("blur", "text") if suite.startswith("wce") else ("brightness", NOISE)
    typed.append(f"relations=[{','.join(names)}]")
    systems = [system.id for system in load(suite, []).suite.systems]
    needs_weights(systems)
    # Ten frames of a sequence; five severities, of which folders of skin, fundus and chest take three.
    many = 10 if sequences else 3 if suite in FOLDERS and not suite.startswith("wce") else 5
    code = main(typed, command="python run.py")
    output = capsys.readouterr()
    assert code == 0, output.err
    runs = sorted((work / "outputs" / suite).glob("*/*/run.json"))
    assert sorted(path.parts[-3] for path in runs) == sorted(f"{name}-compact" for name in systems)
    for path in runs:
        assert_run(path.parent, dict.fromkeys(names, many), sequences=sequences, phantoms=suite not in FOLDERS)
    assert os.listdir(work / "outputs") == [suite]


def assert_run(folder: Path, names: dict[str, int], *, sequences: bool, phantoms: bool) -> None:
    records = pd.read_csv(folder / "records.csv", keep_default_na=False)
    assert set(records.verdict) <= {"PASS", "FAIL", "SKIP"}, records[records.verdict == "ERROR"].reason.unique()
    counts = records.relation.value_counts().to_dict()
    assert counts == {"source": 1, "unchanged": 1, **names}
    # Single-label answers name a class; an answer to one of the 14 findings may name none.
    answered = records[records.verdict != "SKIP"]
    assert (answered.label != "").all() or "robust_benchmark_chest" in str(folder) or "chest_folder" in str(folder)
    unchanged = records[records.relation == "unchanged"].iloc[0]
    assert unchanged.label == unchanged.source_label == records[records.relation == "source"].iloc[0].label
    tables = {path.stem: pd.read_csv(path, dtype={"severity": str}) for path in (folder / "tables").glob("*.csv")}
    assert {"efr", "classification", "classes", "severity", "seeds"} <= set(tables)
    assert set(tables["efr"].score) == CRITERIA
    for name in names:
        cases = answered[answered.relation == name]
        row = tables["classification"].query("relation == @name and severity == 'all'").iloc[0]
        assert row.cases == len(cases)
        if len(cases):
            assert row.accuracy == pytest.approx((cases.label == cases.expected).mean())
            assert row.efr_source_percent == pytest.approx(100 * (cases.label != cases.source_label).mean())
    assert ("flip_probability" in tables) == sequences
    if sequences:
        assert_flips(records, tables["flip_probability"], names)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert ("phantoms" in set(tables["classification"].seeds)) == phantoms
    assert not phantoms or "phantom" in page.lower()
    assert 'src="http' not in page
    for name in names:
        assert name.replace("_", " ") in page.lower().replace("_", " ")


def assert_flips(records: pd.DataFrame, table: pd.DataFrame, names: Iterable[str]) -> None:
    """Compare flip probabilities with equation 5 of Xu et al. (2021), with frame 0 as reference for noise alone."""
    for name in names:
        frames = records[records.relation == name].sort_values("frame")
        answers = [frozenset(filter(None, text.split("|"))) for text in frames.label]
        pairs = [(answers[0], answer) for answer in answers[1:]] if name == NOISE else list(pairwise(answers))
        findings = 14 if "pneumothorax" in frames.probabilities.iloc[0] else None
        flips = [len(a ^ b) / findings if findings else float(a != b) for a, b in pairs]
        row = table.query("relation == @name and severity == '1' and rule == 'auto'").iloc[0]
        assert (row.frames, row.sequences) == (10, 1)
        assert row.fp == pytest.approx(np.mean(flips), abs=1e-9)
