"""The parser ``controlled``: words, tags, phrases, relations."""

from __future__ import annotations

from typing import ClassVar

from medtest.core.scenes import Pool
from medtest.language.captions.controlled.reading import CaptionReading
from medtest.language.captions.controlled.tagging import Tagger
from medtest.language.captions.controlled.tokens import words
from medtest.language.captions.parsers import CaptionParser

MOST_CHARACTERS = 20_000
"""Longer captions are cut: no service draws them."""


class ControlledParser(CaptionParser):
    """Ours: needs nothing, reads the templates' English exactly and other captions by rules."""

    name: ClassVar[str] = "controlled"

    def parse(self, text: str) -> Pool:
        """Return what a caption says; see :class:`~medtest.language.captions.parsers.CaptionParser`."""
        return CaptionReading(Tagger(words(text[:MOST_CHARACTERS])).tags()).pool()
