"""One rate limiter per server: campaigns in threads with separate event loops share its limit."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from api_parts import QUICK, questions

from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import CallState, Outcome, Parameters
from medtest.api.campaign import Campaign
from medtest.api.faulty.server import Faults, FaultServer, serving, serving_server
from medtest.api.pacing.rate_limiter import LimiterClosed, RateLimiter, shared_limiter
from medtest.api.pool import GivenUp, StopSignal
from medtest.api.stops import ServerClosed
from medtest.api.store.ledger import Ledger


def together(
    folder: Path, server: FaultServer, limiter: RateLimiter, each: int, threads: int = 2
) -> list[list[Outcome]]:
    """Let campaigns of different models call one server through one limiter at the same time."""
    outcomes: list[list[Outcome]] = [[] for _ in range(threads)]
    failures: list[BaseException] = []

    def live(number: int) -> None:
        caller = Caller(Endpoint(base_url=server.base_url), Parameters(model=f"model-{number}"), call_seconds=20)
        with Ledger(folder / f"{number}.sqlite") as ledger:
            started = Campaign(caller, ledger, limiter=limiter, retries=QUICK)
            try:
                for outcome in started.iterate(questions(each)):
                    outcomes[number].append(outcome)
            except BaseException as error:  # noqa: BLE001 - raised in the test's thread
                failures.append(error)

    running = [threading.Thread(target=live, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    assert not any(thread.is_alive() for thread in running)
    for failure in failures:
        raise failure
    return outcomes


def test_two_campaigns_are_never_more_than_one_gate_lets_through(tmp_path: Path) -> None:
    lock = threading.Lock()
    now = [0, 0]

    def answer(body: Mapping[str, Any]) -> str:
        with lock:
            now[0] += 1
            now[1] = max(now)
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return "Yes."

    with serving_server(FaultServer(answer=answer, threads=32)) as server:
        parts = together(tmp_path, server, RateLimiter(max_in_flight=5), 40)
        assert server.counts["received"] == 80
    assert [{outcome.state for outcome in part} for part in parts] == [{CallState.ANSWERED}] * 2
    assert 3 <= now[1] <= 5


def test_two_campaigns_keep_to_one_limit(tmp_path: Path) -> None:
    with serving(Faults(latency=0.02, rate=20, burst=10)) as server:
        parts = together(tmp_path, server, RateLimiter(max_in_flight=32), 50)
        assert [len(part) for part in parts] == [50, 50]
        assert {outcome.state for part in parts for outcome in part} == {CallState.ANSWERED}
        assert server.counts["limited"] / server.counts["received"] < 0.03


def test_a_server_that_closes_for_hours_ends_both(tmp_path: Path) -> None:
    faults = Faults(rate=0.0003, burst=6, headers=False, latency=0.02)
    with serving(faults) as server, pytest.raises(ServerClosed):
        together(tmp_path, server, RateLimiter(), 30)
    for number in range(2):
        with Ledger(tmp_path / f"{number}.sqlite") as ledger:
            assert ledger.totals().under_way == ledger.totals().lost == 0
    assert server.counts["received"] < 20


def test_threads_that_come_cancel_and_go_leave_the_gate_as_it_was() -> None:
    """Four event loops, entries that are cancelled at random moments, and pauses in between."""
    limiter = RateLimiter(max_in_flight=3)
    inside, peak, entered = [0], [0], [0]
    lock = threading.Lock()

    async def call(draw: random.Random) -> None:
        permit = await limiter.enter(again=draw.random() < 0.3)
        with lock:
            inside[0] += 1
            entered[0] += 1
            peak[0] = max(peak[0], inside[0])
        try:
            await asyncio.sleep(0.002 * draw.random())
        finally:
            with lock:
                inside[0] -= 1
            refused = draw.random() < 0.02
            limiter.leave(permit, status=429 if refused else 200, headers={"retry-after-ms": "10"} if refused else {})

    async def body(seed: int) -> None:
        draw = random.Random(seed)
        tasks = []
        for _ in range(120):
            tasks.append(asyncio.create_task(call(draw)))
            if draw.random() < 0.3:
                await asyncio.sleep(0.001)
            if draw.random() < 0.2:
                draw.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    threads = [threading.Thread(target=lambda seed=seed: asyncio.run(body(seed))) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    counters = limiter.counters()
    assert (counters.in_flight, counters.waiting) == (0, 0)
    assert peak[0] <= 3
    assert entered[0] > 200


def test_a_loop_that_ends_passes_the_watch_on() -> None:
    """The next in line watches the clock for all; when its loop ends, another's does."""
    limiter = RateLimiter(max_in_flight=2)
    through = threading.Event()

    async def first() -> None:
        permit = await limiter.enter()
        limiter.leave(permit, status=429, headers={"retry-after-ms": "700"})
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):  # it is first in line, and leaves before the pause is over
                await limiter.enter()

    async def second() -> None:
        await asyncio.sleep(0.1)
        await limiter.enter()
        through.set()

    threads = [threading.Thread(target=lambda make=make: asyncio.run(make()), daemon=True) for make in (first, second)]
    for thread in threads:
        thread.start()
    assert through.wait(10)
    assert limiter.counters().in_flight == 1


