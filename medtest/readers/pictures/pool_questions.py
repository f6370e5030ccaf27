"""Typed questions made from pools, and the scene that follows from their answers.

Questions depend on each other as in DSG (J. Cho et al., Davidsonian Scene Graph, ICLR 2024, section 3): for an absent
object, number, colour and position are not asked. If a parent question fails, its children are *void*: what they ask
for is absent. An unclear answer gives no information, and neither do the children of such a question.
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
from medtest.readers.pictures.findings import wording

MOST_SEEN: Final = 20
"""Maximum number of objects per class in a scene, even if a larger number is answered."""
WHOLE_PROMPT: Final = "whole prompt"
"""Key and item of the question about a whole prompt."""
_SIDES: Final = {"left of": "to the left of", "right of": "to the right of"}
_FINITE: Final = {"has": "have", "says": "say"}


@dataclass(frozen=True, kw_only=True)
class PoolQuestions:
    """The questions about a picture.

    Attributes:
        classes: Classes to ask for, excluded ones among them, in alphabetical order.
        counted: Classes whose number is asked for.
        attributes: Pairs of class and attribute; a finding of an order with a side, size, type or colour is asked
            for all of that kind.
        triples: Relations.
        numbers: Classes with the numbers that pools state.
    """

    classes: tuple[str, ...]
    counted: frozenset[str]
    attributes: tuple[tuple[str, str], ...]
    triples: tuple[NamedTriple, ...]
    numbers: tuple[tuple[str, int], ...] = ()


def questions_of(pools: Sequence[Pool]) -> PoolQuestions:
    """Return the questions that several pools ask about a picture.

    Args:
        pools: Pools of a case and its source, so that removed objects are asked for too.
    """
    entities = [entity for pool in pools for entity in pool.entities]
    excluded = {name for pool in pools for name in pool.absent}
    named = {(entity.name, attribute) for entity in entities for attribute in entity.attributes}
    return PoolQuestions(
        classes=tuple(sorted({entity.name for entity in entities} | excluded)),
        counted=frozenset(entity.name for entity in entities if entity.count is not None and _counted(entity.name)),
        attributes=tuple(sorted(wording.with_others(named))),
        triples=tuple(sorted({triple for pool in pools for triple in pool.named()})),
        numbers=tuple(sorted({stated for pool in pools for stated in _stated(pool)})),
    )


def _stated(pool: Pool) -> Iterator[tuple[str, int]]:
    vague = {entity.name for entity in pool.entities if entity.count is None}
    return ((name, count) for name, count in pool.names().items() if name not in vague and _counted(name))


# ------------------------------------------------------------------------------------------------------------- wording


def presence(questions: PoolQuestions) -> Iterator[tuple[str, Ask]]:
    """Yield the first questions: whether each class is present."""
    for number, name in enumerate(questions.classes):
        verb = _is(name).capitalize()
        yield name, Ask(item=f"there_{number}", text=f"{verb} there {_any_of(name)} in the picture?", kind=Kind.YES_NO)


def following(questions: PoolQuestions, present: frozenset[str]) -> Iterator[tuple[object, Ask]]:
    """Yield the questions about present classes, each with its key.

    Keys are ``(class,)`` for a number, ``(class, "colour")`` for all colours, ``(class, attribute)`` for another
    attribute, and a named triple for a relation.

    Args:
        questions: The questions about the picture.
        present: The present classes.
    """
    for name in (class_name for class_name in questions.classes if class_name in present):
        number = questions.classes.index(name)
        if name in questions.counted:
            text = f"How many {wording.plurals_of(name) or vg150().plural(name)} are in the picture?"
            yield (name,), Ask(item=f"many_{number}", text=text, kind=Kind.COUNT)
        attributes = [attribute for class_name, attribute in questions.attributes if class_name == name]
        if any(colour_of(attribute) for attribute in attributes):
            text = f"What colour {_is(name)} the {wording.noun_of(name)} in the picture?"
            yield (name, "colour"), Ask(item=f"colour_{number}", text=text, kind=Kind.COLOUR)
        for place, attribute in enumerate(attributes):
            if colour_of(attribute) is None:
                text = f"{_is(name).capitalize()} the {wording.noun_of(name)} in the picture {wording.like(attribute)}?"
                yield (name, attribute), Ask(item=f"like_{number}_{place}", text=text, kind=Kind.YES_NO)
    for number, triple in enumerate(questions.triples):
        if {triple[0], triple[2]} <= present:
            yield triple, Ask(item=f"related_{number}", text=_related(triple), kind=Kind.YES_NO)


def weighed(questions: PoolQuestions, present: frozenset[str]) -> Iterator[tuple[object, Ask]]:
    """Yield questions of yes or no about colours and numbers of present classes, which :func:`following` asks openly.

    Keys are ``("exactly", class, number)`` and ``("is", class, attribute)``.

    Args:
        questions: The questions about the picture.
        present: The present classes.
    """
    for place, (name, count) in enumerate(questions.numbers):
        if name in present:
            several = f"Are there exactly {count} {wording.plurals_of(name) or vg150().plural(name)}"
            words = f"Is there exactly one {wording.noun_of(name)}" if count == 1 else several
            ask = Ask(item=f"exactly_{place}", text=f"{words} in the picture?", kind=Kind.YES_NO)
            yield ("exactly", name, count), ask
    for place, (name, attribute) in enumerate(questions.attributes):
        if name in present and colour_of(attribute):
            text = f"{_is(name).capitalize()} the {wording.noun_of(name)} in the picture {attribute}?"
            yield ("is", name, attribute), Ask(item=f"is_{place}", text=text, kind=Kind.YES_NO)


def whole_prompt(prompt: str) -> Ask:
    """Return VQAScore's question about a whole prompt (Z. Lin et al., ECCV 2024, section 3)."""
    text = f'Does this figure show "{prompt}"? Please answer yes or no.'
    return Ask(item=WHOLE_PROMPT, text=text, kind=Kind.YES_NO)


