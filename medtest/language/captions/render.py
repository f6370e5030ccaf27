"""A pool in English: templates with articles, agreement, counts and attributes, which the controlled parser reads back.

ACTesting (section 3.2) fills templates with the words of a pool. These say each entity and each relation once, in the
pool's order, so that what is read back is the pool itself::

    A man riding a horse and wearing a red hat. The horse is near two trees. There is a lamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from medtest.core.scenes import Entity, Pool, Triple
from medtest.language.captions.controlled.lexicon import garment
from medtest.language.captions.controlled.parser import ControlledParser
from medtest.language.captions.inflection import PLURAL_ONLY, article
from medtest.language.captions.vocabulary import vg150

NUMBERS: tuple[str, ...] = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
"""Number words, by their value; greater ones are said in figures."""
ORDINALS: tuple[str, ...] = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
)
_FINITE = {"has": ("has", "have"), "says": ("says", "say")}
_SIDES = {"left of": "to the left of", "right of": "to the right of"}


class Unsayable(ValueError):
    """The pool cannot be put into words that say it and nothing else; the message says why."""


def render(pool: Pool, *, words: Mapping[str, str] | None = None) -> str:
    """Return the words of a pool.

    Two entities of one class are "a dog" and "another dog", then "the first dog" and "the second dog". A pool of no
    relation is a list ("A dog and two cats.").

    Args:
        pool: What to say, in this order.
        words: The noun to use for a class where it is not the class's own name ("couch": "sofa"), in singular.

    Returns:
        Sentences with capitals and full stops; "" for an empty pool.

    Raises:
        Unsayable: A count of zero or less, a predicate that stands for another (``wears``) or for no relation (``and``)
            or that is no phrase of English, a thing related to itself; or no template says the pool so that the parser
            ``controlled`` reads that pool and no other (a name that is no noun for it, say).
    """
    nouns = dict(words or {})
    said = Pool(
        entities=tuple(replace(one, name=nouns.get(one.name, one.name)) for one in pool.entities), triples=pool.triples
    )
    text = ""
    for way in _WAYS:
        text = _Speaker(pool, nouns, *way).text()
        if ControlledParser().parse(text) == said:
            return text
    raise Unsayable(f"no template says this pool alone: {text!r} can be read otherwise")


_WAYS: tuple[tuple[bool, bool, bool], ...] = (
    (False, False, False),
    (True, False, False),
    (False, True, False),
    (True, True, False),
    (False, True, True),
)
"""Ways of saying a pool (backwards, apart, described); the first that is read as that pool alone is taken."""


@dataclass
class _Speaker:
    """Says one pool.

    Attributes:
        pool: What to say.
        words: The noun of a class, where it is not its name.
        backwards: Whether attributes are said in the other order ("a sleeping gray bag").
        apart: Whether all things are named before any relation is said.
        described: Whether attributes have sentences of their own ("The bag is red.").
        named: How many entities have been named; they are named in the pool's order.
        sentences: What has been said.
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
                raise Unsayable(f"{entity.count} of {entity.name!r}: a caption names what is there")
        if not self.pool.triples and self.pool.entities and not self.apart:
            self._end(listed([self._mention(one) for one in range(len(self.pool.entities))]))
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
            said = [one for one in entity.attributes if not _is_participle(one)]
            if said:
                verb = "are" if _many(entity) else "is"
                self._end(f"{self._mention(index)} {verb} {listed(said)}")

    def _runs(self) -> Iterator[list[Triple]]:
        """Yield triples of one subject that follow on one another, as one sentence can say them."""
        run: list[Triple] = []
        for one in self.pool.triples:
            if one.subject == one.object:
                raise Unsayable(f"{self.pool.entities[one.subject].name!r} {one.predicate} itself")
            if run and (self.apart or run[0].subject != one.subject):
                yield run
                run = []
            run.append(one)
        if run:
            yield run

    def _introduce_before(self, run: Sequence[Triple]) -> None:
        """Name what stands before the run's new entities; all of them, where the run names them in another order."""
        order: list[int] = []
        for one in run:
            order += [end for end in (one.subject, one.object) if end >= self.named and end not in order]
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
        self._end(f"there {verb} {listed([self._mention(one) for one in fresh])}")

    def _say(self, run: Sequence[Triple]) -> None:
        subject = run[0].subject
        fresh = subject >= self.named
        entity = self.pool.entities[subject]
        many = _many(entity)
        parts = [self._mention(subject)]
        finite = not fresh or any(one.predicate in _FINITE for one in run)
        last = ""
        for said, triples in _by_predicate(run):
            phrase = self._phrase(triples[0])
            objects = listed([self._mention(one.object) for one in triples])
            verb = _FINITE[said][many] if said in _FINITE else phrase
            if finite and said not in _FINITE:
                verb = f"{'are' if many else 'is'} {phrase}"
            joint = "" if not last else " and"
            parts.append(f"{joint} {verb} {objects}")
            last = said
        self._end("".join(parts))

    def _phrase(self, triple: Triple) -> str:
        predicate = triple.predicate
        known = vg150()
        if predicate == "and":
            raise Unsayable("'and' is coordination and no relation: a caption that says it says nothing of the two")
        if predicate in known.merged_predicates:
            raise Unsayable(f"{predicate!r} is {known.merged_predicates[predicate]!r} once more: use that")
        if predicate not in known.relations and not _is_verb(predicate):
            raise Unsayable(f"{predicate!r} is no predicate of the vocabulary, and no verb in -ing")
        if predicate == "in" and garment(self._noun(triple.object)):
            return "inside"  # "a man in a coat" says that he wears it
        return _SIDES.get(predicate, predicate)

    def _noun(self, index: int) -> str:
        name = self.pool.entities[index].name
        return self.words.get(name, name)

    def _mention(self, index: int) -> str:
        """Return an entity's words: in full the first time, "the …" from then on."""
        noun = self._noun(index)
        if index < self.named:
            same = [one for one in range(self.named) if self._noun(one) == noun]
            which = "" if len(same) == 1 else f"{_ordinal(same.index(index))} "
            return f"the {which}{_form(self.pool.entities[index], noun)}"
        again = any(self._noun(one) == noun for one in range(self.named))
        self.named = index + 1
        entity = self.pool.entities[index]
        attributes = entity.attributes[:: -1 if self.backwards else 1]
        if self.described:
            attributes = tuple(filter(_is_participle, attributes))
        return _first_mention(replace(entity, attributes=attributes), noun, again)

    def _end(self, sentence: str) -> None:
        self.sentences.append(sentence[:1].upper() + sentence[1:] + ".")


