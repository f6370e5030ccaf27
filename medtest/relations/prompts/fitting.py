"""Rules that keep changes of a person's own words natural: closed lists, and refusal where a change is in doubt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from medtest.core.errors import NotApplicable
from medtest.core.files.paths import read_yaml
from medtest.core.scenes import Pool
from medtest.language.captions.controlled.tagging import Tagger
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token
from medtest.language.captions.controlled.tokens import words
from medtest.language.captions.controlled.verbs import VERBS
from medtest.language.captions.inflection import is_plural
from medtest.language.captions.vocabulary import vg150

FITTING = Path(__file__).with_name("fitting.yaml")
_REFLEXIVE = frozenset(("himself", "herself", "itself", "themselves", "each", "other", "another"))
_BESIDE = frozenset(("near", "behind", "in front of"))
_BEFORE_NOUN = frozenset((Tag.ARTICLE, Tag.THE, Tag.QUANTITY, Tag.NUMBER, Tag.AND, Tag.PREPOSITION, *VERBS))
_COMPOUND = frozenset((Tag.NOUN, Tag.ADJECTIVE, Tag.MODIFIER, Tag.POSSESSIVE))
_GATHERED = frozenset(("group", "couple", "pair", "herd"))
_BOUND = frozenset(("of", "to", "onto", "into", "from"))
"""Prepositions whose phrases belong to the word before them."""
_OPEN = frozenset(
    ("top", "front", "side", "back", "middle", "bottom", "edge", "end", "pair", "group", "couple", "bunch", "view")
)
_SEVERAL = frozenset(("their", "they", "them", "each", "both"))
_CLAUSE_ENDS = frozenset((Tag.STOP, Tag.COMMA))


@cache
def _lists() -> dict[str, Any]:
    lists: dict[str, Any] = read_yaml(FITTING)
    return lists


@cache
def _addition(key: str) -> frozenset[str]:
    return frozenset(_lists()["additions"][key])


@cache
def _tags(text: str) -> tuple[Token, ...]:
    return tuple(Tagger(words(text)).tags())


def _group(name: str) -> dict[str, Any]:
    """Return the group of exchangeable classes that has a class; empty if none."""
    return next((group for group in _lists()["exchanges"] if name in group["to"]), {})


def _spelt(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+(?:-[a-z]+)?", text.lower()))


# ------------------------------------------------------------------------------------------------------------ exchange


def may_exchange(pool: Pool, at: int, name: str) -> bool:
    """Return True if a class may stand for an entity: the same closed group, and predicates common to the group."""
    entity = pool.entities[at]
    group = _group(entity.name)
    if not group or name not in group["to"][entity.name]:
        return False
    if [other.name for other in pool.entities].count(entity.name) > 1:
        return False
    return all(
        "*" in (allowed := group.get("subject" if triple.subject == at else "object", ()))
        or triple.predicate in allowed
        for triple in pool.triples
        if at in (triple.subject, triple.object)
    )


def check_exchange(text: str, old: str) -> None:
    """Check that all words around a noun fit its whole group.

    Args:
        text: The prompt.
        old: The class that is exchanged, of a group in ``fitting.yaml``.

    Raises:
        NotApplicable: Other words depend on the noun, or may do so.
    """
    group = _group(old)
    spelt = _spelt(text)
    bound = sorted(spelt & (_REFLEXIVE | set(group.get("never", ()))))
    if bound:
        raise NotApplicable(f"another noun for {old!r} may not fit its own words {', '.join(map(repr, bound))}")
    tokens = _tags(text)
    if "verbs" in group:
        foreign = [token.word for token in tokens if token.tag in VERBS and _base(token) not in group["verbs"]]
        if foreign:
            raise NotApplicable(f"another noun for {old!r} may not fit its own word {foreign[0]!r}")
    places = _mentions(tokens, old)
    if _counts_wrong(tokens, places):
        raise NotApplicable(f"its own words have {old!r} in the singular after a number")
    if len(places) != 1 or not _stands_alone(tokens, places[0], group.get("words", ())):
        raise NotApplicable(f"another noun for {old!r} may not fit the words beside it")


def _base(token: Token) -> str:
    return token.base or token.word


def _mentions(tokens: tuple[Token, ...], name: str) -> list[int]:
    return [at for at, token in enumerate(tokens) if token.tag is Tag.NOUN and vg150().class_of(token.word) == name]


def _counts_wrong(tokens: tuple[Token, ...], places: list[int]) -> bool:
    """Return True if a noun in the singular follows a word for several ("a couple of giraffe")."""
    return any(
        at > 1 and not is_plural(tokens[at].word) and tokens[at - 1].word == "of" and tokens[at - 2].word in _GATHERED
        for at in places
    )


def _stands_alone(tokens: tuple[Token, ...], at: int, described: Iterable[str]) -> bool:
    """Return True if a noun has only general descriptions, and is neither part of a compound nor measured."""
    if at + 1 < len(tokens) and (tokens[at + 1].tag in _COMPOUND or tokens[at + 1].word in ("drawn", "of")):
        return False
    first = at - 1
    while first >= 0 and tokens[first].tag not in (Tag.ARTICLE, Tag.THE) and tokens[first].word in described:
        first -= 1
    if first < 0:
        return True
    before = tokens[first]
    if before.word == "of":
        return first > 0 and tokens[first - 1].word in _GATHERED
    return before.tag in _BEFORE_NOUN


# ------------------------------------------------------------------------------------------------------------ addition


def may_add(pool: Pool, at: int, predicate: str, name: str, *, is_subject: bool) -> bool:
    """Return True if a relation with a new thing may be added to an entity that has no such relation.

    Args:
        pool: The pool.
        at: Index of the entity.
        predicate: The new predicate.
        name: Class of the new thing.
        is_subject: Whether the new thing is the subject.
    """
    entity = pool.entities[at]
    anchor = vg150().class_of(entity.name) or entity.name
    names = [other.name for other in pool.entities]
    people, animals = _addition("people"), _addition("animals")
    if names.count(entity.name) > 1 or (anchor in people and any(other in people - {anchor} for other in names)):
        return False
    own = [triple.predicate for triple in pool.triples if triple.subject == at]
    held = [triple.predicate for triple in pool.triples if triple.object == at]
    plural = entity.count is None or entity.count > 1
    if not _BESIDE.issuperset(held) or (entity.count != 1 and vg150().plural(anchor) == anchor):
        return False  # "two sheep. The sheep is"
    if predicate in own or ("riding" in own and predicate in _BESIDE - {"near"}):
        return False
    if predicate in _BESIDE:
        known = people | animals | _addition("things")
        wild = not _addition("wild").isdisjoint(names)
        fresh = _addition("near_wild") if wild else known - _addition("old_only") - _addition("wild")
        if predicate == "behind" and name == "fence" and anchor in people:
            return False
        return anchor in known and name in fresh
    if predicate == "sitting on":
        return is_subject and not plural and not held and anchor in _addition("seats") and name in people
    if is_subject or plural or anchor not in people:
        return False
    if predicate == "wearing":
        return name in _addition("wears")
    calm = _BESIDE | {"on", "in", "at", "along", "across", "sitting on", "standing on", "walking on", "under"}
    return predicate == "holding" and name in _addition("holds") and calm.issuperset(own)


def check_addition(text: str, anchor: str, predicate: str, name: str) -> None:
    """Check that a prompt leaves room for a further relation.

    Args:
        text: The prompt.
        anchor: Class of the entity that gets the relation.
        predicate: The predicate.
        name: Class of the new thing.

    Raises:
        NotApplicable: A word of the prompt may contradict the relation.
    """
    spelt = _spelt(text)
    never = set(_addition("never"))
    if predicate == "wearing":
        never |= _addition("dressed")
    if predicate in ("holding", "sitting on") or name not in _addition("anywhere") | _addition("wears"):
        never |= _addition("stage_apart")
    if name in _addition("outdoors"):
        never |= _addition("stage_indoors")
    if name in _addition("indoors"):
        never |= _addition("bath")
    never |= set(_lists()["additions"]["young"].get(name, ()))
    bound = sorted(spelt & never)
    for kind in ("traffic", "farm"):
        if name in _addition(kind) and spelt.isdisjoint(_addition(f"stage_{kind}")):
            bound.append(f"no word of a place for {name}")
    if name in _addition("indoors") and spelt.isdisjoint(_addition("stage_indoors")):
        bound.append("no word of a room")
    tokens = _tags(text)
    if predicate == "holding":
        bound += [token.word for token in tokens if token.tag in VERBS and _base(token) not in _addition("calm")]
        bound += sorted(spelt & {"with", "and", "in"})
    if bound:
        raise NotApplicable(f"the relation {predicate!r} {name!r} may not fit its own words: {bound[0]!r}")
    places = _mentions(tokens, anchor)
    if _counts_wrong(tokens, places):
        raise NotApplicable(f"its own words have {anchor!r} in the singular after a number")
    after = [tokens[at + 1].tag for at in places if at + 1 < len(tokens)]
    if len(places) > 1 or _COMPOUND.intersection(after):
        raise NotApplicable(f"its own words name {anchor!r} more than once, or in another word")


# ------------------------------------------------------------------------------------------------------------- removal


def is_removable(before: str, run: str, after: str) -> bool:
    """Return True if a run of words is a whole phrase, and what stays around it is complete.

    Args:
        before: The words before the run.
        run: The run: a phrase that begins with a preposition, a verb in -ing or "and", and ends with its noun.
        after: The words after it.
    """
    tokens = list(_tags(f"{before} {run} {after}"))
    first, last = len(_tags(before)), len(_tags(f"{before} {run}"))
    left, middle, right = tokens[:first], tokens[first:last], tokens[last:]
    while middle and middle[-1].tag in _CLAUSE_ENDS:
        right.insert(0, middle.pop())
    opening, kept = run.split()[0].lower(), before.split()[-1:]
    if len(middle) < 2 or not left or opening in _BOUND or _is_open(kept):
        return False
    ends = not right or right[0].tag in _CLAUSE_ENDS
    if ends and len(right) > 1 and right[1].tag is Tag.PREPOSITION:
        return False  # "a couple sitting on a bench, in the grass"
    is_clause = middle[0].tag is Tag.ING
    joined = middle[-1].tag is Tag.AND and is_clause and bool(right) and right[0].tag is Tag.ING
    if middle[-1].tag is not Tag.NOUN and not joined:
        return False
    if any(token.tag in (Tag.FINITE, Tag.COPULA, Tag.CONNECTOR, Tag.RELATIVE, Tag.COMMA) for token in middle):
        return False
    goes_on = ends or right[0].tag in (Tag.ING, Tag.AND) or (joined or right[0].tag is Tag.PREPOSITION)
    if not goes_on or (
        right and right[0].tag is Tag.PREPOSITION and right[0].word in ("of", "to", "onto", "into", "from")
    ):
        return False
    if not ends and right[0].tag is Tag.AND and not (len(right) > 1 and right[1].tag in VERBS):
        return False
    if middle[0].tag is Tag.AND:
        return _leaves_one(left, middle, right)
    if is_clause:
        return left[-1].tag is Tag.NOUN and (ends or right[0].tag is Tag.ING or joined)
    if middle[0].tag is not Tag.PREPOSITION or middle[0].word in ("as", "for", "between"):
        return False
    if any(token.tag is Tag.ING and at > 0 for at, token in enumerate(middle)):
        return False
    clause = left[max((at for at, token in enumerate(left) if token.tag in VERBS), default=0) :]
    if clause[0].tag in VERBS and _base(clause[0]) in _lists()["placing"]:
        return False  # "dipping his hand into water"
    return left[-1].tag is Tag.NOUN or left[-1].word in ("outside", "inside", *_lists()["complete"])


def _leaves_one(left: list[Token], middle: list[Token], right: list[Token]) -> bool:
    """Return True if a phrase joined by "and" leaves one thing, or one action, that is complete."""
    if left[-1].tag is not Tag.NOUN or any(
        token.tag is Tag.COMMA or token.word in ("between", "both", "filled", "full") for token in left
    ):
        return False
    if any(token.tag in (Tag.FINITE, Tag.COPULA) or token.word in _SEVERAL for token in right):
        return False
    return middle[1].tag is Tag.ING or middle[1].tag in OPENS_NOUN


def _is_open(kept: list[str]) -> bool:
    """Return True if the last of some words only counts or places what follows it ("a pair", "on top")."""
    return bool(kept) and kept[-1].lower() in _OPEN
