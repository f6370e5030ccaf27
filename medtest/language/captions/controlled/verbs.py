"""Relations stated by verbs with prepositions: "stands on" is ``standing on``, "leaning against" ``against``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.language.captions.controlled.lexicon import ing, lexicon
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token

VERBS = frozenset((Tag.ING, Tag.PARTICIPLE, Tag.FINITE, Tag.BASE))
TRANSITIVE = {"have": "has", "show": "has", "say": "says", "examine": "looking at", "cross": "across", "enter": "in"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """Predicate of a verb.

    Attributes:
        predicate: Relation that waits for an object; "" if none does.
        end: Index of the token after it.
        wants: True if it only leads to another verb ("trying to").
        drops: True if what follows is not visible.
    """

    predicate: str
    end: int
    wants: bool = False
    drops: bool = False


def predicate_of_verb(tokens: Sequence[Token], at: int) -> Predicate:
    """Read the verb at an index, with its particles and preposition."""
    token = tokens[at]
    base = token.base
    end = at + 1
    while end < len(tokens) and tokens[end].tag is Tag.ADVERB:
        end += 1
    following = tokens[end] if end < len(tokens) else None
    if following is None:
        return Predicate(predicate="", end=end)
    if following.tag is Tag.TO or (token.word in lexicon()["wanting"] and _to_ahead(tokens, end)):
        return Predicate(predicate="", end=_to_ahead(tokens, end) or end, wants=True)
    tables = lexicon().tables
    particles = tables["verb_particles"].get(base, "").split()
    particle = next((candidate.word for candidate in tokens[at + 1 : end + 1] if candidate.word in particles), "")
    if particle and token.tag is not Tag.PARTICIPLE:
        object_at = end + (following.word == particle)
        if object_at < len(tokens) and tokens[object_at].tag in OPENS_NOUN:
            return Predicate(predicate=ing_of(token), end=object_at)
    if following.tag is Tag.PREPOSITION:
        if not following.base:
            return Predicate(predicate="", end=end)
        relation = tables["verb_prepositions"].get(base, {}).get(following.base, "")
        if base in ("make", "cover") and token.tag is not Tag.PARTICIPLE:
            relation = ""
        if relation and following.word not in ("above", "across"):
            return Predicate(predicate=relation, end=end + 1)
        return Predicate(predicate="", end=end)
    if following.tag in OPENS_NOUN or following.tag is Tag.PRONOUN:
        if token.tag is Tag.PARTICIPLE or base in lexicon().groups["without_object"]:
            return Predicate(predicate="", end=end, drops=True)
        return Predicate(predicate=TRANSITIVE.get(base) or ing_of(token), end=end)
    return Predicate(predicate="", end=end)


def ing_of(token: Token) -> str:
    """Return the -ing form of a verb, from the caption or its base."""
    if token.tag is Tag.ING:
        return token.word
    return ing(token.base)


def _to_ahead(tokens: Sequence[Token], at: int) -> int:
    """Return the index of a following "to", skipping adjectives and adverbs ("gets ready to"); 0 without one."""
    while at < len(tokens) and tokens[at].tag in (Tag.ADVERB, Tag.ADJECTIVE, Tag.ING, Tag.PARTICIPLE):
        at += 1
    return at if at < len(tokens) and tokens[at].tag is Tag.TO else 0