def asked_for(key: object) -> tuple[str, tuple[str, ...]]:
    """Return kind and names of a :class:`Belief` for the key of a question of yes or no."""
    match key:
        case str(name):
            return ("prompt", ()) if name == WHOLE_PROMPT else ("entities", (name,))
        case ("exactly", name, int(count)):
            return "counts", (str(name), str(count))
        case ("is", name, attribute) | (name, attribute):
            return "attributes", (str(attribute), str(name))
        case (subject, predicate, target):
            return "relations", (str(subject), str(predicate), str(target))
    raise TypeError(f"{key!r} is not the key of a question")


def colour_of(attribute: str) -> str | None:
    """Return the parser's name for a colour (``gray``: ``grey``); None for anything but a single colour."""
    read = parse(attribute, Kind.COLOUR).value
    return next(iter(read.names)) if isinstance(read, Names) and len(read.names) == 1 else None


def _any_of(name: str) -> str:
    if (finding := wording.any_of(name)) is not None:
        return finding
    return f"any {name}" if name in PLURAL_ONLY or not vg150().counted(name) else f"{article(name)} {name}"


def _is(name: str) -> str:
    return "are" if name in PLURAL_ONLY or wording.is_plural(name) else "is"


def _counted(name: str) -> bool:
    of_finding = wording.counted(name)
    return vg150().counted(name) if of_finding is None else of_finding


def _related(triple: NamedTriple) -> str:
    subject, predicate, target = triple
    other = f"another {target}" if subject == target else _noun(target)
    if predicate in _FINITE:
        verb = "Do" if subject in PLURAL_ONLY else "Does"
        return f"{verb} {_noun(subject)} {_FINITE[predicate]} {other} in the picture?"
    return f"{_is(subject).capitalize()} {_noun(subject)} {_SIDES.get(predicate, predicate)} {other} in the picture?"


def _noun(name: str) -> str:
    return name if name in PLURAL_ONLY or not vg150().counted(name) else f"{article(name)} {name}"


# ------------------------------------------------------------------------------------------------------------- answers


def said_yes(answer: Answer) -> bool | None:
    """Return True or False for an unhedged yes or no; None for anything else."""
    value = answer.value
    if answer.state != State.VALUE or answer.hedged or not isinstance(value, Names):
        return None
    return {frozenset((YES,)): True, frozenset((NO,)): False}.get(value.names)


