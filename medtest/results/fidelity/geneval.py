"""GenEval's rule: does a picture show what its prompt says (D. Ghosh et al., GenEval, NeurIPS 2023).

After ``evaluate`` and ``relative_position`` of its evaluation/evaluate_images.py (github.com/djghosh13/geneval, commit
af4902f, MIT licence), written anew for pools and scenes. Each thing that the prompt names is there at least as often as
it says, under the tag ``counting`` exactly so often; colours and places are judged on the things that the reader is
surest of. Its own reader is Mask2Former with CLIP for colours: with another reader the figures are that reader's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from medtest.core.scenes import Entity, Pool, Scene, SeenEntity
from medtest.readers.pictures.spatial import relative_positions

TAGS: Final = ("single_object", "two_object", "counting", "colors", "position", "color_attr")
EXACT: Final = "counting"
POSITIONS: Final = frozenset({"left of", "right of", "above", "below"})
_SAME: Final = {"under": "below", "beneath": "below", "over": "above"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenEvalRule:
    """What GenEval leaves open.

    Attributes:
        score: Things that the reader is less sure of do not count. GenEval takes 0.3 for its detector; by default the
            reader itself decides what it saw.
        counting_score: The same under the tag ``counting``: 0.9 in GenEval.
        most: Things of one class that count at most.
    """

    score: float = 0.0
    counting_score: float = 0.0
    most: int = 16


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """Whether a picture shows what its prompt says.

    Attributes:
        correct: None where the reader cannot tell, or where the rule does not speak of what the prompt says.
        why: What is missing or cannot be told, the first thing found; "" where all is there.
    """

    correct: bool | None
    why: str = ""


def shown(
    scene: Scene, pool: Pool, tag: str, *, rule: GenEvalRule = GenEvalRule(), aspect: float = 1.0
) -> ShownPicture:
    """Judge one picture.

    Args:
        scene: What the reader saw.
        pool: What the prompt says.
        tag: The prompt's kind, one of :data:`TAGS`.
        rule: What GenEval leaves open.
        aspect: Width of the picture divided by its height: boxes are fractions, places are judged in pixels.
    """
    untold = _untold(scene, pool, tag)
    if untold:
        return ShownPicture(None, untold)
    least = rule.counting_score if tag == EXACT else rule.score
    found = [_found(scene, entity.name, least, rule.most) for entity in pool.entities]
    groups: list[list[SeenEntity] | None] = []
    wrong = []
    for entity, things in zip(pool.entities, found, strict=True):
        why = _wrong(entity, things, exact=tag == EXACT)
        wrong += [why] if why else []
        groups.append(None if why and not why.startswith("more") else things[: _count(entity)])
    for triple in pool.triples:
        ends = groups[triple.subject], groups[triple.object]
        predicate = _SAME.get(triple.predicate, triple.predicate)
        if ends[0] is None or ends[1] is None:
            continue  # what is not there is told of above
        pairs = ((one, two) for one in ends[0] for two in ends[1])
        if not all(_stands(one, predicate, two, aspect) for one, two in pairs):
            subject, target = pool.entities[triple.subject].name, pool.entities[triple.object].name
            wrong.append(f"{subject} not {predicate} {target}")
    return ShownPicture(not wrong, wrong[0] if wrong else "")


def _untold(scene: Scene, pool: Pool, tag: str) -> str:
    """Return what of a prompt neither rule nor reader can judge, or ""."""
    tells = scene.tells
    for entity in pool.entities:
        if not tells.names(entity.name):
            return f"the reader cannot tell {entity.name}"
        for said in entity.attributes:
            if not tells.describes(said):
                return f"the reader cannot tell {said}"
        if not tells.counts and (tag == EXACT or _count(entity) > 1):
            return "the reader cannot count"
    for triple in pool.triples:
        if _SAME.get(triple.predicate, triple.predicate) not in POSITIONS:
            return f"the rule does not speak of {triple.predicate}"
        if any(one.box is None for one in scene.entities):
            return "the reader does not say where things are"
    return ""


def _count(entity: Entity) -> int:
    return 1 if entity.count is None else entity.count


def _found(scene: Scene, name: str, least: float, most: int) -> list[SeenEntity]:
    """Return the things of a class, those that the reader is surest of first."""
    things = [one for one in scene.entities if one.name == name and one.score >= least]
    return sorted(things, key=lambda one: -one.score)[:most]


def _wrong(entity: Entity, things: list[SeenEntity], *, exact: bool) -> str:
    """Return what is wrong with the things of one entity, or ""."""
    count = _count(entity)
    if len(things) < count:
        return f"{len(things)} of {count} {entity.name}"
    for said in entity.attributes:
        right = sum(said in one.attributes for one in things[:count])
        if right < count:
            return f"{right} of {count} {entity.name} {said}"
    return f"more than {count} {entity.name}" if exact and len(things) > count else ""


def _stands(one: SeenEntity, predicate: str, two: SeenEntity, aspect: float) -> bool:
    return one.box is not None and two.box is not None and predicate in relative_positions(one.box, two.box, aspect)
