"""Content requested by a prompt, as understood by the product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Requested things of one kind.

    Attributes:
        name: Class of the renderer; None if the product cannot draw it.
        word: The prompt's noun, in lower case.
        plain: Whether that is the class's own name, in singular or plural.
        count: Number of things.
        colour: Requested colour, or None.
    """

    name: str | None
    word: str
    plain: bool = True
    count: int = 1
    colour: str | None = None


Link: TypeAlias = tuple[int, str, int]
"""A requested spatial relation between two wishes or things: index of the subject, one of
:data:`medtest.simlab.drawing.sides.SIDES`, index of the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WishList:
    """All wishes of a prompt.

    Attributes:
        wishes: Wishes in the order of the prompt.
        links: Relations in the order of the prompt.
    """

    wishes: tuple[Wish, ...] = ()
    links: tuple[Link, ...] = ()

    def without(self, gone: frozenset[int]) -> WishList:
        """Return the list without some wishes, by index, and without their relations."""
        indices = [index for index in range(len(self.wishes)) if index not in gone]
        new = {old: index for index, old in enumerate(indices)}
        links = tuple((new[a], side, new[b]) for a, side, b in self.links if a in new and b in new)
        return WishList(wishes=tuple(self.wishes[index] for index in indices), links=links)
