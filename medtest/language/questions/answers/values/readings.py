"""What a reader of one kind gives back, and texts of which parts no longer count."""

from __future__ import annotations

import re
from typing import TypeAlias

from medtest.language.questions.answers.values.answer import State
from medtest.language.questions.values import Value

Found: TypeAlias = tuple[Value | State, int, int]
"""A value or a state, with the first character and the end of what it rests on."""


def blanked(text: str, start: int, end: int) -> str:
    """Return a text of which a part became blanks."""
    return text[:start] + " " * (end - start) + text[end:]


def without(pattern: re.Pattern[str], text: str) -> str:
    """Return a text of as many characters in which every match of a pattern became blanks."""
    return pattern.sub(lambda match: " " * len(match[0]), text)
