"""Denials in prompts: what is denied is the difference between the affirmed prompt and the prompt without it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from medtest.core.scenes import Absence, Pool

_NOUN = r"(?:[a-z][a-z-]*)(?:\s[a-z][a-z-]*)?"
_ENDS = (
    r"(?=\s*(?:[.,;!?]|$)|\s(?:on|in|at|near|next|under|behind|beside|above|below|by|is|are|was|were"
    r"|stands?|sits?|lies?|kicks?|runs?|walks?|holds?|rides?|eats?|plays?)\b)"
)
_DENIES = re.compile(
    r"\b(?:no|not|never|nobody|none|nothing|neither|nor|without|n't|cannot|lacks?|lacking|absent|absence|missing|free|minus"
    r"|except|excluding|empty|instead|rather|hardly|barely|negative)\b|n['\u2019]t\b|\bno-?one\b|-free\b|less\b",
    re.I,
)
_CONTRACTED = ((re.compile(r"\b(is|are|was|were|does|do|has|have)n['\u2019]t\b", re.I), r"\1 not"),)
_PEOPLE = re.compile(
    r"^(?:there\s(?:is|are)\s)?(?:nobody|no\s?-?one)\s(?:is|are)\s(?:\w+ing\s)?(?:on|in|at|near|under|behind|beside)\s(?=\w)",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Denials:
    """Prompt without what it denies.

    Attributes:
        text: The prompt without its denials.
        absent: What is denied.
        unclear: Words of a denial that is not understood; "" if all are.
        denies: True if the prompt denies something.
    """

    text: str
    absent: tuple[Absence, ...] = ()
    unclear: str = ""
    denies: bool = False


@dataclass(frozen=True, slots=True)
class _Form:
    """Form of a denial: what it looks like, how the affirmation reads, and what is left without it."""

    pattern: re.Pattern[str]
    affirmed: Callable[[re.Match[str]], str]
    left: Callable[[re.Match[str]], str]
    entity: bool = False


def _form(pattern: str, affirmed: Callable[[re.Match[str]], str], left: str = "", *, entity: bool = False) -> _Form:
    return _Form(re.compile(pattern, re.I), affirmed, lambda match: match.expand(left), entity)


def _some(noun: str) -> str:
    """Return a noun phrase with an article if it is a singular that needs one to be read as one thing."""
    return noun if noun.split()[-1].endswith("s") else f"a {noun}"


_DET = r"(?:any\s|an?\s|the\s)?"
_FORMS: tuple[_Form, ...] = (
    _form(
        rf"\bneither\s(?P<a>(?:the|an?)\s{_NOUN})\snor\s(?P<b>(?:the|an?)\s{_NOUN})\s(?:is|are)\s(?P<act>\w+ing\s[^.,]+)",
        lambda m: f"{m['a']} and {m['b']} {m['act']}",
        r"\g<a> and \g<b>",
    ),
    _form(rf"\s(?:without|with\sno)\s{_DET}(?P<n>{_NOUN}?){_ENDS}", lambda m: f" with {_some(m['n'])}"),
    _form(
        rf"\s(?:that|which|who)\s(?P<v>has|have)\sno\s(?P<n>{_NOUN}?){_ENDS}",
        lambda m: f" that {m['v']} {_some(m['n'])}",
    ),
    _form(rf"\s(?P<v>has|have)\sno\s(?P<n>{_NOUN}?){_ENDS}", lambda m: f" {m['v']} {_some(m['n'])}"),
    _form(
        r"\s(?:(?P<that>that|which|who)\s)?(?P<be>is|are)\snot\s(?P<act>\w+ing\s(?:an?|any|the|his|her|its|their)?\s?[\w-]+)(?=\s*(?:[.,]|$))",
        lambda m: f" {m['be']} {m['act'].replace('any ', '')}",
    ),
    _form(
        r"\snot\s(?P<act>(?:wearing|holding|carrying|riding|eating|using|drinking|reading)\s(?:an?|any)\s[\w-]+)(?=\s*(?:[.,]|$))",
        lambda m: f" {m['act'].replace('any ', 'a ')}",
    ),
    _form(r"\s(?P<be>is|are)\snot\s(?P<adj>[a-z]+)(?=\s*(?:[.,]|$))", lambda m: f" {m['be']} {m['adj']}"),
    _form(rf",?\s(?:but|and)?\s?not\s(?P<n>an?\s{_NOUN}?)(?=\s*(?:[.,]|$))", lambda m: f" and {m['n']}"),
)
_ABSENT: tuple[re.Pattern[str], ...] = (
    re.compile(rf"^there\s(?:is|are)\sno\s(?P<n>{_NOUN}?)\s(?:on|in|at|near|under|behind|beside|inside)\s(?=\w)", re.I),
    re.compile(rf"^no\s(?P<n>{_NOUN}?)\s(?:on|in|at|near|under|behind|beside|inside)\s(?=\w)", re.I),
    re.compile(
        rf"(?:^|[,.]\s*|\s*(?:,\s*)?(?:and|but)\s(?:there\s(?:is|are)\s)?)no\s(?P<n>{_NOUN}?)(?=\s*(?:[.,]|$))", re.I
    ),
    re.compile(rf"[.,]\s*there\s(?:is|are)\sno\s(?P<n>{_NOUN}?)(?=\s*(?:[.,]|$))", re.I),
)


def without_denials(text: str, read: Callable[[str], tuple[Pool, bool]]) -> Denials:
    """Return a text without its denials, and what they deny.

    Args:
        text: The content of a prompt.
        read: Returns the pool of a text, and whether it is sure.

    A denial is understood if the affirmed text has exactly one kind of thing more than the text without it: one
    relation (of each of several subjects) to a thing without attributes, one attribute, or one thing.
    """
    for pattern, plain in _CONTRACTED:
        text = pattern.sub(plain, text)
    if not _DENIES.search(text):
        return Denials(text=text)
    absent: list[Absence] = []
    for _ in range(3):
        found = _one(text, read)
        if found is None:
            break
        text, denied = found
        absent += denied
    remaining = _DENIES.search(text)
    if remaining and remaining.group().lower() in ("less", "free", "empty", "negative", "missing"):
        remaining = None if not re.search(r"\b(?:free of|missing|negative for|empty of)\b", text, re.I) else remaining
    return Denials(
        text=text,
        absent=tuple(dict.fromkeys(absent)),
        unclear=remaining.group() if remaining else "",
        denies=bool(absent) or remaining is not None,
    )


def _one(text: str, read: Callable[[str], tuple[Pool, bool]]) -> tuple[str, list[Absence]] | None:
    people = _PEOPLE.match(text)
    if people is not None:
        return text[people.end() :], [("person",)]
    for pattern in _ABSENT:
        match = pattern.search(text)
        if match is not None:
            name = _thing(match["n"], read)
            if name:
                return (text[: match.start()] + text[match.end() :]).strip(), [(name,)]
    for form in _FORMS:
        match = form.pattern.search(text)
        if match is None:
            continue
        left = text[: match.start()] + form.left(match) + text[match.end() :]
        denied = _difference(text[: match.start()] + form.affirmed(match) + text[match.end() :], left, read)
        if denied:
            return left, denied
    return None


def _thing(noun: str, read: Callable[[str], tuple[Pool, bool]]) -> str:
    """Return the name of a thing without attributes; "" if the noun is none."""
    pool, sure = read(_some(noun))
    only = pool.entities[0] if len(pool.entities) == 1 and sure else None
    return only.name if only is not None and not only.attributes else ""


def _difference(affirmed: str, left: str, read: Callable[[str], tuple[Pool, bool]]) -> list[Absence]:
    (more, sure), (less, also_sure) = read(affirmed), read(left)
    if not sure or not also_sure:
        return []
    triples = list((Counter(more.named()) - Counter(less.named())).elements())
    if Counter(less.named()) - Counter(more.named()):
        return []
    names = Counter(entity.name for entity in more.entities) - Counter(entity.name for entity in less.entities)
    attributes = _attributes(more) - _attributes(less)
    if not triples and not names and len(attributes) == 1:
        return [next(iter(attributes))]
    plain = all(not entity.attributes for entity in more.entities if entity.name in names)
    if triples and not attributes and plain and names.total() <= 1 and len({triple[1:] for triple in triples}) == 1:
        return list(triples)
    return []


def _attributes(pool: Pool) -> Counter[Absence]:
    return Counter((entity.name, attribute) for entity in pool.entities for attribute in entity.attributes)
