"""Descriptions of settings, read from docstrings."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^(?:Attributes|Args):\n((?:[ ].*\n?|\n)*)", flags=re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", flags=re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


def attribute_texts(settings: type) -> dict[str, str]:
    """Return the descriptions in the docstrings of a class and its bases, by attribute.

    Args:
        settings: A class with Google-style docstrings: ``Attributes:``, or ``Args:`` of the function it is made from.
    """
    texts: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        section = _SECTION.search(inspect.cleandoc(base.__dict__.get("__doc__") or ""))
        entries = [] if section is None else _ENTRY.findall(section[1])
        texts |= {name: plain_text(text) for name, text in entries}
    return texts


def plain_text(text: str) -> str:
    """Return a docstring's paragraph as one line, without the marks of reStructuredText."""
    return _ROLE.sub(r"\1", " ".join(text.split())).replace("``", "")
