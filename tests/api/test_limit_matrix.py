"""Servers that allow less than they state, and servers that slow down: every cell of a matrix, played on a clock."""

from __future__ import annotations

import math

import pytest
from simulated import Delayed, Limited, Queue, Shared, played

from medtest.api.calls.retry import Retries
from medtest.api.faulty.faults import Faults

WINDOWS = ((6, 1.0), (6, 2.0), (6, 3.0), (6, 6.0), (6, 10.0), (3, 1.0))


def ideal(faults: Faults, questions: int) -> float:
    """Return the time of a client that knows the limits."""
    within = 0.0 if faults.hidden is None else (questions - 1) // faults.hidden * faults.hidden_seconds
    return max(within, (questions - faults.burst) / faults.rate if faults.rate else 0.0) + faults.latency


@pytest.mark.parametrize("retry_after", ["seconds", "none"])
@pytest.mark.parametrize(("rate", "headers"), [(1.0, True), (1.0, False), (None, False)])
def test_a_tenth_at_most_is_refused_for_any_window(rate: float | None, headers: bool, retry_after: str) -> None:
    for count, seconds in WINDOWS:
        for latency in (0.2, 1.2):
            faults = Faults(
                rate=rate, burst=60, headers=headers, hidden=count, hidden_seconds=seconds, latency=latency,
                retry_after=retry_after,
            )  # fmt: skip
            result = played(Limited(faults), 200)
            cell = (count, seconds, latency, result)
            assert result.answered == 200, cell
            assert result.refused_share <= 0.10, cell
            assert result.most <= 6, cell
            assert result.seconds <= 1.7 * ideal(faults, 200), cell


@pytest.mark.parametrize("retry_after", ["seconds", "none"])
def test_a_window_that_slides_is_kept_too(retry_after: str) -> None:
    for count, seconds in WINDOWS:
        faults = Faults(hidden=count, hidden_seconds=seconds, latency=0.6, retry_after=retry_after)
        result = played(Limited(faults, sliding=True), 200)
        assert result.answered == 200
        assert result.refused_share <= 0.10, (count, seconds, result)
        assert result.most <= 6


def test_a_long_run_tries_more_rarely() -> None:
    faults = Faults(hidden=6, hidden_seconds=6.0, latency=0.25, retry_after="none")
    result = played(Limited(faults), 600)
    assert result.refused_share <= 0.04
    assert result.seconds <= 1.25 * ideal(faults, 600)


@pytest.mark.parametrize("latency", [0.05, 0.25, 1.0, 2.0])
def test_stated_quotas_are_kept_by_slow_servers_too(latency: float) -> None:
    # Stated quotas are as old as the answer's latency: at 1 s a third of the calls were refused once.
    result = played(Limited(Faults(rate=10.0, burst=10, latency=latency)), 200)
    assert result.answered == 200
    assert result.refused_share <= 0.04
    assert result.seconds <= 1.25 * 19 + 4 * latency


@pytest.mark.parametrize("server_class", [Queue, Shared])
@pytest.mark.parametrize("slots", [1, 2, 4, 8])
@pytest.mark.parametrize("call_seconds", [2.0, 5.0, 20.0])
def test_a_server_with_few_slots_gets_few_calls(
    server_class: type[Queue] | type[Shared], slots: int, call_seconds: float
) -> None:
    result = played(server_class(slots, 1.2), 108, rules=Retries(call_seconds=call_seconds))
    assert result.answered == 108
    assert result.late / result.sent <= (0.12 if slots == 1 else 0.10)
    assert result.seconds <= 1.25 * 1.2 * math.ceil(108 / slots)
    assert result.most <= 5
    if slots <= 4:
        assert result.in_flight <= 20  # of 32


def test_a_server_with_room_gets_all() -> None:
    result = played(Delayed(0.25), 1500)
    assert result.in_flight == 32
    assert 1500 / 32 * 0.25 / result.seconds > 0.9
