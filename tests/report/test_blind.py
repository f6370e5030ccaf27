"""Gates and comparisons refuse a system that does not answer dark images; their files hold no NaN."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import medtest
from medtest.cli.app import run_app
from medtest.preparation.prepare import prepare
from medtest.suite.compose import load_suite

SUITE = """\
name: tiny
version: "1"
seed: 5
seeds: {phantoms: {count: 12}}
relations: {blur: {severities: [1]}, contrast: {severities: [1]}}
systems: [pranet]
prepare: {size: 128}
"""
MARGIN = 40.0
GATE = f"gates=[{{no_worse_than: tiny/seeing, margin_percent: {MARGIN:g}}}]"
NAN = re.compile(r"(?<![A-Za-z])[+−-]?nan(?![A-Za-z])", flags=re.IGNORECASE)
"""NaN as a word: not a part of "finance", and not of a digest."""


@dataclass
class Redness:
    """Marks the reddest tenth of an image as the polyp; images darker than ``least`` get an empty mask."""

    least: float = 0.0

    def __call__(self, image: NDArray[np.uint8]) -> NDArray[np.bool_]:
        red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
        reddest = red - green > np.quantile(red - green, 0.9)
        return np.asarray(reddest & (image.mean() >= self.least), dtype=np.bool_)


def _run(home: Path, name: str, least: float, *overrides: str) -> medtest.Result:
    return medtest.run(
        str(home / "tiny.yaml"),
        medtest.Model(Redness(least), name=name),
        home=home,
        track=False,
        fingerprint=f"{least}",
        overrides=list(overrides),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Test twelve phantoms with a system that answers all, one that answers the two brightest, and a blind one."""
    home = tmp_path_factory.mktemp("blind")
    (home / "tiny.yaml").write_text(SUITE, encoding="utf-8")
    seeing = _run(home, "seeing", 0.0)
    sources = seeing.records[seeing.records.relation == "source"]
    assert len(sources) == 12 and (sources.dice > 0).all()
    seeds = load_suite(home / "tiny.yaml").build_seeds(None)[0]
    brightness = sorted(float(prepare(seeds.load(ref), size=128).image.mean()) for ref in seeds.refs())
    _run(home, "dim", (brightness[9] + brightness[10]) / 2, GATE, "+junit=cells")
    _run(home, "blind", 300.0, GATE, "+junit=cells")
    return home


def _folder(home: Path, name: str) -> Path:
    (run,) = (home / "outputs" / "tiny" / name).glob("*/run.json")
    return run.parent


def _words(text: str) -> str:
    return " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.S)).split())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lost"), [("dim", 10), ("blind", 12)])
def test_a_gate_beside_a_finished_run_refuses_a_blind_system(home: Path, name: str, lost: int) -> None:
    folder = _folder(home, name)
    (line,) = (folder / "gates.jsonl").read_text(encoding="utf-8").splitlines()
    (gate,) = json.loads(line)["gates"]
    verdicts = {condition["name"]: condition["verdict"] for condition in gate["conditions"]}
    assert gate["held"] is False and gate["verdict"] == "failed"
    assert verdicts["failed sources"] == "failed" and verdicts["violations"] == "not shown"
    assert verdicts["errors"] == "passed" and verdicts["skipped cases"] == "passed"
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["standing"] == "gate failed"
    assert {condition["name"]: condition["verdict"] for condition in result["gates"][0]["conditions"]} == verdicts
    newly = next(condition for condition in result["gates"][0]["conditions"] if condition["name"] == "failed sources")
    assert (newly["newly"], newly["no_longer"], newly["cases"]) == (lost, 0, 12)
    (failure,) = ET.parse(folder / "junit.xml").getroot().iter("failure")  # noqa: S314 - ours
    assert f"{lost} newly fail" in str(failure.text) and "source score" in str(failure.text)
    assert f"{lost} newly fail" in (folder / "summary.md").read_text(encoding="utf-8")
    assert f"{lost} newly fail" in _words((folder / "report.html").read_text(encoding="utf-8"))
    table = pd.read_csv(folder / "tables" / "gate_conditions.csv")
    assert dict(zip(table.condition, table.verdict, strict=True)) == verdicts


