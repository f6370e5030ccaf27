"""The judge of unparsed answers as a caller of a server."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from medtest.api.ledger import Ledger
from medtest.errors import ExitCode
from medtest.systems.answering.judge import LEDGER, Judge
from medtest.systems.answering.openai_compatible import ApiSettings, OpenAICompatible
from medtest.vqa.reading import Unread

UNREAD = Unread(item="polyps", kind="count", question="How many polyps are in the image?", words="Kaksi.")


def test_a_judge_on_another_machine_needs_no_leave_to_send_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network is needed: a proxy that is not there refuses the connection, once the call has left."""
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    settings = ApiSettings(base_url="https://judge.invalid/v1", model="reader", attempts=1)
    judge = Judge(OpenAICompatible("vllm", settings))
    assert judge.mistakes() == []
    readings = judge.read([UNREAD], tmp_path, tmp_path)
    assert "send_images" not in readings.problem
    assert "the connection failed" in readings.problem
    assert readings.found == {}
    assert readings.calls == 1


class Slow(BaseHTTPRequestHandler):
    """Answers after half a second that the words mean two."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.5)
        said = json.dumps({"meaning": "value", "answer": "2", "quote": "Kaksi"})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        answer = {"id": "x", "object": "chat.completion", "model": "reader", "choices": [choice], "usage": usage}
        sent = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


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
    told: list[float] = []

    def stop_once_something_is_under_way() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until and not path.with_name(f"{LEDGER}-wal").is_file():
            time.sleep(0.02)
        time.sleep(1.7)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    threading.Thread(target=stop_once_something_is_under_way, daemon=True).start()
    readings = judge.read(unread, tmp_path, tmp_path, cache="off", stopping=lambda: told.append(time.monotonic()))
    assert readings.code is ExitCode.INTERRUPTED
    assert "was stopped before" in readings.problem
    assert len(told) == 1
    assert signal.getsignal(number) is before
    assert 0 < len(readings.found) < len(unread)
    with Ledger(path) as ledger:
        totals = ledger.totals()
    assert (totals.lost, totals.under_way) == (0, 0)
    assert totals.outcomes == totals.calls == len(readings.found)
    # the same again goes on
    whole = judge.read(unread, tmp_path, tmp_path, cache="off")
    assert (whole.code, whole.problem) == (ExitCode.OK, "")
    assert whole.calls == len(unread) - len(readings.found)
