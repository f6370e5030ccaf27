"""Context of a word in a caption: the tags before it and the words after it."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.language.captions.controlled.lexicon import known_noun, lexicon
from medtest.language.captions.controlled.prepositions import continues, preposition, word_at
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token
from medtest.language.captions.controlled.tokens import STOP

_INSIDE = (OPENS_NOUN - {Tag.NOUN}) | {Tag.POSSESSIVE}


class Neighbours:
    """Caption being tagged: its words, the tokens so far, and tests on both.

    Args:
        words: Words of the caption.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.tokens: list[Token] = []
        self.told = lexicon()

    def _add(self, word: str, tag: Tag, base: str = "") -> None:
        self.tokens.append(Token(word, tag, base))

    def _last(self) -> Tag | None:
        """Return the previous tag, ignoring adverbs."""
        for token in reversed(self.tokens):
            if token.tag is not Tag.ADVERB:
                return token.tag
        return None

    def _last_noun(self) -> str:
        return next((token.word for token in reversed(self.tokens) if token.tag is Tag.NOUN), "")

    def _inside(self) -> bool:
        """Return True inside a noun phrase that has no noun yet, such as "red and" before "white bus"."""
        last = self._last()
        if last in _INSIDE:
            return True
        if last in (Tag.AND, Tag.COMMA) and len(self.tokens) > 1:
            return self.tokens[-2].tag in (Tag.ADJECTIVE, Tag.MODIFIER)
        return False

    def _verb_before(self) -> bool:
        for token in reversed(self.tokens):
            if token.tag is Tag.STOP:
                return False
            if token.tag in (Tag.FINITE, Tag.COPULA, Tag.BASE):
                return True
        return False

    def _goes_on(self, at: int) -> bool:
        """Return True if the word at an index can continue a noun phrase."""
        word = word_at(self.words, at)
        following = word_at(self.words, at + 1)
        if word in ("left", "right") and following == "of":
            return False
        forms = self.told.verb(word)
        if "VG" in forms and word not in self.told["ing_nouns"]:
            return word in self.told["ing_modifiers"] or continues(following)
        if not continues(word):
            return False
        participle = "VN" in forms and "VB" not in forms or word.endswith("ed") and not known_noun(word)
        return (
            not participle
            or known_noun(word)
            or continues(following)
            or following in (",", "and")
            and word in self.told["adjectives"]
        )

    def _is_plain_noun(self, word: str) -> bool:
        return continues(word) and word not in self.told["adverbs"] and not self._is_verb_only(word)

    def _is_verb_only(self, word: str) -> bool:
        """Return True if a word is a verb unless it follows an article."""
        lists = self.told
        if word in lists["copulas"] or word in ("has", "have"):
            return True
        forms = lists.verb(word)
        return bool(forms) and word in lists["verbs_first"] and not known_noun(word)

    def _is_infinitive(self, following: str, at: int) -> bool:
        forms = self.told.verb(following)
        if "VB" not in forms:
            return following == "be"
        next_word = self.words[at + 2] if at + 2 < len(self.words) else STOP
        if not known_noun(following):
            return True
        last = self._last()
        if self.tokens and self.tokens[-1].word in self.told["wanting"]:
            opens = any(next_word in self.told[name] for name in ("articles", "definite", "possessives"))
            if opens or self._goes_on(at + 2):
                return True
        if last in (Tag.NOUN, Tag.ADJECTIVE, Tag.FINITE, Tag.ING, Tag.PARTICIPLE, Tag.PRONOUN):
            return (
                next_word in self.told["articles"]
                or next_word in self.told["definite"]
                or next_word in self.told["possessives"]
                or preposition(self.words, at + 2) is not None
                or following in self.told["verbs_first"]
            )
        return False

    def _is_adjective(self, word: str, following: str, at: int) -> bool:
        lists = self.told
        colour = word in lists["colours"]
        if not (colour or word in lists["adjectives"] or word in lists["materials"]):
            return False
        if (
            "VN" in lists.verb(word)
            and "VB" not in lists.verb(word)
            and not self._goes_on(at + 1)
            and not self._inside()
        ):
            return False
        noun = known_noun(word) or (word in lists["materials"])
        if self._goes_on(at + 1):
            acts = "VG" in lists.verb(following) and following not in lists["ing_modifiers"]
            return not noun or not (self._is_verb_only(following) or acts)
        if following in ("and", ",") and (colour or not noun):
            next_word = word_at(self.words, at + 2)
            return (
                not noun
                or next_word in lists["colours"]
                or next_word in lists["adjectives"]
                or self._last() is Tag.COPULA
            )
        return not noun or (colour and self._last() is Tag.COPULA)

    def _is_adverb(self, word: str, at: int) -> bool:
        lists = self.told
        if word in lists["adverbs"]:
            if word in lists["adjectives"] and self._goes_on(at + 1):
                return False
            return not (self._inside() and (known_noun(word) or word in lists["regions"]))
        return (
            len(word) > 4
            and word.endswith("ly")
            and word not in ("family", "butterfly", "jelly", "belly", "assembly", "supply", "lily")
        )

    def _is_adverb_here(self, at: int, word: str, following: str) -> bool:
        """Return True if a one-word preposition is followed by no noun: "walking around in", "hanging up"."""
        if word == "about" and following == "to":
            return True
        if word not in self.told.groups["particles_alone"]:
            return False
        if following in (STOP, ",", "and", "while", "as", "or", "with", "but"):
            return True
        if preposition(self.words, at + 1) is not None:
            return True
        forms = self.told.verb(following)
        plain = word in ("up", "down", "out", "off", "over", "around", "along", "by", "about")
        return (
            plain
            and "VG" in forms
            and following not in self.told["ing_nouns"]
            and self._last() in (Tag.ING, Tag.FINITE)
        ) or (following in self.told["copulas"])
