"""Prepositions of one or several words, regions, and words that can continue a noun phrase."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from medtest.language.captions.controlled.lexicon import known_noun, lexicon
from medtest.language.captions.controlled.tokens import STOP
from medtest.language.captions.inflection import singular
from medtest.language.captions.vocabulary import vg150


@cache
def _phrases() -> dict[tuple[str, ...], str]:
    """Return the prepositions by their words; phrases that begin with a verb are read as verb and preposition."""
    predicates: dict[tuple[str, ...], str] = {}
    lists = lexicon()
    further = lists.tables["further_prepositions"]
    for phrase, predicate in {
        **vg150().phrases,
        **further,
        **dict.fromkeys(lists.groups["unseen_prepositions"], ""),
    }.items():
        first = phrase.split()[0]
        if (
            not lists.verb(first)
            or phrase in further
            or phrase in ("to", "past", "like", "close to", "left of", "right of")
        ):
            predicates[tuple(phrase.split())] = predicate
    for phrase in ("and", "has", "covered in"):
        predicates.pop(tuple(phrase.split()), None)
    return predicates


def prepositional_words() -> frozenset[str]:
    """Return all words of prepositions."""
    return frozenset(word for phrase in _phrases() for word in phrase)


_LONGEST = 6


def preposition(words: Sequence[str], at: int) -> tuple[int, str] | None:
    """Return the number of words of a preposition that begins here, and its predicate; None if none does."""
    predicates = _phrases()
    for size in range(min(_LONGEST, len(words) - at), 0, -1):
        predicate = predicates.get(tuple(words[at : at + size]))
        if predicate is not None:
            return (size, predicate) if size > 1 else _region(words, at) or (size, predicate)
    return None


def _region(words: Sequence[str], at: int) -> tuple[int, str] | None:
    """Read "in the far corner of" as "in", since a region is not an entity; without "of" the predicate is "-"."""
    if words[at] not in lexicon().groups["of_regions"]:
        return None
    regions = lexicon()["regions"]
    end = at + 1
    while (
        end < len(words)
        and words[end] in lexicon().groups["before_regions"]
        and not (words[end] in regions and word_at(words, end + 1) == "of")
    ):
        end += 1
    if word_at(words, end) not in regions:
        end -= 1
        if end <= at or words[end] not in regions:
            return None
    following = word_at(words, end + 1)
    if following == "of":
        return end + 2 - at, _phrases()[(words[at],)]
    return None if continues(following) else (end + 1 - at, "-")


def word_at(words: Sequence[str], at: int) -> str:
    """Return a word by its index, or the end of a sentence beyond the last."""
    return words[at] if at < len(words) else STOP


@cache
def continues(word: str) -> bool:
    """Return True if a word can continue a noun phrase, independent of what follows."""
    lists = lexicon()
    if word in (STOP, ",", "'s") or not word[:1].isalnum():
        return False
    closed = ("articles", "definite", "possessives", "pronouns", "relatives", "copulas", "conjunctions", "connectors")
    if word in lists.numbers or word in lists["quantities"]:
        return True
    if any(word in lists[name] for name in closed):
        return False
    if (word,) in _phrases():
        return word in lists["adjectives"]
    if word in lists["adverbs"]:
        return word in lists["adjectives"] or known_noun(word) or word in lists["regions"] or word in ("very",)
    if word in ("has", "have", "does", "can", "will"):
        return False
    if word.endswith("ing") and "VG" in lists.verb(word) and word not in lists["ing_nouns"]:
        return word in lists["ing_modifiers"]
    if word.endswith("ly") and len(word) > 4:
        return word in lists["adjectives"] or known_noun(word)
    return not (
        word in lists["verbs_first"] and not known_noun(word) and singular(word) != word and "VZ" in lists.verb(word)
    )
