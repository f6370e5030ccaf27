"""Words of content that prompts use beside the controlled parser's lists, from ``content.yaml``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medtest.core.files.paths import read_yaml
from medtest.language.captions.controlled.lexicon import animate
from medtest.language.captions.inflection import singular

FILE = Path(__file__).with_name("content.yaml")


@dataclass(frozen=True, kw_only=True)
class ContentWords:
    """Words of content.

    Attributes:
        beings: Persons and animals.
        uncounted: Nouns that are not counted where no article, number or owner stands before them.
        materials: Materials that are attributes before a noun.
        garments: What persons "in" it wear: the word by its singular.
        adjectives: Attributes before a noun.
        clinical: Words that make a prompt one of medicine.
        clinical_names: Names of several words, joined by "_", that are one thing in prompts of medicine.
        vague: Heads of names that cannot be seen, or that tell how a picture looks.
        foreign: Frequent short words of other languages that are no English words.
        contracted: English contractions.
        measures: Patterns of sizes, grades and scores.
    """

    beings: frozenset[str]
    uncounted: frozenset[str]
    materials: frozenset[str]
    adjectives: frozenset[str]
    clinical: frozenset[str]
    clinical_names: frozenset[str]
    vague: frozenset[str]
    garments: Mapping[str, str]
    foreign: frozenset[str]
    contracted: frozenset[str]
    measures: tuple[re.Pattern[str], ...]


@cache
def content() -> ContentWords:
    """Return the words of content, cached."""
    listed = read_yaml(FILE)
    sets = {name: frozenset(text.split()) for name, text in listed.items() if name not in ("measures", "garments")}
    garments = {singular(word): word for word in listed["garments"].split()}
    return ContentWords(
        garments=garments, measures=tuple(re.compile(pattern, re.I) for pattern in listed["measures"]), **sets
    )


@cache
def is_being(name: str) -> bool:
    """Return True if a noun names persons or animals."""
    last = name.rpartition(" ")[2]
    return animate(name) or not content().beings.isdisjoint((last, singular(last)))


def in_other_script(text: str) -> bool:
    """Return True if fewer than half of a text's letters are Latin."""
    letters = [sign for sign in text if sign.isalpha()]
    latin = sum(unicodedata.name(sign, "").startswith(("LATIN", "FULLWIDTH LATIN")) for sign in letters)
    return bool(letters) and 2 * latin < len(letters)


def describes(word: str) -> bool:
    """Return True if a word before a noun is its material or another attribute."""
    lists = content()
    return (
        word in lists.materials or word in lists.adjectives or word.endswith(("-sided", "-grade", "-shaped", "-walled"))
    )


def is_clinical(text: str) -> bool:
    """Return True if a prompt is one of medicine, by its words."""
    return not content().clinical.isdisjoint(re.findall(r"[\w-]+", text.lower()))
