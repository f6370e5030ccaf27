"""Runs that ask a model over an API, through the product: faults, budgets, caches, ledgers and secrets."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answering_parts import answering_suite
from runner_helpers import assert_equal_records, go, records
from runner_parts import Dim, plan_of

from medtest.api.faulty.answers import BadRequest
from medtest.api.faulty.server import Faults, FaultServer, serving, serving_server
from medtest.api.redact import redact
from medtest.api.store.ledger import Ledger
from medtest.core.errors import ExitCode, UserMistakes
from medtest.runner.prepared import prepare_run
from medtest.suite.model import Invocation
from medtest.suite.reading.outline import outline
from medtest.systems.answering.asking import BudgetLimits
from medtest.systems.answering.openai_compatible import OpenAICompatible

ROW = 1 + 3
QUESTIONS = 3
PRICES = {"simulated": {"input": 1.0, "output": 10.0}}
CANARY = "zq-canary-0123456789-secret"


def totals(folder: Path) -> Any:
    with Ledger(folder / "ledger.sqlite") as ledger:
        return ledger.totals()


def test_every_question_is_asked_once_and_recorded(tmp_path: Path) -> None:
    with serving() as server:
        outcome = go(answering_suite(server.base_url), tmp_path)
    frame = records(outcome)
    assert len(frame) == 3 * QUESTIONS * ROW == server.counts["received"]
    assert set(frame.state) == {"answered"}
    assert frame.address.is_unique and all(a.endswith(f"/{q}") for a, q in zip(frame.address, frame.item, strict=True))
    assert frame.said.str.match(r".+ \([0-9a-f]{12}\)").all()
    assert frame.said.nunique() > len(frame) // 2
    assert (frame.prompt_tokens > 0).all()
    assert frame.cost_usd.isna().all()
    assert totals(outcome.systems[0].folder).calls == len(frame)
    assert not any("ledger" in name for name in (outcome.systems[0].folder / "manifest.sha256").read_text().split())


def test_a_second_home_takes_answers_from_the_cache_or_asks_again(tmp_path: Path) -> None:
    with serving() as server:
        suite = answering_suite(server.base_url)
        first = records(go(suite, tmp_path))
        calls = server.counts["received"]
        again = records(go(suite, tmp_path, fresh=True))
        assert server.counts["received"] == calls
        refreshed = records(go(suite, tmp_path, fresh=True, cache="refresh"))
        assert server.counts["received"] == 2 * calls
        off = records(go(suite, tmp_path, fresh=True, cache="off"))
        assert server.counts["received"] == 3 * calls
    for other in (again, refreshed, off):
        assert_equal_records(first, other)


@pytest.mark.parametrize("takes_schema", [True, False])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_all_questions_of_an_image_in_one_structured_call(tmp_path: Path, takes_schema: bool, api: str) -> None:
    def answer(body: Mapping[str, Any]) -> str:
        return json.dumps({"bright": 1, "level": None, "red": 7})

    with serving(Faults(takes_schema=takes_schema), answer=answer) as server:
        suite = answering_suite(
            server.base_url, seeds=2, questions={"together": True}, api=api, prices=PRICES, max_in_flight=1
        )
        outcome = go(suite, tmp_path)
    frame = records(outcome)
    assert server.counts["received"] == 2 * ROW + (0 if takes_schema else 1)
    assert frame.groupby("item").said.unique().map(list).to_dict() == {
        "bright": ["1"],
        "level": ["not relevant"],
        "red": ["7"],
    }
    assert frame.prompt_tokens.sum() == pytest.approx(totals(outcome.systems[0].folder).prompt_tokens)
    assert frame.cost_usd.sum() == pytest.approx(totals(outcome.systems[0].folder).cost_usd)


@pytest.mark.parametrize(
    ("faults", "answer", "attempts"),
    [
        (Faults(), '{"answer": "7"}', 1),
        (Faults(takes_schema=False), 'Here you are: {"answer": "7"}', 2),  # refuses the schema and is asked in words
        (Faults(), "7", 1),  # accepts it and ignores it
        (Faults(takes_schema=False), "7", 2),
    ],
)
def test_single_questions_are_asked_by_schema_first_and_words_are_accepted(
    tmp_path: Path, faults: Faults, answer: str, attempts: int
) -> None:
    by_schema: list[bool] = []

    def answered(body: Mapping[str, Any]) -> str:
        by_schema.append("response_format" in body)
        return answer

    with serving(faults, answer=answered) as server:
        suite = answering_suite(server.base_url, seeds=1, structured="first", max_in_flight=1)
        frame = records(go(suite, tmp_path))
        assert server.counts["received"] == QUESTIONS * ROW + attempts - 1
    assert set(frame.said) == {"7"}
    assert set(frame.state) == {"answered"}
    assert set(by_schema) == {attempts == 1}


@pytest.mark.parametrize(("status", "more"), [(500, 3), (422, 1)])
def test_a_server_that_breaks_on_schemas_without_a_word_is_asked_in_words(
    tmp_path: Path, status: int, more: int
) -> None:
    def answer(body: Mapping[str, Any]) -> str:
        if "response_format" in body:
            raise BadRequest("broken", status=status) if status < 500 else RuntimeError("broken")
        return "7"

    with serving(answer=answer) as server:
        suite = answering_suite(server.base_url, seeds=1, structured="first", max_in_flight=1)
        frame = records(go(suite, tmp_path))
        assert server.counts["received"] <= QUESTIONS * ROW + more
    assert set(frame.said) == {"7"}
    assert set(frame.state) == {"answered"}


def test_a_structure_that_does_not_fit_is_cut_up(tmp_path: Path) -> None:
    with serving(answer=lambda body: "1. Yes\n3: about 12\n") as server:
        frame = records(go(answering_suite(server.base_url, seeds=1, questions={"together": True}), tmp_path))
    assert frame.groupby("item").said.unique().map(list).to_dict() == {
        "bright": ["Yes"],
        "level": [""],
        "red": ["about 12"],
    }
    assert frame.groupby("item").state.unique().map(list).to_dict() == {
        "bright": ["answered"],
        "level": ["malformed"],
        "red": ["answered"],
    }


def test_states_and_exhausted_retries_are_distinguished(tmp_path: Path) -> None:
    faults = Faults(refusal=0.15, filtered=0.1, length=0.1, seed=2)
    with serving(faults) as server:
        frame = records(go(answering_suite(server.base_url), tmp_path))
    assert {"answered", "refusal", "content_filter", "length"} <= set(frame.state)
    with serving(Faults(error=1.0)) as server:
        frame = records(go(answering_suite(server.base_url, seeds=1, attempts=1), tmp_path / "lost"))
    sources = frame[frame.relation == "source"]
    assert set(sources.verdict) == {"ERROR"}
    assert sources.reason.str.contains("HTTP 500").all()


def test_faults_lose_and_double_nothing(tmp_path: Path) -> None:
    mix = Faults(too_many=0.05, error=0.05, reset=0.03, truncated=0.03, retry_after="none", latency=0.005, seed=4)
    with serving() as server:
        whole = records(go(answering_suite(server.base_url, model="simulated"), tmp_path / "whole"))
        server.set(mix)
        server.answered.clear()
        outcome = go(answering_suite(server.base_url), tmp_path / "faulty")
    assert_equal_records(records(outcome), whole)
    assert all(times == 1 for times in server.answered.values())
    assert totals(outcome.systems[0].folder).calls > len(whole)


def test_a_budget_of_calls_stops_and_goes_on(tmp_path: Path) -> None:
    with serving(Faults(latency=0.01)) as server:
        suite = answering_suite(server.base_url, seeds=2)
        first = go(suite, tmp_path, budget=BudgetLimits(max_calls=17))
        assert first.stopped is ExitCode.BUDGET
        assert server.counts["received"] == 17
        assert any("budget.max_calls=17 is reached after" in notice for notice in first.notices)
        assert not (records(first).verdict == "ERROR").any()
        second = go(suite, tmp_path, budget=BudgetLimits(max_calls=100))
        assert second.stopped is ExitCode.OK
        assert server.counts["received"] == 2 * QUESTIONS * ROW
        whole = records(go(suite, tmp_path / "whole"))
    assert_equal_records(records(second), whole)


def test_a_server_that_closes_for_hours_stops_the_run_and_it_goes_on(tmp_path: Path) -> None:
    with serving(Faults(rate=0.0003, burst=11, headers=False, latency=0.01)) as server:
        suite = answering_suite(server.base_url, seeds=2)
        first = go(suite, tmp_path)
        assert first.stopped is ExitCode.BUDGET
        (message,) = [notice for notice in first.notices if "asks to wait" in notice]
        assert message.startswith("model_under_test: ")
        assert "same command" in message
        assert first.systems[0].partial
        frame = records(first)
        assert not (frame.verdict == "ERROR").any()
        assert 0 < len(frame) <= 11 == server.counts["answered"]
        assert totals(first.systems[0].folder).lost == 0
        server.set(Faults())
        second = go(suite, tmp_path)
        assert second.stopped is ExitCode.OK
        assert server.counts["answered"] == 2 * QUESTIONS * ROW
        whole = records(go(suite, tmp_path / "whole", cache="off"))
    assert_equal_records(records(second), whole)


def test_two_systems_at_one_host_share_a_limit(tmp_path: Path) -> None:
    lock, now = threading.Lock(), [0, 0]

    def answer(body: Mapping[str, Any]) -> str:
        with lock:
            now[0] += 1
            now[1] = max(now)
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return "Yes."

    with serving_server(FaultServer(answer=answer, threads=32)) as server:
        suite = answering_suite(server.base_url, seeds=4, max_in_flight=3)
        settings = {"base_url": server.base_url.replace("/v1", "/v1/"), "model": "another", "max_in_flight": 6}
        other = plan_of("systems", "other", OpenAICompatible, **settings)
        outcome = go(replace(suite, systems=(*suite.systems, other)), tmp_path)
    assert [system.counts["ERROR"] for system in outcome.systems] == [0, 0]
    assert len(records(outcome)) == len(records(outcome, 1)) == 4 * QUESTIONS * ROW
    assert 2 <= now[1] <= 3, "the smaller of their limits holds for both together"


def test_calls_in_flight_of_a_killed_session_are_reported(tmp_path: Path) -> None:
    with serving() as server:
        suite = answering_suite(server.base_url, seeds=1)
        first = go(suite, tmp_path)
        assert not any("possibly billed" in notice for notice in first.notices)
        with Ledger(first.systems[0].folder / "ledger.sqlite") as ledger:  # as a killed process leaves it
            ledger.send(address="d/s/none/bright", key="k", attempt=1, expected_usd=0.0)
        again = go(suite, tmp_path)
    (message,) = [notice for notice in again.notices if "possibly billed" in notice]
    assert f"1 of {QUESTIONS * ROW + 1} calls without an answer" in message
    assert "1 in flight when a session ended, 0 cut off" in message


def test_a_budget_in_dollars(tmp_path: Path) -> None:
    with serving(Faults(latency=0.01)) as server:
        suite = answering_suite(server.base_url, seeds=1, prices=PRICES, max_tokens=20)
        first = go(suite, tmp_path, budget=BudgetLimits(max_usd=0.001))
        assert first.stopped is ExitCode.BUDGET
        spent = totals(first.systems[0].folder).cost_usd
        assert 0 < spent <= 0.001
        frame = records(go(suite, tmp_path, budget=BudgetLimits(max_usd=1.0)))
        assert len(frame) == QUESTIONS * ROW
        assert frame.cost_usd.sum() == pytest.approx(totals(first.systems[0].folder).cost_usd)
        without = answering_suite(server.base_url, seeds=1)
        with pytest.raises(UserMistakes, match=r"(?s)budget.max_usd.*no price of the model"):
            go(without, tmp_path / "other", budget=BudgetLimits(max_usd=1.0))


def test_a_plan_says_what_would_be_spent_and_sends_nothing(tmp_path: Path) -> None:
    with serving() as server:
        suite = answering_suite(server.base_url, prices=PRICES, max_tokens=20)
        quote = outline(suite, Invocation(home=tmp_path)).systems[0].quote
        assert server.counts["received"] == 0
    assert quote is not None
    calls = 3 * QUESTIONS * ROW
    assert (quote.calls, quote.completion_tokens) == (calls, calls * 20)
    assert 255 * calls < quote.prompt_tokens < 400 * calls
    assert quote.usd == pytest.approx((quote.prompt_tokens + 10 * quote.completion_tokens) / 1e6)


def test_nothing_is_sent_where_it_may_not_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    suite = answering_suite("http://model.invalid/v1", key_variable="MODEL_KEY")
    with pytest.raises(UserMistakes) as caught:
        go(suite, tmp_path)
    for words in ("plain http", "send_images=true", "MODEL_KEY is not set"):
        assert words in str(caught.value)
    assert not list(tmp_path.rglob("records*"))


def test_keys_and_pictures_are_in_no_file_and_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL_KEY", CANARY)
    echo: list[str] = []

    def answer(body: Mapping[str, Any]) -> str:
        url = body["messages"][-1]["content"][0]["image_url"]["url"]
        echo.append(url)
        return f"You sent {url} with Bearer {CANARY} and {CANARY}. Yes."

    with serving(Faults(key=CANARY), answer=answer) as server:
        outcome = go(answering_suite(server.base_url, seeds=1, key_variable="MODEL_KEY"), tmp_path)
    assert set(records(outcome).state) == {"answered"}
    assert records(outcome).said.str.contains("[hidden]", regex=False).all()
    picture = echo[0].split(",")[1][:60]
    printed = capfd.readouterr()
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(path.name == "answers.sqlite" for path in files)
    for secret in (CANARY, picture):
        assert secret not in printed.out + printed.err
        assert not [path.name for path, content in files.items() if secret.encode() in content]
    assert redact(CANARY) == CANARY, "only the process that asks knows the key"


def test_the_digest_covers_what_shapes_answers_and_nothing_else(tmp_path: Path) -> None:
    def folder(base_url: str = "http://127.0.0.1:1/v1", **settings: Any) -> Path:
        (run_folder,) = prepare_run(answering_suite(base_url, seeds=1, **settings), Invocation(home=tmp_path)).folders
        return run_folder

    same: dict[str, Any] = {
        "base_url": "http://127.0.0.1:1/v1/",
        "prices": PRICES,
        "max_in_flight": 4,
        "call_seconds": 30.0,
        "attempts": 3,
        "send_images": True,
        "trained_on": ["kvasir"],
    }
    assert {folder(**{key: value}) for key, value in same.items()} == {folder()}
    other: dict[str, Any] = {
        "base_url": "http://127.0.0.1:2/v1",
        "model": "simulated-2",
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "max_tokens": 30,
        "max_tokens_name": "max_completion_tokens",
        "detail": "low",
        "prompt": "Q: {question}",
        "together_prompt": "All: {questions}",
        "system_prompt": "",
        "structured": "always",
        "api": "responses",
        "extra": {"reasoning_effort": "low"},
    }
    assert len({folder(), *(folder(**{key: value}) for key, value in other.items())}) == 1 + len(other)


def test_repeats_of_the_unchanged_image_are_new_calls(tmp_path: Path) -> None:
    from medtest.relations.unchanged import Unchanged

    sent_seeds: list[int] = []

    def answer(body: Mapping[str, Any]) -> str:
        sent_seeds.append(body["seed"])
        return str(body["seed"] % 5)

    with serving(answer=answer) as server:
        suite = answering_suite(server.base_url, seeds=1, relations={"unchanged": Unchanged, "dim": Dim})
        frame = records(go(suite, tmp_path))
    assert Counter(frame.relation)["unchanged"] == QUESTIONS
    assert len(set(sent_seeds)) == len(sent_seeds) == len(frame)
