"""Conversion of dependency graphs to pools, by the rules of the labelled captions."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.core.scenes import Entity, Pool, Triple, alphabetical
from medtest.language.captions.controlled.lexicon import garment, ing, lexicon, mass
from medtest.language.captions.controlled.prepositions import preposition
from medtest.language.captions.controlled.verbs import TRANSITIVE
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


def pool_of_words(words: Sequence[Word]) -> Pool:
    """Return the pool of a caption's dependency graph, in Universal Dependencies or CLEAR."""
    return _Graph(in_one_scheme(words)).pool()


class _Graph:
    """Reader of one dependency graph."""

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
            Entity(name=noun.name, count=noun.count, attributes=alphabetical(noun.attributes))
            for noun in (self.things[index] for index in order)
        ]
        position = {index: at for at, index in enumerate(order)}
        triples = tuple(
            Triple(subject=position[a], predicate=predicate, object=position[b]) for a, predicate, b in self.triples
        )
        return Pool(entities=tuple(names), triples=triples)

    # --- nouns ------------------------------------------------------------------------------------------------------

    def _is_head(self, index: int) -> bool:
        """Return True if a noun is not part of a longer name."""
        word = self.words[index]
        parts = word.relation in ("compound", "amod", "nummod", "nmod:npmod", "npadvmod", "fixed", "flat", "case")
        return not (parts and word.head != index and self.words[word.head].tag in (*_NAMES, "ADJ", "VERB", "ADV"))

    def _inner(self, index: int) -> int | None:
        """Return the noun to which a collection, a region or a picture refers."""
        for at, word in enumerate(self.words):
            if word.relation == PLACE and word.head == index and word.cases == ["of"] and word.tag in _NAMES:
                return at
        return None

    def _through(self, index: int) -> bool:
        """Return True if a noun leads through "of" to the actual entity."""
        text = self.words[index].text
        lists = self.told["collections"] | self.told["regions"] | self.told["picture_words"]
        return text in lists and self._inner(index) is not None and not self._before(index)

    def _seen(self, index: int) -> bool:
        word, lists = self.words[index], self.told
        if self._through(index):
            return False
        if word.text in lists["events"] or singular(word.text) in lists["events"]:
            return False
        if word.text in lists["picture_words"] and word.relation == "root":
            return False
        return not (word.text in lists["regions"] and not self._before(index))

    def _before(self, index: int) -> list[int]:
        """Return the words of a name before its head: nouns and other parts of compounds ("living room")."""
        parts: list[int] = []
        for at, word in enumerate(self.words):
            if word.head != index or at >= index or word.text in self.told["materials"]:
                continue
            joined = f"{word.text}_{self.words[index].text}" in self.told["compounds"]
            purpose = (
                word.text in self.told["ing_modifiers"] and self.words[index].text in self.told["noun_heads_of_ing"]
            )
            if word.relation == "compound" or joined or purpose:
                parts += [*self._before(at), at]
        return parts

    def _thing(self, index: int) -> NounTraits:
        word = self.words[index]
        parts = self._before(index)
        first = parts[0] if parts else index
        name_words = [self.words[at].text for at in range(first, index) if self.words[at].tag not in ("PUNCT", "DET")]
        name = " ".join([*name_words, singular(word.text)])
        children = [child for child in self.words if child.head == index and child is not word]
        attributes = [
            child.text for child in children if child.relation in ("amod", "acomp") and child.text not in name_words
        ]
        attributes += [
            child.text for child in children if child.relation == "compound" and child.text in self.told["materials"]
        ]
        numbers = [child.text for child in children if child.relation == "nummod"]
        count: int | None = 1
        if numbers:
            count = int(numbers[0]) if numbers[0].isdigit() else self.told.numbers.get(numbers[0])
        elif is_plural(word.text) or mass(name):
            count = None
        quantities = {child.text for child in children if child.text in self.told["quantities"]}
        return NounTraits(
            name,
            count,
            [attribute for attribute in attributes if attribute not in quantities and not attribute.isdigit()],
        )

    def _resolved(self, index: int) -> list[int]:
        """Return the entities of a word: itself, the content of a collection, and list members."""
        inner = self._inner(index) if self._through(index) else None
        nouns = self._resolved(inner) if inner is not None else [index] if index in self.things else []
        for at, word in enumerate(self.words):
            if word.relation == LIST and word.head == index and word.tag in _NAMES and at != index:
                nouns += self._resolved(at)
        return nouns

    # --- relations --------------------------------------------------------------------------------------------------

    def _subjects(self, index: int, depth: int = 0) -> list[int]:
        """Return the subjects of a verb."""
        word = self.words[index]
        subject_words = [
            at for at, candidate in enumerate(self.words) if candidate.head == index and candidate.relation == SUBJECT
        ]
        subjects = [noun for at in subject_words for noun in self._resolved(at)]
        if subjects or depth > len(self.words):
            return subjects
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
        for at, candidate in enumerate(self.words):
            if candidate.head != index or at == index:
                continue
            if candidate.relation == OBJECT:
                predicate = TRANSITIVE.get(word.lemma) or (word.text if word.gerund else ing(word.lemma))
                self._say(subjects, predicate, self._resolved(at))
            elif candidate.relation == AGENT:
                self._say(subjects, "near", self._resolved(at))

    def _place(self, index: int) -> None:
        word = self.words[index]
        nouns = self._resolved(index)
        phrase = " ".join(word.cases)
        region = ""
        if self._through(index):
            inner = self._inner(index)
            region = self.words[index].text
            nouns = [] if inner is None else self._resolved(inner)
        elif self._passes(index):
            return
        predicate = self._predicate(f"{phrase} {region} of") if region else ""
        predicate = predicate or self._predicate(phrase)
        head = self.words[word.head]
        if not predicate or (phrase == "of" and self._through(word.head)):
            return
        if head.tag in ("VERB", "AUX", "ADJ", "ADV"):
            subjects = self._subjects(word.head)
            predicate = self.told.tables["verb_prepositions"].get(head.lemma, {}).get(predicate, predicate)
        else:
            subjects = self._resolved(word.head)
        if phrase == "in" and any(garment(self.things[noun].name) for noun in nouns):
            beings = any(self.things[subject].animate for subject in subjects)
            predicate = "wearing" if beings else predicate
        self._say(subjects, predicate, nouns)

    def _passes(self, index: int) -> bool:
        """Return True if a noun is subordinate to a collection that represents it."""
        word = self.words[index]
        return word.cases == ["of"] and word.head != index and self._through(word.head)

    @staticmethod
    def _predicate(phrase: str) -> str:
        words = phrase.split()
        match = preposition(words, 0) if words else None
        return match[1] if match is not None and match[0] == len(words) and match[1] != "-" else ""

    def _say(self, subjects: Sequence[int], predicate: str, targets: Sequence[int]) -> None:
        for subject in subjects:
            for target in targets:
                triple = (subject, predicate, target)
                if (
                    subject != target
                    and subject in self.things
                    and target in self.things
                    and triple not in self.triples
                ):
                    self.triples.append(triple)
