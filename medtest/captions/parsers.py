"""Parsers of captions: words in, pool out; which there are, by name."""

from __future__ import annotations

import importlib
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


def parser_of(name: str) -> CaptionParser:
    """Return a parser by name, made.

    Raises:
        KeyError: There is none of that name; the message lists those there are.
    """
    modules = {"controlled": ("medtest.captions.controlled.parser", "ControlledParser")}
    if name not in modules:
        raise KeyError(f"no parser {name!r}; there are {', '.join(sorted(modules))}")
    module, attribute = modules[name]
    made: CaptionParser = getattr(importlib.import_module(module), attribute)()
    return made
