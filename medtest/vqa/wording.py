"""Canonical values as people read them: ``biopsy_forceps;tube`` is "biopsy forceps, tube", ``5..10`` "5 to 10"."""

from __future__ import annotations

import re

_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"(?P<at_least>=)?(?P<low>{_NUMBER})?\.\.(?P<most>=)?(?P<high>{_NUMBER})?")
_PARIS = {"ip": "Ip", "is": "Is", "iia": "IIa"}


def plain_value(text: str) -> str:
    """Return a canonical text (:mod:`medtest.vqa.values`), several values of it, or free words as people read them."""
    return ", ".join(_plain(part) for part in text.split(";")) if text else ""


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
