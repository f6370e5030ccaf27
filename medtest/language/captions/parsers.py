"""Interface and registry of caption parsers."""

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
    """Parser of captions into pools.

    Attributes:
        name: Name in suites and tables.
    """

    name: ClassVar[str]

    @abstractmethod
    def parse(self, text: str) -> Pool:
        """Return the pool of a caption, empty if it names nothing.

        Entities are in the order in which they are named, singular and in lower case, in the caption's words (``lady``,
        not ``woman``); triples in the order in which they are stated.
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
"""Parsers by name: module and class; dependencies are loaded on instantiation."""


class NoParser(MedtestError):
    """The parser of captions is unknown, or its dependencies are not installed."""


def parser_of(name: str, **settings: Any) -> CaptionParser:
    """Return a new parser by name.

    Args:
        name: One of :data:`PARSERS`.
        settings: Arguments of its class.

    Raises:
        NoParser: The name is unknown, dependencies are not installed, or the settings are invalid.
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
    parser: CaptionParser = kind(**settings)
    return parser
