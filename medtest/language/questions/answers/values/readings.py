"""Result type of readers, and masking of text parts."""

from __future__ import annotations

import re
from typing import TypeAlias

from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.values import Value

Found: TypeAlias = tuple[Value | State, int, int]
"""A value or a state, with its span in the text."""


def blanked(text: str, start: int, end: int) -> str:
    """Return a text with a part replaced by spaces."""
    return text[:start] + " " * (end - start) + text[end:]


def without(pattern: re.Pattern[str], text: str) -> str:
    """Return a text of equal length with every match of a pattern replaced by spaces."""
    return pattern.sub(lambda match: " " * len(match[0]), text)
