"""The cases of a call: their digest, their file, and their records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from runner_helpers import go
from runner_parts import make_suite

from medtest.core.cases import SeedRef
from medtest.core.errors import OutputProblem
from medtest.core.records import KEY_COLUMNS
from medtest.results.records.records_io import Records
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.case_set import FILE, CaseSet
from medtest.runner.reporting.outcome import Limits
from medtest.suite.model import Selection
from medtest.suite.plan import Plan


def plan_of(count: int, items: tuple[str, ...] = ("",)) -> Plan:
    """Return a plan of eleven cases per seed and question."""
    refs = [SeedRef(dataset="d", seed_id=f"patient-{n}", cluster="", locator="", items=items) for n in range(count)]
    return Plan(refs, make_suite().build_relations(), 8)


def test_the_digest_is_of_a_set() -> None:
    plan, names = plan_of(3), ShownNames(None)
    chosen = np.zeros(33, bool)
    chosen[[11, 12, 30]] = True
    case_set = CaseSet.of(plan, chosen, names)
    turned = CaseSet(cases=case_set.cases.take(pa.array([2, 0, 1])))
    assert case_set.count == 3 and case_set.view("a") == turned.view("a") != case_set.view("b")
    assert case_set.view("a") != CaseSet(cases=case_set.cases.slice(1)).view("a")
    hashed = CaseSet.of(plan, chosen, ShownNames(b"k" * 32))
    assert hashed.view("a") != case_set.view("a")  # names cannot be guessed by trying digests
    assert "patient" not in str(hashed.cases.to_pydict())


def test_it_is_kept_in_a_file_and_finds_its_records(tmp_path: Path) -> None:
    plan = plan_of(2, items=("size", "place"))
    chosen = np.zeros(2 * plan.cases_per_seed, bool)
    chosen[[11, 12, 13]] = True  # the first image, its second question
    case_set = CaseSet.of(plan, chosen, ShownNames(None))
    assert set(case_set.cases["item"].to_pylist()) == {"place"}
    assert CaseSet.read(tmp_path) is None
    case_set.write(tmp_path)
    again = CaseSet.read(tmp_path)
    assert again is not None and again.cases.equals(case_set.cases)
    every = CaseSet.of(plan, np.ones_like(chosen), ShownNames(None)).cases
    mixed = every.take(pa.array(range(every.num_rows)[::-1])).append_column("dice", pa.array(range(every.num_rows)))
    rows = case_set.rows(mixed)
    assert mixed.take(pa.array(rows)).num_rows == 3 and list(rows) == sorted(rows)
    assert set(KEY_COLUMNS) <= set(mixed.column_names)
    (tmp_path / FILE).write_bytes(b"no list")
    with pytest.raises(OutputProblem, match=FILE):
        CaseSet.read(tmp_path)


def test_a_view_is_made_only_where_a_folder_holds_more(tmp_path: Path) -> None:
    first = make_suite(seeds=3)
    two = make_suite(seeds=3, systems={"bright": {}, "dark": {"level": 150}})
    limits = Limits(samples=3)
    assert go(first, tmp_path, limit=2).asked is None
    assert go(first, tmp_path).asked is None
    outcome = go(two, tmp_path, limit=1, limits=limits)  # one system's folder is full, the other's is new
    assert outcome.asked is not None and outcome.view
    assert [system.cases_executed for system in outcome.systems] == [0, 11]
    assert [(system.asked, system.asked_finished) for system in outcome.systems] == [(11, 11), (11, 11)]
    for system in outcome.systems:
        shown = Records.read(system.folder, ["seed_id"], outcome.asked)
        assert set(shown.sources["seed_id"].astype(str)) == {"patient-0000"} and len(shown.followups) == 10
        drawn = [path.name for path in (system.folder / "views" / outcome.view / "samples").glob("*.png")]
        assert len(drawn) == 3 and all("patient-0000" in name for name in drawn)
    same = go(two, tmp_path, only=Selection(seeds=frozenset({"patient-0000"})))
    assert same.view == outcome.view
