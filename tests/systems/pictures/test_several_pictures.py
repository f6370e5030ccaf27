"""Several pictures per call: repeats of a prompt cost one call; ledger, cost, resumed runs and records stay right."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exchanges import ask, call, draw_noise, output

from medtest.api.calls.endpoint import Endpoint
from medtest.api.faulty.answers import BadRequest
from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import FaultServer, serving_server
from medtest.api.store.ledger import Ledger
from medtest.core.cases import Address, image_sha256
from medtest.core.files.by_content import encode
from medtest.systems.answering.asking import Asking, BudgetLimits
from medtest.systems.pictures.services import OpenAIImages

PRICE = {"m": {"input": 0.0, "output": 1e6, "picture": 0.0}}
"""A dollar for a token of the answer."""


class Painter:
    """A service that draws a different picture each time, and records how many each call requests.

    Args:
        most: Largest accepted ``n``; a larger one is a 400.
        ignores: Whether it ignores ``n`` and sends one picture.
    """

    base_url = ""

    def __init__(self, most: int = 10, *, ignores: bool = False) -> None:
        self.most, self.ignores = most, ignores
        self.counts: list[int] = []
        self.sent: list[str] = []

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.counts.append(body["n"])
        if body["n"] > self.most:
            raise BadRequest("n must be 1 for this model.")
        data = []
        for _ in range(1 if self.ignores else body["n"]):
            pixels = draw_noise(len(self.sent))
            self.sent.append(image_sha256(pixels))
            data.append({"b64_json": base64.b64encode(encode("images", pixels)).decode()})
        usage = {"input_tokens": 5, "output_tokens": 7 * len(data)}
        return {"data": data, "model": "m", "usage": usage}

    def file(self, path: str) -> tuple[str, bytes] | None:
        return None


def repeats(count: int, prompt: int = 0) -> list[Asking]:
    """Return the calls of a prompt's source and of ``unchanged``, as the runner makes them."""
    first = replace(
        call(), label=f"d/s{prompt}/source/", prompt=replace(call().required_prompt, text=f"prompt {prompt}")
    )
    calls = [replace(first, number=prompt * 100, repeats=tuple(range(count)))]
    for again in range(count - 1):
        address = Address(dataset="d", seed_id=f"s{prompt}", relation="unchanged", repeat=again)
        label, number = f"d/s{prompt}/unchanged_r{again}/", prompt * 100 + again + 1
        calls.append(replace(calls[0], number=number, label=label, addresses=(address,)))
    return calls


def serve_painter(painter: Painter) -> Any:
    return serving_server(FaultServer(Faults(latency=0.02), draws=painter))


class Named(OpenAIImages):
    """The service under one name for all ports, so that runs share their cache."""

    def endpoint(self) -> Endpoint:
        return replace(super().endpoint(), name="painter")


def service(base_url: str, **settings: Any) -> OpenAIImages:
    own = {"base_url": base_url, "model": "m", "prices": PRICE, "picture_tokens": 7, **settings}
    return Named("images", Named.Settings(**own))


def draw(folder: Path, painter: Painter, calls: Sequence[Asking], *, run: str = "run", **settings: Any) -> list[Any]:
    with serve_painter(painter) as server:
        return [output(answer) for answer in ask(service(server.base_url, **settings), folder, calls, run=run)]


def totals(folder: Path) -> Any:
    with Ledger(folder / "run" / "ledger.sqlite") as ledger:
        return ledger.totals()


def test_repeats_of_a_prompt_share_a_call_and_its_cost(tmp_path: Path) -> None:
    painter = Painter()
    answers = draw(tmp_path, painter, [*repeats(3), *repeats(3, prompt=1)])
    assert painter.counts == [3, 3]
    assert sorted(answer.picture for answer in answers) == sorted(painter.sent)  # each once
    assert len({answer.picture for answer in answers}) == 6
    sums = totals(tmp_path)
    assert (sums.calls, sums.outcomes, sums.completion_tokens) == (2, 6, 42)
    assert sums.cost_usd == pytest.approx(42.0)
    assert sum(answer.cost_usd for answer in answers) == pytest.approx(42.0)
    assert sum(answer.completion_tokens for answer in answers) == 42
    assert sum(answer.prompt_tokens for answer in answers) == 10
    assert sum(answer.attempts for answer in answers) == 2


