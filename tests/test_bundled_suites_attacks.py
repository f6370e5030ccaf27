"""Bundled suites of attacks, each run as its first lines say, on one image and its cheapest relations.

Rates are not checked; the tables of a run are compared with its records, by formulas that are written here again.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from medtest.cli.run.launch import main
from medtest.suite.compose import load

LABELS = {
    "adversarial_melanoma": ("uniform_noise", "fgsm"),
    "adversarial_retinopathy": ("uniform_noise", "fgsm"),
    "adversarial_chest": ("uniform_noise", "fgsm"),
    "adversarial_gap": ("uniform_noise", "gap"),
    "natural_and_adversarial_melanoma": ("brightness", "uniform_noise", "pgd"),
    "robust_benchmark_melanoma_attacked": ("brightness", "uniform_noise", "pgd"),
}
MASKS = {
    "adversarial_polyp": ("uniform_noise", "pgd_dice", "off_lesion"),
    "adversarial_transfer": ("uniform_noise", "pgd_on_ssformer"),
}
SUITES = {**LABELS, **MASKS}
CHEAP = {"natural_and_adversarial_melanoma": ["relations.pgd.severities=[1,2]"]}
"""What is typed beside a suite, so that it takes seconds."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("suite", SUITES)
def test_severities_have_noise_of_the_same_epsilon(suite: str) -> None:
    """Every attack within a quarter of the range has its floor in the suite."""
    relations = load(suite, []).suite.build_relations()
    epsilon = {
        name: {relation.settings.levels[level].scale for level in relation.severities()}
        for name, relation in relations.items()
        if relation.group == "adversarial" or name == "uniform_noise"
    }
    floor = epsilon.pop("uniform_noise")
    assert epsilon
    for name, values in epsilon.items():
        assert {value for value in values if value < 64} <= floor, name


@pytest.mark.parametrize(
    "suite", ["adversarial_melanoma", "adversarial_retinopathy", "adversarial_chest", "adversarial_polyp"]
)
def test_strongest_has_pgd_of_the_same_epsilon(suite: str) -> None:
    """The suite can give a verdict on gradients, and has a row to read instead."""
    relations = load(suite, []).suite.build_relations()
    epsilon = {
        name: {relations[name].settings.levels[level].scale for level in relations[name].severities()}
        for name in ("pgd", "strongest")
    }
    assert epsilon["strongest"] <= epsilon["pgd"]


@pytest.mark.parametrize("suite", [*LABELS, *MASKS])
def test_an_onnx_file_in_the_head_of_a_suite_is_an_existing_setting(suite: str) -> None:
    head = (Path(__file__).parents[1] / "suites" / f"{suite}.yaml").read_text(encoding="utf-8")
    for words in (line.split() for line in head.splitlines() if "model=onnx" in line):
        assert load(suite, words[words.index(f"suite={suite}") + 1 :]).suite.systems


@pytest.mark.parametrize(
    "suite",
    [pytest.param(suite, marks=[] if number == 0 else [pytest.mark.long]) for number, suite in enumerate(SUITES)],
)
def test_a_suite_runs_as_typed(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDTEST_HOME", raising=False)
    names = SUITES[suite]
    typed = [f"suite={suite}", "limit=1", "track=false", "workers=1", f"relations=[{','.join(names)}]"]
    code = main([*typed, *CHEAP.get(suite, [])], command="python run.py")
    assert code == 0, capsys.readouterr().err
    folders = [path.parent for path in sorted((tmp_path / "outputs" / suite).glob("*/*/run.json"))]
    assert len(folders) == (3 if suite == "adversarial_transfer" else 1)
    for folder in folders:
        assert_run(folder, names, labels=suite in LABELS)
    if suite == "adversarial_transfer":
        matrix = pd.read_csv(folders[0].parents[1] / "comparison_transfer.csv")
        attacked = matrix[matrix.attack == "pgd"]
        assert set(attacked.system) == {folder.parent.name for folder in folders} and len(attacked) == 3
        assert set(attacked.crafted_on) == {"ssformer-compact"}


def assert_run(folder: Path, names: tuple[str, ...], *, labels: bool) -> None:
    records = pd.read_csv(folder / "records.csv", keep_default_na=False)
    assert set(records.verdict) <= {"PASS", "FAIL", "SKIP"}, records[records.verdict == "ERROR"].reason.unique()
    assert set(names) | {"source", "unchanged"} == set(records.relation)
    table = pd.read_csv(folder / "tables" / "attacks.csv", dtype={"severity": str})
    crafted = records[records.crafted_on != ""]
    assert len(crafted) and (crafted.linf.astype(float) <= crafted.scale.astype(float)).all()
    for (relation, severity), cases in crafted.groupby(["relation", "severity"]):
        own = (table.dataset == "all") & (table.relation == relation) & (table.severity == str(severity))
        row = table[own].iloc[0]
        assert row.cases == len(cases) and row.epsilon == float(cases.scale.iloc[0])
        if labels and "pneumothorax" not in cases.probabilities.iloc[0]:
            assert row.accuracy == pytest.approx((cases.label == cases.expected).mean())
            assert row.fooling == pytest.approx((cases.label != cases.source_label).mean())
        elif not labels:
            assert row.accuracy == pytest.approx(pd.to_numeric(cases.dice).mean(), abs=1e-6)
    checks = pd.read_csv(folder / "tables" / "attack_checks.csv", dtype={"severity": str})
    assert set(checks.relation) == {"source", *crafted.relation}
    probe = checks[checks["check"] == "probe"].iloc[0]
    assert probe.value == pytest.approx(pd.to_numeric(records.probe_gap).max(), abs=1e-6) and probe.verdict == "ok"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert 'id="attacks"' in page and 'src="http' not in page
