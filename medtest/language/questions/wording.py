"""Canonical values as people read them: ``biopsy_forceps;tube`` is "biopsy forceps, tube", ``5..10`` "5 to 10".

A size has its unit, millimetres, where the type of the answer is named: "5 to 10 mm".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from medtest.language.questions.values import Kind

MOST_WORDS = 600
"""Characters of a question and of an answer that a record keeps; what a judge reads is no longer."""

NOT_RELEVANT = "not relevant"
"""How the state ``not_relevant`` is written where canonical values stand."""

_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"(?P<at_least>=)?(?P<low>{_NUMBER})?\.\.(?P<most>=)?(?P<high>{_NUMBER})?")
_UNITS: Mapping[str, str] = {Kind.SIZE: " mm"}
_PARIS = {"ip": "Ip", "is": "Is", "iia": "IIa"}


def plain_value(text: str, kind: str = "") -> str:
    """Return a canonical text (:mod:`values`), several values of it, or free words as people read them.

    Args:
        text: The canonical text.
        kind: Type of the answer (:class:`medtest.language.questions.values.Kind`): numbers of a size are in
            millimetres, which are written then; "" where it is not known, or where the text is no value.
    """
    unit = _UNITS.get(kind, "")
    return ", ".join(_plain(part) + (unit if _is_number(part) else "") for part in text.split(";")) if text else ""


def _is_number(part: str) -> bool:
    found = _RANGE.fullmatch(part)
    ranged = found is not None and not (found["low"] is None and found["high"] is None)
    return ranged or re.fullmatch(rf"~?{_NUMBER}", part) is not None


def _plain(part: str) -> str:
    if part in _PARIS:
        return _PARIS[part]
    if part.startswith("~"):
        return f"about {part[1:]}"
    found = _RANGE.fullmatch(part)
    if found is None or (found["low"] is None and found["high"] is None):
        return part.replace("_", " ")
    if found["low"] is None:
        return f"{'at most' if found['most'] else 'below'} {found['high']}"
    if found["high"] is None:
        return f"{'at least' if found['at_least'] else 'above'} {found['low']}"
    return f"{found['low']} to {found['high']}"