def test_waiting_calls_end_with_a_stop_or_a_long_pause() -> None:
    async def body() -> None:
        limiter, stop, other = RateLimiter(max_in_flight=1), StopSignal(), StopSignal()
        held = await limiter.enter()
        stopped = asyncio.create_task(limiter.enter(stop=stop))
        short = asyncio.create_task(limiter.enter(stop=other, patience=5.0))
        patient = asyncio.create_task(limiter.enter(patience=50.0))
        await asyncio.sleep(0)
        stop.give()
        limiter.dismiss(stop)
        with pytest.raises(GivenUp):
            await stopped
        with pytest.raises(GivenUp):
            await limiter.enter(stop=stop)
        limiter.leave(held, status=429, headers={"retry-after": "20"})
        with pytest.raises(LimiterClosed) as caught:
            await short
        assert 19 < caught.value.seconds <= 20
        await asyncio.sleep(0.01)
        assert not patient.done()
        patient.cancel()

    asyncio.run(body())


def test_calls_that_are_sent_again_go_first_and_in_their_own_order() -> None:
    async def body() -> None:
        limiter = RateLimiter(max_in_flight=1)
        held = await limiter.enter()
        order: list[str] = []

        async def call(name: str, again: bool) -> None:
            permit = await limiter.enter(again=again)
            order.append(name)
            limiter.leave(permit, status=200, headers={})

        tasks = []
        for name, again in (("new 1", False), ("again 1", True), ("new 2", False), ("again 2", True)):
            tasks.append(asyncio.create_task(call(name, again)))
            await asyncio.sleep(0)
        limiter.leave(held, status=200, headers={})
        await asyncio.gather(*tasks)
        assert order == ["again 1", "again 2", "new 1", "new 2"]

    asyncio.run(body())


def test_a_server_has_one_limiter_as_long_as_it_is_in_use() -> None:
    def key(url: str, variable: str = "K") -> str:
        return Endpoint(base_url=url, key_variable=variable).limited_as

    same = {key("https://Api.Example.org/v1"), key("https://api.example.org:443/v1/other")}
    assert len(same) == 1
    others = {key("http://api.example.org/v1"), key("https://api.example.org:444/v1"), key("https://example.org/v1")}
    assert len(same | others | {key("https://api.example.org/v1", "L")}) == 5
    (name,) = same
    limiter = shared_limiter(name, 8)
    assert shared_limiter(name, 32) is limiter
    assert limiter.limits.most == 8
    assert shared_limiter(name, 3).limits.most == 3
    assert limiter.limits.limit <= 3
    assert shared_limiter(others.pop(), 8) is not limiter
    del limiter
    gc.collect()
    assert shared_limiter(name, 32).limits.most == 32, "an unused limiter leaves nothing"
