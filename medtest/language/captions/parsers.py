"""Parsers of captions: words in, pool out; which there are, by name."""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, ClassVar

from medtest.core.errors import MedtestError
from medtest.core.scenes import Pool


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


PARSERS: dict[str, tuple[str, str]] = {
    "controlled": ("medtest.language.captions.controlled.parser", "ControlledParser"),
    "spacy": ("medtest.language.captions.dependencies.spacy_parser", "SpacyParser"),
    "stanza": ("medtest.language.captions.dependencies.stanza_parser", "StanzaParser"),
    "language_model": ("medtest.language.captions.language_model", "LanguageModelParser"),
}
"""Parsers by name: the module and the class; what they need is loaded when one is made."""


class NoParser(MedtestError):
    """A parser of captions is unknown, or what it needs is not installed."""


def parser_of(name: str, **settings: Any) -> CaptionParser:
    """Return a parser by name, made.

    Args:
        name: One of :data:`PARSERS`.
        settings: Its class's arguments.

    Raises:
        NoParser: There is none of that name, what it needs is not installed, or it takes no such settings.
    """
    if name not in PARSERS:
        nearest = next(iter(get_close_matches(name, PARSERS)), None)
        hint = f" Did you mean {nearest!r}?" if nearest else ""
        raise NoParser(f"no parser of captions is called {name!r}; there are {', '.join(PARSERS)}.{hint}")
    module, attribute = PARSERS[name]
    kind = getattr(importlib.import_module(module), attribute)
    try:
        inspect.signature(kind).bind(**settings)
    except TypeError as error:
        raise NoParser(f"parser {name}: {error}") from None
    made: CaptionParser = kind(**settings)
    return made
