"""Typed questions made from pools, and what their answers say of a picture.

Questions hang on one another as those of DSG do (J. Cho et al., Davidsonian Scene Graph, ICLR 2024, section 3): of a
thing that is not there neither number nor colour nor place is asked. A question whose parent fails is *void*: what it
asks for is not there. A question that is not answered clearly says nothing, and nor does one whose parent is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from medtest.core.cases import Ask
from medtest.core.scenes import NamedTriple, Pool, Scene, SeenEntity, Tells, Triple
from medtest.language.captions.inflection import PLURAL_ONLY, article
from medtest.language.captions.vocabulary import vg150
from medtest.language.questions.answers.parse import parse
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.values import NO, YES, Kind, Names, Ranges

MOST_SEEN: Final = 20
"""Things of a class that a scene has at most, whatever number is answered."""
_SIDES: Final = {"left of": "to the left of", "right of": "to the right of"}
_FINITE: Final = {"has": "have", "says": "say"}


@dataclass(frozen=True, kw_only=True)
class PoolQuestions:
    """What is asked about a picture.

    Attributes:
        classes: Classes that are asked for, in alphabetical order.
        counted: Those of them whose number is asked for.
        attributes: Attributes of classes.
        triples: Relations.
    """

    classes: tuple[str, ...]
    counted: frozenset[str]
    attributes: tuple[tuple[str, str], ...]
    triples: tuple[NamedTriple, ...]


def questions_of(pools: Sequence[Pool]) -> PoolQuestions:
    """Return what pools together ask of a picture.

    Args:
        pools: Those of a case and its source: what was taken away is asked for too.
    """
    things = [one for pool in pools for one in pool.entities]
    known = vg150()
    return PoolQuestions(
        classes=tuple(sorted({one.name for one in things})),
        counted=frozenset(one.name for one in things if one.count is not None and known.counted(one.name)),
        attributes=tuple(sorted({(one.name, attribute) for one in things for attribute in one.attributes})),
        triples=tuple(sorted({triple for pool in pools for triple in pool.named()})),
    )


# ---------------------------------------------------------------------------------------------------------- the wording


def presence(questions: PoolQuestions) -> Iterator[tuple[str, Ask]]:
    """Yield the first questions: whether each class is there."""
    for number, name in enumerate(questions.classes):
        verb = "Are" if name in PLURAL_ONLY else "Is"
        yield name, Ask(item=f"there_{number}", text=f"{verb} there {_some(name)} in the picture?", kind=Kind.YES_NO)


def following(questions: PoolQuestions, there: frozenset[str]) -> Iterator[tuple[object, Ask]]:
    """Yield the questions about what is there, each with what it asks for.

    Keys are ``(class,)`` for a number, ``(class, "colour")`` for all its colours, ``(class, attribute)`` for another
    attribute, a named triple for a relation.

    Args:
        questions: What is asked about the picture.
        there: The classes that are there.
    """
    known = vg150()
    for name in (one for one in questions.classes if one in there):
        number = questions.classes.index(name)
        if name in questions.counted:
            text = f"How many {known.plural(name)} are in the picture?"
            yield (name,), Ask(item=f"many_{number}", text=text, kind=Kind.COUNT)
        asked = [attribute for one, attribute in questions.attributes if one == name]
        if any(colour_of(attribute) for attribute in asked):
            text = f"What colour {_is(name)} the {name} in the picture?"
            yield (name, "colour"), Ask(item=f"colour_{number}", text=text, kind=Kind.COLOUR)
        for place, attribute in enumerate(asked):
            if colour_of(attribute) is None:
                text = f"{_is(name).capitalize()} the {name} in the picture {attribute}?"
                yield (name, attribute), Ask(item=f"like_{number}_{place}", text=text, kind=Kind.YES_NO)
    for number, triple in enumerate(questions.triples):
        if {triple[0], triple[2]} <= there:
            yield triple, Ask(item=f"related_{number}", text=_related(triple), kind=Kind.YES_NO)


def colour_of(attribute: str) -> str | None:
    """Return the parser's name of a colour (``gray``: ``grey``); None for what is no single colour."""
    read = parse(attribute, Kind.COLOUR).value
    return next(iter(read.names)) if isinstance(read, Names) and len(read.names) == 1 else None


def _some(name: str) -> str:
    if name in PLURAL_ONLY or not vg150().counted(name):
        return f"any {name}"
    return f"{article(name)} {name}"


def _is(name: str) -> str:
    return "are" if name in PLURAL_ONLY else "is"


def _related(triple: NamedTriple) -> str:
    subject, predicate, thing = triple
    other = f"another {thing}" if subject == thing else _one(thing)
    if predicate in _FINITE:
        verb = "Do" if subject in PLURAL_ONLY else "Does"
        return f"{verb} {_one(subject)} {_FINITE[predicate]} {other} in the picture?"
    return f"{_is(subject).capitalize()} {_one(subject)} {_SIDES.get(predicate, predicate)} {other} in the picture?"


