"""Behaviour of every reader: batches, contents read once, facts stored by content, failures."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field

from medtest.core.cases import Output, PreparedSeed
from medtest.core.errors import ExitCode, MedtestError, UserMistakes
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import FAMILIES, TRUSTED, PartSettings, parts
from medtest.readers.base import BatchReader, KeptReader, ReadingJob, Unreadable
from medtest.suite.compose import load


class Settings(PartSettings):
    """Settings of the reader below."""

    upper: bool = False
    file: str | None = Field(default=None, json_schema_extra=TRUSTED)


class Letters(BatchReader[str, dict[str, int]]):
    """Counts letters; breaks on a text without any."""

    Settings = Settings
    task: ClassVar[str] = "answer"
    columns: ClassVar[tuple[str, ...]] = ("letters",)
    needs: ClassVar[tuple[str, ...]] = ("answer",)
    at_once: ClassVar[int] = 3
    keeps: ClassVar[bool] = True

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self.asked: list[list[str]] = []
        self.opened: list[str] = []

    def weights(self) -> Sequence[Path]:
        return [] if self.settings.file is None else [Path(self.settings.file)]

    def open(self, *, device: str, threads: int) -> None:
        if device == "cuda:7":
            raise RuntimeError("no such device")
        self.opened.append(device)

    def content(self, answer: Output, seed: PreparedSeed) -> str | None:
        return None

    def recorded(self, row: Mapping[str, Any]) -> str | None:
        return row["answer"]

    def read(self, contents: Sequence[str]) -> list[dict[str, int]]:
        self.asked.append(list(contents))
        counts = [{letter: text.count(letter) for letter in sorted(set(text)) if letter.isalpha()} for text in contents]
        if not all(counts):
            raise ValueError("there are no letters")
        return counts

    def texts(self, content: str, facts: dict[str, int]) -> dict[str, str | None]:
        return {"letters": None if content == "?" else str(sum(facts.values()))}


def letters(**settings: Any) -> Letters:
    return Letters("letters", Settings(**settings))


def test_contents_are_read_once_in_batches_and_come_back_in_order(tmp_path: Path) -> None:
    reader = letters()
    cached = KeptReader(reader, shared=tmp_path)
    assert cached.facts(["b", "a", "b", "cc", "d", "a"]) == [{"b": 1}, {"a": 1}, {"b": 1}, {"c": 2}, {"d": 1}, {"a": 1}]
    assert reader.asked == [["b", "a", "cc"], ["d"]]
    assert cached.facts(["d"]) == [{"d": 1}] and len(reader.asked) == 2
    assert cached.columns([{"answer": "cc"}, {"answer": None}]) == [{"letters": "2"}, {}]


def test_facts_are_kept_by_content_settings_and_weights(tmp_path: Path) -> None:
    weights = tmp_path / "net.bin"
    weights.write_bytes(b"1")
    KeptReader(letters(file=str(weights)), shared=tmp_path).facts(["a", "b"])
    again = letters(file=str(weights))
    assert KeptReader(again, shared=tmp_path).facts(["b"]) == [{"b": 1}] and again.asked == []
    for other, cache in ((letters(file=str(weights), upper=True), "use"), (letters(file=str(weights)), "refresh")):
        KeptReader(other, shared=tmp_path, cache=cache).facts(["b"])
        assert other.asked == [["b"]]
    elsewhere = tmp_path / "moved.bin"
    elsewhere.write_bytes(b"1")
    moved = letters(file=str(elsewhere))
    assert KeptReader(moved, shared=tmp_path).facts(["b"]) == [{"b": 1}] and moved.asked == []
    weights.write_bytes(b"22")
    changed = letters(file=str(weights))
    KeptReader(changed, shared=tmp_path).facts(["b"])
    assert changed.asked == [["b"]]
    assert changed.fingerprint()["weights"] == [hashlib.sha256(b"22").hexdigest()]


def test_a_content_that_breaks_the_reader_affects_no_other(tmp_path: Path) -> None:
    reader = letters()
    a, bad, c = KeptReader(reader, shared=tmp_path).facts(["a", "1", "c"])
    assert (a, c) == ({"a": 1}, {"c": 1}) and bad == Unreadable("there are no letters")
    assert reader.asked == [["a", "1", "c"], ["a"], ["1"], ["c"]]
    with pytest.raises(MedtestError, match="The reader 'letters' cannot be loaded: no such device"):
        KeptReader(reader, shared=None).open(device="cuda:7", threads=1)


def test_a_view_reports_unread_and_unclear_answers(tmp_path: Path) -> None:
    reader, messages = letters(), list[str]()
    job = ReadingJob(folder=tmp_path, shared=tmp_path, device="cpu", progress=messages.append)
    readings = reader.readings(["a?", "1", "b"], job)
    assert readings.of({"answer": "b"}) == {"letters": "1"} and readings.of({"answer": "1"}) == {}
    assert "could not read 1 of 3 answers: there are no letters" in readings.problem and readings.code is ExitCode.OK
    assert reader.summary(readings, 3) == "letters read 2 of 3 different answers"
    assert messages == ["3 of 3 answers are read"] and reader.opened == ["cpu"]
    assert letters().readings(["1"], job).code is ExitCode.TOO_MANY_ERRORS


def test_readers_are_parts_and_an_oracle_uses_those_of_its_task() -> None:
    assert "readers" in FAMILIES and {"typed_answers", "judge"} <= set(parts("readers"))
    assert [info.load().reads for info in parts("oracles").values() if info.load().reads] == [
        "typed_answers",
        "bundled",
    ]
    own = load("medvqa")
    assert own.reader is None and own.suite.build_reader() is not None
    assert "reader" not in own.suite.composed["oracles"] and "reader" not in own.suite.judging()
    assert load("medvqa", ["oracles.reader.use=typed_answers"]).view == ""
    for typed, words in (
        ("use=judge", "typed_answers"),
        ("use=typed_answer", "did you mean: typed_answers"),
        ("{use: typed_answers, grid: 3}", "the key grid"),
    ):
        key = "oracles.reader." + typed if typed[0] == "u" else f"oracles.reader={typed}"
        with pytest.raises(UserMistakes, match=words):
            load("medvqa", [key])
    with pytest.raises(UserMistakes, match="no reader with masks"):
        load("polyp_seg", ["oracles.reader.use=typed_answers"])
    assert Oracle.reads == ""
