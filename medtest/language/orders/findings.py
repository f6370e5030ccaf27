"""Findings from the phrases that describe them, and statements that exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtest.language.orders.lexicon import OrderKind, OrderNoun, OrderPhrase
from medtest.language.orders.order import Contradiction, NotControlled, OrderedFinding, Presence, Side
from medtest.language.orders.vocabulary import FindingWords, vocabulary

MOST_OF_ONE = 20
"""Greatest number of one finding."""


def finding_of(phrases: Sequence[OrderPhrase], presence: Presence) -> tuple[OrderedFinding, list[Contradiction]]:
    """Return the finding that phrases describe, without its contradictions, and these.

    Args:
        phrases: Phrases of one finding; exactly one is its noun.
        presence: Whether it is ordered, negated or uncertain.

    Raises:
        NotControlled: A phrase does not apply to this kind of finding.
    """
    noun: OrderNoun = next(phrase.value for phrase in phrases if phrase.kind is OrderKind.FINDING)
    words = vocabulary().findings[noun.name]
    _check_applies(words, phrases)
    clashes: list[Contradiction] = []
    side = _side(words, phrases, clashes)
    size = _size(words, phrases, clashes)
    paris = _agreed(words, phrases, OrderKind.PARIS, "Paris type", clashes)
    colour = _agreed(words, phrases, OrderKind.COLOUR, "colour", clashes)
    count = _count(words, noun, phrases, clashes)
    if count == 0:
        presence, count = "negated", None
    elif presence == "negated":
        count = None
    finding = OrderedFinding(
        name=noun.name,
        presence=presence,
        side=side,
        count=count,
        size_mm=size,
        paris=paris or "",
        colour=colour or "",
    )
    return finding, clashes


def presence_clashes(findings: Sequence[OrderedFinding], *, normal: bool) -> list[Contradiction]:
    """Return the findings that a text both orders and excludes."""
    ordered = dict.fromkeys(finding.name for finding in findings if finding.presence == "ordered")
    negated = {finding.name for finding in findings if finding.presence == "negated" and is_whole(finding)}
    return [
        Contradiction(
            finding=name, about="presence", statements=("ordered", "negated" if name in negated else "normal")
        )
        for name in ordered
        if normal or name in negated
    ]


def check_repeats(findings: Sequence[OrderedFinding]) -> None:
    """Check that a finding without a number is ordered once: two effusions on two sides are a bilateral one.

    Raises:
        NotControlled: One is ordered more than once.
    """
    words = vocabulary().findings
    names = [finding.name for finding in findings if finding.presence == "ordered" and not words[finding.name].counted]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise NotControlled("two_statements", f"orders {words[repeated].words[0]} more than once; write it once")


def is_whole(finding: OrderedFinding) -> bool:
    """Return True if a finding has no attribute, so that its negation excludes its whole class."""
    return finding.side is None and finding.size_mm is None and not finding.paris and not finding.colour


def _check_applies(words: FindingWords, phrases: Sequence[OrderPhrase]) -> None:
    applies = {OrderKind.PARIS: words.typed, OrderKind.COLOUR: words.coloured}
    for phrase in phrases:
        if not applies.get(phrase.kind, True):
            raise NotControlled("loose_words", f'has "{phrase.text}", which does not apply to {words.words[0]}')
        number = phrase.value if phrase.kind is OrderKind.NUMBER else 1
        if number > (MOST_OF_ONE if words.counted else 1):
            limit = f"at most {MOST_OF_ONE} are allowed" if words.counted else "it has no number"
            raise NotControlled("loose_words", f'has "{phrase.text}" for {words.words[0]}; {limit}')


def _clash(words: FindingWords, about: str, first: object, second: object) -> Contradiction:
    return Contradiction(finding=words.name, about=about, statements=(str(first), str(second)))


def _values(phrases: Sequence[OrderPhrase], kind: OrderKind) -> dict[Any, str]:
    """Return the distinct values of a kind with their words."""
    return {phrase.value: phrase.text for phrase in phrases if phrase.kind is kind}


def _agreed(
    words: FindingWords, phrases: Sequence[OrderPhrase], kind: OrderKind, about: str, clashes: list[Contradiction]
) -> Any:
    """Return the value on which all phrases of a kind agree; None for none or for a contradiction."""
    values = _values(phrases, kind)
    if len(values) > 1:
        first, second = list(values.values())[:2]
        clashes.append(_clash(words, about, first, second))
        return None
    return next(iter(values), None)


_PLACES = {"midline": "always in the midline", "both": "always on both sides", "none": "has no side in this picture"}


def _side(words: FindingWords, phrases: Sequence[OrderPhrase], clashes: list[Contradiction]) -> Side | None:
    side = _agreed(words, phrases, OrderKind.SIDE, "side", clashes)
    fitting = {"midline": ("midline",), "both": ("bilateral",), "none": ()}.get(
        words.sides, ("left", "right", "bilateral")
    )
    if side is not None and side not in fitting:
        place = _PLACES.get(words.sides, "never in the midline")
        clashes.append(_clash(words, "side", _values(phrases, OrderKind.SIDE)[side], place))
        return None
    return side  # type: ignore[no-any-return]


def _size(words: FindingWords, phrases: Sequence[OrderPhrase], clashes: list[Contradiction]) -> float | None:
    size = _agreed(words, phrases, OrderKind.SIZE, "size", clashes)
    if size is None:
        return None
    bounds = {text: value for value, text in _values(phrases, OrderKind.SIZE_WORD).items()}
    if words.millimetres is not None:
        bounds[f"{words.words[0]} (by definition)"] = words.millimetres
    for text, (low, high) in bounds.items():
        if not low <= size <= high:
            clashes.append(_clash(words, "size", f"{size:g} mm", text))
            return None
    return float(size)


def _count(
    words: FindingWords, noun: OrderNoun, phrases: Sequence[OrderPhrase], clashes: list[Contradiction]
) -> int | None:
    """Return the number of instances; None if it is not stated or does not apply."""
    count = _agreed(words, phrases, OrderKind.NUMBER, "count", clashes)
    if count == 0:
        return 0
    single = any(phrase.kind is OrderKind.SINGLE for phrase in phrases)
    if not words.counted or clashes and clashes[-1].about == "count":
        return None
    if single and count not in (None, 1):
        clashes.append(_clash(words, "count", "single", count))
        return None
    if count is not None:
        return int(count)
    if any(phrase.kind is OrderKind.SEVERAL for phrase in phrases):
        return None
    return None if noun.plural and not single else 1
