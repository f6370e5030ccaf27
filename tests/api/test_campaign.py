"""Whole campaigns against a real server with faults: no call lost, none doubled, every state recorded."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path

import pytest
from api_parts import QUICK, ask_all, campaign, picture, questions
from pydantic import BaseModel

from medtest.api.budget import Budget, Price
from medtest.api.calls.request import CallState, Outcome, Parameters, Request, Source
from medtest.api.calls.retry import Retries
from medtest.api.faulty.server import Faults, serving
from medtest.api.stops import CampaignStopped
from medtest.api.store.cache import CacheMode
from medtest.api.store.ledger import Ledger
from medtest.core.errors import FolderInUse, OutputProblem


class Shape(BaseModel):
    """A structured answer."""

    answer: str
    count: int


def essence(outcomes: list[Outcome]) -> list[tuple[str, str, str]]:
    return [(o.address, str(o.state), o.text) for o in sorted(outcomes, key=lambda o: o.address)]


def test_every_request_has_one_outcome_and_one_call(tmp_path: Path) -> None:
    with serving() as server:
        got = ask_all(tmp_path, server.base_url, questions(60))
        assert [o.address for o in got] == sorted(f"case/{i}" for i in range(60))
        assert {o.state for o in got} == {CallState.ANSWERED}
        assert all(o.prompt_tokens and o.attempts == 1 and o.source == Source.CALL for o in got)
        assert server.counts["received"] == 60 == len(server.answered)


def test_a_second_session_asks_nothing(tmp_path: Path) -> None:
    with serving() as server:
        first = ask_all(tmp_path, server.base_url, questions(20))
        again = ask_all(tmp_path, server.base_url, questions(25))
        assert {o.source for o in again if o.address in {f.address for f in first}} == {Source.LEDGER}
        assert server.counts["received"] == 25


def test_the_cache_serves_other_runs_and_addresses(tmp_path: Path) -> None:
    with serving() as server:
        first = ask_all(tmp_path, server.base_url, questions(10))
        (tmp_path / "ledger.sqlite").unlink()
        again = ask_all(tmp_path, server.base_url, questions(10))
        assert {o.source for o in again} == {Source.CACHE}
        assert essence(first) == essence(again)
        (tmp_path / "ledger.sqlite").unlink()
        anew = ask_all(tmp_path, server.base_url, questions(10), mode=CacheMode.REFRESH)
        assert {o.source for o in anew} == {Source.CALL}
        (tmp_path / "ledger.sqlite").unlink()
        off = ask_all(tmp_path, server.base_url, questions(10), mode=CacheMode.OFF)
        assert {o.source for o in off} == {Source.CALL}
        assert server.counts["received"] == 30


def test_equal_content_at_the_same_time_is_asked_once(tmp_path: Path) -> None:
    same = [Request(address=f"a/{i}", prompt="same", pictures=(picture(),)) for i in range(12)]
    repeats = [Request(address=f"r/{i}", prompt="same", pictures=(picture(),), repeat=i + 1) for i in range(3)]
    with serving(Faults(latency=0.1)) as server:
        got = ask_all(tmp_path, server.base_url, same + repeats)
        assert server.counts["received"] == 4
        assert len(got) == 15
        assert {o.text for o in got if o.address.startswith("a/")} == {got[0].text}


@pytest.mark.parametrize(
    ("faults", "state"),
    [
        (Faults(refusal=1), CallState.REFUSAL),
        (Faults(filtered=1), CallState.CONTENT_FILTER),
        (Faults(length=1), CallState.LENGTH),
    ],
)
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_replies_that_are_no_answers_have_a_state_and_are_not_cached(
    tmp_path: Path, faults: Faults, state: CallState, api: str
) -> None:
    parameters = Parameters(model="simulated", api=api)
    with serving(faults) as server:
        assert {o.state for o in ask_all(tmp_path, server.base_url, questions(3), parameters=parameters)} == {state}
        # The run stores it; another run asks again.
        assert {o.source for o in ask_all(tmp_path, server.base_url, questions(3), parameters=parameters)} == {
            Source.LEDGER
        }
        (tmp_path / "ledger.sqlite").unlink()
        server.set(Faults())
        again = ask_all(tmp_path, server.base_url, questions(3), parameters=parameters)
        assert {(o.source, o.state) for o in again} == {(Source.CALL, CallState.ANSWERED)}


@pytest.mark.parametrize("fault", ["error", "reset", "truncated", "wrong_type", "too_many"])
def test_exhausted_retries_are_an_error_that_the_next_session_asks_again(tmp_path: Path, fault: str) -> None:
    rules = Retries(attempts=3, throttled=2, first_pause=0.01, longest_pause=0.02, call_seconds=10)
    with serving(Faults(retry_after="none", **{fault: 1.0})) as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1), retries=rules)
        calls = 2 if fault == "wrong_type" else 3  # a whole body would come again, and cost again
        assert (got.state, got.attempts) == (CallState.ERROR, calls)
        assert f"{calls} calls" in got.reason
        server.set(Faults())
        (again,) = ask_all(tmp_path, server.base_url, questions(1), retries=rules)
        assert (again.state, again.source) == (CallState.ANSWERED, Source.CALL)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        totals = ledger.totals()
    doubtful = 0 if fault in ("error", "too_many") else calls
    assert (totals.calls, totals.doubtful, totals.billable) == (calls + 1, doubtful, doubtful + 1)


def test_calls_that_end_in_an_error_are_paid(tmp_path: Path) -> None:
    rules = Retries(attempts=6, first_pause=0.01, longest_pause=0.02, call_seconds=10)
    price = Price(input=1000.0, output=1000.0)
    with serving(Faults(wrong_type=1.0)) as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1), retries=rules, budget=Budget(price=price))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        totals = ledger.totals()
    assert (got.state, got.attempts, totals.calls) == (CallState.ERROR, 2, 2)
    assert got.cost_usd == pytest.approx(totals.cost_usd)
    assert totals.cost_usd > 0


@pytest.mark.slow
def test_a_mix_of_faults_loses_and_doubles_nothing(tmp_path: Path) -> None:
    mix = Faults(too_many=0.05, error=0.02, reset=0.02, truncated=0.02, wrong_type=0.01, retry_after="none", seed=3)
    with serving() as server:
        plain = ask_all(tmp_path / "plain", server.base_url, questions(200))
        server.answered.clear()
        server.set(mix)
        faulty = ask_all(tmp_path / "faulty", server.base_url, questions(200))
        # Resets and cut bodies are no whole answers: no content is answered completely twice.
        assert max(server.answered.values()) == 1
        assert server.counts["too_many"] and server.counts["reset"] and server.counts["truncated"]
    assert essence(plain) == essence(faulty)
    with Ledger(tmp_path / "faulty" / "ledger.sqlite") as ledger:
        totals = ledger.totals()
        assert len(list(ledger.outcomes())) == 200
    broken = sum(server.counts[name] for name in ("reset", "truncated", "wrong_type"))
    assert totals.doubtful == broken
    assert totals.calls == 200 + broken + server.counts["error"] + server.counts["too_many"]


def test_a_dripping_body_ends_at_the_time_limit(tmp_path: Path) -> None:
    rules = Retries(attempts=2, first_pause=0.01, call_seconds=0.4)
    with serving(Faults(slow=1, slow_seconds=3600)) as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1), retries=rules)
        assert got.state == CallState.ERROR
        assert "0.4 s" in got.reason


def test_structured_answers_and_servers_that_take_no_schema(tmp_path: Path) -> None:
    with serving() as server:
        (got,) = ask_all(tmp_path / "a", server.base_url, questions(1, answer_model=Shape))
        assert got.state == CallState.ANSWERED
        assert set(got.parsed) == {"answer", "count"}  # type: ignore[arg-type]
        assert not got.plain
        server.set(Faults(takes_schema=False))
        got_plain = ask_all(tmp_path / "b", server.base_url, questions(5, answer_model=Shape))
        assert {(o.state, o.plain) for o in got_plain} == {(CallState.ANSWERED, True)}
    server.answer = lambda body: json.dumps({"answer": 3})
    with serving(answer=server.answer) as wrong:
        (bad,) = ask_all(tmp_path / "c", wrong.base_url, questions(1, answer_model=Shape))
        assert bad.state == CallState.MALFORMED
        assert bad.text == '{"answer": 3}'


def test_a_wrong_key_ends_at_once_and_an_empty_account_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "canary-wrong-key-123")
    with serving(Faults(key="right")) as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1), key_variable="SOME_KEY")
        assert (got.state, got.attempts) == (CallState.ERROR, 1)
        assert "HTTP 401" in got.reason
        assert "canary" not in got.reason
        monkeypatch.setenv("SOME_KEY", "right")
        (fine,) = ask_all(tmp_path, server.base_url, questions(1), key_variable="SOME_KEY")
        assert fine.state == CallState.ANSWERED


def test_no_server_at_all(tmp_path: Path) -> None:
    with serving() as server:
        pass
    rules = Retries(attempts=2, first_pause=0.01, call_seconds=5)
    (got,) = ask_all(tmp_path, server.base_url, questions(1), retries=rules)
    assert got.state == CallState.ERROR
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.totals().billable == 0


def test_the_readers_exit_gives_up_what_is_under_way_and_says_so(tmp_path: Path) -> None:
    with serving(Faults(latency=0.05)) as server, campaign(tmp_path, server.base_url, max_in_flight=4) as running:
        results = running.iterate(questions(1000))
        for _ in range(3):
            next(results)
        results.close()  # type: ignore[attr-defined]
        totals = running.ledger.totals()
        assert totals.under_way == 0
        assert totals.lost <= 4
        assert totals.calls < 100
        assert running.progress().in_flight == 0


def test_stop_ends_the_stream_without_losing_calls(tmp_path: Path) -> None:
    with serving(Faults(latency=0.02)) as server, campaign(tmp_path, server.base_url, max_in_flight=4) as running:
        outcome_count = 0
        for _ in running.iterate(questions(1000)):
            outcome_count += 1
            if outcome_count == 5:
                running.stop()
        totals = running.ledger.totals()
        assert totals.lost == 0
        assert totals.outcomes == outcome_count < 100


def test_a_broken_iterable_is_raised_after_what_was_asked(tmp_path: Path) -> None:
    def broken() -> object:
        yield from questions(5)
        raise RuntimeError("no more")

    with serving() as server, campaign(tmp_path, server.base_url) as running:
        outcomes = []
        with pytest.raises(RuntimeError, match="no more"):
            for outcome in running.iterate(broken()):  # type: ignore[arg-type]
                outcomes.append(outcome)
        assert len(outcomes) <= 5


def test_a_ledger_that_cannot_be_written_stops_and_is_no_verdict(tmp_path: Path) -> None:
    with serving() as server:
        with (
            campaign(tmp_path, server.base_url, max_in_flight=1) as running,
            pytest.raises(OutputProblem, match="ledger"),
        ):
            for outcome in running.iterate(questions(20)):
                assert outcome.state == CallState.ANSWERED
                running.ledger._db.execute("PRAGMA query_only=ON")  # as a full disk, from the first answer on
        before = server.counts["received"]
        assert before < 20
        outcomes = ask_all(tmp_path, server.base_url, questions(20))
    assert [outcome.state for outcome in outcomes] == [CallState.ANSWERED] * 20
    assert server.counts["received"] <= 20 + 1  # at most the call under way is repeated


def test_progress_counts(tmp_path: Path) -> None:
    with serving(Faults(error=0.3, seed=1)) as server, campaign(tmp_path, server.base_url) as running:
        done = list(running.iterate(questions(30)))
        progress = running.progress()
        assert progress.done == len(done) == 30
        assert progress.retried == server.counts["error"] > 0
        assert (progress.in_flight, progress.waiting) == (0, 0)
        assert "30 answered" in progress.line()
        assert f"retried {progress.retried}" in progress.line()


def test_one_process_at_a_time_holds_a_ledger(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite"), pytest.raises(FolderInUse):
        Ledger(tmp_path / "l.sqlite")
    held = Ledger(tmp_path / "l.sqlite")
    threading.Timer(0.3, held.close).start()  # like a worker that ends while the next one opens
    Ledger(tmp_path / "l.sqlite", wait=20.0).close()


def test_a_limit_with_headers_is_learned(tmp_path: Path) -> None:
    """Timing decides how well it is kept: ``test_limit_matrix.py`` checks that with a simulated clock."""
    with (
        serving(Faults(latency=0.01, rate=40, burst=10)) as server,
        campaign(tmp_path, server.base_url, max_in_flight=32, retries=QUICK) as running,
    ):
        assert {outcome.state for outcome in running.iterate(questions(80))} == {CallState.ANSWERED}
        assert running.limiter.limits.buckets["requests"].known
        assert running.limiter.limits.buckets["requests"].capacity == 10


def test_the_server_reports_and_changes_its_faults() -> None:
    with serving(Faults(error=0.5)) as server:
        address = server.base_url.replace("/v1", "/faults")
        request = urllib.request.Request(address, data=b'{"error": 0}', method="PUT")  # noqa: S310 - loopback
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            assert json.load(answer)["faults"]["error"] == 0


@pytest.mark.slow
def test_a_server_that_refuses_all_calls_is_not_called_thousands_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "canary-wrong-key-123")
    with serving(Faults(key="right")) as server:
        with pytest.raises(CampaignStopped, match="Check the key") as caught:
            ask_all(tmp_path, server.base_url, questions(400), key_variable="SOME_KEY")
        assert "HTTP 401" in str(caught.value)
        assert "canary" not in str(caught.value)
        assert server.counts["received"] < 100
        monkeypatch.setenv("SOME_KEY", "right")
        fine = ask_all(tmp_path, server.base_url, questions(400), key_variable="SOME_KEY")
        assert {outcome.state for outcome in fine} == {CallState.ANSWERED}
        assert len(fine) == 400