def said_number(answer: Answer) -> int | None:
    """Return an exact and unhedged whole number; None for anything else."""
    value = answer.value
    if answer.state != State.VALUE or answer.hedged or not isinstance(value, Ranges) or len(value.ranges) != 1:
        return None
    (only,) = value.ranges
    return int(only.low) if only.low == only.high and not only.about and only.low == int(only.low) else None


def said_colours(answer: Answer) -> frozenset[str] | None:
    """Return unhedged colours; None for anything else."""
    value = answer.value
    clear = answer.state == State.VALUE and not answer.hedged and isinstance(value, Names)
    return value.names if clear and isinstance(value, Names) else None


def scene_of(questions: PoolQuestions, answers: Mapping[object, Answer]) -> Scene:
    """Return the scene that follows from the answers.

    ``tells`` contains what was asked and either answered clearly or void: classes; predicates and attributes for which
    this holds for *every* question; and counts if all requested ones are known. A class with "0" after a "yes" is
    unclear.

    Args:
        questions: The questions.
        answers: By class for presence, by the keys of :func:`following` for the rest. Missing ones were not asked.
    """
    present = {name: said_yes(answers[name]) for name in questions.classes}
    numbers, counts = _numbers(questions, present, answers)
    entities: list[SeenEntity] = []
    first: dict[str, int] = {}
    clear_predicates: dict[str, list[bool]] = {}
    clear_attributes: dict[str, list[bool]] = {}
    for name in questions.classes:
        attributes = _attributes(questions, name, present[name], answers, clear_attributes)
        if present[name]:
            first[name] = len(entities)
            entities += [SeenEntity(name=name, attributes=attributes)] * min(numbers.get(name, 1), MOST_SEEN)
    triples = []
    for triple in questions.triples:
        ends = present[triple[0]], present[triple[2]]
        holds = False if False in ends else None if None in ends else said_yes(answers[triple])
        clear_predicates.setdefault(triple[1], []).append(holds is not None)
        subject, target = first.get(triple[0]), first.get(triple[2])
        if holds and subject is not None and target is not None:
            again = subject == target and min(numbers.get(triple[0], 1), MOST_SEEN) > 1
            triples.append(Triple(subject=subject, predicate=triple[1], object=target + again))
    tells = Tells(
        classes=frozenset(name for name, presence_state in present.items() if presence_state is not None),
        predicates=frozenset(name for name, every in clear_predicates.items() if all(every)),
        attributes=frozenset(name for name, every in clear_attributes.items() if all(every)),
        counts=counts,
    )
    return Scene(entities=tuple(entities), triples=tuple(triples), tells=tells)


def _numbers(
    questions: PoolQuestions, present: dict[str, bool | None], answers: Mapping[object, Answer]
) -> tuple[dict[str, int], bool]:
    """Return the number of objects of each class, and whether all requested numbers are known.

    A "0" for a present class is a contradiction: the class becomes unclear.
    """
    numbers: dict[str, int] = {}
    all_known = True
    for name in sorted(questions.counted):
        if present[name] is not True:
            all_known &= present[name] is not None
            continue
        number = said_number(answers[(name,)])
        if number == 0:
            present[name] = None
        if number:
            numbers[name] = number
        else:
            all_known = False
    return numbers, all_known


def _attributes(
    questions: PoolQuestions,
    name: str,
    is_present: bool | None,
    answers: Mapping[object, Answer],
    clear: dict[str, list[bool]],
) -> tuple[str, ...]:
    """Return the attributes of a present class; add to ``clear`` whether each question was answered clearly."""
    has: set[str] = set()
    colours = said_colours(answers[name, "colour"]) if is_present and (name, "colour") in answers else None
    for class_name, attribute in questions.attributes:
        if class_name != name:
            continue
        colour = colour_of(attribute)
        holds: bool | None
        if is_present is not True:
            holds = is_present  # void if the class is absent, unknown if its presence is unknown
        elif colour is None:
            holds = said_yes(answers[name, attribute])
        else:
            holds = None if colours is None else colour in colours
        clear.setdefault(attribute, []).append(holds is not None)
        if holds:
            has.add(attribute)
    if colours:
        asked_colours = {colour_of(attribute) for class_name, attribute in questions.attributes if class_name == name}
        for other in colours - asked_colours:
            has.add(other)
            clear.setdefault(other, []).append(True)
    return tuple(sorted(has))
