"""Degenerate records of every kind: every table maker and every page returns, none raises.

A run that cost money may end with every answer refused, with one image, or with no case at all. Its tables then hold
NaN or no rows, and pages show them.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))

from answer_parts import Instrument, answer_suite
from label_parts import Colours, Fade, label_suite
from runner_helpers import go
from runner_parts import Dim, make_suite
from sealed_records import write_sealed

from medtest.core.errors import OutputProblem
from medtest.core.tasks.base import Task
from medtest.readers.meaning import NEEDS, unread_of
from medtest.report.console import efr_view, gates_view, one_line
from medtest.report.mlflow.headline import headline_of
from medtest.report.mlflow.metrics import metrics, tags
from medtest.report.pages.before_after import before_after_html
from medtest.report.pages.comparison import write_comparison
from medtest.report.pages.material import Material
from medtest.report.pages.page import report_html
from medtest.results.before_after import change as before_after
from medtest.results.before_after import words as before_after_words
from medtest.results.before_after.change import headline
from medtest.results.records.records_io import Records
from medtest.results.records.rejudging import contents_in
from medtest.results.records.wanted import Wanted
from medtest.results.series.paired import paired_table
from medtest.results.series.robustness import robustness_table
from medtest.results.series.series_records import series_sets
from medtest.results.tables import Tables, tables_of
from medtest.suite.compose import load_suite
from medtest.suite.model import Gate, Suite
from medtest.tasks.classify.tables.films import worst_sequences
from medtest.tasks.classify.tables.results import reference_of

PARTS = {"dim": Dim, "fade": Fade}
WRONG = {"wrong": {"dim": 0.3, "source": 0.2}, "refuses": 0.1, "unread": 0.1}
SUITES: Mapping[str, Callable[[], Suite]] = {
    "masks": lambda: make_suite(seeds=3, severities=(1, 2)),
    "labels": lambda: label_suite(relations=PARTS, severities=(1, 3)),
    "findings": lambda: label_suite(seeds={"multi": True}, system=Colours, relations=PARTS, severities=(1, 3)),
    "answers": lambda: answer_suite(
        seeds=3, systems={"teller": WRONG}, relations={"dim": Dim, "instrument": Instrument}, again=1
    ),
    "series": lambda: load_suite(
        "denoising",
        [
            "seeds.pictures.names=[camera,coins]",
            "seeds.pictures.max_side=64",
            "relations.gaussian_noise.severities=[1,3,5]",
            "model=identity",
        ],
    ),
    "prompts": lambda: load_suite(
        "t2i",
        [
            "seeds.prompts.count=3",
            "relations=[ec,er_r,unchanged]",
            "model=simlab_images",
            "systems.simlab_images.size=128x128",
        ],
    ),
}
KEPT = (
    *("suite", "suite_version", "system", "dataset", "seed_id", "cluster", "item", "relation", "group", "severity"),
    *(
        "frame",
        "repeat",
        "verdict",
        "reason_code",
        "reason",
        "params",
        "source_sha256",
        "followup_sha256",
        "kind",
        "question",
        "rule",
    ),
)
"""Columns that a case without an answer has all the same."""


@cache
def run_suite(kind: str) -> tuple[Wanted, pd.DataFrame, pa.Schema, Mapping[str, Any]]:
    """Run a suite of this kind; return what its folder holds."""
    suite = SUITES[kind]()
    with tempfile.TemporaryDirectory() as home:
        system_outcome = go(suite, Path(home)).systems[0]
        table = pq.read_table(system_outcome.folder / "records.parquet")
        run = json.loads((system_outcome.folder / "run.json").read_text(encoding="utf-8"))
        schema = table.schema.remove_metadata()
        return Wanted.of(suite, system_outcome.system), table.to_pandas(), schema, run


# --- what may be missing ------------------------------------------------------------------------------------------

Rows = Any
Change = Callable[[pd.DataFrame, Rows], None]


def _numbers(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if frame[name].dtype.kind == "f" and not str(name).startswith("factor")]


def _unanswered(verdict: str) -> Change:
    def change(frame: pd.DataFrame, rows: Rows) -> None:
        frame.loc[rows, ["verdict", "reason_code", "reason"]] = [verdict, "system_error", "it broke"]
        frame.loc[rows, [name for name in frame if name not in KEPT and not str(name).startswith("factor")]] = None

    return change


def _filled(value: float) -> Change:
    def change(frame: pd.DataFrame, rows: Rows) -> None:
        frame.loc[rows, [name for name in _numbers(frame) if name != "scale"]] = value

    return change


def _unread(state: str) -> Change:
    def change(frame: pd.DataFrame, rows: Rows) -> None:
        if "state" in frame:
            frame.loc[rows, ["state", "source_state"]] = state
            frame.loc[rows, ["said", "source_said", "wanted"]] = ""
            frame.loc[rows, ["why", "verdict"]] = [state, "SKIP"]
            frame.loc[rows, _numbers(frame)] = np.nan

    return change


def _same(*names: str, value: object = None) -> Change:
    def change(frame: pd.DataFrame, rows: Rows) -> None:
        for name in names:
            if name in frame:
                first = frame[name].dropna()
                frame.loc[rows, name] = first.iloc[0] if value == "first" and len(first) else value

    return change


LABELS = ("label", "source_label", "expected")
CHANGES: Mapping[str, Change] = {
    "errors": _unanswered("ERROR"),
    "skips": _unanswered("SKIP"),
    "NaN": _filled(np.nan),
    "all wrong": _filled(0.0),
    "all right": _filled(1.0),
    "unparsed": _unread("unparsed"),
    "refused": _unread("refusal"),
    "not relevant": _unread("not_relevant"),
    "no truth": _same("truth", "expected"),
    "no label": _same(*LABELS, "probabilities"),
    "no class is true": _same(*LABELS, value=""),
    "one class": _same(*LABELS, value="first"),
    "no scale": _same("scale"),
    "one scale": _same("scale", value=1.0),
}
CASES: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "all": lambda frame: frame,
    "none": lambda frame: frame.iloc[:0],
    "only sources": lambda frame: frame[frame.relation == "source"],
    "no sources": lambda frame: frame[frame.relation != "source"],
    "only unchanged": lambda frame: frame[frame.relation.isin(["source", "unchanged"])],
    "one image": lambda frame: frame[frame.seed_id == frame.seed_id.min()],
    "an image without cases": lambda frame: frame[(frame.seed_id != frame.seed_id.min()) | (frame.severity == 0)],
    "one question": lambda frame: frame[frame["item"] == frame["item"].min()],
    "one severity": lambda frame: frame[frame.severity.isin([0, frame.severity.max()])],
    "one relation": lambda frame: frame[frame.relation.isin(["source", frame.relation.min()])],
    "one frame": lambda frame: frame[frame.frame == 0],
    "one case": lambda frame: frame[frame.relation != "source"].iloc[:1],
}
CHOSEN: Mapping[str, Callable[[pd.DataFrame], Rows]] = {
    "every case": lambda frame: np.ones(len(frame), bool),
    "follow-ups": lambda frame: (frame.relation != "source").to_numpy(),
    "sources": lambda frame: (frame.relation == "source").to_numpy(),
    "every other case": lambda frame: np.arange(len(frame)) % 2 == 0,
}

STEPS = st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from(sorted(CHOSEN))), max_size=2)
CUTS = st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=2)


def records_of(kind: str, cuts: list[str], steps: list[tuple[str, str]], folder: Path) -> Records:
    """Return records of a kind after cuts and steps, written and read again."""
    _, frame, schema, _ = run_suite(kind)
    for cut in cuts:
        frame = CASES[cut](frame) if len(frame) else frame
    frame = frame.reset_index(drop=True)
    for change, chosen in steps if len(frame) else ():
        CHANGES[change](frame, CHOSEN[chosen](frame))
    folder.mkdir(parents=True)
    write_sealed(pa.Table.from_pandas(frame, schema=schema, preserve_index=False), folder / "records.parquet")
    return Records.read(folder)


# --- what must return ---------------------------------------------------------------------------------------------


@cache
def wanted_of(kind: str) -> Wanted:
    """Return the wanted tables of a kind, with two gates."""
    selection, _, _, _ = run_suite(kind)
    first, more = selection.primary, tuple(selection.relations)[0]
    gate = Gate(score=first.score, threshold=first.threshold, against=first.against, max_percent=10)
    return replace(selection, gates=(gate, replace(gate, relation=more, severity="1", bound="ci_high")))


@lru_cache(maxsize=8)
def make_records_and_tables(
    kind: str, cuts: tuple[str, ...], steps: tuple[tuple[str, str], ...]
) -> tuple[Records, Tables]:
    """Return the records after cuts and steps, and their tables; the reference is the records after the cuts."""
    with tempfile.TemporaryDirectory() as name:
        records = records_of(kind, list(cuts), list(steps), Path(name) / "records")
    other = make_records_and_tables(kind, cuts, ())[0] if steps else records
    return records, tables_of(records, wanted_of(kind), reference=reference_of(other))


def materials_of(kind: str, cuts: list[str], steps: list[tuple[str, str]], folder: Path) -> list[Material]:
    """Compute all tables and views of records with and without the steps, and write the tables."""
    selection, run = wanted_of(kind), run_suite(kind)[3]
    sides = [make_records_and_tables(kind, tuple(cuts), chosen) for chosen in (tuple(steps), ())]
    records, other = (side[0] for side in sides)
    materials = []
    for number, (_, tables) in enumerate(sides):
        target = folder / "outputs" / selection.suite / f"s{number}" / "1"
        tables.write(target)
        shutil.copy(folder / ("one", "two")[number] / "records.parquet", target)  # a comparison reads them once more
        named = {**run, "system": f"system-{number}"}
        materials.append(Material(folder=target, wanted=selection, tables=tables, run=named))
        head = headline_of(materials[-1], "one")
        assert all(isinstance(value, float) for value in head.metrics.values())
        assert all(isinstance(value, float | dict) for value in metrics(materials[-1], head).values())
        tags(materials[-1], head)
        one_line(materials[-1])
    console = Console(file=io.StringIO(), width=120)
    console.print(efr_view(materials), gates_view(materials))
    worst_sequences(records)
    contents_in(records, NEEDS, unread_of)
    for score in records.scores if selection.series else ():
        for series_set in series_sets({"a": records, "b": other}, score, include_source=True):
            robustness_table(series_set)
            paired_table(series_set)
    return materials


def compare_sides(records: Records, other: Records, task: Task) -> None:
    """Compare both sides of a training; sides that cannot be compared raise a mistake."""
    try:
        table, unpaired = before_after.compare(records, other, task=task, order=["dim"], family="pranet")
    except OutputProblem:
        return
    before_after_words.slides_table(table)
    before_after_words.markdown(table, title="x")
    headline(table)
    before_after_html(network="n", family="pranet", suite="s", table=table, training={}, unpaired=unpaired)


def check(kind: str, cuts: list[str], steps: list[tuple[str, str]], *, pages: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = records_of(kind, cuts, steps, folder / "one")
        other = records_of(kind, cuts, [], folder / "two")
        materials = materials_of(kind, cuts, steps, folder)
        if kind in ("masks", "labels", "findings"):
            compare_sides(records, other, materials[0].wanted.task)
        if pages:
            page = report_html(materials[0])
            assert "</html>" in page
            places = re.findall(r' id="([^"]+)"', page)
            assert len(places) == len(set(places))  # a duplicate name could not be linked to
            write_comparison(materials, folder)


@pytest.mark.parametrize("kind", SUITES)
@pytest.mark.parametrize("cut", ["none", "only sources", "one case"])
def test_next_to_nothing(kind: str, cut: str) -> None:
    check(kind, [cut], [], pages=False)


@pytest.mark.parametrize("change", ["unparsed", "refused", "errors", "NaN"])
@pytest.mark.parametrize("cut", ["all", "one image"])
def test_no_answer_could_be_read(cut: str, change: str) -> None:
    check("answers", [cut], [(change, "every case")], pages=False)


@pytest.mark.parametrize("kind", SUITES)
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(cuts=CUTS, steps=STEPS)
def test_tables_of_any_remaining_records(kind: str, cuts: list[str], steps: list[tuple[str, str]]) -> None:
    check(kind, cuts, steps, pages=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SUITES)
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(cuts=CUTS, steps=STEPS)
def test_pages_of_any_remaining_records(kind: str, cuts: list[str], steps: list[tuple[str, str]]) -> None:
    check(kind, cuts, steps, pages=True)
