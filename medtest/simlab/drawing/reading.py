"""Parsing of plain English into a wish list: spatial relations are assigned by word order."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from medtest.simlab.drawing.tokens import Piece, TokenKind, pieces
from medtest.simlab.drawing.wishes import Link, Wish, WishList

SOME = 2
"""Number of things drawn for a plural without a number."""
MOST_OF_A_KIND = 9
MOST_WISHES = 12


@lru_cache(maxsize=4096)
def understood(prompt: str) -> WishList:
    """Return the wish list of a prompt: at most :data:`MOST_WISHES` wishes of at most :data:`MOST_OF_A_KIND` things."""
    return _Listener().hear(prompt)


class _Listener:
    """Parser of one prompt.

    The first things of a sentence are its topic. A spatial word relates them to the things named next, up to the next
    such word. "and" before a spatial word continues with the topic; a thing after "and" that is followed by a new
    statement starts a new topic.
    """

    def __init__(self) -> None:
        self.wishes: list[Wish] = []
        self.links: list[Link] = []

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

    def _sentence(self, sentence: list[Piece]) -> None:
        topic: list[int] = []  # the topic of the sentence
        about: list[int] = []  # the subjects of the next spatial word
        named: list[int] = []  # the things named since the last spatial word
        side, joined = "", False
        for number, piece in enumerate(sentence):
            if piece.token is TokenKind.THING:
                index = self._wish(piece)
                if index is None:
                    continue
                if side and joined and self._begins(sentence, number):
                    self._relate(about, side, named)
                    topic, named, side = [], [], ""
                named.append(index)
                joined = False
            elif piece.token is TokenKind.COLOUR:
                for index in named:
                    self.wishes[index] = replace(self.wishes[index], colour=piece.colour)
                topic, named = topic or named, []
            elif piece.token is TokenKind.AND:
                joined = True
            elif piece.token is TokenKind.SIDE:
                if side:
                    self._relate(about, side, named)
                if not topic:
                    topic = list(named)
                about = list(topic) if joined or not named else list(named[-1:]) if side else list(named)
                named, side, joined = [], piece.side, False
            elif piece.token is TokenKind.WHO:
                if side:
                    self._relate(about, side, named)
                    topic, named, side = named[-1:], named[-1:], ""
                else:
                    named = named[-1:]
                joined = False
        if side:
            self._relate(about, side, named)

    @staticmethod
    def _begins(sentence: list[Piece], number: int) -> bool:
        """Return True if a thing after "and" is the subject of a new statement: "… and a cat under a chair"."""
        after = sentence[number + 1 : number + 3]
        kinds = [piece.token for piece in after]
        return bool(kinds) and (kinds[0] is TokenKind.SIDE or kinds == [TokenKind.IS, TokenKind.SIDE])

    def _relate(self, about: list[int], side: str, objects: list[int]) -> None:
        self.links += [(subject, side, other) for subject in about for other in objects if subject != other]

    def _wish(self, piece: Piece) -> int | None:
        """Return the wish meant by a piece: one named before, or a new one."""
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
