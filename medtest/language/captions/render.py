"""Templates for pools in English, which the controlled parser reads back.

ACTesting (section 3.2) fills templates with the words of a pool. These use articles, agreement, counts and attributes,
and state each entity and each relation once, in the pool's order, so that the parser returns the same pool::

    A man riding a horse and wearing a red hat. The horse is near two trees. There is a lamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from medtest.core.scenes import Entity, Pool, Triple
from medtest.language.captions.controlled.lexicon import garment, mass
from medtest.language.captions.controlled.parser import ControlledParser
from medtest.language.captions.controlled.phrases import ORDINALS
from medtest.language.captions.inflection import PLURAL_ONLY, article
from medtest.language.captions.vocabulary import vg150

NUMBERS: tuple[str, ...] = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
"""Number words, by their value; greater numbers are written in figures."""
_FINITE = {"has": ("has", "have"), "says": ("says", "say")}
_SIDES = {"left of": "to the left of", "right of": "to the right of"}


class Unsayable(ValueError):
    """The pool has no unambiguous text; the message gives the reason."""


def render(pool: Pool, *, words: Mapping[str, str] | None = None) -> str:
    """Return the text of a pool.

    Two entities of one class are "a dog" and "another dog", then "the first dog" and "the second dog". A pool without
    relations is a list ("A dog and two cats.").

    Args:
        pool: The pool, in output order.
        words: Noun for a class if it is not the class's own name ("couch": "sofa"), in the singular.

    Returns:
        Sentences with capitals and full stops; "" for an empty pool.

    Raises:
        Unsayable: A count of zero or less, a predicate that is a synonym (``wears``) or not a relation (``and``) or not
            an
            English phrase, an entity related to itself; or no template gives a text from which the parser
                ``controlled``
            reads exactly this pool (for example, because a name is not a noun).
    """
    nouns = dict(words or {})
    target = Pool(
        entities=tuple(replace(entity, name=nouns.get(entity.name, entity.name)) for entity in pool.entities),
        triples=pool.triples,
    )
    text = ""
    for way in _WAYS:
        text = _Speaker(pool, nouns, *way).text()
        if ControlledParser().parse(text) == target:
            return text
    raise Unsayable(f"no template gives an unambiguous text: {text!r} has another reading")


_WAYS: tuple[tuple[bool, bool, bool], ...] = (
    (False, False, False),
    (True, False, False),
    (False, True, False),
    (True, True, False),
    (False, True, True),
)
"""Template variants (backwards, apart, described); the first that is read back as the pool is used."""


@dataclass
class _Speaker:
    """Writer of one pool.

    Attributes:
        pool: The pool.
        words: Noun of a class, if not its name.
        backwards: True to reverse the order of attributes ("a sleeping gray bag").
        apart: True to name all entities before any relation.
        described: True to state attributes in separate sentences ("The bag is red.").
        named: Number of entities named so far; they are named in the pool's order.
        sentences: Sentences so far.
    """

    pool: Pool
    words: dict[str, str]
    backwards: bool = False
    apart: bool = False
    described: bool = False
    named: int = 0
    sentences: list[str] = field(default_factory=list)

    def text(self) -> str:
        for entity in self.pool.entities:
            if entity.count is not None and entity.count < 1:
                raise Unsayable(f"{entity.count} of {entity.name!r}: a caption needs a count of at least 1")
        if not self.pool.triples and self.pool.entities and not self.apart:
            self._end(listed([self._mention(index) for index in range(len(self.pool.entities))]))
            return " ".join(self.sentences)
        if self.apart:
            self._there_are(len(self.pool.entities))
        if self.described:
            self._describe()
        runs = list(self._runs())
        for run in runs:
            self._introduce_before(run)
            self._say(run)
        self._there_are(len(self.pool.entities))
        return " ".join(self.sentences)

    def _describe(self) -> None:
        for index, entity in enumerate(self.pool.entities):
            adjectives = [attribute for attribute in entity.attributes if not _is_participle(attribute)]
            if adjectives:
                verb = "are" if _many(entity) else "is"
                self._end(f"{self._mention(index)} {verb} {listed(adjectives)}")

    def _runs(self) -> Iterator[list[Triple]]:
        """Yield consecutive triples with one subject, which fit in one sentence."""
        run: list[Triple] = []
        for triple in self.pool.triples:
            if triple.subject == triple.object:
                raise Unsayable(f"{self.pool.entities[triple.subject].name!r} {triple.predicate} itself")
            if run and (self.apart or run[0].subject != triple.subject):
                yield run
                run = []
            run.append(triple)
        if run:
            yield run

    def _introduce_before(self, run: Sequence[Triple]) -> None:
        """Name the entities before the run's new ones; all of them, if the run names them in another order."""
        order: list[int] = []
        for triple in run:
            order += [end for end in (triple.subject, triple.object) if end >= self.named and end not in order]
        if not order:
            return
        first = min(order)
        in_order = order == list(range(first, first + len(order)))
        self._there_are(first if in_order else max(order) + 1)

    def _there_are(self, until: int) -> None:
        if until <= self.named:
            return
        fresh = range(self.named, until)
        verb = "are" if _many(self.pool.entities[self.named]) else "is"
        self._end(f"there {verb} {listed([self._mention(index) for index in fresh])}")

    def _say(self, run: Sequence[Triple]) -> None:
        subject = run[0].subject
        fresh = subject >= self.named
        entity = self.pool.entities[subject]
        is_plural = _many(entity)
        parts = [self._mention(subject)]
        finite = not fresh or any(triple.predicate in _FINITE for triple in run)
        last = ""
        for predicate, triples in _by_predicate(run):
            phrase = self._phrase(triples[0])
            objects = listed([self._mention(triple.object) for triple in triples])
            verb = _FINITE[predicate][is_plural] if predicate in _FINITE else phrase
            if finite and predicate not in _FINITE:
                verb = f"{'are' if is_plural else 'is'} {phrase}"
            joint = "" if not last else " and"
            parts.append(f"{joint} {verb} {objects}")
            last = predicate
        self._end("".join(parts))

    def _phrase(self, triple: Triple) -> str:
        predicate = triple.predicate
        vocabulary = vg150()
        if predicate == "and":
            raise Unsayable("'and' is a coordination, not a relation")
        if predicate in vocabulary.merged_predicates:
            raise Unsayable(f"{predicate!r} is a synonym: use {vocabulary.merged_predicates[predicate]!r}")
        if predicate not in vocabulary.relations and not _is_verb(predicate):
            raise Unsayable(f"{predicate!r} is neither a predicate of the vocabulary nor a verb in -ing")
        if predicate == "in" and garment(self._noun(triple.object)):
            return "inside"  # "a man in a coat" means that he wears it
        return _SIDES.get(predicate, predicate)

    def _noun(self, index: int) -> str:
        name = self.pool.entities[index].name
        return self.words.get(name, name)

    def _mention(self, index: int) -> str:
        """Return an entity's text: in full the first time, "the …" from then on."""
        noun = self._noun(index)
        if index < self.named:
            namesakes = [other for other in range(self.named) if self._noun(other) == noun]
            which = "" if len(namesakes) == 1 else f"{_ordinal(namesakes.index(index))} "
            return f"the {which}{_form(self.pool.entities[index], noun)}"
        repeated = any(self._noun(other) == noun for other in range(self.named))
        self.named = index + 1
        entity = self.pool.entities[index]
        attributes = entity.attributes[:: -1 if self.backwards else 1]
        if self.described:
            attributes = tuple(filter(_is_participle, attributes))
        return _first_mention(replace(entity, attributes=attributes), noun, repeated)

    def _end(self, sentence: str) -> None:
        self.sentences.append(sentence[:1].upper() + sentence[1:] + ".")


