"""Flips relative to a reference system: by name, by folder, by an earlier run; and mistakes."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))
from label_parts import Fade, label_suite
from runner_helpers import go
from runner_parts import Dim

from medtest.cli.results.tables import remake_tables
from medtest.core.errors import UserMistakes
from medtest.report.finish import finish
from medtest.report.pages.material import sample_index
from medtest.report.pages.reference_system import find_reference
from medtest.report.views import remake
from medtest.suite.model import Invocation
from medtest.tasks.classify.report.film_strips import FILMS
from medtest.tasks.classify.tables.flips import COLUMNS as FLIPS

COMPOSED = {
    "name": "label_suite",
    "version": "1",
    "seeds": {"shades": {"source": "shades"}},
    "relations": {"dim": {"relation": "dim"}, "fade": {"relation": "fade"}},
    "systems": {"meter": {}, "moody": {}},
    "oracles": {
        "oracle": "labels",
        "primary": {"score": "label", "threshold": 0.0, "against": "source"},
        "scores": ["label", "probability"],
        "thresholds": [0.25, 0.5],
        "against": ["source", "truth"],
    },
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    home = tmp_path_factory.mktemp("relative")
    faults = {"meter": {}, "moody": {"fault": "tie", "when": "fade_s3_f1"}}
    suite = label_suite(systems=faults, relations={"dim": Dim, "fade": Fade}, severities=(3, 5))
    suite = replace(suite, composed=COMPOSED)
    outcome = go(suite, home)
    invocation = Invocation(home=home, track=False, reference="meter")
    return suite, home, outcome, finish(suite, invocation, outcome)


def table(folder, name="flip_probability"):
    return pd.read_csv(folder / "tables" / f"{name}.csv")


def test_every_system_is_divided_by_the_reference(ran):
    _, _, outcome, _ = ran
    own, other = (table(system_outcome.folder) for system_outcome in outcome.systems)
    assert list(own.columns) == list(FLIPS)
    assert (own.rfp.dropna() == 1.0).all() and own.rfp.notna().any()
    both = own.merge(other, on=["dataset", "relation", "severity", "rule"], suffixes=("_own", "_other"))
    defined = both[both.rfp_other.notna()]
    assert len(defined) and (defined.rfp_other - defined.fp_other / defined.fp_own).abs().max() < 1e-5
    assert other[other.relation == "overall"].errors.max() == 6  # a tie at one frame of six sequences
    errors = table(outcome.systems[0].folder, "corruption_error")
    assert set(errors.relation) == {"dim", "overall"}
    assert (errors.ce.dropna() == 1.0).all()


def test_page_cards_films_and_comparison(ran):
    _, _, outcome, finished = ran
    html = finished.reports[1].read_text()
    for words in ("relative to meter", "Flip probability", "Confusion matrices", "The sequences that flip most"):
        assert words in html, words
    assert 'href="#flips"' in html and 'href="#accuracy"' in html
    assert sample_index(outcome.systems[1].folder, FILMS.index)
    compared = finished.comparison.read_text()
    assert "Flip probability" in compared and "mean of the types" in compared
    listed = (outcome.systems[0].folder / "manifest.sha256").read_text()
    assert "tables/flip_probability.csv" in listed and "samples/films.json" in listed


def test_tables_made_again_keep_the_reference(ran):
    _, _, outcome, _ = ran
    folder = outcome.systems[1].folder
    before = (folder / "tables" / "flip_probability.csv").read_bytes()
    named = json.loads((folder / "run.json").read_text())["reference"]
    assert not Path(named).is_absolute()
    remake(folder)
    assert (folder / "tables" / "flip_probability.csv").read_bytes() == before
    remake(folder, reference=folder)
    assert (table(folder).rfp.dropna() == 1.0).all()


def test_medtest_tables_takes_a_reference(ran):
    _, home, outcome, _ = ran
    own, other = (system_outcome.folder for system_outcome in outcome.systems)
    console = Console(file=io.StringIO())
    remake_tables(own, reference=other, console=console)
    query = "relation == 'overall' and rule == 'auto' and severity == 'all' and dataset == 'all'"
    row, divisor = (table(folder).query(query).iloc[0] for folder in (own, other))
    assert row.rfp == pytest.approx(row.fp / divisor.fp, abs=1e-5)
    with pytest.raises(UserMistakes, match="--reference"):
        remake_tables(own, reference=home, console=console)


def test_a_reference_by_folder_and_by_an_earlier_run(ran):
    suite, home, outcome, _ = ran
    folder = outcome.systems[0].folder
    find = {"suite": suite, "home": home, "folders": {"moody": outcome.systems[1].folder}}
    assert find_reference("moody", **find) == outcome.systems[1].folder
    assert find_reference(str(folder), **find) == folder
    assert find_reference(str(folder.parent), **find) == folder
    assert find_reference("meter", **find) == folder


@pytest.mark.parametrize("name", ["metre", "../meter", "/nowhere/at/all"])
def test_an_unknown_reference_is_a_mistake(ran, name):
    suite, home, outcome, _ = ran
    folders = {system_outcome.system: system_outcome.folder for system_outcome in outcome.systems}
    with pytest.raises(UserMistakes, match="reference") as caught:
        find_reference(name, suite=suite, home=home, folders=folders)
    assert "meter, moody" in str(caught.value)
    assert name != "metre" or "nearest" in str(caught.value).lower() or "meter" in str(caught.value)


def test_a_folder_of_several_runs_is_a_mistake(ran):
    suite, home, _, _ = ran
    with pytest.raises(UserMistakes, match="a single run"):
        find_reference(str(home / "outputs"), suite=suite, home=home, folders={})


def test_no_reference_leaves_the_column_empty(ran):
    suite, home, outcome, _ = ran
    finish(suite, Invocation(home=home, track=False), replace(outcome, systems=outcome.systems[:1]))
    assert table(outcome.systems[0].folder).rfp.isna().all()
