"""Words of a text, found longest phrase first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple

from medtest.language.orders.order import NotControlled
from medtest.language.orders.vocabulary import TOKEN, ModalityWords, folded, tokens_of, vocabulary

MOST_CHARACTERS = 2000


class OrderKind(Enum):
    """Kinds of phrases."""

    FINDING = auto()
    SIDE = auto()
    PARIS = auto()
    COLOUR = auto()
    SIZE = auto()
    SIZE_WORD = auto()
    NUMBER = auto()
    ARTICLE = auto()
    SINGLE = auto()
    SEVERAL = auto()
    NEGATION = auto()
    DOUBT = auto()
    NORMAL = auto()
    MODALITY = auto()
    AGE = auto()
    SEX = auto()
    SCANNER = auto()
    STYLE = auto()
    FILLER = auto()
    BREAK = auto()
    JOINT = auto()


class OrderNoun(NamedTuple):
    """A noun for a finding: the finding's name, the noun in the singular, and whether the text has its plural."""

    name: str
    noun: str
    plural: bool


@dataclass(frozen=True, slots=True)
class OrderPhrase:
    """Phrase of a text.

    Attributes:
        kind: What it is.
        value: What it means: a name, a number, millimetres, or a :class:`OrderNoun`.
        start: Position of its first character.
        end: Position after its last.
        text: Its words as they stand.
    """

    kind: OrderKind
    value: Any
    start: int
    end: int
    text: str


_Entry = tuple[tuple[str, ...], OrderKind, Any]
_JOINTS = (",", ";", ".", ":", "and", "or", "nor", "but")
_KINDS_OF_LISTS = {
    "colours": OrderKind.COLOUR,
    "single": OrderKind.SINGLE,
    "several": OrderKind.SEVERAL,
    "articles": OrderKind.ARTICLE,
    "negations": OrderKind.NEGATION,
    "doubts": OrderKind.DOUBT,
    "normal": OrderKind.NORMAL,
    "ages": OrderKind.FILLER,
    "fillers": OrderKind.FILLER,
    "breaks": OrderKind.BREAK,
}
_UNITS = {"mm": 1.0, "cm": 10.0}
_TWO_NUMBERS = re.compile(r"\d+(?:\s*-\s*|,)\d+")
"""A range ("5-10 mm") or a decimal comma, whose halves would be read as a count and a size."""


def phrases_of(text: str) -> tuple[ModalityWords, list[OrderPhrase]]:
    """Return the kind of picture that a text names, and its phrases.

    Raises:
        NotControlled: It is too long, names no kind of picture or two, or has words or numbers that the vocabulary
            lacks.
    """
    if len(text) > MOST_CHARACTERS:
        raise NotControlled("too_long", f"has {len(text)} characters; {MOST_CHARACTERS} are allowed")
    pair = _TWO_NUMBERS.search(text)
    if pair is not None:
        raise NotControlled("unknown_words", f'has "{pair.group()}"; write one number, with a point before decimals')
    matches = list(TOKEN.finditer(text))
    words = [folded(match.group()) for match in matches]
    modality = _modality(words)
    phrases: list[OrderPhrase] = []
    unknown: list[str] = []
    at = 0
    while at < len(words):
        length, kind, value = _longest(_entries(modality.name), words, at)
        if not length:
            length, kind, value = _number(words, at)
        if not length:
            unknown.append(matches[at].group())
            at += 1
            continue
        start, end = matches[at].start(), matches[at + length - 1].end()
        phrases.append(OrderPhrase(kind, value, start, end, text[start:end]))
        at += length
    if unknown:
        named = ", ".join(dict.fromkeys(word[:30] for word in unknown[:5]))
        raise NotControlled("unknown_words", f"has words outside the vocabulary of the {modality.name}: {named}")
    return modality, phrases


