"""The judge of unparsed answers, as a caller of a server."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from medtest.api.faulty.faults import Faults
from medtest.api.faulty.server import serving
from medtest.api.store.ledger import Ledger
from medtest.core.errors import ExitCode
from medtest.readers import judge as judge_module
from medtest.readers.base import ReadingJob
from medtest.readers.judge import LEDGER, Judge
from medtest.readers.meaning import Unread
from medtest.systems.answering.openai_compatible import ApiSettings, OpenAICompatible
from medtest.tasks.ask.oracle import MOST_WORDS

UNREAD = Unread(item="polyps", kind="count", question="How many polyps are in the image?", words="Kaksi.")


def job(folder: Path, **more: Any) -> ReadingJob:
    return ReadingJob(folder=folder, shared=folder, **more)


def test_a_judge_on_another_machine_needs_no_permission_to_send_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network is needed: a missing proxy refuses the connection, once the call has left."""
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    settings = ApiSettings(base_url="https://judge.invalid/v1", model="reader", attempts=1)
    judge = Judge(OpenAICompatible("vllm", settings))
    assert judge.check() == []
    readings = judge.readings([UNREAD], job(tmp_path))
    assert "send_images" not in readings.problem
    assert "the connection failed" in readings.problem
    assert readings.facts == {}
    assert readings.calls == 1


class Slow(BaseHTTPRequestHandler):
    """Answers after a short time that the words mean two."""

    protocol_version = "HTTP/1.1"
    answered: ClassVar[list[str]] = []

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.2)
        reply = json.dumps({"meaning": "value", "answer": "2", "quote": "Kaksi"})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        answer = {"id": "x", "object": "chat.completion", "model": "reader", "choices": [choice], "usage": usage}
        sent = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)
        self.answered.append(self.path)


@pytest.fixture
def slow() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_lets_calls_under_way_end_and_keeps_what_was_read(
    tmp_path: Path, slow: str, number: signal.Signals
) -> None:
    judge = Judge(OpenAICompatible("vllm", ApiSettings(base_url=slow, model="reader", max_in_flight=2)))
    unread = [Unread(item="polyps", kind="count", question="How many?", words=f"Kaksi, {i}x.") for i in range(20)]
    path = tmp_path / LEDGER
    stop_times: list[float] = []
    Slow.answered.clear()

    def stop_once_something_is_under_way() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and len(Slow.answered) < 3:
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    threading.Thread(target=stop_once_something_is_under_way, daemon=True).start()
    readings = judge.readings(unread, job(tmp_path, cache="off", stopping=lambda: stop_times.append(time.monotonic())))
    assert readings.code is ExitCode.INTERRUPTED
    assert "was stopped before" in readings.problem
    assert len(stop_times) == 1
    assert signal.getsignal(number) is before
    assert 0 < len(readings.facts) < len(unread)
    with Ledger(path) as ledger:
        totals = ledger.totals()
    assert (totals.lost, totals.under_way) == (0, 0)
    assert totals.outcomes == totals.calls == len(readings.facts)
    # the same call continues
    whole = judge.readings(unread, job(tmp_path, cache="off"))
    assert (whole.code, whole.problem) == (ExitCode.OK, "")
    assert whole.calls == len(unread) - len(readings.facts)


def reader(base_url: str, **more: Any) -> Judge:
    return Judge(OpenAICompatible("vllm", ApiSettings(base_url=base_url, model="reader", **more)))


def two(body: Any) -> str:
    return json.dumps({"meaning": "value", "answer": "2", "quote": "Kaksi"})


def words(count: int) -> list[Unread]:
    return [Unread(item="polyps", kind="count", question="How many?", words=f"Kaksi, {i}x.") for i in range(count)]


def test_progress_of_the_calls_is_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    with serving(Faults(latency=0.4), answer=two) as server:
        judge = reader(server.base_url, max_in_flight=2)
        assert len(judge.readings(words(8), job(tmp_path, progress=lines.append)).facts) == 8
    assert len(lines) >= 2
    assert all("in flight" in line for line in lines)
    assert any(re.search(r"\b[1-7] answered", line) for line in lines)


def test_calls_that_may_be_billed_without_an_answer_are_accounted(tmp_path: Path) -> None:
    with serving(Faults(truncated=1.0)) as server:

        def cut_only_once(body: Any) -> str:
            server.set(Faults())  # the fault of this call is drawn already
            return two(body)

        server.answer = cut_only_once
        readings = reader(server.base_url, max_in_flight=1).readings(words(12), job(tmp_path))
        assert server.counts["truncated"] == 1
    assert len(readings.facts) == 12
    assert "1 of 13 calls without an answer, possibly billed" in readings.account
    with serving(answer=two) as server:
        assert reader(server.base_url).readings(words(3), job(tmp_path / "b")).account == ""


def test_new_costs_are_distinguished_from_earlier_ones(tmp_path: Path) -> None:
    with serving(answer=two) as server:
        judge = reader(server.base_url, prices={"reader": {"input": 1.0, "output": 2.0}})
        first = judge.readings(words(3), job(tmp_path))
        more = judge.readings(words(5), job(tmp_path))
        again = judge.readings(words(5), job(tmp_path))
    assert first.cost_usd is not None
    assert more.cost_usd is not None
    assert more.paid_usd is not None
    assert (first.calls, more.calls, again.calls) == (3, 2, 0)
    assert first.paid_usd == first.cost_usd > 0
    assert first.cost_usd + more.paid_usd == pytest.approx(more.cost_usd)
    assert (again.paid_usd, again.cost_usd) == (None, more.cost_usd)


@pytest.mark.parametrize("answer", ["broken", "useless"])
def test_a_judge_that_reads_nothing_at_all_is_no_success(tmp_path: Path, answer: str) -> None:
    faults = Faults(error=1.0) if answer == "broken" else Faults()
    with serving(faults, answer=lambda body: "I would rather not say.") as server:
        readings = reader(server.base_url, attempts=1).readings(words(4), job(tmp_path))
    assert (readings.facts, readings.code) == ({}, ExitCode.TOO_MANY_ERRORS)
    assert "gave no reading of 4 of 4 answers" in readings.problem


def test_a_judge_without_credit_ends_as_a_budget_does(tmp_path: Path) -> None:
    with serving(Faults(credit=3, latency=0.05), answer=two) as server:
        readings = reader(server.base_url, max_in_flight=1).readings(words(9), job(tmp_path))
    assert (len(readings.facts), readings.code) == (3, ExitCode.BUDGET)
    assert "the account has no credit" in readings.problem


def test_a_plan_counts_the_longest_words_that_a_record_keeps() -> None:
    assert judge_module.MOST_WORDS == MOST_WORDS
    prices = {"reader": {"input": 10.0, "output": 20.0}}
    quote = reader("http://127.0.0.1:9/v1", prices=prices, max_tokens=100).quote()
    sent = int(quote.split("about ")[1].split()[0].replace(",", ""))
    assert 300 < sent < 700  # 1,200 characters of others and the prompt, four to a token
    assert quote.endswith(f"and 100 back: ${(10 * sent + 20 * 100) / 1e6:.4f}.")
    assert "no price is known" in reader("http://127.0.0.1:9/v1").quote()
