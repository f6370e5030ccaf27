"""Words of content that prompts use beside the controlled parser's lists, from ``content.yaml``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from medtest.core.files.paths import read_yaml
from medtest.language.captions.controlled.lexicon import animate
from medtest.language.captions.inflection import singular

FILE = Path(__file__).with_name("content.yaml")


@cache
def content() -> Mapping[str, frozenset[str]]:
    """Return the words of content by list, cached."""
    return {name: frozenset(text.split()) for name, text in read_yaml(FILE).items() if isinstance(text, str)}


@cache
def measure_patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of sizes, grades and scores, cached."""
    return tuple(re.compile(pattern, re.I) for pattern in read_yaml(FILE)["measures"])


@cache
def worn() -> Mapping[str, str]:
    """Return the words for clothes that persons are "in", by singular, cached."""
    return {singular(word): word for word in read_yaml(FILE)["garments"].split()}


@cache
def is_being(name: str) -> bool:
    """Return True if a noun names persons or animals."""
    last = name.rpartition(" ")[2]
    return animate(name) or not content()["beings"].isdisjoint((last, singular(last)))


def in_other_script(text: str) -> bool:
    """Return True if fewer than half of a text's letters are Latin."""
    letters = [sign for sign in text if sign.isalpha()]
    latin = sum(unicodedata.name(sign, "").startswith(("LATIN", "FULLWIDTH LATIN")) for sign in letters)
    return bool(letters) and 2 * latin < len(letters)


def describes(word: str) -> bool:
    """Return True if a word before a noun is its material or another attribute."""
    lists = content()
    return (
        word in lists["materials"]
        or word in lists["adjectives"]
        or word.endswith(("-sided", "-grade", "-shaped", "-walled"))
    )


def is_clinical(text: str) -> bool:
    """Return True if a prompt is one of medicine, by its words."""
    return not content()["clinical"].isdisjoint(re.findall(r"[\w-]+", text.lower()))
