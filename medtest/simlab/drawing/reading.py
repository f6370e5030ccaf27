"""Plain English into a wish list: who lies how to whom, by the order of what is said."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from medtest.simlab.drawing.tokens import Piece, TokenKind, pieces
from medtest.simlab.drawing.wishes import Wish, WishedRelation, WishList

SOME = 2
"""How many are drawn where a prompt does not say."""
MOST_OF_A_KIND = 9
MOST_WISHES = 12


@lru_cache(maxsize=4096)
def understood(prompt: str) -> WishList:
    """Return what a prompt asks for: at most :data:`MOST_WISHES` wishes of at most :data:`MOST_OF_A_KIND` things."""
    return _Listener().hear(prompt)


class _Listener:
    """Hears a prompt out.

    A sentence is about its first things. What lies somehow lies so to the things named next, up to the next such word;
    "and" before such a word goes on about what the sentence is about, and a thing after "and" of which something new is
    said begins anew.
    """

    def __init__(self) -> None:
        self.wishes: list[Wish] = []
        self.links: list[WishedRelation] = []

    def hear(self, prompt: str) -> WishList:
        """Return the wish list of a prompt."""
        sentence: list[Piece] = []
        for piece in [*pieces(prompt), Piece(token=TokenKind.STOP)]:
            if piece.token is TokenKind.STOP:
                self._sentence(sentence)
                sentence = []
            else:
                sentence.append(piece)
        return WishList(wishes=tuple(self.wishes), links=tuple(dict.fromkeys(self.links)))

    def _sentence(self, said: list[Piece]) -> None:
        topic: list[int] = []  # what the sentence is about
        about: list[int] = []  # what the next word of a side is said of
        found: list[int] = []  # the things named since the last such word
        side, joined = "", False
        for number, piece in enumerate(said):
            if piece.token is TokenKind.THING:
                index = self._wish(piece)
                if index is None:
                    continue
                if side and joined and self._begins(said, number):
                    self._relate(about, side, found)
                    topic, found, side = [], [], ""
                found.append(index)
                joined = False
            elif piece.token is TokenKind.COLOUR:
                for index in found:
                    self.wishes[index] = replace(self.wishes[index], colour=piece.colour)
                topic, found = topic or found, []
            elif piece.token is TokenKind.AND:
                joined = True
            elif piece.token is TokenKind.SIDE:
                if side:
                    self._relate(about, side, found)
                if not topic:
                    topic = list(found)
                about = list(topic) if joined or not found else list(found[-1:]) if side else list(found)
                found, side, joined = [], piece.side, False
            elif piece.token is TokenKind.WHO:
                if side:
                    self._relate(about, side, found)
                    topic, found, side = found[-1:], found[-1:], ""
                else:
                    found = found[-1:]
                joined = False
        if side:
            self._relate(about, side, found)

    @staticmethod
    def _begins(said: list[Piece], number: int) -> bool:
        """Say whether a thing after "and" is what something new is said of: "… and a cat under a chair"."""
        after = said[number + 1 : number + 3]
        kinds = [piece.token for piece in after]
        return bool(kinds) and (kinds[0] is TokenKind.SIDE or kinds == [TokenKind.IS, TokenKind.SIDE])

    def _relate(self, about: list[int], side: str, found: list[int]) -> None:
        self.links += [
            WishedRelation(one=one, side=side, other=other) for one in about for other in found if one != other
        ]

    def _wish(self, piece: Piece) -> int | None:
        """Return the wish that a piece means: one that was named before, or a new one."""
        name = None if piece.noun is None else piece.noun.name
        if piece.known:
            same = [at for at, wish in enumerate(self.wishes) if wish.word == piece.word or _same(wish, name)]
            exact = [at for at in same if self.wishes[at].word == piece.word]
            if piece.which >= 0 and piece.which < len(exact or same):
                return (exact or same)[piece.which]
            if same:
                return (exact or same)[-1]
        if len(self.wishes) >= MOST_WISHES or (piece.count == 0 and piece.noun is None and not piece.word):
            return None
        count = SOME if piece.count == 0 else min(piece.count, MOST_OF_A_KIND)
        plain = piece.noun is not None and piece.noun.plain
        self.wishes.append(Wish(name=name, word=piece.word, plain=plain, count=count, colour=piece.colour))
        return len(self.wishes) - 1


def _same(wish: Wish, name: str | None) -> bool:
    return name is not None and wish.name == name
