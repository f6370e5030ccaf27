"""Denials in prompts: what is denied is the difference between the affirmed prompt and the prompt without it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from medtest.core.scenes import Absence, Pool
from medtest.language.captions.controlled.lexicon import lexicon
from medtest.language.captions.inflection import article, is_plural
from medtest.language.captions.reading.content import content

_NOUN = r"(?:[a-z][a-z-]*)(?:\s[a-z][a-z-]*)??"
_PLACES = (
    r"(?:on|in|at|near|next\sto|under|behind|beside|inside|above|below|around|by|between|along|across|over|in\sfront\sof"
    r"|on\stop\sof)"
)
_DETERMINER = r"(?:any\s|an?\s|the\s)?"
_STOPS = r"(?=\s*(?:[.,;!?]|$))"
_DENIES = re.compile(
    r"\b(?:no|not|never|nobody|none|nothing|neither|nor|without|n't|cannot|lacks?|lacking|absent|absence|missing|free|minus"
    r"|except|excluding|empty|instead|rather|hardly|barely|negative)\b|n['\u2019]t\b|\bno-?one\b|-free\b|less\b",
    re.I,
)
_CONTRACTED = ((re.compile(r"\b(is|are|was|were|does|do|has|have)n['\u2019]t\b", re.I), r"\1 not"),)


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
    """Form of a denial.

    Attributes:
        pattern: What it looks like.
        affirmed: How the affirmation reads, as a template of the match ("{n}" with an article if one is needed).
        left: What is left without it.
        possession: Predicate that is denied, where the only thing before the denial is what lacks the noun.
    """

    pattern: re.Pattern[str]
    affirmed: str
    left: str = ""
    possession: str = ""

    def put(self, template: str, match: re.Match[str]) -> str:
        """Return the text with a template in the place of the denial."""
        groups = {name: value or "" for name, value in match.groupdict().items()}
        if "n" in groups:
            groups["n"] = _some(groups["n"])
        return match.string[: match.start()] + template.format(**groups) + match.string[match.end() :]


def _some(noun: str) -> str:
    """Return a noun phrase with the article that a singular needs to be read as one thing."""
    return noun if noun.startswith(("a ", "an ")) or is_plural(noun.split()[-1]) else f"{article(noun)} {noun}"


@cache
def _forms() -> tuple[_Form, ...]:
    verbs = "|".join(sorted(word for word, forms in lexicon().forms.items() if "VZ" in forms and word.endswith("s")))
    ends = rf"(?=\s*(?:[.,;!?]|$)|\s(?:{_PLACES}|is|are|was|were|{verbs})\b)"
    person = r"(?:the|an?)\s[a-z-]+(?:\s[a-z-]+)??"
    held = r"\w+ing\s(?:an?|any|the|his|her|its|their)\s[\w-]+(?:\s[\w-]+)??"
    rows = (
        (rf"\bneither\s(?P<a>{person})\snor\s(?P<b>{person})\s(?:is|are)\s(?P<act>\w+ing\s[^.,]+)", "{a} and {b} {act}",
         "{a} and {b}", ""),
        (rf"\s(?:without|with\sno)\s{_DETERMINER}(?P<n>{_NOUN}){ends}", " with {n}", "", "with"),
        (rf"\s(?:that|which|who)\s(?P<v>has|have)\sno\s(?P<n>{_NOUN}){ends}", " that {v} {n}", "", "has"),
        (rf"\s(?P<v>has|have)\sno\s(?P<n>{_NOUN}){_STOPS}", " {v} {n}", "", "has"),
        (rf"\s(?:(?:that|which|who)\s)?(?P<be>is|are)\snot\s(?P<act>{held}){_STOPS}", " {be} {act}", "", ""),
        (rf"\snot\s(?P<act>{held}){_STOPS}", " {act}", "", ""),
        (rf"\s(?P<be>is|are)\snot\s(?P<adj>[a-z]+){_STOPS}", " {be} {adj}", "", ""),
        (rf"(?:,|,?\s(?:but|and))\s(?:with\s)?no\s(?P<n>{_NOUN}){_STOPS}", " and {n}", "", ""),
        (rf",?\s(?:(?:but|and)\s)?not\s(?P<n>an?\s{_NOUN}){_STOPS}", " and {n}", "", ""),
    )  # fmt: skip
    return tuple(_Form(re.compile(pattern, re.I), *texts) for pattern, *texts in rows)


_PEOPLE = re.compile(
    rf"^(?:there\s(?:is|are)\s)?(?:nobody|no\s?-?one)\s(?:is|are\s)?(?:\s?\w+ing\s)?\s?{_PLACES}\s(?=\w)", re.I
)
_NO = rf"no\s(?:(?:signs?|evidence|traces?)\sof\s)?{_DETERMINER}(?P<n>{_NOUN})"
_LISTED = r"(?=\s*(?:[.,;!?]|$)|,?\s(?:and|or|nor)\sno\b)"
_SEEN = r"\s(?:(?:is|are|can\sbe)\s)?(?:seen|visible|present|shown|found|there)"
_GOES_ON = re.compile(r",?\s(?:(?:and|or|nor)\s)?(?=no\b)", re.I)
"""Joint of a sentence's list of denials."""
_ABSENT: tuple[re.Pattern[str], ...] = (
    re.compile(rf"^(?:there\s(?:is|are)\s)?{_NO}\s(?:is\s|are\s)?{_PLACES}\s(?=\w)", re.I),
    re.compile(rf"(?:^|[,.]\s*)(?:there\s(?:is|are)\s)?{_NO}(?:{_SEEN})?{_LISTED}", re.I),
    re.compile(rf",?\sbut\s{_NO}{_STOPS}", re.I),
    re.compile(rf"\s(?:and|but)\sthere\s(?:is|are)\s{_NO}{_STOPS}", re.I),
)


