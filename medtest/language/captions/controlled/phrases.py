"""Noun phrases: their extent, name, count and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from medtest.language.captions.controlled.lexicon import animate, lexicon, mass
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token
from medtest.language.captions.inflection import PLURAL_ONLY, SAME, is_plural, singular
from medtest.language.captions.vocabulary import vg150

_BEFORE = OPENS_NOUN | {Tag.ADVERB}
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(slots=True)
class Phrase:
    """Noun phrase.

    Attributes:
        name: Name in the singular; "" if it names nothing visible ("a close-up", "it").
        count: Count of the entity.
        attributes: Attributes of the entity.
        definite: True if it may refer to an entity named before ("the", "this").
        another: True if it states a different entity ("another").
        ordinal: "the second dog": 2; 0 without an ordinal.
        owner: Phrase of the owner ("the man's hat").
        collection: True for a collection or region that "of" passes through.
        end: Index of the token after it.
        picture: True if it refers to the picture.
        numbered: True if a number word gives the count.
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
    """Read a noun phrase; return None if none begins here.

    Args:
        tokens: Tokens of the caption.
        at: Index at which it may begin.
        first: True at the beginning of the caption, where "picture of" refers to the picture.
    """
    lists = lexicon()
    end = at
    words: list[Token] = []
    while end < len(tokens):
        token = tokens[end]
        if token.tag in (Tag.ARTICLE, Tag.THE, Tag.HIS) and any(
            two.tag is not Tag.ADVERB and two.word != "all" and two.word != "both" for two in words
        ):
            break
        if token.tag in _BEFORE:
            if words and words[-1].tag is Tag.NOUN and token.tag is not Tag.NOUN:
                break
            words.append(token)
            end += 1
        elif token.tag in (Tag.AND, Tag.COMMA) and words and _joins(tokens, end, words):
            end += 1
        else:
            break
    while words and words[-1].tag is Tag.ADVERB:
        words.pop()
        end -= 1
    if not words or all(word.tag is Tag.ADVERB for word in words):
        return None
    result = Phrase(end=end)
    _determine(result, words)
    nouns = [word.word for word in words if word.tag is Tag.NOUN]
    describing = [word for word in words if word.tag in (Tag.ADJECTIVE, Tag.MODIFIER)]
    if not nouns:
        result.attributes = [word.word for word in describing]
        if _next_is(tokens, end, "of"):
            result.collection, result.name = True, ""
        return result
    while len(nouns) > 1 and nouns[0] in lists["materials"] and nouns[0] not in ("tin",):
        result.attributes.append(nouns.pop(0))
    result.attributes += [word.word for word in describing if word.word not in ("such",)]
    if len(nouns) > 1 and nouns[0] in ("couple", "dozen") and result.count == 1:
        nouns.pop(0)
    limb = len(nouns) == 2 and nouns[1] in lists["body_parts"] and nouns[0].endswith("s") and animate(nouns[0])
    if len(nouns) > 1 and (nouns[0] in lexicon().groups["owners"] or limb) and not words[0].word.isdigit():
        result.owner = Phrase(name=singular(nouns.pop(0)), count=1)
    head = nouns[-1]
    _count(result, head, words)
    bare = len(nouns) == 1
    of = _next_is(tokens, end, "of")
    if bare and of and (head in lists["collections"] or head in lists["regions"]):
        result.collection = True
        result.numbered = any(word.tag is Tag.NUMBER for word in words)
        result.count = _measured(result, head, words)
    elif head in lists["picture_words"] | lists["picture_starts"] and (of or first):
        result.picture = True
    elif bare and head in lists["always_collections"] | lists["region_nouns_alone"] | lists["regions"]:
        result.collection = False
    if any(word.word == "no" for word in words) or _unseen(nouns, result, of):
        result.name = ""
        return result
    if not result.collection and not result.picture:
        result.name = " ".join([*nouns[:-1], singular(head)])
    if _next_tag(tokens, end) is Tag.POSSESSIVE:
        owned = phrase(tokens, end + 1)
        if owned is not None:
            compound = f"{result.name}'s {owned.name}"
            if vg150().class_of(compound) is not None:  # "catcher's mitt" is the name of a class, without an owner
                result.name, result.end = compound, owned.end
                result.count = result.count if any(word.tag is Tag.NUMBER for word in words) else owned.count
                result.attributes += owned.attributes
                return result
            owned.owner, owned.definite = result, False
            return owned
    return result


