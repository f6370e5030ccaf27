"""What a prompt asks for, as the product understands it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Things of one kind that are to be drawn.

    Attributes:
        name: What is drawn, one of the renderer's classes; None where the product has no drawing of it.
        word: The noun that the prompt has for it, in lower case.
        plain: Whether that is the drawing's own name, in singular or plural.
        count: How many.
        colour: The colour that is asked for; None where none is.
    """

    name: str | None
    word: str
    plain: bool = True
    count: int = 1
    colour: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WishedRelation:
    """How one wish shall lie to another.

    Attributes:
        one: Index of the wish of which it is said.
        side: One of :data:`medtest.simlab.drawing.sides.SIDES`.
        other: Index of the wish to which it shall lie so.
    """

    one: int
    side: str
    other: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WishList:
    """All that a prompt asks for.

    Attributes:
        wishes: In the order in which they are named.
        links: In the order in which they are said.
    """

    wishes: tuple[Wish, ...] = ()
    links: tuple[WishedRelation, ...] = ()

    def without(self, gone: frozenset[int]) -> WishList:
        """Return the list without some of its wishes, by index, and without what is said of them."""
        kept = [index for index in range(len(self.wishes)) if index not in gone]
        new = {old: index for index, old in enumerate(kept)}
        links = tuple(
            WishedRelation(one=new[link.one], side=link.side, other=new[link.other])
            for link in self.links
            if link.one in new and link.other in new
        )
        return WishList(wishes=tuple(self.wishes[index] for index in kept), links=links)