def _first_mention(entity: Entity, noun: str, again: bool) -> str:
    """Return "a red dog", "two red dogs", "red dogs"; "another red dog" where one has been named before."""
    said = " ".join([*entity.attributes, _form(entity, noun)])
    if entity.count is None:
        return f"other {said}" if again else said
    pair = "pair of " if noun.split()[-1] in PLURAL_ONLY else ""
    if entity.count == 1:
        return f"another {pair}{said}" if again else f"{article(pair or said)} {pair}{said}"
    number = NUMBERS[entity.count] if entity.count < len(NUMBERS) else str(entity.count)
    pairs = "pairs of " if pair else ""
    return f"{number} other {pairs}{said}" if again else f"{number} {pairs}{said}"


def _form(entity: Entity, noun: str) -> str:
    """Return the noun in the number of its entity."""
    return vg150().plural(noun) if _many(entity) else noun


def _many(entity: Entity) -> bool:
    """Say whether an entity takes the plural: more than one, or things whose number is not said."""
    if entity.name.split()[-1] in PLURAL_ONLY:
        return True
    return entity.count != 1 if entity.count is not None else vg150().counted(entity.name)


def _is_participle(attribute: str) -> bool:
    """Say whether an attribute is a verb's: after "is" it would say what a thing does."""
    return attribute.endswith(("ing", "ed"))


def _is_verb(predicate: str) -> bool:
    return predicate.isalpha() and len(predicate) > 4 and predicate.endswith("ing")


def _ordinal(index: int) -> str:
    if index >= len(ORDINALS):
        raise Unsayable(f"more than {len(ORDINALS)} entities of one class")
    return ORDINALS[index]


def _by_predicate(run: Sequence[Triple]) -> list[tuple[str, list[Triple]]]:
    """Return neighbours of one predicate together: their objects are said as a list."""
    found: list[tuple[str, list[Triple]]] = []
    for one in run:
        if found and found[-1][0] == one.predicate:
            found[-1][1].append(one)
        else:
            found.append((one.predicate, [one]))
    return found


def listed(items: Sequence[str]) -> str:
    """Return items as English lists them: "a, b and c"."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last