def test_a_call_asks_for_no_more_than_is_open_and_allowed(tmp_path: Path) -> None:
    painter = Painter()
    answers = draw(tmp_path, painter, repeats(10))
    assert (sorted(painter.counts), len({answer.picture for answer in answers})) == ([2, 4, 4], 10)
    alone = Painter()
    draw(tmp_path, alone, repeats(3), run="single", pictures_per_call=1, extra={"user": "another"})
    assert alone.counts == [1, 1, 1]


def test_paid_pictures_wait_for_a_resumed_run(tmp_path: Path) -> None:
    painter = Painter()
    calls = repeats(3)
    first = draw(tmp_path, painter, calls[:1])  # the run is stopped before it comes to the repeats
    second = draw(tmp_path, painter, calls)
    assert painter.counts == [3]
    assert second[0].picture == first[0].picture
    assert {answer.picture for answer in second} == set(painter.sent)
    with closing(sqlite3.connect(tmp_path / "run" / "ledger.sqlite")) as ledger:
        assert ledger.execute("SELECT COUNT(*) FROM spares").fetchone() == (0,)
    # another run finds all of them in the cache
    third = draw(tmp_path, painter, calls, run="other")
    assert [answer.picture for answer in third] == [answer.picture for answer in second]
    assert painter.counts == [3]


def test_a_service_that_ignores_n_is_asked_again(tmp_path: Path) -> None:
    painter = Painter(ignores=True)
    answers = draw(tmp_path, painter, repeats(3))
    assert len(painter.counts) == 3
    assert {answer.picture for answer in answers} == set(painter.sent)
    assert totals(tmp_path).cost_usd == pytest.approx(21.0)


def test_a_service_that_rejects_n_gets_single_calls_from_then_on(tmp_path: Path) -> None:
    painter = Painter(most=1)
    answers = draw(tmp_path, painter, [*repeats(3), *repeats(3, prompt=1)], max_in_flight=1)
    assert painter.counts == [3, 1, 1, 1, 1, 1, 1]
    assert {answer.state for answer in answers} == {"answered"}
    assert len({answer.picture for answer in answers}) == 6
    assert totals(tmp_path).cost_usd == pytest.approx(42.0)  # the rejected call costs nothing


class Broken(Painter):
    """A service whose answers hold no picture and cost money."""

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**super().answer(body), "data": None}


def test_calls_of_an_earlier_session_that_failed_are_in_the_cost_of_every_repeat(tmp_path: Path) -> None:
    failed = draw(tmp_path, Broken(), repeats(2), max_in_flight=1)
    assert all(isinstance(answer, str) for answer in failed)
    answers = draw(tmp_path, Painter(), repeats(2))
    assert sum(answer.cost_usd for answer in answers) == pytest.approx(totals(tmp_path).cost_usd)


def test_a_seed_is_drawn_alone(tmp_path: Path) -> None:
    painter = Painter()
    draw(tmp_path, painter, repeats(3), seed="case")
    assert painter.counts == [1, 1, 1]


def test_a_budget_in_dollars_reserves_every_picture_of_a_call(tmp_path: Path) -> None:
    painter = Painter()
    with serve_painter(painter) as server, pytest.raises(Exception, match="max_usd=20"):
        ask(service(server.base_url), tmp_path, repeats(3), budget=BudgetLimits(max_usd=20.0))
    assert painter.counts == []
    with serve_painter(painter) as server:
        ask(service(server.base_url), tmp_path, repeats(3), budget=BudgetLimits(max_usd=22.0))
    assert painter.counts == [3]
