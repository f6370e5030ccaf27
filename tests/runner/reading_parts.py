"""A reader of words that hangs, dies and breaks where a test wants it, for tests of the stage that reads."""

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
    """Tells how long words are; leaves a line in a file for each batch."""

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
        for one in contents:
            if one.startswith("hang"):
                time.sleep(600)
            if one.startswith("die"):
                os._exit(3)
            if one.startswith("break"):
                raise ValueError("no word")
            if one.startswith("slow"):
                time.sleep(0.04)
        return [len(one) for one in contents]

    def texts(self, content: str, facts: int) -> dict[str, str | None]:
        return {"length": str(facts)}


class SuiteOfReader:
    """As much of a suite as the stage asks for: its reader."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def build_reader(self) -> Lengths:
        return Lengths(self._log)
