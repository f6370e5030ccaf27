"""Tagging of words as article, noun, participle etc., by lists, endings and context."""

from __future__ import annotations

from collections.abc import Mapping

from medtest.language.captions.controlled.lexicon import animate, known_noun
from medtest.language.captions.controlled.neighbours import Neighbours
from medtest.language.captions.controlled.prepositions import continues, preposition
from medtest.language.captions.controlled.tags import Tag, Token
from medtest.language.captions.controlled.tokens import STOP
from medtest.language.captions.inflection import PLURAL_ONLY, SAME, is_plural


class Tagger(Neighbours):
    """Tagger of one caption."""

    def tags(self) -> list[Token]:
        """Return the tagged words; a preposition of several words is one token."""
        at = 0
        while at < len(self.words):
            at += self._one(at)
        return self.tokens

    # --- one word ---------------------------------------------------------------------------------------------------

    def _one(self, at: int) -> int:
        words, lists = self.words, self.told
        word = words[at]
        for phrase in lists.skip_phrases:
            if phrase[0] == word and tuple(words[at : at + len(phrase)]) == phrase and self._may_skip(at, phrase):
                return len(phrase)
        following = words[at + 1] if at + 1 < len(words) else STOP
        if f"{word}_{following}" in lists["compounds"]:
            self._add(word, Tag.NOUN)
            self._add(following, Tag.NOUN)
            return 2
        fixed = self._grammar(word, following, at)
        if fixed is not None:
            self._add(word, fixed)
            return 1
        match = preposition(words, at)
        if match is not None and match[0] == 1 and self._is_adverb_here(at, word, following):
            self._add(word, Tag.ADVERB)
            return 1
        if match is not None:
            size, predicate = match
            if word in ("part", "left", "right") and self._last() not in (Tag.COPULA, Tag.NOUN, Tag.AND):
                self._open(word, following, at)
                return 1
            if predicate == "-":
                return size
            if word == "to" and size == 1 and self._is_infinitive(following, at):
                self._add(word, Tag.TO)
                return 1
            if predicate == "&":
                self._add("and", Tag.AND)
                return size
            if word in ("as", "until", "after", "than", "before") and size == 1:
                self._add(word, Tag.CONNECTOR)
                return 1
            if size == 1 and self._is_adjective(word, following, at) and self._inside():
                self._add(word, Tag.ADJECTIVE)
                return 1
            self._add(" ".join(words[at : at + size]), Tag.PREPOSITION, predicate)
            return size
        self._open(word, following, at)
        return 1

    def _may_skip(self, at: int, phrase: tuple[str, ...]) -> bool:
        """Return True if a phrase without content ends here; "in front of" and "in line with" continue."""
        end = at + len(phrase)
        following = self.words[end] if end < len(self.words) else STOP
        if phrase == ("black", "and", "white"):
            return following in self.told["picture_words"]
        if following == "of" and phrase[-1] != "of":
            return False
        return not (
            phrase[0] in ("in", "on", "at") and continues(following) and phrase[-1] not in ("other", "night", "home")
        )

    def _grammar(self, word: str, following: str, at: int) -> Tag | None:
        lists = self.told
        if word in lists.numbers or word.isdigit():
            if word == "one" and not self._goes_on(at + 1):
                return Tag.PRONOUN
            return Tag.NUMBER
        if word == STOP:
            return Tag.STOP
        if word == ",":
            return Tag.COMMA
        if word in lists["articles"]:
            return Tag.ARTICLE
        if word == "that" and self._last() in (Tag.NOUN, Tag.PRONOUN) and not self._is_plain_noun(following):
            return Tag.RELATIVE
        if word in ("that", "this", "these", "those") and not self._goes_on(at + 1):
            return Tag.PRONOUN
        if word in lists["definite"]:
            return Tag.THE
        if word == "her" and not self._goes_on(at + 1):
            return Tag.PRONOUN
        if word in lists["possessives"]:
            return Tag.HIS
        if word == "'s":
            return Tag.POSSESSIVE if self._last() is Tag.NOUN else Tag.COPULA
        if word in lists["copulas"]:
            return Tag.COPULA
        if word == "there" and following in lists["copulas"]:
            return Tag.THERE
        if word in lists["relatives"]:
            return Tag.RELATIVE
        if word in lists["ordinals"]:
            return Tag.ORDINAL
        if word in lists["quantities"]:
            return Tag.QUANTITY if self._goes_on(at + 1) or following == "of" else Tag.PRONOUN
        if word in lists["pronouns"]:
            return Tag.PRONOUN
        if word in lists["conjunctions"]:
            return Tag.AND
        if word in ("while", "when", "where", "because", "so", "if", "since", "although", "though"):
            return Tag.CONNECTOR
        if word in lists.groups["modals"]:
            acts = "VB" in lists.verb(following) or following in ("be", "not") or following in lists["adverbs"]
            return Tag.AUXILIARY if acts and self._last() in (Tag.NOUN, Tag.PRONOUN, Tag.RELATIVE) else None
        if (
            word in ("has", "have", "had")
            and "VN" in lists.verb(following)
            and not known_noun(following)
            and not self._goes_on(at + 2)
        ):
            return Tag.AUXILIARY
        return None

    def _open(self, word: str, following: str, at: int) -> None:
        """Tag a word of an open class."""
        lists = self.told
        inside, last = self._inside(), self._last()
        forms = lists.verb(word)
        helped = bool(self.tokens) and self.tokens[-1].word in ("help", "helps", "helping", "lets")
        if (last is Tag.TO or helped) and "VB" in forms:
            self._add(word, Tag.BASE, forms["VB"])
        elif (
            word in lists["ing_nouns"]
            and not (last is Tag.NOUN and animate(self._last_noun()))
            and (inside or last in (None, Tag.PREPOSITION, Tag.AND, Tag.COMMA, Tag.NOUN, Tag.STOP))
        ):
            self._add(word, Tag.NOUN)
        elif word in lists["adjectives"] and word.endswith("ing") and self._goes_on(at + 1):
            self._add(word, Tag.ADJECTIVE)
        elif word in lists["participles_of_compounds"] and last is Tag.NOUN and self._joins_noun(at, following):
            self.tokens[-1].tag = Tag.ADJECTIVE
            self._add(word, Tag.ADJECTIVE)
        elif word.endswith("ing") and len(word) > 4 and ("VG" in forms or not known_noun(word)):
            self._ing(word, following, forms.get("VG", word[:-3]), at)
        elif self._is_adverb(word, at):
            self._add(word, Tag.ADVERB)
        elif self._is_adjective(word, following, at):
            self._add(word, Tag.ADJECTIVE)
        elif "VN" in forms and "VB" not in forms:
            self._participle(word, following, forms["VN"], "VZ" in forms, at)
        elif forms:
            self._finite(word, following, at)
        elif word.endswith("ed") and len(word) > 4 and not known_noun(word):
            self._participle(word, following, word[:-2], True, at)
        elif (
            word.endswith(("ish", "ful", "ous", "less", "able", "ible", "ic", "ive", "al", "ical", "-sized", "-style"))
            and self._goes_on(at + 1)
            and not known_noun(word)
        ):
            self._add(word, Tag.ADJECTIVE)
        else:
            self._add(word, Tag.NOUN)

    def _ing(self, word: str, following: str, base: str, at: int) -> None:
        heads = self.told["noun_heads_of_ing"]
        inside, last = self._inside(), self._last()
        if (
            word in self.told["ing_modifiers"]
            and following in heads
            and (inside or last in (Tag.NOUN, Tag.PREPOSITION, None, Tag.AND, Tag.STOP, Tag.COMMA, Tag.COPULA))
        ):
            self._add(word, Tag.NOUN)
        elif inside and self._goes_on(at + 1):
            self._add(word, Tag.MODIFIER, base)
        elif inside and (last is not Tag.ADJECTIVE or following == "of"):
            self._add(word, Tag.NOUN)
        elif self._describes(base, following, at):
            self._add(word, Tag.MODIFIER, base)
        else:
            self._add(word, Tag.ING, base)

    def _participle(self, word: str, following: str, base: str, past: bool, at: int) -> None:
        inside, last = self._inside(), self._last()
        if self._goes_on(at + 1) and (
            inside or self._there() or last in (None, Tag.PREPOSITION, Tag.STOP, Tag.AND, Tag.COMMA)
        ):
            self._add(word, Tag.MODIFIER, base)
        elif inside:
            self._add(word, Tag.NOUN if known_noun(word) else Tag.ADJECTIVE, base)
        elif (
            past
            and last in (Tag.NOUN, Tag.PRONOUN)
            and following in (*self.told["articles"], *self.told["possessives"], "the")
        ):
            self._add(word, Tag.FINITE, base)
        else:
            self._add(word, Tag.PARTICIPLE, base)

    def _finite(self, word: str, following: str, at: int) -> None:
        """Tag a verb form that can also be a noun: signs, watches, park."""
        lists, last = self.told, self._last()
        forms = lists.verb(word)
        base = forms.get("VZ") or forms.get("VB") or forms.get("VN") or word
        noun = known_noun(word)
        sure = word in lists["verbs_first"] or not noun
        if last is Tag.TO:
            self._add(word, Tag.BASE, forms.get("VB", base))
        elif self._inside() or last is Tag.PREPOSITION:
            if "VN" in forms and not noun and self._goes_on(at + 1):
                self._add(word, Tag.MODIFIER, base)
            else:
                self._add(word, Tag.NOUN)
        elif last in (Tag.PRONOUN, Tag.RELATIVE, Tag.AUXILIARY) or (last is Tag.NOUN and word in ("has", "have")):
            self._add(word, Tag.FINITE, base)
        elif "VN" in forms and last is Tag.NOUN and following in ("up", "out", "down"):
            self._add(word, Tag.PARTICIPLE, base)
        elif last is Tag.NOUN:
            subject = self._last_noun()
            coordinated = len(self.tokens) > 1 and Tag.AND in (
                self.tokens[-2].tag,
                self.tokens[max(-3, -len(self.tokens))].tag,
            )
            plural_subject = (
                coordinated
                or is_plural(subject)
                or subject in PLURAL_ONLY
                or subject in SAME
                or subject in ("people", "cattle")
            )
            finite = "VZ" in forms
            agrees = (finite and not (is_plural(subject) and word.endswith("s"))) or (not finite and plural_subject)
            compound = noun and (self._is_verb_only(following) or following in (STOP, ","))
            opens = (
                following in lists["articles"] or following in lists["definite"] or following in lists["possessives"]
            )
            beings = plural_subject and animate(subject) and agrees and preposition(self.words, at + 1) is not None
            beings = beings or (finite and animate(subject) and following in ("up", "out", "off", "down"))
            if (sure and agrees and not compound) or (opens and agrees) or beings:
                self._add(word, Tag.FINITE, base)
            elif "VN" in forms and not noun:
                self._add(word, Tag.PARTICIPLE, base)
            else:
                self._add(word, Tag.NOUN)
        elif last is Tag.COPULA and "VN" in forms:
            self._add(word, Tag.PARTICIPLE, base)
        elif sure and self._goes_on_acting(forms, noun, following):
            self._add(word, Tag.FINITE, base)
        else:
            self._add(word, Tag.NOUN)

    def _goes_on_acting(self, forms: Mapping[str, str], noun: bool, following: str) -> bool:
        """Return True if a form is a further verb of a subject: "a man sits and looks"."""
        last = self._last()
        if "VZ" in forms and last is Tag.ADVERB and not noun:
            return True
        if "VZ" in forms and last in (Tag.ADJECTIVE, Tag.PARTICIPLE, Tag.ING):
            return not noun or (last is not Tag.ING and not self._goes_on_listing(following))
        if "VB" in forms and last is Tag.AND:
            return self._verb_before()
        in_list = noun and (following in (STOP, ",", "and") or (last is Tag.AND and self._after_plural()))
        return "VZ" in forms and last in (Tag.AND, Tag.COMMA, Tag.ADVERB) and self._verb_before() and not in_list

    def _goes_on_listing(self, following: str) -> bool:
        return following in (STOP, ",", "and", "of")

    def _joins_noun(self, at: int, following: str) -> bool:
        """Return True if a participle forms an adjective with the preceding noun: "heart shaped cakes"."""
        comma = (
            following == "," and self._goes_on(at + 2) and len(self.tokens) > 1 and self.tokens[-2].tag is Tag.ARTICLE
        )
        return self._goes_on(at + 1) or comma

    def _after_plural(self) -> bool:
        return len(self.tokens) > 1 and self.tokens[-2].tag is Tag.NOUN and is_plural(self.tokens[-2].word)

    def _describes(self, base: str, following: str, at: int) -> bool:
        """Return True if an -ing form outside a noun phrase begins one, as in "there are sleeping dogs"."""
        last = self._last()
        if last in (Tag.PREPOSITION, None, Tag.STOP):
            return self._is_plain_noun(following)
        in_list = self._cannot_take(base) and last in (Tag.COMMA, Tag.AND)
        return self._goes_on(at + 1) and (self._there() or in_list)

    def _there(self) -> bool:
        """Return True directly after "there are"."""
        return len(self.tokens) > 1 and self.tokens[-1].tag is Tag.COPULA and self.tokens[-2].tag is Tag.THERE

    def _cannot_take(self, base: str) -> bool:
        """Return True if a verb takes no object."""
        return base in self.told["intransitive"] and base not in self.told["transitive"]
