"""What a parser of one kind gives back."""

from __future__ import annotations

from typing import TypeAlias

from medtest.vqa.answers.answer import State
from medtest.vqa.values import Value

Found: TypeAlias = tuple[Value | State, int, int]
"""A value or a state, with the first character and the end of what it rests on."""