@pytest.mark.parametrize(("name", "lost"), [("dim", 10), ("blind", 12)])
def test_a_comparison_refuses_a_blind_system(
    home: Path, name: str, lost: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(home))
    page = home / f"page-{name}"
    code = run_app(["compare", "tiny/seeing", f"tiny/{name}", "--out", str(page), "--strips", "0"])
    printed = capsys.readouterr().out
    assert code == 1, printed
    assert f"{lost} of 12 sources newly fail" in printed and "Exit code 1" in printed
    assert not NAN.search(printed)
    summary = (page / "compare.md").read_text(encoding="utf-8")
    assert f"{lost} of 12 sources newly fail" in summary and "newly failed source" in summary
    shown = _words((page / "compare.html").read_text(encoding="utf-8"))
    assert f"Newly failed sources: {lost}" in shown and f"{lost} of 12 sources newly fail" in shown
    changed = pd.read_csv(page / "compare_changed.csv")
    assert (changed.change == "newly failed source").sum() == lost


@pytest.mark.slow
def test_a_system_is_no_worse_than_itself_where_the_margin_is_wide_enough(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve sources that agree leave 24 points possible (Tango): 25 is shown, 24 and the default are not."""
    monkeypatch.setenv("MEDTEST_HOME", str(home))
    call = ["compare", "tiny/seeing", "tiny/seeing", "--out", str(home / "same"), "--strips", "0"]
    assert run_app([*call, "--margin", "25"]) == 0
    assert "Exit code 0" in capsys.readouterr().out
    assert run_app([*call, "--margin", "24"]) == 1
    assert run_app(call) == 1
    printed = capsys.readouterr().out
    assert (
        "not shown" in printed and "189 sources" in printed and "failed " not in printed.replace("failed sources", "")
    )


def test_files_about_a_blind_system_hold_no_nan(home: Path) -> None:
    files = [path for path in home.rglob("*") if path.suffix in {".html", ".md", ".csv", ".json", ".jsonl", ".xml"}]
    assert {"compare.html", "compare.csv", "result.json", "junit.xml", "gates.jsonl"} <= {path.name for path in files}
    for path in files:
        match = NAN.search(_words(path.read_text(encoding="utf-8")))
        assert match is None, f"{path.relative_to(home)}: {match}"


def test_the_console_names_the_lost_cases_beside_the_rate(home: Path) -> None:
    result = _run(home, "blind", 300.0)
    text = " ".join(result.text().split())
    assert "blind: 24 of 24 cases not judged: 24 with a failed source (12 of 12 sources)." in text
    assert "24 of 24 cases not judged" in result.finished.note


@pytest.mark.slow
def test_a_plain_gate_bounds_the_cases_whose_source_failed(home: Path) -> None:
    for settings, held in (
        ("max_percent: 100", True),
        ("max_percent: 100, max_source_failed_percent: 0", True),
    ):
        assert _run(home, "seeing", 0.0, f"gates=[{{{settings}}}]").ok is held
    blind = _run(home, "blind", 300.0, "gates=[{max_percent: 100}]")
    assert not blind.ok and int(blind.code) == 1
    assert "24 of 24 cases (100 %) have no source to compare with, above 10 %" in " ".join(blind.text().split())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_compact_pranet_that_is_blind_below_94_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The system of the first report: half of the answers to polyp_seg's images become empty."""
    from medtest.systems.segmentation.families import PraNetSystem

    class Blind(PraNetSystem):
        def predict(self, images: Any, addresses: Any) -> Any:
            answers = super().predict(images, addresses)
            return [answer * (image.mean() >= 94) for answer, image in zip(answers, images, strict=True)]

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    few = {"relations": {"blur": {"severities": [2]}}, "track": False}
    overrides = ["seeds.phantoms.count=30"]
    seeing = medtest.run("polyp_seg", "pranet", overrides=overrides, **few)
    gate = "gates=[{no_worse_than: polyp_seg/pranet-compact, margin_percent: 10}]"
    blind = Blind("blind", PraNetSystem.Settings())
    refused = medtest.run("polyp_seg", blind, overrides=[*overrides, gate], **few)
    scores = [run.records.query("relation == 'source'").dice for run in (seeing, refused)]
    assert scores[0].mean() > 0.8 > 0.6 > scores[1].mean()
    lost = int(((scores[1] == 0).to_numpy() & (scores[0] > 0).to_numpy()).sum())
    assert lost > 9 and int(refused.code) == 1
    assert f"{lost} newly fail" in " ".join(refused.text().split())
    capsys.readouterr()
    call = ["compare", "polyp_seg/pranet-compact", str(refused.folders["blind"]), "--margin", "10", "--strips", "0"]
    assert run_app(call) == 1
    printed = capsys.readouterr().out
    assert f"{lost} of 30 sources newly fail" in printed and not NAN.search(printed)
