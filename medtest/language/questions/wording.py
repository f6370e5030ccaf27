"""Canonical values as readable text: ``biopsy_forceps;tube`` is "biopsy forceps, tube", ``5..10`` "5 to 10".

A size has its unit, millimetres, if the type of the answer is passed: "5 to 10 mm".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from medtest.language.questions.values import Kind

MOST_WORDS = 600
"""Largest number of characters of a question and of an answer in a record; a judge reads no more."""

NOT_RELEVANT = "not relevant"
"""Text of the state ``not_relevant`` among canonical values."""

_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"(?P<at_least>=)?(?P<low>{_NUMBER})?\.\.(?P<most>=)?(?P<high>{_NUMBER})?")
_UNITS: Mapping[str, str] = {Kind.SIZE: " mm"}
_PARIS = {"ip": "Ip", "is": "Is", "iia": "IIa"}


def plain_value(text: str, kind: str = "") -> str:
    """Return a canonical text (:mod:`values`), several values of it, or free words as readable text.

    Args:
        text: The canonical text.
        kind: Type of the answer (:class:`medtest.language.questions.values.Kind`), which adds the unit of sizes; "" if
            it
            is unknown, or if the text is not a value.
    """
    unit = _UNITS.get(kind, "")
    return ", ".join(_plain(part) + (unit if _is_number(part) else "") for part in text.split(";")) if text else ""


def _is_number(part: str) -> bool:
    match = _RANGE.fullmatch(part)
    ranged = match is not None and not (match["low"] is None and match["high"] is None)
    return ranged or re.fullmatch(rf"~?{_NUMBER}", part) is not None


def _plain(part: str) -> str:
    if part in _PARIS:
        return _PARIS[part]
    if part.startswith("~"):
        return f"about {part[1:]}"
    match = _RANGE.fullmatch(part)
    if match is None or (match["low"] is None and match["high"] is None):
        return part.replace("_", " ")
    if match["low"] is None:
        return f"{'at most' if match['most'] else 'below'} {match['high']}"
    if match["high"] is None:
        return f"{'at least' if match['at_least'] else 'above'} {match['low']}"
    return f"{match['low']} to {match['high']}"
