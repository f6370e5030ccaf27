"""Noun phrases: which words are one thing, its name, how many, what it is like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from medtest.language.captions.controlled.lexicon import animate, garment, lexicon, mass
from medtest.language.captions.controlled.tags import Tag, Token
from medtest.language.captions.inflection import PLURAL_ONLY, SAME, is_plural, singular
from medtest.language.captions.vocabulary import vg150

_HEADS = frozenset((Tag.NOUN,))
_BEFORE = frozenset(
    (
        Tag.ARTICLE,
        Tag.THE,
        Tag.HIS,
        Tag.QUANTITY,
        Tag.NUMBER,
        Tag.ORDINAL,
        Tag.ADJECTIVE,
        Tag.MODIFIER,
        Tag.NOUN,
        Tag.ADVERB,
    )
)


_OWNERS = frozenset(
    ("friends", "mans", "womans", "childs", "childrens", "boys", "girls", "persons", "peoples", "ladies")
)
"""Possessives as they are written without an apostrophe: "a friends house"."""


@dataclass(slots=True)
class Phrase:
    """A noun phrase.

    Attributes:
        name: In singular; "" for one that names nothing that is seen ("a close-up", "it").
        count: As an entity's.
        attributes: What it is like.
        definite: Whether it speaks of a thing that may have been named ("the", "this").
        another: Whether it says that it is another thing.
        ordinal: "the second dog": 2; 0 where it does not say.
        owner: The phrase whose thing it is ("the man's hat").
        collection: Whether it is a collection or region that "of" leads through.
        end: Index of the token after it.
        picture: Whether it speaks of the picture.
        numbered: Whether a number word says the count.
    """

    name: str = ""
    count: int | None = 1
    attributes: list[str] = field(default_factory=list)
    definite: bool = False
    another: bool = False
    ordinal: int = 0
    owner: Phrase | None = None
    collection: bool = False
    end: int = 0
    picture: bool = False
    numbered: bool = False


def phrase(tokens: Sequence[Token], at: int, *, first: bool = False) -> Phrase | None:
    """Read a noun phrase; None where none begins here.

    Args:
        tokens: The caption's.
        at: Where it may begin.
        first: Whether the caption begins here: "picture of" then speaks of the picture.
    """
    told = lexicon()
    end = at
    words: list[Token] = []
    while end < len(tokens):
        one = tokens[end]
        if one.tag in (Tag.ARTICLE, Tag.THE, Tag.HIS) and any(
            two.tag is not Tag.ADVERB and two.word != "all" and two.word != "both" for two in words
        ):
            break
        if one.tag in _BEFORE:
            if words and words[-1].tag is Tag.NOUN and one.tag not in _HEADS:
                break
            words.append(one)
            end += 1
        elif one.tag in (Tag.AND, Tag.COMMA) and words and _joins(tokens, end, words):
            end += 1
        else:
            break
    while words and words[-1].tag is Tag.ADVERB:
        words.pop()
        end -= 1
    if not words or all(one.tag is Tag.ADVERB for one in words):
        return None
    made = Phrase(end=end)
    _determine(made, words)
    nouns = [one.word for one in words if one.tag is Tag.NOUN]
    rest = [one for one in words if one.tag in (Tag.ADJECTIVE, Tag.MODIFIER)]
    if not nouns:
        made.attributes = [one.word for one in rest]
        if _next_is(tokens, end, "of"):
            made.collection, made.name = True, ""
        return made
    while len(nouns) > 1 and nouns[0] in told["materials"] and nouns[0] not in ("tin",):
        made.attributes.append(nouns.pop(0))
    made.attributes += [one.word for one in rest if one.word not in ("such",)]
    if len(nouns) > 1 and nouns[0] in ("couple", "dozen") and made.count == 1:
        nouns.pop(0)
    limb = len(nouns) == 2 and nouns[1] in told["body_parts"] and nouns[0].endswith("s") and animate(nouns[0])
    if len(nouns) > 1 and (nouns[0] in _OWNERS or limb) and not words[0].word.isdigit():
        made.owner = Phrase(name=singular(nouns.pop(0)), count=1)
    head = nouns[-1]
    _count(made, head, words)
    bare = len(nouns) == 1
    of = _next_is(tokens, end, "of")
    if bare and of and (head in told["collections"] or head in told["regions"]):
        made.collection = True
        made.numbered = any(one.tag is Tag.NUMBER for one in words)
        made.count = _measured(made, head, words)
    elif head in told["picture_words"] | told["picture_starts"] and (of or first):
        made.picture = True
    elif bare and head in told["always_collections"] | told["region_nouns_alone"] | told["regions"]:
        made.collection = False
    if any(one.word == "no" for one in words) or _unseen(nouns, made, of):
        made.name = ""
        return made
    if not made.collection and not made.picture:
        made.name = " ".join([*nouns[:-1], _one(head)])
    if _next_tag(tokens, end) is Tag.POSSESSIVE:
        owned = phrase(tokens, end + 1)
        if owned is not None:
            whole = f"{made.name}'s {owned.name}"
            if vg150().class_of(whole) is not None:  # "catcher's mitt" is a thing's name, nobody's mitt
                made.name, made.end = whole, owned.end
                made.count = made.count if any(one.tag is Tag.NUMBER for one in words) else owned.count
                made.attributes += owned.attributes
                return made
            owned.owner, owned.definite = made, False
            return owned
    return made


def _joins(tokens: Sequence[Token], at: int, words: Sequence[Token]) -> bool:
    """Say whether "and" or a comma stands between two adjectives of one noun: "a red and white bus"."""
    if words[-1].tag not in (Tag.ADJECTIVE, Tag.MODIFIER):
        return False
    after = at + 1
    while after < len(tokens) and tokens[after].tag in (Tag.AND, Tag.COMMA, Tag.ADVERB):
        after += 1
    if after >= len(tokens):
        return False
    if tokens[after].tag in (Tag.ADJECTIVE, Tag.MODIFIER):
        return True
    return tokens[after].tag is Tag.NOUN and any(one.tag in (Tag.ARTICLE, Tag.THE, Tag.HIS) for one in words)


def _determine(made: Phrase, words: Sequence[Token]) -> None:
    for one in words:
        if one.tag in (Tag.THE,):
            made.definite = True
        elif one.tag is Tag.ORDINAL:
            ordinals = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
            made.ordinal = ordinals.index(one.word) + 1
        elif one.word in ("another", "other", "others"):
            made.another = True


def _count(made: Phrase, head: str, words: Sequence[Token]) -> None:
    numbers = [one.word for one in words if one.tag is Tag.NUMBER]
    if numbers:
        told = lexicon().numbers
        figures = numbers[-1][:7]  # a longer one counts nothing that could be seen
        count = int(figures) if figures.isdigit() else told[numbers[-1]]
        made.count = count if 0 < count < 100_000 else None
    elif any(one.word in ("dozen", "dozens") for one in words[:-1]):
        made.count = 12 if any(one.word in ("a", "one") for one in words) else None
    elif head in PLURAL_ONLY or is_plural(head):
        made.count = 1 if head in PLURAL_ONLY and any(one.tag is Tag.ARTICLE for one in words) else None
    elif any(one.tag is Tag.ARTICLE for one in words) or any(one.word in ("another", "each", "every") for one in words):
        made.count = 1
    elif mass(head) or head in SAME or any(one.tag is Tag.QUANTITY for one in words):
        made.count = None
    else:
        made.count = 1


def _measured(made: Phrase, head: str, words: Sequence[Token]) -> int | None:
    """Return the number that a measure counts: "two slices of" 2, "a couple of" 2, "a herd of" none."""
    if any(one.tag is Tag.NUMBER for one in words):
        return made.count
    return 2 if head in ("couple", "pair", "duo") else None


def _unseen(nouns: Sequence[str], made: Phrase, of: bool) -> bool:
    """Say whether a noun names what cannot be seen: an event, a region of nothing, the picture."""
    told = lexicon()
    if made.collection or made.picture:
        return False
    head = nouns[-1]
    if head in told["events"] or singular(head) in told["events"]:
        known = len(nouns) > 1 and (f"{nouns[-2]}_{head}" in told["compounds"] or singular(head) == "display")
        return not known
    if len(nouns) == 1 and head in told["regions"] and head not in ("corner", "edge", "bottom", "top", "rim", "rest"):
        return True
    return (
        len(nouns) == 1
        and head in told["always_collections"]
        and head in ("group", "pair", "bunch", "lot", "lots", "variety")
    )


def _one(head: str) -> str:
    """Return a noun in singular; what is worn on the eyes keeps its plural."""
    return singular(head)


def _next_is(tokens: Sequence[Token], at: int, word: str) -> bool:
    return at < len(tokens) and tokens[at].word == word


def _next_tag(tokens: Sequence[Token], at: int) -> Tag | None:
    return tokens[at].tag if at < len(tokens) else None


def is_garment(one: Phrase) -> bool:
    """Say whether a phrase names what is worn."""
    return bool(one.name) and garment(one.name)
