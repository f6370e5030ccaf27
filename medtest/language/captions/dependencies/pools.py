"""From a dependency graph to a pool, by the rules that the labelled captions are labelled by."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.core.scenes import Entity, Pool, Triple, alphabetical
from medtest.language.captions.controlled.lexicon import garment, ing, lexicon, mass
from medtest.language.captions.controlled.prepositions import preposition
from medtest.language.captions.controlled.verbs import TRANSITIVE, WITH
from medtest.language.captions.controlled.whose import NounTraits
from medtest.language.captions.dependencies.graph import (
    AGENT,
    CLAUSE,
    LIST,
    OBJECT,
    OWNER,
    PLACE,
    SUBJECT,
    VERB,
    Word,
    in_one_scheme,
)
from medtest.language.captions.inflection import is_plural, singular

_NAMES = frozenset(("NOUN", "PROPN"))
_LEADS = frozenset(("try", "want", "attempt", "begin", "start", "like", "prepare", "get", "go"))


def pool_of_words(words: Sequence[Word]) -> Pool:
    """Return the pool of a caption's dependency graph, in Universal Dependencies or CLEAR."""
    return _Graph(in_one_scheme(words)).pool()


class _Graph:
    """Reads one graph."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.told = lexicon()
        self.things: dict[int, NounTraits] = {}
        self.triples: list[tuple[int, str, int]] = []

    def pool(self) -> Pool:
        for index, word in enumerate(self.words):
            if word.tag in _NAMES and self._is_head(index) and self._seen(index):
                self.things[index] = self._thing(index)
        for index, word in enumerate(self.words):
            if word.tag == "VERB":
                self._verb(index)
            if word.relation == OWNER and index in self.things:
                self._say(self._resolved(word.head), "of", [index])
            if word.relation == PLACE:
                self._place(index)
        order = sorted(self.things)
        names = [
            Entity(name=one.name, count=one.count, attributes=alphabetical(one.attributes))
            for one in (self.things[index] for index in order)
        ]
        kept = {index: at for at, index in enumerate(order)}
        triples = tuple(Triple(subject=kept[a], predicate=said, object=kept[b]) for a, said, b in self.triples)
        return Pool(entities=tuple(names), triples=triples)

    # --- nouns ------------------------------------------------------------------------------------------------------

    def _is_head(self, index: int) -> bool:
        """Say whether a noun is no part of a longer name."""
        word = self.words[index]
        parts = word.relation in ("compound", "amod", "nummod", "nmod:npmod", "npadvmod", "fixed", "flat", "case")
        return not (parts and word.head != index and self.words[word.head].tag in (*_NAMES, "ADJ", "VERB", "ADV"))

    def _inner(self, index: int) -> int | None:
        """Return the noun that a collection, a region or a picture is of."""
        for at, one in enumerate(self.words):
            if one.relation == PLACE and one.head == index and one.cases == ["of"] and one.tag in _NAMES:
                return at
        return None

    def _through(self, index: int) -> bool:
        """Say whether a noun leads through "of" to the thing itself."""
        text = self.words[index].text
        lists = self.told["collections"] | self.told["regions"] | self.told["picture_words"]
        return text in lists and self._inner(index) is not None and not self._before(index)

    def _seen(self, index: int) -> bool:
        word, told = self.words[index], self.told
        if self._through(index):
            return False
        if word.text in told["events"] or singular(word.text) in told["events"]:
            return False
        if word.text in told["picture_words"] and word.relation == "root":
            return False
        return not (word.text in told["regions"] and not self._before(index))

    def _before(self, index: int) -> list[int]:
        """Return the words of a name before its head: nouns, and what makes a name with it ("living room")."""
        found: list[int] = []
        for at, one in enumerate(self.words):
            if one.head != index or at >= index or one.text in self.told["materials"]:
                continue
            joined = f"{one.text}_{self.words[index].text}" in self.told["compounds"]
            purpose = (
                one.text in self.told["ing_modifiers"] and self.words[index].text in self.told["noun_heads_of_ing"]
            )
            if one.relation == "compound" or joined or purpose:
                found += [*self._before(at), at]
        return found

    def _thing(self, index: int) -> NounTraits:
        word = self.words[index]
        parts = self._before(index)
        first = parts[0] if parts else index
        between = [self.words[at].text for at in range(first, index) if self.words[at].tag not in ("PUNCT", "DET")]
        name = " ".join([*between, singular(word.text)])
        children = [one for one in self.words if one.head == index and one is not word]
        told = [one.text for one in children if one.relation in ("amod", "acomp") and one.text not in between]
        told += [one.text for one in children if one.relation == "compound" and one.text in self.told["materials"]]
        numbers = [one.text for one in children if one.relation == "nummod"]
        count: int | None = 1
        if numbers:
            count = int(numbers[0]) if numbers[0].isdigit() else self.told.numbers.get(numbers[0])
        elif is_plural(word.text) or mass(name):
            count = None
        quantities = {one.text for one in children if one.text in self.told["quantities"]}
        return NounTraits(name, count, [one for one in told if one not in quantities and not one.isdigit()])

    def _resolved(self, index: int) -> list[int]:
        """Return the things that a word stands for: itself, what it is a collection of, and those listed with it."""
        inner = self._inner(index) if self._through(index) else None
        found = self._resolved(inner) if inner is not None else [index] if index in self.things else []
        for at, one in enumerate(self.words):
            if one.relation == LIST and one.head == index and one.tag in _NAMES and at != index:
                found += self._resolved(at)
        return found

    # --- relations --------------------------------------------------------------------------------------------------

    def _subjects(self, index: int, depth: int = 0) -> list[int]:
        """Return whose a verb is."""
        word = self.words[index]
        own = [at for at, one in enumerate(self.words) if one.head == index and one.relation == SUBJECT]
        named = [thing for at in own for thing in self._resolved(at)]
        if named or depth > len(self.words):
            return named
        if word.relation == CLAUSE:
            return self._resolved(word.head)
        if word.relation in (LIST, VERB, "aux", "ccomp", "dep") and word.head != index:
            return self._subjects(word.head, depth + 1)
        if self.words[word.head].tag in _NAMES and word.head != index:
            return self._resolved(word.head)
        return []

    def _verb(self, index: int) -> None:
        word = self.words[index]
        subjects = self._subjects(index)
        for at, one in enumerate(self.words):
            if one.head != index or at == index:
                continue
            if one.relation == OBJECT:
                predicate = TRANSITIVE.get(word.lemma) or (word.text if word.gerund else ing(word.lemma))
                self._say(subjects, predicate, self._resolved(at))
            elif one.relation == AGENT:
                self._say(subjects, "near", self._resolved(at))

    def _place(self, index: int) -> None:
        word = self.words[index]
        things = self._resolved(index)
        phrase = " ".join(word.cases)
        region = ""
        if self._through(index):
            inner = self._inner(index)
            region = self.words[index].text
            things = [] if inner is None else self._resolved(inner)
        elif self._passes(index):
            return
        predicate = self._predicate(f"{phrase} {region} of") if region else ""
        predicate = predicate or self._predicate(phrase)
        head = self.words[word.head]
        if not predicate or (phrase == "of" and self._through(word.head)):
            return
        if head.tag in ("VERB", "AUX", "ADJ", "ADV"):
            subjects = self._subjects(word.head)
            predicate = WITH.get(head.lemma, {}).get(predicate, predicate)
        else:
            subjects = self._resolved(word.head)
        if phrase == "in" and any(garment(self.things[one].name) for one in things):
            beings = any(self.things[one].animate for one in subjects)
            predicate = "wearing" if beings else predicate
        self._say(subjects, predicate, things)

    def _passes(self, index: int) -> bool:
        """Say whether a noun stands under a collection that speaks for it."""
        word = self.words[index]
        return word.cases == ["of"] and word.head != index and self._through(word.head)

    @staticmethod
    def _predicate(phrase: str) -> str:
        words = phrase.split()
        found = preposition(words, 0) if words else None
        return found[1] if found is not None and found[0] == len(words) and found[1] != "-" else ""

    def _say(self, subjects: Sequence[int], predicate: str, things: Sequence[int]) -> None:
        for one in subjects:
            for other in things:
                triple = (one, predicate, other)
                if one != other and one in self.things and other in self.things and triple not in self.triples:
                    self.triples.append(triple)
