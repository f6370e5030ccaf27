"""The product against servers of other projects: LitServe's OpenAI specification and ``transformers serve``."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from answering_parts import answering_suite
from question_parts import Meter
from runner_helpers import go, records
from runner_parts import plan_of

from medtest.api.store.ledger import Ledger
from medtest.systems.answering.local_chat import LocalChat

HERE = Path(__file__).parent
ROW = 1 + 3
QUESTIONS = 3


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextlib.contextmanager
def serving(line: list[str], port: int, ready: str, cwd: Path) -> Iterator[str]:
    """Start a server in a separate process group, wait until it answers, and end all of it."""
    log = cwd / "server.log"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            line, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until = time.monotonic() + 240
        while True:
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < until, log.read_text(errors="replace")[-3000:]
            if answers(f"http://127.0.0.1:{port}{ready}"):
                break
            time.sleep(0.3)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_litserve_sees_the_pixels_that_were_sent(tmp_path: Path) -> None:
    pytest.importorskip("litserve")
    port = free_port()
    with serving([sys.executable, str(HERE / "litserve_eyes.py"), str(port)], port, "/health", tmp_path) as base_url:
        suite = answering_suite(base_url, seeds=3, max_in_flight=8)
        outcome = go(suite, tmp_path / "each")
        together = answering_suite(base_url, seeds=2, questions={"together": True})
        at_once = records(go(together, tmp_path / "together"))
        by_schema = records(go(answering_suite(base_url, seeds=2, structured="first"), tmp_path / "first"))
    frame = records(outcome)
    # It breaks (500) on a schema of a single question: asked in words it answers as it does without a schema.
    assert set(by_schema.state) == {"answered"}, set(by_schema.reason)
    assert list(by_schema.said) == list(frame.said[: len(by_schema)])
    assert len(frame) == 3 * QUESTIONS * ROW
    assert set(frame.state) == {"answered"}
    # The same cases, measured in this process on the arrays themselves.
    measured = records(go(replace(suite, systems=(plan_of("systems", "meter", Meter),)), tmp_path / "meter"))
    assert list(frame.said) == list(measured.said)
    assert (frame.prompt_tokens == 64 * 64 * 3).all()
    with Ledger(outcome.systems[0].folder / "ledger.sqlite") as ledger:
        assert ledger.totals().calls == ledger.totals().outcomes == len(frame)
    assert len(at_once) == 2 * QUESTIONS * ROW
    expected = [str(round(float(value))) for value in measured.said[: len(at_once)]]
    assert list(at_once.said) == expected
    assert (at_once.prompt_tokens == 64 * 64).all()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_transformers_serve_and_this_process_give_equal_answers(tmp_path: Path) -> None:
    program = shutil.which("transformers", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("transformers brings no command here")
    sys.path.insert(0, str(HERE.parent / "systems" / "answering"))
    try:
        from tiny_talkers import save_talker
    finally:
        sys.path.pop(0)
    save_talker(tmp_path / "talker")
    port = free_port()
    line = [program, "serve", "talker", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with serving(line, port, "/health", tmp_path) as base_url:
        suite = answering_suite(
            base_url, seeds=2, model="talker", max_tokens=12, max_in_flight=1, detail=None, structured="never"
        )
        outcome = go(suite, tmp_path / "served")
        settings = {"model": "talker", "max_tokens": 12, "max_in_flight": 1, "detail": None}
        first = answering_suite(base_url, seeds=1, structured="first", **settings)
        by_schema = records(go(first, tmp_path / "first"))
    served = records(outcome)
    # It accepts a schema and ignores it: the words are read as words.
    assert list(by_schema.said) == list(served.said[: len(by_schema)])
    assert list(by_schema.state) == list(served.state[: len(by_schema)])
    assert len(served) == 2 * QUESTIONS * ROW
    assert set(served.state) <= {"answered", "length"}
    assert served.said.nunique() > len(served) // 2, "answers depend on image and question"
    assert (served.prompt_tokens > 100).all()
    local = plan_of("systems", "local", LocalChat, path=str(tmp_path / "talker"), max_tokens=12)
    own = records(go(replace(suite, systems=(local,)), tmp_path / "own"))
    assert list(served.said.str.strip()) == list(own.said.str.strip())
    assert list(served.prompt_tokens) == list(own.prompt_tokens)
    # An answer that ends with its last allowed token is whole; transformers serve calls it cut off.
    assert (served.state[own.state == "length"] == "length").all()
