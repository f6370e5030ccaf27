"""Mapping from words to names: ``lexicon.yaml``, compiled once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from medtest.core.files.paths import read_yaml
from medtest.language.questions.answers.scope import negated

FILE = Path(__file__).with_name("lexicon.yaml")
_NON = re.compile(r"\bnon-\s?\Z")


@cache
def sections() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return every section: canonical names, with the words for each."""
    content = read_yaml(FILE)
    return {
        section: {name: tuple(str(word) for word in words) for name, words in entries.items()}
        for section, entries in content.items()
    }


@cache
def _compiled(section: str) -> tuple[re.Pattern[str], Mapping[str, str]]:
    names = {folded(word): name for name, words in sections()[section].items() for word in words}
    longest = sorted(names, key=len, reverse=True)
    return re.compile("|".join(f"(?P<w{number}>{_pattern(word)})" for number, word in enumerate(longest))), {
        f"w{number}": names[word] for number, word in enumerate(longest)
    }


def folded(low: str) -> str:
    """Return a text of equal length without accents, which models use inconsistently."""
    if low.isascii():
        return low
    return "".join(letter if letter < "\u00c0" else unicodedata.normalize("NFD", letter)[0] for letter in low)


def _pattern(word: str) -> str:
    body = re.escape(word).replace(r"\ ", r"[\s-]+")
    if not word[0].isascii() and not word[0].isalpha():
        return body
    if ord(word[0]) > 0x2E80:  # Chinese has no spaces between words
        return body
    return rf"(?<![^\W\d_]){body}(?:e?s)?(?![^\W\d_])"


def mentions(section: str, low: str) -> list[tuple[str, int, int]]:
    """Return every word of a section in a text: its name, first character and end.

    Args:
        section: A section of the lexicon.
        low: The text in lower case.
    """
    pattern, names = _compiled(section)
    return [(names[str(match.lastgroup)], match.start(), match.end()) for match in pattern.finditer(folded(low))]


def affirmed(section: str, low: str) -> list[tuple[str, int, int]]:
    """Return the words of a section that the text does not deny, including forms such as "non-pedunculated"."""
    return [
        mention
        for mention in mentions(section, low)
        if not negated(low, mention[1], mention[2]) and not _NON.search(low, max(0, mention[1] - 6), mention[1])
    ]