def _joins(tokens: Sequence[Token], at: int, words: Sequence[Token]) -> bool:
    """Return True for "and" or a comma between two adjectives of one noun: "a red and white bus"."""
    if words[-1].tag not in (Tag.ADJECTIVE, Tag.MODIFIER):
        return False
    following = at + 1
    while following < len(tokens) and tokens[following].tag in (Tag.AND, Tag.COMMA, Tag.ADVERB):
        following += 1
    if following >= len(tokens):
        return False
    if tokens[following].tag in (Tag.ADJECTIVE, Tag.MODIFIER):
        return True
    return tokens[following].tag is Tag.NOUN and any(word.tag in (Tag.ARTICLE, Tag.THE, Tag.HIS) for word in words)


def _determine(result: Phrase, words: Sequence[Token]) -> None:
    for word in words:
        if word.tag in (Tag.THE,):
            result.definite = True
        elif word.tag is Tag.ORDINAL:
            result.ordinal = ORDINALS.index(word.word) + 1
        elif word.word in ("another", "other", "others"):
            result.another = True


def _count(result: Phrase, head: str, words: Sequence[Token]) -> None:
    numbers = [word.word for word in words if word.tag is Tag.NUMBER]
    if numbers:
        values = lexicon().numbers
        figures = numbers[-1][:7]  # longer numbers cannot be visible counts
        count = int(figures) if figures.isdigit() else values[numbers[-1]]
        result.count = count if 0 < count < 100_000 else None
    elif any(word.word in ("dozen", "dozens") for word in words[:-1]):
        result.count = 12 if any(word.word in ("a", "one") for word in words) else None
    elif head in PLURAL_ONLY or is_plural(head):
        result.count = 1 if head in PLURAL_ONLY and any(word.tag is Tag.ARTICLE for word in words) else None
    elif any(word.tag is Tag.ARTICLE for word in words) or any(
        word.word in ("another", "each", "every") for word in words
    ):
        result.count = 1
    elif mass(head) or head in SAME or any(word.tag is Tag.QUANTITY for word in words):
        result.count = None
    else:
        result.count = 1


def _measured(result: Phrase, head: str, words: Sequence[Token]) -> int | None:
    """Return the count stated by a measure: "two slices of" 2, "a couple of" 2, "a herd of" None."""
    if any(word.tag is Tag.NUMBER for word in words):
        return result.count
    return 2 if head in ("couple", "pair", "duo") else None


def _unseen(nouns: Sequence[str], result: Phrase, of: bool) -> bool:
    """Return True if a noun names nothing visible: an event, a region without a noun, the picture."""
    lists = lexicon()
    if result.collection or result.picture:
        return False
    head = nouns[-1]
    if head in lists["events"] or singular(head) in lists["events"]:
        is_object = len(nouns) > 1 and (f"{nouns[-2]}_{head}" in lists["compounds"] or singular(head) == "display")
        return not is_object
    if len(nouns) == 1 and head in lists["regions"] and head not in ("corner", "edge", "bottom", "top", "rim", "rest"):
        return True
    return (
        len(nouns) == 1
        and head in lists["always_collections"]
        and head in ("group", "pair", "bunch", "lot", "lots", "variety")
    )


def _next_is(tokens: Sequence[Token], at: int, word: str) -> bool:
    return at < len(tokens) and tokens[at].word == word


def _next_tag(tokens: Sequence[Token], at: int) -> Tag | None:
    return tokens[at].tag if at < len(tokens) else None
