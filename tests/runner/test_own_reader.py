"""The reader of the first call reads the run's own records; every other reader makes a view."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prompt_parts import prompt_suite, stripes
from runner_helpers import QUICK, records

from medtest.core.errors import UserMistakes
from medtest.runner.reporting.outcome import RunOutcome
from medtest.runner.run import run_suite
from medtest.session.own_reader import with_own_reader
from medtest.suite.compose import Loaded
from medtest.suite.composed import with_composed
from medtest.suite.digest import oracle_digest
from medtest.suite.model import Invocation, Selection, Suite
from medtest.suite.schema import RunBlock


def call_of(usual: Suite, named: Suite | None = None) -> Loaded:
    """Return a call of a suite, with the reader of another one named on the command line."""
    plain = Loaded(suite=usual, own=usual, options=RunBlock(), selection=Selection())
    if named is None:
        return plain
    return replace(plain, suite=named, view=oracle_digest(named).value, reader=named.build_reader())


def run(loaded: Loaded, home: Path, **options: int) -> tuple[Loaded, RunOutcome]:
    invocation = Invocation(home=home, quiet=True, workers=1, **options)
    loaded, read_by = with_own_reader(loaded, invocation)
    return loaded, run_suite(loaded.own, invocation, limits=QUICK, judged=loaded.view, read_by=read_by)


@pytest.mark.slow
def test_the_reader_named_first_reads_the_records_and_the_others_make_views(tmp_path: Path) -> None:
    with stripes() as server:
        usual = with_composed(prompt_suite(server.base_url))
        blind = with_composed(prompt_suite(server.base_url, reader={"blind": "dog"}))
        first, outcome = run(call_of(usual, blind), tmp_path)
        assert (first.view, first.reader, first.own) == ("", None, blind)
        before = records(outcome)
        assert set(before[before["prompt"].str.contains("dog")]["entities"]) == {0.0}
        again, _ = run(call_of(usual, blind), tmp_path)
        assert again.view == "" and again.own is blind
        later, outcome = run(call_of(usual), tmp_path)
        assert later.view == oracle_digest(usual).value
        assert later.reader is not None and later.reader.settings == usual.build_reader().settings  # type: ignore[union-attr]
        assert outcome.systems[0].cases_executed == 0
        assert records(outcome).equals(before)
        third = with_composed(prompt_suite(server.base_url, reader={"blind": "cat"}))
        viewed, _ = run(call_of(usual, third), tmp_path)
        assert viewed.view and viewed.reader is not None and viewed.reader.settings.blind == "cat"
        fresh, read_by = with_own_reader(call_of(usual, third), Invocation(home=tmp_path, quiet=True, fresh=True))
        assert (fresh.view, fresh.own, read_by) == ("", third, "")


@pytest.mark.slow
def test_a_reader_that_a_call_does_not_name_reads_no_further_case(tmp_path: Path) -> None:
    with stripes() as server:
        usual = with_composed(prompt_suite(server.base_url))
        blind = with_composed(prompt_suite(server.base_url, reader={"blind": "dog"}))
        run(call_of(usual, blind), tmp_path, limit=1)
        prompt_count = len(server.asked)
        with pytest.raises(UserMistakes, match="oracles.reader.use=stripes") as mistakes:
            run(call_of(usual), tmp_path)
        assert "the reader of its records" in str(mistakes.value) and len(server.asked) == prompt_count
        _, outcome = run(call_of(usual, blind), tmp_path)
        assert outcome.systems[0].cases_executed == 6


@pytest.mark.slow
def test_a_suites_own_reader_stays_that_of_records_it_has_read(tmp_path: Path) -> None:
    with stripes() as server:
        usual = with_composed(prompt_suite(server.base_url))
        blind = with_composed(prompt_suite(server.base_url, reader={"blind": "dog"}))
        run(call_of(usual), tmp_path, limit=1)
        view, outcome = run(call_of(usual, blind), tmp_path)
        assert view.view and view.own is usual and view.reader is not None
        assert set(records(outcome)["entities"]) == {1.0}
