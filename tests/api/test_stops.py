"""Ends before the last question: the user's stop, a server that is closed for hours, and a question's time limit."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from api_parts import QUICK, ask_all, campaign, questions

from medtest.api.calls.request import CallState, Outcome
from medtest.api.calls.retry import Retries
from medtest.api.campaign import Campaign
from medtest.api.faulty.server import Faults, FaultServer, serving, serving_server
from medtest.api.stops import ServerClosed, duration
from medtest.api.store.ledger import Ledger, LedgerTotals
from medtest.core.errors import ExitCode


def totals(folder: Path) -> LedgerTotals:
    with Ledger(folder / "ledger.sqlite") as ledger:
        return ledger.totals()


def stop_after(running: Campaign, server: FaultServer, answers: int) -> None:
    """Stop a campaign after so many errors of the server."""
    while server.counts["error"] < answers:
        time.sleep(0.01)
    running.stop()


# --- the user's stop ----------------------------------------------------------------------------------------------


def test_a_stop_lets_calls_under_way_end_and_no_other_leave(tmp_path: Path) -> None:
    with serving(Faults(latency=0.25)) as server:
        with campaign(tmp_path, server.base_url, max_in_flight=4) as running:
            got: list[Outcome] = []
            sent = -1
            for outcome in running.iterate(questions(200)):
                got.append(outcome)
                if len(got) == 6:
                    running.stop()
                    sent = running.limiter.limits.let_through
                    assert "stopping: " in running.progress().line()
            assert running.limiter.limits.let_through == sent == server.counts["received"]
            assert len(got) == sent, "every call that had left was waited for"
        assert totals(tmp_path).lost == 0
        again = ask_all(tmp_path, server.base_url, questions(20))
        assert {outcome.state for outcome in again} == {CallState.ANSWERED}
        assert server.counts["received"] == max(20, sent), "nothing was asked twice"


def test_a_stop_waits_for_no_pause_and_no_other_try(tmp_path: Path) -> None:
    rules = Retries(first_pause=3600.0, longest_pause=3600.0, total_seconds=7200.0)
    with serving(Faults(error=1.0)) as server, campaign(tmp_path, server.base_url, retries=rules) as running:
        threading.Thread(target=stop_after, args=(running, server, 3)).start()
        assert list(running.iterate(questions(3))) == []  # the pause is an hour
        assert server.counts["received"] == 3
    assert totals(tmp_path).outcomes == 0
    with serving() as server:
        assert {outcome.state for outcome in ask_all(tmp_path, server.base_url, questions(3))} == {CallState.ANSWERED}


def test_a_stop_before_the_first_call_asks_nothing(tmp_path: Path) -> None:
    with serving() as server, campaign(tmp_path, server.base_url) as running:
        running.stop()
        assert list(running.iterate(questions(5))) == []
        assert server.counts["received"] == 0


# --- a server that is closed for longer than a question may last --------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        Faults(rate=0.0003, burst=5, headers=False, retry_after="seconds", latency=0.01),
        Faults(rate=0.0003, burst=5, headers=False, retry_after="date", latency=0.01),
        Faults(rate=0.0003, burst=5, headers=True, retry_after="none", latency=0.01),
        Faults(rate=0.0014, window=3600.0, headers=True, retry_after="none", latency=0.01),
    ],
    ids=["seconds", "date", "steady quota", "quota of an hour"],
)
def test_a_pause_of_hours_ends_the_run_and_is_no_error(tmp_path: Path, faults: Faults) -> None:
    rules = Retries(total_seconds=900.0, first_pause=0.01)
    with serving(faults) as server:
        got: list[Outcome] = []
        with campaign(tmp_path, server.base_url, retries=rules) as running, pytest.raises(ServerClosed) as caught:
            got += running.iterate(questions(40))
        assert {outcome.state for outcome in got} == {CallState.ANSWERED}
        assert len(got) == 5 == server.counts["answered"]
        assert caught.value.exit_code is ExitCode.BUDGET
        assert 0.5 * 3600 < caught.value.seconds <= 5 * 3600
        assert re.search(r"asks to wait \d.* until 20\d\d-.*the same command", str(caught.value), re.DOTALL)
        assert totals(tmp_path).lost == 0
        server.set(Faults())
        rest = ask_all(tmp_path, server.base_url, questions(40))
        assert {outcome.state for outcome in rest} == {CallState.ANSWERED}
        assert server.counts["answered"] == 40


def test_a_quota_that_the_last_question_uses_up_stops_nothing(tmp_path: Path) -> None:
    with serving(Faults(rate=0.0003, burst=5, headers=True)) as server:
        assert len(ask_all(tmp_path, server.base_url, questions(5))) == 5


def test_a_pause_within_a_question_s_time_is_waited_for(tmp_path: Path) -> None:
    with serving(Faults(rate=1.0, burst=2, headers=False)) as server:
        got = ask_all(tmp_path, server.base_url, questions(4), retries=Retries(total_seconds=20.0))
        assert {outcome.state for outcome in got} == {CallState.ANSWERED}


def test_pauses_as_people_say_them() -> None:
    assert [duration(seconds) for seconds in (45, 720, 18_000)] == ["45 s", "12 min", "5.0 h"]


# --- a question's own time ----------------------------------------------------------------------------------------


def test_waiting_for_other_calls_is_no_time_of_the_question(tmp_path: Path) -> None:
    """Question 0 fails, and question 1 then holds the only place for 0.8 s: longer than question 0 has."""
    tried: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        prompt = body["messages"][-1]["content"][-1]["text"]
        tried.append(prompt)
        if tried == ["question 0"]:
            raise RuntimeError("at first it breaks")
        if prompt == "question 1":
            time.sleep(0.8)
        return "Yes."

    rules = Retries(first_pause=0.01, total_seconds=0.5, call_seconds=10.0)
    with serving_server(FaultServer(answer=answer, threads=4)) as server:
        got = ask_all(tmp_path, server.base_url, questions(3), max_in_flight=1, retries=rules)
    assert {outcome.state for outcome in got} == {CallState.ANSWERED}
    assert tried.count("question 0") == 2


def test_a_pause_of_ours_does_not_outlast_the_question(tmp_path: Path) -> None:
    rules = Retries(first_pause=3600.0, longest_pause=3600.0, total_seconds=0.8, call_seconds=5.0)
    with serving(Faults(error=1.0)) as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1), retries=rules)
        assert got.state == CallState.ERROR
        assert "no answer within 0.8 s" in got.reason
        assert server.counts["received"] == 1


def test_many_short_stops_lose_and_double_nothing(tmp_path: Path) -> None:
    with serving(Faults(latency=0.03, jitter=0.03)) as server:
        for goal in (3, 9, 17, 28):
            with campaign(tmp_path, server.base_url, max_in_flight=4, retries=QUICK) as running:
                for number, _ in enumerate(running.iterate(questions(40)), start=1):
                    if number == goal:
                        running.stop()
        got = ask_all(tmp_path, server.base_url, questions(40))
        assert len(got) == 40
        assert server.counts["received"] == 40 == len(server.answered)
    assert totals(tmp_path).lost == 0
