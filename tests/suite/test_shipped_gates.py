"""Bundled suites pass the default bound on failed sources with their systems, except those that their YAML names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import medtest
from medtest.results.gating.conditions import FAILED_SOURCES
from medtest.results.gating.gates import GateResult
from medtest.results.records.wanted import Wanted
from medtest.results.tables import make_tables
from medtest.suite.compose import load_suite
from medtest.suite.model import MOST_SOURCE_FAILED, Gate

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden" / "records"
KEY = "max_source_failed_percent"
BEYOND = {"liver": {"constant": 100}, "background_subtraction": {"constant": 100, "identity": 40}}
"""Controls that miss more sources than the default allows, with the bound that their YAML names."""
SUITES = sorted(path.stem for path in (ROOT / "suites").glob("*.yaml"))
AGAINST_SOURCE = ("polyp_seg_controls", "polyp_seg_unlabelled")
BOUNDED = {
    "adversarial_polyp",
    "adversarial_transfer",
    "background_subtraction",
    "denoising",
    "liver",
    "other_libraries",
    "polyp_evidence",
    "polyp_negatives",
} | {
    name
    for name in SUITES
    if name.startswith("polyp_seg") and name not in ("polyp_seg_unlabelled", "polyp_seg_controls")
}
"""Suites whose primary criterion is not against the source's own answer."""


@pytest.mark.parametrize("name", SUITES)
def test_the_bound_applies_where_answers_are_right_or_wrong(name: str) -> None:
    model = ["model=simlab"] if name == "medvqa_clef" else []  # it has no system
    suite = load_suite(name, [*model, "gates=[{max_percent: 50}]"])
    (gate,) = suite.gates
    assert gate.max_source_failed_percent == (MOST_SOURCE_FAILED if name in BOUNDED else None)
    text = (ROOT / "suites" / f"{name}.yaml").read_text(encoding="utf-8")
    for system, percent in BEYOND.get(name, {}).items():
        assert f"{KEY}: {percent}" in text and system in text


@pytest.mark.parametrize("suite", ["denoising", "liver", "polyp_seg"])
def test_frozen_runs_of_shipped_suites(suite: str) -> None:
    for folder in sorted((GOLDEN / suite).glob("*/*")):
        parts_of_run = Wanted.from_folder(folder)
        gate = Gate(
            max_percent=100, **{name: getattr(parts_of_run.primary, name) for name in ("score", "threshold", "against")}
        )
        (result,) = make_tables(folder, _gated(parts_of_run, gate)).gates
        _check(suite, folder.parent.name, result)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("suite", "only"),
    [
        ("adversarial_polyp", ["relation:uniform_noise"]),
        ("adversarial_transfer", ["relation:uniform_noise"]),
        ("background_subtraction", []),
    ],
)
def test_runs_of_shipped_suites(suite: str, only: list[str], tmp_path: Path) -> None:
    systems = [plan.id for plan in load_suite(suite).systems]
    result = medtest.run(
        suite, systems, only=only or None, overrides=["gates=[{max_percent: 100}]"], home=tmp_path, track=False
    )
    for material in result.finished.materials:
        (gate,) = material.tables.gates
        _check(suite, material.system, gate)


def _gated(parts_of_run: Wanted, gate: Gate) -> Wanted:
    return replace(parts_of_run, gates=(gate,))


def _check(suite: str, system: str, result: GateResult) -> None:
    failed = next(condition for condition in result.conditions if condition.name == FAILED_SOURCES)
    name = system.removesuffix("-compact")
    stated = BEYOND.get(suite, {}).get(name)
    assert failed.figure is not None
    if stated is None:
        assert failed.figure <= MOST_SOURCE_FAILED, (system, failed)
    else:
        assert MOST_SOURCE_FAILED < failed.figure <= stated, (system, failed)
