"""The stage that reads answers in separate processes: batches, a bounded queue, blame."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from reading_parts import SuiteOfReader

from medtest.readers.base import KeptReader, Unreadable
from medtest.runner.pool.messages import Job
from medtest.runner.units.seeing import ReadingStage


class Results:
    """Results of readings, in order of arrival."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.threads: set[str] = set()
        self._came = threading.Condition()

    def of(self, content: str) -> Any:
        def take(facts: Any) -> None:
            with self._came:
                self.facts[content] = facts
                self.threads.add(threading.current_thread().name)
                self._came.notify_all()

        return take

    def wait(self, count: int) -> dict[str, Any]:
        with self._came:
            assert self._came.wait_for(lambda: len(self.facts) >= count, timeout=60), self.facts
        return self.facts


@contextmanager
def stage_of(tmp_path: Path, *, processes: int = 1, seconds: float = 60.0) -> Iterator[tuple[ReadingStage, list[str]]]:
    suite: Any = SuiteOfReader(tmp_path / "log")
    job = Job(
        suite=suite,
        data=None,
        batch_size=1,
        device="cpu",
        threads=1,
        hash_key=None,
        strata=(),
        send_seconds=1.0,
        hide=(),
        batch_seconds=seconds,
    )
    failed: list[str] = []
    cached_reader: KeptReader[str, int] = KeptReader(suite.build_reader(), shared=None)
    stage = ReadingStage(
        cached_reader, job, device="cpu", processes=processes, fail=lambda error: failed.append(str(error))
    )
    try:
        yield stage, failed
    finally:
        stage.close()


@pytest.mark.slow
def test_every_content_is_read_once_and_every_caller_gets_the_result(tmp_path: Path) -> None:
    results = Results()
    words = [f"word{'s' * number}" for number in range(40)]
    again: list[int] = []
    with stage_of(tmp_path, processes=2) as (stage, failed):
        for word in words:
            stage.submit(word, results.of(word))
            stage.submit(word, again.append)  # two cases, one picture
        assert results.wait(40) == {word: len(word) for word in words}
        stage.submit(words[0], results.of("known"))  # in the caller's thread
        assert results.facts["known"] == 4 and not stage.busy
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    read = [word for line in lines for word in line.split()[1:]]
    assert sorted(read) == sorted(words) and sorted(again) == sorted(map(len, words))
    assert max(len(line.split()) for line in lines) <= 5 and failed == []  # a process number and four words


def test_only_contents_that_hang_die_or_break_are_blamed(tmp_path: Path) -> None:
    results = Results()
    words = ["a", "hang", "bb", "die", "ccc", "break", "dddd"]
    with stage_of(tmp_path, seconds=2.0) as (stage, failed):
        for word in words:
            stage.submit(word, results.of(word))
        facts = results.wait(len(words))
    assert {word: facts[word] for word in ("a", "bb", "ccc", "dddd")} == {"a": 1, "bb": 2, "ccc": 3, "dddd": 4}
    assert facts["hang"] == Unreadable("the reader gave no answer within 2 s")
    assert facts["die"] == Unreadable("the reader's process ended with exit code 3")
    assert facts["break"] == Unreadable("no word") and failed == []


def test_a_slow_reader_slows_down_the_caller(tmp_path: Path) -> None:
    results, ahead = Results(), []
    with stage_of(tmp_path) as (stage, _):
        for number in range(40):
            stage.submit(f"slow{number}", results.of(f"slow{number}"))
            ahead.append(number + 1 - len(results.facts))
        results.wait(40)
    assert max(ahead) <= 4 * 4 + 1  # four batches of four wait, and no more


def test_a_reader_that_cannot_be_loaded_ends_the_run_and_leaves_no_caller_waiting(tmp_path: Path) -> None:
    (tmp_path / "cannot-load").touch()
    results = Results()
    with stage_of(tmp_path) as (stage, failed):
        stage.submit("a", results.of("a"))
        facts = results.wait(1)
        stage.submit("b", results.of("b"))
        assert results.wait(2)["b"] == facts["a"]
    assert failed == ["The reader 'lengths' cannot be loaded: its weights are gone"]


def test_closing_leaves_no_process(tmp_path: Path) -> None:
    with stage_of(tmp_path) as (stage, _):
        stage.submit("hang", Results().of("hang"))
        while not (tmp_path / "log").exists():
            time.sleep(0.01)
    number = int((tmp_path / "log").read_text(encoding="utf-8").split()[0])
    with suppress(psutil.NoSuchProcess):  # its entry may outlive the process by a moment
        assert psutil.Process(number).status() == psutil.STATUS_ZOMBIE


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
