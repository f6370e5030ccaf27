"""Servers that are slower, or allow less, than they state: whole campaigns over sockets, on a clock that jumps."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from api_parts import questions
from clocked import played

from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import CallState, Outcome, Parameters
from medtest.api.calls.retry import Retries
from medtest.api.campaign import Campaign
from medtest.api.faulty.server import Faults, FaultServer
from medtest.api.pacing.load import Load
from medtest.api.pacing.rate_limiter import RateLimiter
from medtest.api.store.ledger import Ledger


def run_campaign(
    folder: Path, faults: Faults, count: int, retries: Retries, max_in_flight: int = 32
) -> tuple[list[Outcome], Counter[str], Counter[str], float]:
    """Ask questions; return outcomes, counts of the server, calls per question, and the duration."""

    async def body() -> tuple[list[Outcome], FaultServer]:
        server = FaultServer(faults)
        await server.start()
        caller = Caller(Endpoint(base_url=server.base_url), Parameters(model="m"), call_seconds=retries.call_seconds)
        limiter = RateLimiter(max_in_flight=max_in_flight, clock=asyncio.get_running_loop().time)
        with Ledger(folder / "ledger.sqlite") as ledger:
            running = Campaign(caller, ledger, limiter=limiter, retries=retries, draw=random.Random(1))
            outcomes = await asyncio.gather(*(running.ask(request) for request in questions(count)))
        await caller.close()
        await server.stop()
        return outcomes, server

    (outcomes, server), seconds = played(body())
    return outcomes, server.counts, server.came, seconds


@pytest.mark.slow
@pytest.mark.parametrize("call_seconds", [2.0, 5.0, 23.0])
def test_a_server_of_one_slot_is_asked_one_after_another(tmp_path: Path, call_seconds: float) -> None:
    rules = Retries(call_seconds=call_seconds)
    outcomes, counts, came, seconds = run_campaign(tmp_path, Faults(slots=1, latency=1.2), 108, rules)
    assert {outcome.state for outcome in outcomes} == {CallState.ANSWERED}
    assert seconds <= 150  # 108 · 1.2 s are 130 s
    assert counts["received"] <= 125
    assert max(came.values()) <= 6


def test_recorded_times_of_a_server_of_one_slot_are_its_own(tmp_path: Path) -> None:
    outcomes, _, _, _ = run_campaign(tmp_path, Faults(slots=1, latency=1.2), 108, Retries())
    took = sorted(outcome.seconds for outcome in outcomes)
    assert took[len(took) // 2] < 2.5  # with all 32 in flight it would be 38 s


@pytest.mark.slow
@pytest.mark.parametrize("retry_after", ["seconds", "none"])
@pytest.mark.parametrize("latency", [0.05, 1.2])
def test_a_shorter_window_than_stated_refuses_a_tenth_at_most(tmp_path: Path, retry_after: str, latency: float) -> None:
    faults = Faults(rate=1.0, burst=60, hidden=6, hidden_seconds=6.0, latency=latency, retry_after=retry_after)
    outcomes, counts, came, seconds = run_campaign(tmp_path, faults, 108, Retries())
    assert {outcome.state for outcome in outcomes} == {CallState.ANSWERED}
    assert counts["limited"] / counts["received"] <= 0.10
    assert max(came.values()) <= 6
    assert seconds < 1.4 * 108


def test_calls_that_hang_among_others_that_come_soon_lower_nothing(tmp_path: Path) -> None:
    faults = Faults(latency=0.25, slow=0.03, slow_seconds=600.0)
    outcomes, counts, _, seconds = run_campaign(tmp_path, faults, 200, Retries(call_seconds=5.0))
    assert {outcome.state for outcome in outcomes} == {CallState.ANSWERED}
    assert counts["slow"] >= 4
    assert seconds < 20  # a call that hangs costs 5 s and another try, at the end too


def test_a_question_that_waits_for_others_of_ours_keeps_its_time(tmp_path: Path) -> None:
    # Each answer takes 1 s, one at a time, and every other call fails at once: 20 questions, 40 calls and 20 s of work.
    rules = Retries(call_seconds=5.0, total_seconds=4.0, first_pause=0.1)
    faults = Faults(slots=1, latency=1.0, error=0.5, seed=4)
    outcomes, counts, _, _ = run_campaign(tmp_path, faults, 20, rules, max_in_flight=1)
    assert counts["error"] > 5
    assert [outcome.state for outcome in outcomes].count(CallState.ANSWERED) >= 19


@pytest.mark.parametrize(("power", "full"), [(0.0, False), (0.3, False), (1.0, True)])
def test_latency_in_step_with_concurrency_is_a_queue(power: float, full: bool) -> None:
    draw, load = random.Random(3), Load()
    for beside in [1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 10, 12, 14, 16, 16, 16]:
        load.answered(beside, beside**power * draw.uniform(0.9, 1.1))
    assert load.full() is full