def _first_mention(entity: Entity, noun: str, repeated: bool) -> str:
    """Return "a red dog", "two red dogs", "red dogs"; "another red dog" if one was named before."""
    text = " ".join([*entity.attributes, _form(entity, noun)])
    if entity.count is None:
        return f"other {text}" if repeated else text
    pair = "pair of " if noun.split()[-1] in PLURAL_ONLY else ""
    if entity.count == 1:
        return f"another {pair}{text}" if repeated else f"{article(pair or text)} {pair}{text}"
    number = NUMBERS[entity.count] if entity.count < len(NUMBERS) else str(entity.count)
    pairs = "pairs of " if pair else ""
    return f"{number} other {pairs}{text}" if repeated else f"{number} {pairs}{text}"


def _form(entity: Entity, noun: str) -> str:
    """Return the noun in the number of its entity."""
    return vg150().plural(noun) if _many(entity) else noun


def _many(entity: Entity) -> bool:
    """Return True if an entity takes the plural: more than one, or countable without a number."""
    if entity.name.split()[-1] in PLURAL_ONLY:
        return True
    if entity.count is not None:
        return entity.count != 1
    return vg150().counted(entity.name) and not mass(entity.name)


def _is_participle(attribute: str) -> bool:
    """Return True if an attribute is a verb form, which after "is" would state an action."""
    return attribute.endswith(("ing", "ed"))


def _is_verb(predicate: str) -> bool:
    return predicate.isalpha() and len(predicate) > 4 and predicate.endswith("ing")


def _ordinal(index: int) -> str:
    if index >= len(ORDINALS):
        raise Unsayable(f"more than {len(ORDINALS)} entities of one class")
    return ORDINALS[index]


def _by_predicate(run: Sequence[Triple]) -> list[tuple[str, list[Triple]]]:
    """Group consecutive triples with one predicate, whose objects are written as a list."""
    groups: list[tuple[str, list[Triple]]] = []
    for triple in run:
        if groups and groups[-1][0] == triple.predicate:
            groups[-1][1].append(triple)
        else:
            groups.append((triple.predicate, [triple]))
    return groups


def listed(items: Sequence[str]) -> str:
    """Return items as an English list: "a, b and c"."""
    *leading, last = items
    return f"{', '.join(leading)} and {last}" if leading else last
