"""Replies about the server itself end a campaign: no credit, a key that is refused from now on, no server."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from api_parts import QUICK, ask_all, campaign, questions

from medtest.api.calls.client import Caller, Endpoint, _without_credit
from medtest.api.calls.request import CallState, Outcome, Parameters
from medtest.api.calls.retry import Reply, Retries, Trouble
from medtest.api.campaign import Campaign
from medtest.api.door import FORBIDDEN, GONE, KNOCKS, Door
from medtest.api.faulty.answers import BadRequest, default_answer
from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import FaultServer, serving, serving_server
from medtest.api.stops import CampaignStopped, Stop
from medtest.api.store.ledger import Ledger
from medtest.core.errors import ExitCode, MedtestError


def until_it_stops(folder: Path, base_url: str, count: int, **more: Any) -> tuple[list[Outcome], MedtestError, str]:
    """Return the outcomes before the end, its reason, and the last line of progress."""
    got: list[Outcome] = []
    with campaign(folder, base_url, **more) as running:
        with pytest.raises(MedtestError) as caught:
            for outcome in running.iterate(questions(count)):
                got.append(outcome)
        return got, caught.value, running.progress().line()


# --- an empty account ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 402])
def test_an_empty_account_ends_the_campaign_and_is_no_error(tmp_path: Path, status: int) -> None:
    with serving(Faults(credit=30, no_credit_status=status, latency=0.02)) as server:
        got, stopped, line = until_it_stops(tmp_path, server.base_url, 400)
        assert isinstance(stopped, CampaignStopped) and stopped.stop is Stop.NO_CREDIT
        assert stopped.exit_code is ExitCode.BUDGET
        assert "the account has no credit" in str(stopped)
        assert "the same command again" in str(stopped)
        assert {outcome.state for outcome in got} == {CallState.ANSWERED}
        assert "error" not in line
        # Every paid answer is recorded; a few calls were under way at the first refusal.
        assert len(got) == server.counts["answered"] >= 30
        assert server.counts["unpaid"] <= 2 * 16
        server.set(Faults())
        rest = ask_all(tmp_path, server.base_url, questions(400))
        assert {outcome.state for outcome in rest} == {CallState.ANSWERED}
        assert server.counts["answered"] == 400, "nothing that was answered is asked again"
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.totals().lost == 0
        assert ledger.totals().billable == 400, "calls of an empty account are not charged"


def test_the_gate_does_not_take_an_empty_account_for_a_limit(tmp_path: Path) -> None:
    with serving(Faults(credit=0)) as server, campaign(tmp_path, server.base_url) as running:
        with pytest.raises(CampaignStopped, match="the account has no credit"):
            list(running.iterate(questions(20)))
        assert running.limiter.counters().throttled == 0


def test_replies_that_mean_no_credit() -> None:
    assert _without_credit(402, "", "")
    assert _without_credit(429, "insufficient_quota", "insufficient_quota you exceeded")
    assert _without_credit(400, "arrearage", "arrearage access denied")
    assert not _without_credit(429, "rate_limit_exceeded", "rate_limit_exceeded")
    assert not _without_credit(400, "invalid_request_error", "billing_not_active, insufficient_quota")


# --- a key that is refused from some moment on --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_key_that_is_revoked_in_mid_run_ends_it_and_is_no_error(tmp_path: Path, status: int) -> None:
    with serving(Faults(valid_for=40, invalid_status=status, latency=0.02)) as server:
        got, stopped, line = until_it_stops(tmp_path, server.base_url, 400)
        assert isinstance(stopped, CampaignStopped) and stopped.stop is Stop.ACCESS_LOST
        assert stopped.exit_code is ExitCode.BUDGET
        assert f"HTTP {status}" in str(stopped)
        assert "revoked" in str(stopped)
        assert {outcome.state for outcome in got} == {CallState.ANSWERED}
        assert "error" not in line
        assert len(got) == server.counts["answered"] >= 40
        assert server.counts["revoked"] <= (FORBIDDEN if status == 403 else KNOCKS) + 2 * 16
        server.set(Faults())
        assert {outcome.state for outcome in ask_all(tmp_path, server.base_url, questions(400))} == {CallState.ANSWERED}
        assert server.counts["answered"] == 400


def test_a_few_refusals_among_answers_are_the_questions_own(tmp_path: Path) -> None:
    def answer(body: Any) -> str:
        if str(body).count("question 7'") or str(body).count("question 19'"):
            raise BadRequest("not this one", status=403, code="forbidden")
        return default_answer(body)

    with serving(Faults(latency=0.01), answer=answer) as server:
        got = ask_all(tmp_path, server.base_url, questions(60))
    assert len(got) == 60
    assert sorted(outcome.address for outcome in got if outcome.state == CallState.ERROR) == ["case/19", "case/7"]


def test_a_refusal_is_not_kept_back_once_nothing_else_is_under_way(tmp_path: Path) -> None:
    """The reader may be waiting for it before it has more to ask."""
    expired = threading.Event()

    def lazily() -> Any:
        first, second, third = questions(3)
        yield first
        while not outcomes:
            yield None
            time.sleep(0.01)
        server.set(Faults(key="another"))
        yield second
        while len(outcomes) < 2 and not expired.wait(0.01):
            yield None
        server.set(Faults())
        yield third

    outcomes: list[Outcome] = []
    with serving() as server, campaign(tmp_path, server.base_url) as running:
        guard = threading.Timer(20, expired.set)
        guard.start()
        for outcome in running.iterate(lazily()):
            outcomes.append(outcome)
        guard.cancel()
    assert [outcome.state for outcome in outcomes] == [CallState.ANSWERED, CallState.ERROR, CallState.ANSWERED]
    assert not expired.is_set()


def test_an_answer_that_left_before_a_refusal_ends_no_row() -> None:
    """Slow answers to calls from before the key was revoked come between the refusals."""
    now = [0.0]
    door = Door("http://127.0.0.1/v1", clock=lambda: now[0])
    refused = Reply(trouble=Trouble.REJECTED, status=401, reason="HTTP 401")
    good = Reply(status=200, state=CallState.ANSWERED)

    def outcome(state: CallState) -> Outcome:
        return Outcome(address="", key="", state=state)

    door.observe("a", good, outcome(CallState.ANSWERED), sent_at=0.0)
    for number in range(KNOCKS - 1):
        now[0] = 10.0 + number
        door.observe(f"b{number}", refused, outcome(CallState.ERROR), sent_at=9.0)
        door.observe(f"slow{number}", good, outcome(CallState.ANSWERED), sent_at=5.0)
        assert door.doubts("b0")
    door.observe("late", good, outcome(CallState.ANSWERED), sent_at=30.0)
    assert not door.doubts("b0")
    for number in range(KNOCKS - 1):
        door.observe(f"c{number}", refused, outcome(CallState.ERROR), sent_at=40.0)
    with pytest.raises(CampaignStopped, match="answered at first"):
        door.observe("d", refused, outcome(CallState.ERROR), sent_at=40.0)


# --- no server ----------------------------------------------------------------------------------------------------


def test_no_server_at_the_address_ends_after_a_few_calls(tmp_path: Path) -> None:
    with serving() as server:
        pass
    got, stopped, line = until_it_stops(tmp_path, server.base_url, 300, retries=Retries(first_pause=0.2))
    assert isinstance(stopped, CampaignStopped) and stopped.stop is Stop.MISSING
    assert stopped.exit_code is ExitCode.MISTAKE
    assert "whether the server is running" in str(stopped)
    assert "base_url" in str(stopped)
    assert got == []
    assert "error" not in line
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        totals = ledger.totals()
        assert KNOCKS <= totals.calls <= KNOCKS + 16
        assert totals.billable == 0


def test_no_such_host_ends_it_too(tmp_path: Path) -> None:
    endpoint = Endpoint(base_url="https://nobody.invalid/v1")
    caller = Caller(endpoint, Parameters(model="simulated"), call_seconds=5.0, pictures=False)
    with Ledger(tmp_path / "ledger.sqlite") as ledger, pytest.raises(CampaignStopped, match="no server answers"):
        list(Campaign(caller, ledger, retries=Retries(first_pause=0.05)).iterate(questions(50, pictures=())))


def test_a_server_that_vanishes_in_mid_run_ends_it_and_is_no_error(tmp_path: Path) -> None:
    rules = Retries(attempts=3, first_pause=0.01, longest_pause=0.02)
    server = FaultServer(Faults(latency=0.01))
    got: list[Outcome] = []
    with serving_server(server):
        base_url, port = server.base_url, server.port
        with campaign(tmp_path, base_url, retries=rules, max_in_flight=8) as running:
            stream = running.iterate(questions(2000))
            got += [next(stream) for _ in range(30)]
            server._server.close()  # type: ignore[union-attr]
            for task in tuple(server._open):
                task.get_loop().call_soon_threadsafe(task.cancel)
            with pytest.raises(CampaignStopped, match="no longer reachable") as caught:
                for outcome in stream:
                    got.append(outcome)
            assert "error" not in running.progress().line()
    assert caught.value.exit_code is ExitCode.BUDGET
    assert "the same command again" in str(caught.value)
    assert {outcome.state for outcome in got} == {CallState.ANSWERED}
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        totals = ledger.totals()
        assert totals.outcomes == len(got)
        # The end of the server cuts some connections: those may be billed.
        assert totals.calls <= len(got) + 3 * (GONE + 2 * 8) + 8
    with serving(port=port) as again:
        rest = ask_all(tmp_path, again.base_url, questions(200))
    assert {outcome.state for outcome in rest} == {CallState.ANSWERED}


def test_a_wrong_key_records_nothing_and_a_short_campaign_states_the_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "canary-wrong-key-123")
    with serving(Faults(key="right", latency=0.02)) as server:
        got, stopped, _ = until_it_stops(tmp_path, server.base_url, 300, key_variable="SOME_KEY")
        assert isinstance(stopped, CampaignStopped) and stopped.stop is Stop.REFUSED
        assert got == []
        few = ask_all(tmp_path, server.base_url, questions(3), key_variable="SOME_KEY", retries=QUICK)
    assert {outcome.state for outcome in few} == {CallState.ERROR}
