"""Reading of texts in controlled clinical English.

A text names a kind of picture, may describe patient, scanner and style, and lists findings. Commas, semicolons, "and",
"or", "but", "with", "showing", full stops and colons separate them. Each finding is a noun with number, size, colour,
side and Paris type before or after it. A negation or doubt reaches over "or" ("no effusion or pneumothorax") and over a
list that ends with "or"; where English leaves its reach open ("no effusion and pneumothorax"), the text is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from medtest.language.orders.findings import check_repeats, finding_of, presence_clashes
from medtest.language.orders.lexicon import OrderKind, OrderNoun, OrderPhrase, phrases_of
from medtest.language.orders.order import Contradiction, NotControlled, Order, OrderedFinding

_OF_HEADS = frozenset(
    (OrderKind.MODALITY, OrderKind.AGE, OrderKind.SEX, OrderKind.SCANNER, OrderKind.STYLE, OrderKind.NORMAL)
)
_OF_FINDINGS = frozenset(OrderKind) - _OF_HEADS - {OrderKind.FILLER, OrderKind.BREAK, OrderKind.JOINT}
_DETERMINERS = frozenset((OrderKind.ARTICLE, OrderKind.NUMBER, OrderKind.SINGLE, OrderKind.SEVERAL))
_MARKS = frozenset((OrderKind.NEGATION, OrderKind.DOUBT))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderItem:
    """Words of one finding.

    Attributes:
        start: Position of its first character.
        end: Position after its last.
        noun: Its noun, in the singular.
        alone: Whether its words can be replaced without changing the meaning of others.
        phrases: Its phrases.
    """

    start: int
    end: int
    noun: str
    alone: bool
    phrases: tuple[OrderPhrase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReading:
    """A text as it was read.

    Attributes:
        text: The text.
        order: What it orders.
        items: Words of each finding, in the order of the order's findings.
        heads: Phrases that describe picture, patient, scanner and style.
    """

    text: str
    order: Order
    items: tuple[OrderItem, ...]
    heads: tuple[OrderPhrase, ...]

    def head(self, kind: OrderKind) -> OrderPhrase | None:
        """Return the first phrase of a kind in the heads, or None."""
        return next((phrase for phrase in self.heads if phrase.kind is kind), None)


@dataclass(slots=True)
class _Chunk:
    """Phrases between two separators, and the separator before them."""

    joint: str
    phrases: list[OrderPhrase] = field(default_factory=list)

    def has(self, kinds: frozenset[OrderKind]) -> bool:
        return any(phrase.kind in kinds for phrase in self.phrases)

    def of(self, kinds: frozenset[OrderKind]) -> list[OrderPhrase]:
        return [phrase for phrase in self.phrases if phrase.kind in kinds]

    @property
    def nouns(self) -> list[OrderPhrase]:
        return [phrase for phrase in self.phrases if phrase.kind is OrderKind.FINDING]

    @property
    def is_together(self) -> bool:
        """True if no word about picture or patient stands between the words of the finding."""
        places = [at for at, phrase in enumerate(self.phrases) if phrase.kind in _OF_FINDINGS]
        return not any(phrase.kind in _OF_HEADS for phrase in self.phrases[places[0] : places[-1]])


@dataclass(slots=True)
class _Draft:
    """Phrases of one finding while the text is read."""

    phrases: list[OrderPhrase]
    presence: Any
    alone: bool


@lru_cache(maxsize=4096)
def read_order(text: str) -> OrderReading:
    """Read a text.

    Args:
        text: At most 2,000 characters.

    Raises:
        NotControlled: The text is not in the controlled English; its ``code`` is one of
            :data:`~medtest.language.orders.order.REASONS`.
    """
    modality, phrases = phrases_of(text)
    chunks = _chunks(phrases)
    drafts = _drafts(chunks)
    heads = tuple(phrase for chunk in chunks for phrase in chunk.of(_OF_HEADS))
    findings: list[OrderedFinding] = []
    clashes: list[Contradiction] = []
    for draft in drafts:
        finding, more = finding_of(draft.phrases, draft.presence)
        findings.append(finding)
        clashes += more
    check_repeats(findings)
    normal = any(phrase.kind is OrderKind.NORMAL for phrase in heads)
    if not findings and not normal:
        raise NotControlled("no_content", 'names no finding and does not say "normal"')
    order = Order(
        modality=modality.name,
        region=_only(heads, OrderKind.MODALITY, "kind of picture") or "",
        findings=tuple(findings),
        normal=normal,
        age=_only(heads, OrderKind.AGE, "age"),
        sex=_only(heads, OrderKind.SEX, "sex") or "",
        scanner=_only(heads, OrderKind.SCANNER, "scanner") or "",
        style=_only(heads, OrderKind.STYLE, "style") or "",
        contradictions=(*clashes, *presence_clashes(findings, normal=normal)),
    )
    return OrderReading(text=text, order=order, items=tuple(map(_item, drafts)), heads=heads)


def _only(heads: Sequence[OrderPhrase], kind: OrderKind, noun: str) -> Any:
    """Return the value of the phrases of a kind; None for none."""
    values = list(dict.fromkeys(phrase.value for phrase in heads if phrase.kind is kind))
    if len(values) > 1:
        raise NotControlled("two_statements", f"names more than one {noun}")
    return values[0] if values else None


def _chunks(phrases: Sequence[OrderPhrase]) -> list[_Chunk]:
    chunks = [_Chunk(".")]
    for at, phrase in enumerate(phrases):
        if phrase.kind in (OrderKind.JOINT, OrderKind.BREAK):
            joint = "with" if phrase.kind is OrderKind.BREAK else str(phrase.value)
            if chunks[-1].phrases:
                chunks.append(_Chunk(joint))
            else:  # ", and", "but with": the stronger separator counts
                chunks[-1].joint = _stronger(chunks[-1].joint, joint)
        elif phrase.kind not in (OrderKind.ARTICLE, OrderKind.FILLER) or not _is_of_head(phrases[at + 1 : at + 3]):
            chunks[-1].phrases.append(phrase)
    return [chunk for chunk in chunks if chunk.phrases]


def _is_of_head(following: Sequence[OrderPhrase]) -> bool:
    """Return True if an article before these phrases belongs to picture or patient ("in a colonoscopy image")."""
    kinds = [phrase.kind for phrase in following if phrase.kind is not OrderKind.ARTICLE]
    return bool(kinds) and kinds[0] in _OF_HEADS


def _stronger(joint: str, other: str) -> str:
    return max(joint, other, key=(",", "and", "or", "nor", "with", "but", ":", ";", ".").index)


def _drafts(chunks: Sequence[_Chunk]) -> list[_Draft]:
    drafts: list[_Draft] = []
    scope, shared = "ordered", False
    for number, chunk in enumerate(chunks):
        own = chunk.of(_OF_FINDINGS)
        nouns = chunk.nouns
        if len(nouns) > 1:
            words = f'"{nouns[0].text}" and "{nouns[1].text}"'
            raise NotControlled("ambiguous_negation", f"has no separator between {words}")
        if not nouns:
            if chunk.has(_MARKS):
                raise NotControlled("ambiguous_negation", f'has "{chunk.of(_MARKS)[0].text}" without a finding')
            scope = scope if chunk.joint == "," else "ordered"
            _attach(drafts, chunk)
            continue
        if chunk.has(_MARKS):
            scope, shared = _scope_of(chunk), False
        elif _reaches(scope, chunks, number):
            shared = True
            drafts[-1].alone = False
        else:
            scope, shared = "ordered", False
        drafts.append(_Draft(phrases=own, presence=scope, alone=not shared and chunk.is_together))
    return drafts


def _scope_of(chunk: _Chunk) -> str:
    kinds = {phrase.kind for phrase in chunk.of(_MARKS)}
    if len(kinds) > 1:
        raise NotControlled("ambiguous_negation", f'has a negation and a doubt for "{chunk.nouns[0].text}"')
    return "negated" if OrderKind.NEGATION in kinds else "uncertain"


def _reaches(scope: str, chunks: Sequence[_Chunk], number: int) -> bool:
    """Return True if the negation or doubt of the chunks before also covers this one."""
    chunk = chunks[number]
    if chunk.joint in ("or", "nor"):
        if scope == "ordered":
            raise NotControlled("ambiguous_negation", f'leaves open whether "{chunk.nouns[0].text}" is ordered ("or")')
        return True
    if scope == "ordered" or chunk.joint not in (",", "and"):
        return False
    if chunk.joint == "," and _ends_with_or(chunks[number + 1 :]):
        return True
    if chunk.has(_DETERMINERS):
        return False
    words = chunk.nouns[0].text
    raise NotControlled(
        "ambiguous_negation",
        f'leaves open whether "{words}" is {scope}, too; write "or {words}" or "but with {words}"',
    )


def _ends_with_or(chunks: Sequence[_Chunk]) -> bool:
    for chunk in chunks:
        if chunk.has(_MARKS) or chunk.joint not in (",", "or", "nor"):
            return False
        if chunk.joint != ",":
            return True
    return False


def _attach(drafts: list[_Draft], chunk: _Chunk) -> None:
    """Give attributes without a noun to the finding before them ("polyp, 8 mm, Paris Is")."""
    own = chunk.of(_OF_FINDINGS - {OrderKind.ARTICLE})
    if not own:
        return
    if not drafts or chunk.joint in (".", ";", ":") or chunk.has(_OF_HEADS):
        raise NotControlled("loose_words", f'has "{own[0].text}" without a finding')
    drafts[-1].phrases = _with_both_sides(drafts[-1].phrases, own) if chunk.joint == "and" else drafts[-1].phrases + own


def _with_both_sides(phrases: list[OrderPhrase], more: list[OrderPhrase]) -> list[OrderPhrase]:
    """Return the phrases of a finding and further ones; two sides joined by "and" are one phrase for both."""
    first = next((phrase for phrase in phrases if phrase.kind is OrderKind.SIDE), None)
    second = more[0]
    if first is None or second.kind is not OrderKind.SIDE or {first.value, second.value} != {"left", "right"}:
        return phrases + more
    both = OrderPhrase(OrderKind.SIDE, "bilateral", first.start, second.end, f"{first.text} and {second.text}")
    return [both if phrase is first else phrase for phrase in phrases] + more[1:]


def _item(draft: _Draft) -> OrderItem:
    noun: OrderNoun = next(phrase.value for phrase in draft.phrases if phrase.kind is OrderKind.FINDING)
    return OrderItem(
        start=min(phrase.start for phrase in draft.phrases),
        end=max(phrase.end for phrase in draft.phrases),
        noun=noun.noun,
        alone=draft.alone,
        phrases=tuple(draft.phrases),
    )
