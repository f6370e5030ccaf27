"""Tables of other packages: matching ones are made; a failing one is a notice that names the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from medtest.core.plugins import parts
from medtest.results.installed import InstalledTables, installed_tables
from medtest.results.records.records_io import Records

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "expected"
MODULE = """\
import pandas as pd

from medtest.results.installed import Table
from medtest.core.tasks.base import Section


class Counts(Table):
    def make(self, records):
        records.followups["dice"] = 0.0
        records.followups.loc[:, "relation"] = "mine"
        return records.followups.groupby("relation").size().to_frame("cases")

    def section(self, table):
        return Section(name="counts", title="<b>", rows=[(one.relation, one.cases) for one in table.itertuples()])


class OfMasks(Table):
    tasks = ("mask",)

    def make(self, records):
        when = pd.to_datetime(["2026-01-01"])
        return pd.DataFrame({"mean": [records.followups["dice"].mean()], "when": when, "what": [("a", 1)], 3: [None]})


class Raises(Table):
    def make(self, records):
        return records.followups["no such\\ncolumn"]


class Leaves(Raises):
    def make(self, records):
        raise SystemExit("good bye")


class NoFrame(Table):
    def make(self, records):
        return {"a": 1}


class Twice(Table):
    def make(self, records):
        return pd.DataFrame([[1, 2]], columns=["a", "a"])


class BadSection(Counts):
    def section(self, table):
        return table.no_such
"""
Install = Callable[[dict[str, str]], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package as pip leaves it, with these tables by name."""

    def written(tables: dict[str, str]) -> None:
        (tmp_path / "foreign_tables.py").write_text(MODULE, encoding="utf-8")
        about = tmp_path / "foreign_tables-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-tables\nVersion: 1.0\n", encoding="utf-8")
        lines = [f"{name} = foreign_tables:{target}" for name, target in tables.items()]
        (about / "entry_points.txt").write_text("[medtest.tables]\n" + "\n".join(lines) + "\n", encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        parts.cache_clear()

    yield written
    sys.modules.pop("foreign_tables", None)
    parts.cache_clear()


def make(task: str = "mask", names: tuple[str, ...] = ()) -> tuple[InstalledTables, Records]:
    rows = [("source", 0.9), ("unchanged", 0.9), ("blur", 0.5), ("blur", 0.4)]
    records = Records.of(pd.DataFrame(rows, columns=["relation", "dice"]))
    return installed_tables(task, records, names), records


def test_tables_of_the_task_are_made_and_records_stay_unchanged(install: Install) -> None:
    install({"counts": "Counts", "of_masks": "OfMasks"})
    installed, records = make()
    assert installed.notices == ()
    assert installed.frames["counts.csv"].to_dict("records") == [{"relation": "mine", "cases": 3}]
    (row,) = installed.frames["of_masks.csv"].to_dict("records")
    assert row["mean"] == pytest.approx(0.6) and row["what"] == "('a', 1)" and row["when"].startswith("2026-01-01")
    assert list(installed.frames["of_masks.csv"].columns) == ["mean", "when", "what", "3"]
    (section,) = installed.sections
    assert section.rows == (("mine", "3"),)
    assert list(records.followups["relation"]) == ["unchanged", "blur", "blur"]
    assert list(make("label")[0].frames) == ["counts.csv"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("Raises", "KeyError: 'no such\\ncolumn'"),
        ("Leaves", "SystemExit: good bye"),
        ("NoFrame", "make returned dict; a pandas.DataFrame is expected."),
        ("Twice", "several columns have the same name: a."),
        ("BadSection", "AttributeError: 'DataFrame' object has no attribute 'no_such'"),
        ("Nowhere", "MedtestError: tables part 'bad' of foreign-tables cannot be loaded"),
    ],
)
def test_a_failing_table_is_left_out_with_a_notice_that_names_the_package(
    install: Install, target: str, words: str
) -> None:
    install({"bad": target, "counts": "Counts"})
    installed, _ = make()
    (notice,) = installed.notices
    assert notice.startswith(f"Table 'bad' of the package foreign-tables is left out: {words}")
    assert list(installed.frames) == ["counts.csv"] and len(installed.sections) == 1


@pytest.mark.parametrize("name", ["efr", "pivot_truth", "classification", "boxes", "../x", "Counts"])
def test_a_taken_name_and_a_name_unfit_as_an_id_are_refused(install: Install, name: str) -> None:
    install({name: "Counts"})
    installed, _ = make(names=("boxes.csv",))
    (notice,) = installed.notices
    assert f"Table {name!r} of the package foreign-tables is left out: the " in notice and "name" in notice
    assert not installed.frames and not installed.sections


def test_the_names_of_all_our_tables_are_taken(install: Install) -> None:
    names = {path.stem for path in GOLDEN.rglob("tables/*.csv")}
    assert len(names) > 20
    install(dict.fromkeys(names, "Counts"))
    assert len(make()[0].notices) == len(names)
