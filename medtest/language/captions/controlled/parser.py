"""Parser ``controlled``: words, tags, phrases, relations."""

from __future__ import annotations

from typing import ClassVar

from medtest.core.scenes import Pool
from medtest.language.captions.controlled.reading import CaptionReading
from medtest.language.captions.controlled.tagging import Tagger
from medtest.language.captions.controlled.tokens import words
from medtest.language.captions.parsers import CaptionParser

MOST_CHARACTERS = 20_000
"""Longest caption that is read; longer ones are cut, since no service draws them."""


class ControlledParser(CaptionParser):
    """Rule-based parser without dependencies: exact on the templates' English, heuristic on other captions."""

    name: ClassVar[str] = "controlled"

    def parse(self, text: str) -> Pool:
        """Return the pool of a caption; see :class:`~medtest.language.captions.parsers.CaptionParser`."""
        return CaptionReading(Tagger(words(text[:MOST_CHARACTERS])).tags()).pool()
