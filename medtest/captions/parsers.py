"""Parsers of captions: words in, pool out; which there are, by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from medtest.scenes import Pool


class CaptionParser(ABC):
    """Reads the pool that a caption says.

    Attributes:
        name: As suites and tables name it.
    """

    name: ClassVar[str]

    @abstractmethod
    def parse(self, text: str) -> Pool:
        """Return what a caption says; an empty pool where it names nothing.

        Entities come in the order in which they are named, singular and in lower case, as the caption words them
        (``lady``, not ``woman``); triples in the order in which they are said.
        """

    def parse_all(self, texts: Iterable[str]) -> Iterator[Pool]:
        """Yield the pools of many captions, in their order."""
        return map(self.parse, texts)