def _one(name: str) -> str:
    return name if name in PLURAL_ONLY or not vg150().counted(name) else f"{article(name)} {name}"


# --------------------------------------------------------------------------------------------------- what answers say


def said_yes(answer: Answer) -> bool | None:
    """Return a yes or a no that is said without a reservation; None for anything else."""
    value = answer.value
    if answer.state != State.VALUE or answer.hedged or not isinstance(value, Names):
        return None
    return {frozenset((YES,)): True, frozenset((NO,)): False}.get(value.names)


def said_number(answer: Answer) -> int | None:
    """Return a whole number that is said exactly and without a reservation; None for anything else."""
    value = answer.value
    if answer.state != State.VALUE or answer.hedged or not isinstance(value, Ranges) or len(value.ranges) != 1:
        return None
    (only,) = value.ranges
    return int(only.low) if only.low == only.high and not only.about and only.low == int(only.low) else None


def said_colours(answer: Answer) -> frozenset[str] | None:
    """Return colours that are said without a reservation; None for anything else."""
    value = answer.value
    clear = answer.state == State.VALUE and not answer.hedged and isinstance(value, Names)
    return value.names if clear and isinstance(value, Names) else None


def scene_of(questions: PoolQuestions, answers: Mapping[object, Answer]) -> Scene:
    """Return what the answers say of a picture.

    ``tells`` holds what was asked and answered clearly, or is void: classes; predicates and attributes of which *every*
    question was; numbers, where all that were asked for were. A class answered with "0" after a "yes" is not clear.

    Args:
        questions: What was asked.
        answers: By class for presence, by the keys of :func:`following` for the rest. What is missing was not asked.
    """
    there = {name: said_yes(answers[name]) for name in questions.classes}
    numbers, counts = _numbers(questions, there, answers)
    seen: list[SeenEntity] = []
    first: dict[str, int] = {}
    clear = _Clear()
    for name in questions.classes:
        attributes = _attributes(questions, name, there[name], answers, clear)
        if there[name]:
            first[name] = len(seen)
            seen += [SeenEntity(name=name, attributes=attributes)] * min(numbers.get(name, 1), MOST_SEEN)
    triples = []
    for triple in questions.triples:
        ends = there[triple[0]], there[triple[2]]
        holds = False if False in ends else None if None in ends else said_yes(answers[triple])
        clear.predicates.setdefault(triple[1], []).append(holds is not None)
        subject, thing = first.get(triple[0]), first.get(triple[2])
        if holds and subject is not None and thing is not None:
            again = subject == thing and min(numbers.get(triple[0], 1), MOST_SEEN) > 1
            triples.append(Triple(subject=subject, predicate=triple[1], object=thing + again))
    tells = Tells(
        classes=frozenset(name for name, one in there.items() if one is not None),
        predicates=frozenset(name for name, every in clear.predicates.items() if all(every)),
        attributes=frozenset(name for name, every in clear.attributes.items() if all(every)),
        counts=counts,
    )
    return Scene(entities=tuple(seen), triples=tuple(triples), tells=tells)


class _Clear:
    """Whether each question for a predicate or an attribute was answered clearly."""

    def __init__(self) -> None:
        self.predicates: dict[str, list[bool]] = {}
        self.attributes: dict[str, list[bool]] = {}


def _numbers(
    questions: PoolQuestions, there: dict[str, bool | None], answers: Mapping[object, Answer]
) -> tuple[dict[str, int], bool]:
    """Return how many there are of classes, and whether all that were asked for are known.

    A "0" of what is there contradicts it: then the class is not clear.
    """
    numbers: dict[str, int] = {}
    known = True
    for name in sorted(questions.counted):
        if there[name] is not True:
            known &= there[name] is not None
            continue
        number = said_number(answers[(name,)])
        if number == 0:
            there[name] = None
        if number:
            numbers[name] = number
        else:
            known = False
    return numbers, known


def _attributes(
    questions: PoolQuestions, name: str, there: bool | None, answers: Mapping[object, Answer], clear: _Clear
) -> tuple[str, ...]:
    """Return the attributes of a class that is there, and note which were clear."""
    has: set[str] = set()
    colours = said_colours(answers[name, "colour"]) if there and (name, "colour") in answers else None
    for one, attribute in questions.attributes:
        if one != name:
            continue
        colour = colour_of(attribute)
        holds: bool | None
        if there is not True:
            holds = there  # void where the class is not there, unknown where nobody knows
        elif colour is None:
            holds = said_yes(answers[name, attribute])
        else:
            holds = None if colours is None else colour in colours
        clear.attributes.setdefault(attribute, []).append(holds is not None)
        if holds:
            has.add(attribute)
    if colours:
        asked = {colour_of(attribute) for one, attribute in questions.attributes if one == name}
        for other in colours - asked:
            has.add(other)
            clear.attributes.setdefault(other, []).append(True)
    return tuple(sorted(has))
