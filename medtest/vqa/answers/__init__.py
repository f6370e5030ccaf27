"""From an answer's text to a typed value, and how two values differ.

``parse`` is the door; every kind of answer has one file; ``compare`` tells same from flip.
"""

from medtest.vqa.answers.answer import Answer, State
from medtest.vqa.answers.compare import Change, Comparison, compare, king_distance
from medtest.vqa.answers.parse import parse, parse_all

__all__ = ["Answer", "Change", "Comparison", "State", "compare", "king_distance", "parse", "parse_all"]
