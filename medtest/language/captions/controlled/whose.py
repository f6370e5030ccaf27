"""Whose is a verb, whose a phrase of place: by what is near, and by what can do or hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.language.captions.controlled.lexicon import animate, garment, lexicon, place
from medtest.language.captions.controlled.tags import Tag, Token
from medtest.language.captions.inflection import singular


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_POSTURES = _words("""
    sit stand lie lay park hang rest lean perch mount place set locate situate position attach display stack
    pile float
""")
_MOTIONS = _words("travel move go drive pull come turn fly pass roll head arrive ride sit")
_VEHICLES = _words(
    "train bus car truck boat plane airplane jet motorcycle bike bicycle van taxi tram trolley ship ferry"
)
_OF_BEINGS = _words("""
    hold ride eat wear throw catch take swing hit get give feed lead watch play use look carry walk run jump sit
    stand lie sleep talk smile laugh kneel crouch bend drink read write cook prepare brush wash wait stare gaze
    pose ski surf skate snowboard skateboard swim graze dress seat try attempt kick reach touch pet hug kiss
    lick chew sniff play perform enjoy cut work drive fly
""")


@dataclass(slots=True)
class NounTraits:
    """A thing as it is read.

    Attributes:
        name: In singular.
        count: As an entity's.
        attributes: What it is like.
    """

    name: str
    count: int | None
    attributes: list[str]

    @property
    def animate(self) -> bool:
        """Whether it is a person or an animal."""
        return animate(self.name)

    @property
    def container(self) -> bool:
        """Whether it holds things."""
        return singular(self.name.rpartition(" ")[2]) in lexicon()["containers"]

    @property
    def vehicle(self) -> bool:
        """Whether it moves by itself and is no being."""
        return singular(self.name.rpartition(" ")[2]) in _VEHICLES

    @property
    def place(self) -> bool:
        """Whether things are at it."""
        return place(self.name)


_CARRIED = _words("""
    fork knife spoon umbrella racket racquet bat backpack camera hat leash helmet surfboard board skateboard
    snowboard ski frisbee kite ball bag purse suitcase luggage phone cellphone guitar cane stick pole rope dog basket
    bottle glove mitt
""")
_SEATS = frozenset(("couch", "bed", "chair", "bench", "sofa", "table", "desk"))
_DISHES = frozenset(("plate", "platter", "bun"))
Named = Sequence[tuple[int, NounTraits]]


def subject_of(token: Token, *, last: Named, role: str, owners: Named, main: Named) -> list[int]:
    """Return whose a participle is that follows an object: the object's, or the subject's.

    Args:
        token: The participle.
        last: The object, one or several.
        role: Under which predicate it was named.
        owners: Whose object it is.
        main: The subject of the sentence.
    """
    beings = any(one.animate for _, one in last)
    if role == "of" and owners and any(one.container for _, one in owners):
        return _indices(owners)
    if token.base in _OF_BEINGS and not beings:
        for group in (owners, main):
            if any(one.animate for _, one in group):
                return _indices(group)
    if beings:
        return _indices(last)
    if token.tag is Tag.PARTICIPLE:
        return _indices(last)
    if role == "with" and token.base in ("sit", "lie", "lay", "rest", "stand") and main:
        spread = any(one.place and one.name not in _SEATS for _, one in main)
        return _indices(last if spread else main)
    if token.base in _MOTIONS and any(one.vehicle for _, one in main):
        return _indices(main)
    if role in ("with", "has", "of", "and") or token.base in _POSTURES:
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
    """Return what a prepositional phrase belongs to.

    After a verb it is the verb's subject, without one the noun before it; "on … on …" is a stack; what a thing has
    or is made of belongs to that thing.

    Args:
        token: The preposition.
        name: The noun it leads to.
        ahead: "his" where that noun is someone's; the pronoun that the noun's own place leads to ("in front of him").
        last: The things named last.
        role: Under which predicate they were named; "" for a subject.
        owners: Whose object they are.
        current: The subject of the verb; None where there is none.
        main: The subject of the sentence.
    """
    word, predicate = token.word, token.base
    if predicate == "of":
        return _indices(last[-1:])
    if role == "":
        mixed = len({one.animate for _, one in last}) > 1
        return _indices(last[-1:] if mixed and predicate == "with" else last)
    beings = any(one.animate for _, one in last)
    if predicate == "with" and ahead in ("him", "her", "them") and not beings:
        return _indices(current if current is not None else main)
    if predicate == "with" and (ahead == "his" or _carried(name, main)) and not beings:
        for group in (current or (), owners, main):
            if any(one.animate for _, one in group) and (ahead == "his" or role not in ("holding", "wearing", "with")):
                return _indices(group)
    held = role in ("has", "holding", "with", "carrying") and singular(name) in lexicon()["body_parts"]
    if held and ahead == "his" and not beings:
        return _indices(last)
    if current is not None:
        if role in ("on", "sitting on", "standing on", "lying on") and predicate == "on":
            return _indices(last)
        if word == "in" and name and garment(name):
            return _indices(last if beings else current)
        if predicate == "with" and not beings:
            if animate(name) and any(one.animate for _, one in current):
                return _indices(current)
            if any(one.container or one.place or not one.animate for _, one in last) and not _carried(name, current):
                return _indices(last)
        if predicate == "with" and beings and role == "with":
            return _indices(last)
        return _indices(current)
    if word == "in" and name and garment(name) and not beings:
        for group in (owners, main):
            if any(one.animate for _, one in group):
                return _indices(group)
    if role == "of" and owners and predicate != "with":
        return _indices(owners)
    had = role == "with" and predicate != "with" and not beings
    if had and owners and not any(one.place for _, one in owners):
        return _indices(owners)
    if predicate == "with" and role == "on" and owners and any(one.name in _DISHES for _, one in last):
        return _indices(owners)
    if role == "wearing" and owners:
        return _indices(owners)
    return _indices(last)


def _carried(name: str, current: Named) -> bool:
    """Say whether "with" rather names what the doer has: a man eating pizza with a fork."""
    return any(one.animate for _, one in current) and singular(name.rpartition(" ")[2]) in _CARRIED


def _indices(named: Named) -> list[int]:
    return [index for index, _ in named]
