"""Searches on systems that answer in a stream: all questions of a picture, budgets, resumed sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from runner_helpers import assert_equal_records, go, records
from searching_parts import asking_suite

from medtest.core.errors import ExitCode
from medtest.results.tables import make_tables
from medtest.suite.model import Selection
from medtest.systems.answering.asking import BudgetLimits


@pytest.mark.parametrize("together", [False, True])
def test_a_picture_fails_where_any_question_does(together: bool, tmp_path: Path) -> None:
    suite = asking_suite(together=together)
    outcome = go(suite, tmp_path)
    frame = records(outcome)
    queries = frame[frame["search"].notna()]
    assert set(queries.groupby(["seed_id", "frame"])["item"].nunique()) == {3}
    assert set(queries.groupby(["seed_id", "frame"])["followup_sha256"].nunique()) == {1}
    table = make_tables(outcome.systems[0].folder, suite).named()["search.csv"]
    assert len(table) == 3
    assert (table["state"] == "fails").all()
    assert (table["scale"] - table["passing_scale"] < 0.01).all()
    for row in table.itertuples():
        for address, fails in ((row.address, True), (row.passing_address, False)):
            stem = str(address).rpartition("/")[0]
            own = frame[frame["address"].str.startswith(f"{stem}/")]
            assert len(own) == 3
            assert (own["verdict"] == "FAIL").any() == fails


def test_repeated_queries_are_new_calls(tmp_path: Path) -> None:
    log = tmp_path / "log"
    go(asking_suite(seeds=1, together=True, log=str(log)), tmp_path)
    calls = [line.split() for line in log.read_text().splitlines()]
    repeats = [int(repeat) for label, _, repeat, *_ in calls if "darken_s0_f" in label and int(repeat) > 1]
    assert sorted(repeats) == [2, 2, 3, 3, 4, 4, 5, 5]


def test_a_budget_stops_a_search_and_the_next_call_continues_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    whole = records(go(asking_suite(), tmp_path / "whole"))
    suite = asking_suite(log=str(log))
    stopped = go(suite, tmp_path / "parts", budget=BudgetLimits(max_calls=75))
    assert stopped.stopped is ExitCode.BUDGET
    before = [line.split()[0] for line in log.read_text().splitlines()]
    assert any("darken_s0_f" in label for label in before)
    log.unlink()
    again = records(go(suite, tmp_path / "parts"))
    after = [line.split()[0] for line in log.read_text().splitlines()]
    assert not {label for label in before if "darken_s0_f" in label} & set(after)
    assert_equal_records(again, whole)


def test_one_question_of_a_search_is_recorded_as_in_the_whole_run(tmp_path: Path) -> None:
    whole = records(go(asking_suite(seeds=2), tmp_path / "whole"))
    part = records(go(asking_suite(seeds=2), tmp_path / "part", only=Selection(questions=frozenset({"red"}))))
    assert set(part["item"]) == {"red"}
    assert_equal_records(part, whole[whole["item"] == "red"].reset_index(drop=True))
