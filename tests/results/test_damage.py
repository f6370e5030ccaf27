"""Damaged files of a finished folder: one message names each, and no file that may be repaired is overwritten."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_parts import invocation, leave_run, make_suite
from sealed_records import write_sealed

from medtest.cli.results.tables import remake_tables
from medtest.core.errors import UserMistakes
from medtest.report.finish import finish
from medtest.results.gating import gate_log
from medtest.runner.folder import set_unread_aside
from medtest.runner.records.seals import CONTENT
from medtest.suite.model import Gate

QUIET = Console(quiet=True)


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xA5
    path.write_bytes(bytes(data))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a finished folder with a view and judged gates."""
    suite = make_suite(gates=(Gate(max_percent=99),))
    outcome = leave_run(tmp_path, suite, seeds=3)
    finish(suite, invocation(tmp_path), outcome)
    finish(suite, invocation(tmp_path), outcome, view="0123456789abcdef")
    return outcome.systems[0].folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["run.json", "suite.yaml", "views/0123456789abcdef/run.json", "views/0123456789abcdef/suite.yaml"]
)
def test_tables_name_the_damaged_file_and_write_nothing(folder: Path, name: str) -> None:
    flip(folder / name, 2)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UserMistakes) as caught:
        remake_tables(folder, console=QUIET)
    (mistake,) = caught.value.mistakes
    assert mistake.where == str(folder / name)
    assert "run the command again" in mistake.fix
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_no_tables_are_made_from_records_that_differ_from_what_was_written(folder: Path) -> None:
    records = folder / "records.parquet"
    table = pq.read_table(records)
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), CONTENT: b"0" * 64}), records)
    with pytest.raises(UserMistakes, match=r"records.parquet\n  found:   a file that is not what was written"):
        remake_tables(folder.parents[2], console=QUIET)
    write_sealed(table, records)
    assert remake_tables(folder, console=QUIET) == 0
    records.write_bytes(records.read_bytes()[:-9])
    with pytest.raises(UserMistakes, match="a file that is damaged"):
        remake_tables(folder, console=QUIET)


@pytest.mark.slow
def test_an_unreadable_line_of_gates_is_reported_and_kept(folder: Path) -> None:
    assert gate_log.lost(folder) == ""
    flip(folder / gate_log.FILE, 0)
    before = (folder / gate_log.FILE).read_bytes()
    assert f"{gate_log.FILE}: unreadable lines are ignored: 1" in gate_log.lost(folder)
    console = Console(record=True, width=300)
    assert remake_tables(folder, console=console) == 0
    assert "unreadable lines are ignored: 1" in console.export_text()
    assert "unreadable lines are ignored: 1" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / gate_log.FILE).read_bytes().startswith(before)


def test_a_run_renames_unreadable_accounts(folder: Path) -> None:
    view = folder / "views" / "0123456789abcdef" / "run.json"
    assert set_unread_aside(folder) == []
    assert json.loads(view.read_text())["view"] == "0123456789abcdef"
    for path in (folder / "run.json", view):
        flip(path, 0)
    torn = view.read_bytes()
    assert set_unread_aside(folder) == ["run.json", "views/0123456789abcdef/run.json"]
    (aside,) = view.parent.glob("run.json.aside-*")
    assert aside.read_bytes() == torn and not view.exists()


@pytest.mark.slow
def test_a_run_that_was_interrupted_before_its_tables_is_named(folder: Path) -> None:
    begun = folder.parents[1] / "late" / folder.name / "records"
    begun.mkdir(parents=True)
    (begun / "shard-00000001.parquet").write_bytes((folder / "records.parquet").read_bytes())
    console = Console(record=True, width=500)
    remake_tables(folder.parents[1], console=console)
    assert f"{begun.parent} was interrupted before its first tables" in console.export_text()


@pytest.mark.slow
def test_a_view_whose_judges_readings_are_damaged_stays_unchanged(folder: Path) -> None:
    view = folder / "views" / "0123456789abcdef"
    (view / "tables" / "answers_judged.csv").write_text("a\n")
    (view / "readings.json").write_text('{"judge": "one", "found"')
    report = (view / "report.html").read_bytes()
    console = Console(record=True, width=300)
    remake_tables(folder, console=console)
    assert "its judge's readings" in console.export_text()
    assert (view / "report.html").read_bytes() == report
