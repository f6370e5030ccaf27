"""From an answer's text to a typed value, and how two values differ.

``parse`` is the door; every kind of answer has one file; ``compare`` tells same from flip.
"""

from medtest.language.questions.answers.compare import Change, Comparison, compare, king_distance
from medtest.language.questions.answers.parse import parse, parse_all
from medtest.language.questions.answers.values.answer import Answer, State

__all__ = ["Answer", "Change", "Comparison", "State", "compare", "king_distance", "parse", "parse_all"]
