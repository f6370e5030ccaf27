"""Prices, estimates, and a budget that counts calls in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from api_parts import ask_all, campaign, picture, questions

from medtest.api.budget import (
    Budget,
    BudgetReached,
    Price,
    estimate,
    picture_tokens,
    price_for,
)
from medtest.api.calls.request import CallState, Outcome, Parameters, Picture, Request
from medtest.api.faulty.server import Faults, serving
from medtest.api.store.ledger import Ledger
from medtest.core.errors import ExitCode, UserMistakes

DOLLAR = Price(input=1e6, output=0)
"""A dollar for a token of the question: cost counts tokens."""


@pytest.mark.parametrize(
    ("height", "width", "detail", "tokens"),
    [
        # The worked examples of OpenAI's guide "Images and vision": 765, 1105 and 85 tokens.
        (1024, 1024, "high", 765),
        (4096, 2048, "high", 1105),
        (4096, 8192, "low", 85),
    ],
)
def test_tokens_of_pictures(height: int, width: int, detail: str, tokens: int) -> None:
    assert picture_tokens(Picture(b"", "", height, width), detail) == tokens


@pytest.mark.parametrize(
    ("model", "height", "width", "detail", "tokens"),
    [
        # Measured by others over the API, without 12 tokens of text: 2845 and 8512 (community.openai.com/t/1262691).
        ("gpt-4o-mini-2024-07-18", 64, 128, "low", 2833),
        ("gpt-4o-mini-2024-07-18", 64, 128, "high", 8500),
        # The same table: 26 tokens in all, with 8 patches times 1.62.
        ("gpt-4.1-mini-2025-04-14", 64, 128, "high", 13),
        # Billed at the most: 1536 patches times 1.62 (community.openai.com/t/1281361).
        ("gpt-4.1-mini", 1474, 4000, "high", 2489),
        ("gpt-4o-2024-08-06", 1024, 1024, "high", 765),
    ],
)
def test_tokens_of_pictures_by_model(model: str, height: int, width: int, detail: str, tokens: int) -> None:
    assert picture_tokens(Picture(b"", "", height, width), detail, model) == tokens


def test_prices() -> None:
    table = {"m": Price(input=2.5, output=10, as_of="2026-01-01")}
    assert table["m"].of(1000, 100) == pytest.approx(0.0035)
    assert price_for("m-2024-08-06", table) == table["m"]
    assert price_for("m-mini", table) is None


def test_a_plan() -> None:
    pixels = np.zeros((512, 512, 3), np.uint8)
    request = Request(address="1", prompt="x" * 40, pictures=(Picture.of(pixels),))
    tokens = estimate(request, Parameters(model="m", max_tokens=100))
    assert tokens.prompt == 10 + 10 + 255
    assert Price(input=1, output=2).of(tokens.prompt, tokens.completion) == pytest.approx((tokens.prompt + 200) / 1e6)


def test_limits_are_checked_up_front() -> None:
    with pytest.raises(UserMistakes, match="1 mistake"):
        Budget(max_usd=1.0)
    with pytest.raises(UserMistakes) as caught:
        Budget(max_usd=-1, max_calls=0, price=DOLLAR)
    assert len(caught.value.mistakes) == 2


def test_calls_in_flight_count() -> None:
    async def body() -> None:
        budget = Budget(max_usd=10, price=DOLLAR)
        first = await budget.reserve(6)
        waiting = asyncio.create_task(budget.reserve(6))
        await asyncio.sleep(0.01)
        assert not waiting.done()  # 12 might be spent: it waits for the first
        budget.settle(first, 2, billable=True)
        second = await asyncio.wait_for(waiting, 1)
        budget.settle(second, 6, billable=True)
        budget.settle(second, 6, billable=True)
        assert (budget.spent_usd, budget.calls) == (8, 2)
        with pytest.raises(BudgetReached) as caught:
            await budget.reserve(3)
        assert caught.value.exit_code == ExitCode.BUDGET
        assert "max_usd" in str(caught.value)

    asyncio.run(body())


def test_max_calls_stops_cleanly_and_goes_on(tmp_path: Path) -> None:
    whole = {f"case/{i}" for i in range(30)}
    with serving(Faults(latency=0.01)) as server:
        outcomes: list[Outcome] = []
        with campaign(tmp_path, server.base_url, budget=Budget(max_calls=11)) as running:
            with pytest.raises(BudgetReached) as caught:
                for outcome in running.iterate(questions(30)):
                    outcomes.append(outcome)
            assert (caught.value.limit, caught.value.calls) == ("max_calls", 11)
        assert len(outcomes) == 11 == server.counts["answered"]
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            totals = ledger.totals()
        assert (totals.calls, totals.outcomes, totals.lost, totals.under_way) == (11, 11, 0, 0)
        budget = Budget(max_calls=30, calls=totals.billable, spent_usd=totals.cost_usd)
        again = ask_all(tmp_path, server.base_url, questions(30), budget=budget)
        assert {outcome.address for outcome in again} == whole
        assert server.counts["answered"] == 30


def test_max_usd_is_kept_where_a_server_counts_pictures_otherwise(tmp_path: Path) -> None:
    shown = picture(512)
    counted = len(shown.data_url()) // 400  # the server's way of counting; our estimate is a tenth of it
    assert counted > 8 * picture_tokens(shown, "auto")
    price, parameters = Price(input=1000, output=0), Parameters(model="simulated", max_tokens=20)
    most = 6 * price.of(counted, 0)
    with serving(Faults(latency=0.01)) as server:
        budget = Budget(max_usd=most, price=price)
        asking = campaign(tmp_path, server.base_url, budget=budget, parameters=parameters)
        with asking as running, pytest.raises(BudgetReached):
            list(running.iterate(questions(60, pictures=(shown,))))
    assert 0.5 * most < budget.spent_usd <= most


@pytest.mark.slow
def test_max_usd_is_never_passed(tmp_path: Path) -> None:
    price = Price(input=1000, output=1000)
    parameters = Parameters(model="simulated", max_tokens=20)
    most = 10 * price.of(estimate(next(questions(1)), parameters).prompt, 20)
    with serving(Faults(latency=0.01)) as server:
        budget = Budget(max_usd=most, price=price)
        with campaign(tmp_path, server.base_url, budget=budget, parameters=parameters) as running:
            with pytest.raises(BudgetReached):
                list(running.iterate(questions(500)))
            assert 0.5 * most < budget.spent_usd <= most
            assert running.ledger.totals().cost_usd == pytest.approx(budget.spent_usd)


def test_the_cost_of_a_request_includes_earlier_sessions(tmp_path: Path) -> None:
    """Every call is billed for the prompt, also a page of HTML with status 200 in a session that ended with ERROR."""
    with serving(Faults(wrong_type=1.0)) as server:
        failed = ask_all(tmp_path, server.base_url, questions(3), budget=Budget(price=DOLLAR))
        assert all(outcome.state == CallState.ERROR and outcome.cost_usd for outcome in failed)
        server.set(Faults())
        answered = ask_all(tmp_path, server.base_url, questions(3), budget=Budget(price=DOLLAR))
    assert all(outcome.state == CallState.ANSWERED for outcome in answered)
    before = {outcome.address: outcome for outcome in failed}
    for outcome in answered:
        earlier = before[outcome.address]
        assert outcome.cost_usd is not None and earlier.cost_usd is not None
        assert outcome.cost_usd > earlier.cost_usd
        assert outcome.attempts == earlier.attempts + 1
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        totals = ledger.totals()
    assert sum(outcome.cost_usd or 0.0 for outcome in answered) == pytest.approx(totals.cost_usd)
    assert sum(outcome.attempts for outcome in answered) == totals.calls == 9
