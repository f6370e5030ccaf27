"""A reader of words that hangs, dies and breaks on request, for tests of the reading stage."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from medtest.core.cases import Output, PreparedSeed
from medtest.core.plugins import PartSettings
from medtest.readers.base import BatchReader


class Lengths(BatchReader[str, int]):
    """Reads the lengths of words; writes a line to a file for each batch."""

    task: ClassVar[str] = "answer"
    at_once: ClassVar[int] = 4
    own_processes: ClassVar[bool] = True

    def __init__(self, log: Path) -> None:
        super().__init__("lengths", PartSettings())
        self._log = log

    def open(self, *, device: str, threads: int) -> None:
        if self._log.with_name("cannot-load").exists():
            raise RuntimeError("its weights are gone")

    def content(self, answer: Output, seed: PreparedSeed) -> str | None:
        return None

    def recorded(self, row: Mapping[str, Any]) -> str | None:
        return None

    def read(self, contents: Sequence[str]) -> list[int]:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {' '.join(contents)}\n")
        for word in contents:
            if word.startswith("hang"):
                time.sleep(600)
            if word.startswith("die"):
                os._exit(3)
            if word.startswith("break"):
                raise ValueError("no word")
            if word.startswith("slow"):
                time.sleep(0.04)
        return [len(word) for word in contents]

    def texts(self, content: str, facts: int) -> dict[str, str | None]:
        return {"length": str(facts)}


class SuiteOfReader:
    """The part of a suite that the stage needs: its reader."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def build_reader(self) -> Lengths:
        return Lengths(self._log)
