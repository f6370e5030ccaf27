"""Failing slices in a report: the section, links to the worst cases in the browser, tables, notices."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest
from records_maker import RELATIONS, make_records, write_records
from report_pages import browser_data

from medtest.report.mlflow.metrics import child_of
from medtest.report.pages.browser.data import browser_of
from medtest.report.pages.material import Material
from medtest.report.pages.page import report_html
from medtest.report.tracking.artifacts import file_tags, staged
from medtest.results.rates.slices import MISSING
from medtest.results.records.wanted import Wanted
from medtest.results.tables import make_tables
from medtest.suite.model import Criterion

pytest.importorskip("sliceline")
WANTED = Wanted(
    suite="synthetic",
    version="1",
    seeds={"phantoms": "phantoms"},
    relations={name: name for name in RELATIONS},
    primary=Criterion(score="dice", threshold=0.25, against="truth"),
    scores=("dice",),
    thresholds=(0.25,),
    against=("truth",),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = make_records(seeds=90, severities=(2,), errors=0, random=1)
    small = (frame["factor_polyp_area"] < 0.08) & (frame["relation"] == "text") & frame["dice"].notna()
    frame = frame.assign(dice=np.where(small, 0.1, frame["dice"]))
    return write_records(frame, tmp_path_factory.mktemp("run"))


def page_of(material: Material) -> str:
    shown = [material.tables.shown or material.records()]
    return report_html(material, browser_of([material], shown))


def test_the_section_links_the_worst_cases_to_the_browser(folder: Path) -> None:
    material = Material(folder=folder, wanted=WANTED, tables=make_tables(folder, WANTED))
    page = page_of(material)
    assert '<section id="slices"><details><summary><h2>Failing slices</h2>' in page
    assert '<a href="#slices">' in page
    assert "relation text" in page
    links = [part.split('"')[0] for part in page.split('href="#cases:case=')[1:]]
    assert [unquote(link) for link in links] == [address for worst in material.tables.slices.worst for address in worst]
    shown = browser_data(page)[0]["columns"]["address"]
    assert shown[: len(links)] == [*material.tables.slices.addresses]


def test_linked_cases_are_kept_where_a_page_cannot_show_all(folder: Path) -> None:
    from medtest.results.rates.images import CaseLosses
    from medtest.results.records.records_io import Records

    records = Records.read(folder)
    last = str(records.texts("address")[-1])
    shown = CaseLosses(records, WANTED.primary).shown(5, first=(last,))
    assert len(shown.followups) == 5
    assert last in set(shown.texts("address"))


def test_the_table_is_written_and_goes_to_mlflow(folder: Path, tmp_path: Path) -> None:
    tables = make_tables(folder, WANTED)
    assert "slices.csv" in {path.name for path in tables.write(tmp_path)}
    material = Material(folder=folder, wanted=WANTED, tables=tables)
    assert child_of(material, run_id=None, ended_well=True).tables["tables/slices.json"] is tables.slices.frame
    without = replace(tables, slices=replace(tables.slices, frame=tables.slices.frame.iloc[:0], worst=()))
    assert "slices.csv" not in {path.name for path in without.write(tmp_path)}
    assert not (tmp_path / "tables" / "slices.csv").exists()
    bare = Material(folder=folder, wanted=WANTED, tables=without)
    assert "Failing slices" not in page_of(bare)
    assert "tables/slices.json" not in child_of(bare, run_id=None, ended_well=True).tables


def test_a_removed_table_is_empty_in_mlflow(folder: Path, tmp_path: Path) -> None:
    tables = make_tables(folder, WANTED)
    without = replace(tables, slices=replace(tables.slices, frame=tables.slices.frame.iloc[:0], worst=()))
    before, after = (
        child_of(Material(folder=folder, wanted=WANTED, tables=tables_), run_id=None, ended_well=True)
        for tables_ in (tables, without)
    )
    own_tags = {"mlflow.loggedArtifacts": json.dumps([{"path": "notes.json", "type": "table"}])}
    held = file_tags(before, own_tags)
    run = SimpleNamespace(info=SimpleNamespace(run_id="r", start_time=0), data=SimpleNamespace(tags=held))
    with staged(after, run) as files:
        shown = {f"{place}/{path.name}": json.loads(path.read_text()) for path, place in files if place == "tables"}
    assert shown["tables/slices.json"] == {"columns": [], "data": []}
    assert shown["tables/efr.json"]["data"]
    paths = {entry["path"] for entry in json.loads(file_tags(after, held)["mlflow.loggedArtifacts"])}
    assert paths >= {"notes.json", "tables/efr.json"} and "tables/slices.json" not in paths


def test_without_the_extra_report_and_console_name_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sliceline", None)
    tables = make_tables(folder, WANTED)
    assert tables.notices == (MISSING,)
    page = page_of(Material(folder=folder, wanted=WANTED, tables=tables))
    assert "pip install &#39;medtest[slices]&#39;" in page
    assert 'id="slices"' not in page
