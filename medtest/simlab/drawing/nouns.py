"""Nouns known to the product, in singular and plural."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medtest.core.files.paths import read_yaml
from medtest.phantoms.scenes import CLASSES

_PLURALS = {"person": ("people", "persons"), "sheep": ("sheep",), "man": ("men",), "woman": ("women",)}
_PLURALS |= {"child": ("children",), "cattle": ("cattle",), "aircraft": ("aircraft",), "calf": ("calves",)}
_PLURALS |= {"ox": ("oxen",), "human being": ("human beings",)}


@dataclass(frozen=True, slots=True)
class DrawnNoun:
    """A form of a noun.

    Attributes:
        name: Class drawn for it.
        plain: Whether it is a form of that same name.
        many: Whether it is a plural only.
    """

    name: str
    plain: bool
    many: bool


def _plurals(word: str) -> tuple[str, ...]:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return (word + "es",)
    if word.endswith("y") and word[-2] not in "aeiou":
        return (word[:-1] + "ies",)
    return (word + "s",)


@cache
def nouns() -> dict[tuple[str, ...], DrawnNoun]:
    """Return every known form, as a tuple of words."""
    table = read_yaml(Path(__file__).with_name("nouns.yaml"))
    forms: dict[tuple[str, ...], DrawnNoun] = {}
    for name in CLASSES:
        for word in (name, *table.get(name, ())):
            for form in (*_plurals(word), word):  # a word that is its own plural counts as a singular
                forms.setdefault(tuple(form.split()), DrawnNoun(name, word == name, form != word))
                if form == word:
                    forms[tuple(form.split())] = DrawnNoun(name, word == name, False)
    return forms


@cache
def longest() -> int:
    """Return the number of words of the longest noun."""
    return max(len(form) for form in nouns())