def _modality(words: list[str]) -> ModalityWords:
    named: set[str] = set()
    at = 0
    while at < len(words):
        length, _, name = _longest(_modalities(), words, at)
        named |= {name} if length else set()
        at += max(length, 1)
    modalities = vocabulary().modalities
    if not named:
        kinds = ", ".join(modality.words[0] for modality in modalities.values())
        raise NotControlled("no_modality", f"names no kind of picture; known are: {kinds}, colonoscopy, gastroscopy")
    if len(named) > 1:
        raise NotControlled("two_modalities", f"names two kinds of pictures: {' and '.join(sorted(named))}")
    return modalities[named.pop()]


def _longest(entries: dict[str, list[_Entry]], words: list[str], at: int) -> tuple[int, OrderKind, Any]:
    """Return length, kind and meaning of the longest phrase at a position; length 0 for none."""
    for tokens, kind, value in entries.get(words[at], ()):
        if tuple(words[at : at + len(tokens)]) == tokens:
            return len(tokens), kind, value
    return 0, OrderKind.FILLER, None


def _number(words: list[str], at: int) -> tuple[int, OrderKind, Any]:
    """Return a number, with its unit if it is a size, or with the words that make it an age."""
    numbers = vocabulary().numbers
    word, after = words[at], words[at + 1 : at + 4]
    value = float(word) if re.fullmatch(r"\d{1,4}(?:\.\d{1,3})?", word) else None
    if value is None and word in numbers:
        value = float(numbers.index(word))
    if value is None:
        return 0, OrderKind.FILLER, None
    if after and after[0] in _UNITS:
        return 2, OrderKind.SIZE, value * _UNITS[after[0]]
    if any(tuple(after[: len(tokens)]) == tokens for tokens in _ages()) or (after and after[0] in ("M", "F")):
        return 1, OrderKind.AGE, int(value)
    return (1, OrderKind.NUMBER, int(value)) if value.is_integer() else (0, OrderKind.FILLER, None)


@cache
def _ages() -> tuple[tuple[str, ...], ...]:
    return tuple(tokens_of(phrase) for phrase in vocabulary().lists["ages"])


@cache
def _modalities() -> dict[str, list[_Entry]]:
    return _indexed(
        (phrase, OrderKind.MODALITY, modality.name)
        for modality in vocabulary().modalities.values()
        for region in ("", *modality.regions)
        for phrase in modality.phrases(region)
    )


@cache
def _entries(name: str) -> dict[str, list[_Entry]]:
    """Return all phrases of a modality by their first word, longest first."""
    return _indexed(_all_phrases(vocabulary().modalities[name]))


def _all_phrases(modality: ModalityWords) -> Iterator[tuple[str, OrderKind, Any]]:
    words = vocabulary()
    for region in ("", *modality.regions):
        yield from ((phrase, OrderKind.MODALITY, region) for phrase in modality.phrases(region))
    for finding in modality.findings.values():
        for noun in finding.nouns:
            yield noun, OrderKind.FINDING, OrderNoun(finding.name, noun, plural=False)
            if finding.counted or not finding.mass:
                yield finding.plural(noun), OrderKind.FINDING, OrderNoun(finding.name, noun, plural=True)
    tables = (
        (OrderKind.SIDE, words.sides),
        (OrderKind.PARIS, words.paris),
        (OrderKind.SEX, words.sexes),
        (OrderKind.STYLE, words.styles),
        (OrderKind.SCANNER, modality.scanners),
    )
    for kind, table in tables:
        yield from ((phrase, kind, name) for name, phrases in table.items() for phrase in phrases)
    for word, bounds in words.size_words.items():
        yield word, OrderKind.SIZE_WORD, bounds
    for name, kind in _KINDS_OF_LISTS.items():
        yield from ((phrase, kind, phrase) for phrase in words.lists[name])
    yield from ((joint, OrderKind.JOINT, joint) for joint in _JOINTS)


def _indexed(phrases: Iterable[tuple[str, OrderKind, Any]]) -> dict[str, list[_Entry]]:
    entries: dict[str, list[_Entry]] = {}
    for phrase, kind, value in phrases:
        tokens = tokens_of(phrase)
        entries.setdefault(tokens[0], []).append((tokens, kind, value))
    return {word: sorted(of_word, key=lambda entry: -len(entry[0])) for word, of_word in entries.items()}
