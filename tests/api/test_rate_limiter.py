"""The limiter: number and times of calls, and learned limits, against limits written down here."""

from __future__ import annotations

import asyncio
import heapq
import random
import statistics

import pytest

from medtest.api.pacing.rate_limiter import RateLimiter
from medtest.api.pacing.throttle import START, Throttle


class Clock:
    """Time that only moves on request."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Steady:
    """An independent limiter: ``rate`` a second, ``burst`` at once; counts on arrival."""

    def __init__(self, rate: float, burst: int, *, headers: bool, retry: bool) -> None:
        self.rate, self.burst, self.headers, self.retry = rate, burst, headers, retry
        self.level, self.at = float(burst), 1000.0

    def ask(self, now: float) -> tuple[int, dict[str, str]]:
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        fine = self.level >= 1
        self.level -= fine
        stated = {
            "x-ratelimit-limit-requests": str(self.burst),
            "x-ratelimit-remaining-requests": str(int(self.level)),
            "x-ratelimit-reset-requests": f"{(self.burst - self.level) / self.rate * 1000:.0f}ms",
        }
        headers = dict(stated) if self.headers else {}
        if not fine and self.retry:
            headers["retry-after"] = "1"
        return (200 if fine else 429), headers


def played(server: Steady, calls: int, latency: float, most: int = 32) -> tuple[int, float]:
    """Play calls through ``Throttle`` on a simulated clock; return refusals and the whole duration."""
    limits, now, refused, done = Throttle(most=most), 1000.0, 0, 0
    remaining = calls
    under_way: list[tuple[float, int, object, int, dict[str, str]]] = []
    count = 0
    while done < calls:
        wait = limits.ready_in(0, now) if remaining and len(under_way) < int(limits.limit) else None
        if wait == 0:
            permit = limits.take(0, now)
            status, headers = server.ask(now)
            count += 1
            heapq.heappush(under_way, (now + latency, count, permit, status, headers))
            remaining -= 1
            continue
        times = [under_way[0][0]] if under_way else []
        times += [] if wait is None else [now + max(wait, 1e-3)]
        now = min(times)
        while under_way and under_way[0][0] <= now:
            _, _, permit, status, headers = heapq.heappop(under_way)
            limits.answered(permit, status=status, headers=headers, now=now)  # type: ignore[arg-type]
            refused += status == 429
            done += status == 200
            remaining += status == 429
    return refused, now - 1000.0


@pytest.mark.parametrize("latency", [0.005, 0.05, 0.25, 2.0])
def test_stated_quotas_are_kept_almost_without_refusals(latency: float) -> None:
    refused, seconds = played(Steady(10, 10, headers=True, retry=True), 200, latency)
    assert refused / (200 + refused) < 0.03
    assert seconds < 1.25 * 19 + 2 * latency


def test_a_short_burst_above_the_limit_is_kept_to_two_refusals() -> None:
    refused, seconds = played(Steady(40, 10, headers=True, retry=True), 80, 0.01)
    assert refused <= 2
    assert seconds < 1.5 * 70 / 40


@pytest.mark.parametrize("latency", [0.005, 0.05, 0.25])
def test_with_retry_after_alone_at_most_a_tenth_is_refused(latency: float) -> None:
    refused, seconds = played(Steady(10, 10, headers=False, retry=True), 200, latency)
    assert refused / (200 + refused) <= 0.10
    assert seconds < 1.5 * 19


@pytest.mark.parametrize("latency", [0.005, 0.05, 0.25])
def test_with_no_word_at_all_it_still_ends(latency: float) -> None:
    refused, seconds = played(Steady(10, 10, headers=False, retry=False), 200, latency)
    assert refused / (200 + refused) <= 0.35
    assert seconds < 3 * 19


class Windows(Steady):
    """Fixed windows of six seconds, sixty calls in each."""

    def ask(self, now: float) -> tuple[int, dict[str, str]]:
        if now >= self.at + 6:
            self.level, self.at = 60.0, self.at + 6 * ((now - self.at) // 6)
        fine = self.level >= 1
        self.level -= fine
        return (200 if fine else 429), {
            "x-ratelimit-limit-requests": "60",
            "x-ratelimit-remaining-requests": str(int(self.level)),
            "x-ratelimit-reset-requests": f"{(self.at + 6 - now) * 1000:.0f}ms",
        }


def test_fixed_windows_are_detected() -> None:
    refused, seconds = played(Windows(10, 60, headers=True, retry=False), 300, 0.05)
    assert refused / (300 + refused) < 0.05
    assert seconds < 36


@pytest.mark.parametrize("rate", [0.5, 3.0, 50.0, 200.0])
def test_other_rates(rate: float) -> None:
    refused, seconds = played(Steady(rate, 5, headers=True, retry=True), 100, 0.05)
    assert refused / (100 + refused) < 0.05
    assert seconds < 1.6 * 100 / rate + 2


def test_without_limits_it_opens_fast() -> None:
    refused, seconds = played(Steady(1e9, 10**9, headers=False, retry=False), 640, 0.05)
    assert refused == 0
    # 640 calls by 32 at once take 20 rounds; opening from 4 to 32 costs three more.
    assert seconds <= 24 * 0.05


def test_a_lone_refusal_without_a_word_closes_nothing() -> None:
    limits = Throttle(most=32)
    for index in range(40):
        permit = limits.take(0, 1000.0 + index)
        limits.answered(permit, status=429 if index == 20 else 200, headers={}, now=1000.5 + index)
    assert limits.ready_in(0, 1041.0) == 0
    assert limits.limit >= START  # calls one at a time are no reason for more


class Accidents(Steady):
    """Refuses some calls at random, without a reason, before its own limit is checked."""

    def __init__(self, share: float, seed: int, *, rate: float = 1e9, burst: int = 10**9) -> None:
        super().__init__(rate, burst, headers=False, retry=False)
        self.share, self.draw = share, random.Random(seed)

    def ask(self, now: float) -> tuple[int, dict[str, str]]:
        return (429, {}) if self.draw.random() < self.share else super().ask(now)


def test_refusals_at_random_are_no_limit() -> None:
    # 32 in flight at 50 ms are 640 a second at most; a limiter that took accidents for a limit fell to 10 a second
    rates = [5000 / played(Accidents(0.05, seed), 5000, 0.05)[1] for seed in range(8)]
    assert statistics.median(rates) > 500
    assert min(rates) > 100


@pytest.mark.parametrize("latency", [0.05, 0.25])
def test_a_limit_is_kept_among_refusals_at_random(latency: float) -> None:
    refused, seconds = played(Accidents(0.05, 1, rate=10, burst=10), 200, latency)
    assert refused / (200 + refused) <= 0.35
    assert seconds < 2 * 19


def test_starts_small_queues_in_order_and_gives_back() -> None:
    async def body() -> None:
        clock = Clock()
        limiter = RateLimiter(max_in_flight=32, clock=clock)
        order: list[int] = []

        async def call(index: int) -> None:
            permit = await limiter.enter()
            order.append(index)
            await asyncio.sleep(0)
            limiter.leave(permit, status=200, headers={})

        first = [await limiter.enter() for _ in range(START)]
        tasks = [asyncio.create_task(call(index)) for index in range(20)]
        await asyncio.sleep(0)
        assert limiter.counters().in_flight == START
        assert limiter.counters().waiting == 20
        for permit in first:
            limiter.leave(permit, status=200, headers={})
        await asyncio.gather(*tasks)
        assert order == sorted(order)
        assert limiter.counters().in_flight == 0

    asyncio.run(body())


def test_a_cancelled_waiter_leaves_no_hole() -> None:
    async def body() -> None:
        limiter = RateLimiter(max_in_flight=1)
        held = await limiter.enter()
        waiting = [asyncio.create_task(limiter.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        limiter.leave(held, status=200, headers={})
        waiting[1].cancel()  # it holds a permit that it will never see
        await asyncio.sleep(0)
        permit = await asyncio.wait_for(waiting[2], 1)
        limiter.leave(permit, status=None, headers={})
        assert limiter.counters().in_flight == 0

    asyncio.run(body())


def test_retry_after_closes_the_gate_for_all() -> None:
    async def body() -> None:
        clock = Clock()
        limiter = RateLimiter(clock=clock)
        permit = await limiter.enter()
        limiter.leave(permit, status=429, headers={"retry-after": "7"})
        assert limiter.counters().pause == pytest.approx(7)
        waiting = asyncio.create_task(limiter.enter())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(body())


def test_tokens_have_a_quota_too() -> None:
    limits = Throttle(most=8)
    permit = limits.take(100, 1000.0)
    headers = {
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "150",
        "x-ratelimit-reset-tokens": "8.5s",
    }
    limits.answered(permit, status=200, headers=headers, now=1000.0)
    assert limits.ready_in(100, 1000.0) == 0
    assert 1.0 < limits.ready_in(400, 1000.0) < 3.5


def test_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        RateLimiter(max_in_flight=0)