def without_denials(text: str, read: Callable[[str], tuple[Pool, bool]], *, listed: bool = False) -> Denials:
    """Return a text without its denials, and what they deny.

    Args:
        text: The content of a prompt.
        read: Returns the pool of a text, and whether it is sure.
        listed: Whether the text is one of a list of things, where "no birds" denies birds in the picture.

    A denial is understood if the affirmed text has exactly one kind of thing more than the text without it: one
    relation (of each of several subjects) to a thing without attributes, one attribute, or one thing.
    """
    for pattern, plain in _CONTRACTED:
        text = pattern.sub(plain, text)
    if not _DENIES.search(text):
        return Denials(text=text)
    absent: list[Absence] = []
    for _ in range(3):
        denial = _one(text, read, listed=listed)
        if denial is None:
            break
        text, denied = denial
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


def _one(text: str, read: Callable[[str], tuple[Pool, bool]], *, listed: bool) -> tuple[str, list[Absence]] | None:
    people = _PEOPLE.match(text)
    if people is not None:
        return text[people.end() :], [("person",)]
    in_list = _absent(text, read) if listed else None
    if in_list is not None:
        return in_list
    for form in _forms():
        match = form.pattern.search(text)
        if match is None:
            continue
        left = form.put(form.left, match)
        denied = _lacking(form, match, read) or _difference(form.put(form.affirmed, match), left, read)
        if denied:
            return left, denied
    return _absent(text, read)


def _absent(text: str, read: Callable[[str], tuple[Pool, bool]]) -> tuple[str, list[Absence]] | None:
    """Return a text without a thing that it denies as a whole ("no birds"), and the thing."""
    for pattern in _ABSENT:
        match = pattern.search(text)
        if match is not None:
            name = _thing(match["n"], read)
            if name:
                goes_on = None if match[0].startswith(",") else _GOES_ON.match(text, match.end())
                between = ". " if goes_on and match[0].startswith(".") else ""
                rest = text[goes_on.end() if goes_on else match.end() :]
                return f"{text[: match.start()]}{between}{rest}".strip(), [(name,)]
    return None


def _lacking(form: _Form, match: re.Match[str], read: Callable[[str], tuple[Pool, bool]]) -> list[Absence]:
    """Return the denied possession of the only thing that is named before it."""
    if not form.possession:
        return []
    (before, _), name = read(match.string[: match.start()]), _thing(match["n"], read)
    if len(before.entities) != 1 or not name:
        return []
    return [(before.entities[0].name, form.possession, name)]


def _thing(noun: str, read: Callable[[str], tuple[Pool, bool]]) -> str:
    """Return the name of a thing without attributes; "" if the noun is none."""
    if noun.lower().replace(" ", "_") in content()["clinical_names"]:
        return noun.lower()
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
    if not triples and not attributes and names.total() == 1:
        return [(next(iter(names)),)]
    if any(triple[1] == "of" for triple in triples):
        return []
    plain = all(not entity.attributes for entity in more.entities if entity.name in names)
    if triples and not attributes and plain and names.total() <= 1 and len({triple[1:] for triple in triples}) == 1:
        return list(triples)
    return []


def _attributes(pool: Pool) -> Counter[Absence]:
    return Counter((entity.name, attribute) for entity in pool.entities for attribute in entity.attributes)
