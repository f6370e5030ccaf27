"""Attachment of verbs and prepositional phrases, by proximity and by what can act or hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.language.captions.controlled.lexicon import animate, garment, lexicon, place
from medtest.language.captions.controlled.tags import Tag, Token
from medtest.language.captions.inflection import singular


@dataclass(slots=True)
class NounTraits:
    """Noun being read.

    Attributes:
        name: Name in the singular.
        count: Count of the entity.
        attributes: Attributes of the entity.
    """

    name: str
    count: int | None
    attributes: list[str]

    @property
    def animate(self) -> bool:
        """True for a person or an animal."""
        return animate(self.name)

    @property
    def container(self) -> bool:
        """True for a container."""
        return singular(self.name.rpartition(" ")[2]) in lexicon()["containers"]

    @property
    def vehicle(self) -> bool:
        """True for a vehicle."""
        return singular(self.name.rpartition(" ")[2]) in lexicon().groups["vehicles"]

    @property
    def place(self) -> bool:
        """True for a place."""
        return place(self.name)


Named = Sequence[tuple[int, NounTraits]]


def subject_of(token: Token, *, last: Named, role: str, owners: Named, main: Named) -> list[int]:
    """Return the subject of a participle that follows an object: the object, or the subject of the sentence.

    Args:
        token: The participle.
        last: The object, one or several.
        role: Predicate under which it was named.
        owners: Subjects of that predicate.
        main: Subject of the sentence.
    """
    beings = any(noun.animate for _, noun in last)
    if role == "of" and owners and any(noun.container for _, noun in owners):
        return _indices(owners)
    if token.base in lexicon().groups["acts_of_beings"] and not beings:
        for group in (owners, main):
            if any(noun.animate for _, noun in group):
                return _indices(group)
    if beings:
        return _indices(last)
    if token.tag is Tag.PARTICIPLE:
        return _indices(last)
    if role == "with" and token.base in ("sit", "lie", "lay", "rest", "stand") and main:
        spread = any(noun.place and noun.name not in lexicon().groups["seats"] for _, noun in main)
        return _indices(last if spread else main)
    if token.base in lexicon().groups["motions"] and any(noun.vehicle for _, noun in main):
        return _indices(main)
    if role in ("with", "has", "of", "and") or token.base in lexicon().groups["postures"]:
        return _indices(last if role in ("with", "has", "of") else main or last)
    return _indices(main or last)


def belongs_to(
    token: Token,
    name: str,
    *,
    ahead: str,
    last: Named,
    role: str,
    owners: Named,
    current: Named | None,
    main: Named,
) -> list[int]:
    """Return the nouns to which a prepositional phrase belongs.

    After a verb it belongs to the verb's subject, otherwise to the preceding noun; "on … on …" is a stack; possessions
    and materials belong to their noun.

    Args:
        token: The preposition.
        name: Noun after it.
        ahead: "his" if that noun is possessed; the pronoun to which the noun's own preposition leads ("in front of
            him").
        last: Nouns named last.
        role: Predicate under which they were named; "" for a subject.
        owners: Subjects of that predicate.
        current: Subject of the verb; None without a verb.
        main: Subject of the sentence.
    """
    word, predicate = token.word, token.base
    if predicate == "of":
        return _indices(last[-1:])
    if role == "":
        mixed = len({noun.animate for _, noun in last}) > 1
        return _indices(last[-1:] if mixed and predicate == "with" else last)
    beings = any(noun.animate for _, noun in last)
    if predicate == "with" and ahead in ("him", "her", "them") and not beings:
        return _indices(current if current is not None else main)
    if predicate == "with" and (ahead == "his" or _carried(name, main)) and not beings:
        for group in (current or (), owners, main):
            if any(noun.animate for _, noun in group) and (
                ahead == "his" or role not in ("holding", "wearing", "with")
            ):
                return _indices(group)
    is_held = role in ("has", "holding", "with", "carrying") and singular(name) in lexicon()["body_parts"]
    if is_held and ahead == "his" and not beings:
        return _indices(last)
    if current is not None:
        if role in ("on", "sitting on", "standing on", "lying on") and predicate == "on":
            return _indices(last)
        if word == "in" and name and garment(name):
            return _indices(last if beings else current)
        if predicate == "with" and not beings:
            if animate(name) and any(noun.animate for _, noun in current):
                return _indices(current)
            if any(noun.container or noun.place or not noun.animate for _, noun in last) and not _carried(
                name, current
            ):
                return _indices(last)
        if predicate == "with" and beings and role == "with":
            return _indices(last)
        return _indices(current)
    if word == "in" and name and garment(name) and not beings:
        for group in (owners, main):
            if any(noun.animate for _, noun in group):
                return _indices(group)
    if role == "of" and owners and predicate != "with":
        return _indices(owners)
    had = role == "with" and predicate != "with" and not beings
    if had and owners and not any(noun.place for _, noun in owners):
        return _indices(owners)
    if (
        predicate == "with"
        and role == "on"
        and owners
        and any(noun.name in lexicon().groups["dishes"] for _, noun in last)
    ):
        return _indices(owners)
    if role == "wearing" and owners:
        return _indices(owners)
    return _indices(last)


def _carried(name: str, current: Named) -> bool:
    """Return True if "with" names something that the agent carries: a man eating pizza with a fork."""
    return any(noun.animate for _, noun in current) and singular(name.rpartition(" ")[2]) in lexicon().groups["carried"]


def _indices(nouns: Named) -> list[int]:
    return [index for index, _ in nouns]
