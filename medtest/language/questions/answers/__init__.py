"""Parsing of answers into typed values, and comparison of values.

``parse`` is the entry point; every kind of answer has a module; ``compare`` distinguishes equal answers from flips.
"""

from medtest.language.questions.answers.compare import Change, Comparison, compare, king_distance
from medtest.language.questions.answers.parse import parse, parse_all
from medtest.language.questions.answers.values.answer import Answer, State

__all__ = ["Answer", "Change", "Comparison", "State", "compare", "king_distance", "parse", "parse_all"]
