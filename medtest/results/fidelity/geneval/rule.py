"""GenEval's rule for whether a picture shows its prompt (D. Ghosh et al., GenEval, NeurIPS 2023).

After ``evaluate`` and ``relative_position`` of its evaluation/evaluate_images.py (github.com/djghosh13/geneval, commit
af4902f, MIT licence), reimplemented for pools and scenes. Each object in the prompt must occur at least as often as the
prompt says, under the tag ``counting`` exactly as often; colours and positions are judged on the objects with the
highest reader scores. GenEval's reader is Mask2Former, with CLIP for colours; figures depend on the reader.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from medtest.core.scenes import Entity, Pool, Scene, SeenEntity
from medtest.readers.pictures.spatial import relative_positions

TAGS: Final = ("single_object", "two_object", "counting", "colors", "position", "color_attr")
EXACT: Final = "counting"
POSITIONS: Final = frozenset({"left of", "right of", "above", "below"})
COLOURS: Final = frozenset(("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white"))
"""Colours that GenEval's reader tells apart."""
_SAME: Final = {"under": "below", "beneath": "below", "over": "above"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenEvalRule:
    """Parameters of GenEval's rule.

    Attributes:
        score: Smallest reader score of an object that counts. GenEval uses 0.3 for its detector; by default the reader
            decides.
        counting_score: The same under the tag ``counting``: 0.9 in GenEval.
        most: Largest number of objects of one class that count.
    """

    score: float = 0.0
    counting_score: float = 0.0
    most: int = 16


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """Result of the rule for one picture.

    Attributes:
        correct: None if the reader cannot judge the picture, or the rule does not cover the prompt.
        reasons: Why the picture is wrong, as GenEval's ``reason`` says it, or why it cannot be judged; empty if it is
            correct.
    """

    correct: bool | None
    reasons: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The first reason, "" without one."""
        return self.reasons[0] if self.reasons else ""


def shown(
    scene: Scene, pool: Pool, tag: str, *, rule: GenEvalRule = GenEvalRule(), aspect: float = 1.0
) -> ShownPicture:
    """Judge one picture.

    Args:
        scene: Scene that the reader detected.
        pool: Content of the prompt.
        tag: Kind of the prompt, one of :data:`TAGS`.
        rule: Parameters of the rule.
        aspect: Width of the picture divided by its height: boxes are fractions, positions are judged in pixels.
    """
    untold = _untold(scene, pool, tag)
    if untold:
        return ShownPicture(None, (untold,))
    least = rule.counting_score if tag == EXACT else rule.score
    detected = [_found(scene, entity.name, least, rule.most) for entity in pool.entities]
    groups: list[list[SeenEntity] | None] = []
    reasons = []
    for entity, objects in zip(pool.entities, detected, strict=True):
        missing = _missing(entity, objects)
        reasons += [missing] if missing else []
        groups.append(None if missing else objects[: _count(entity)])
    for triple in pool.triples:
        subjects, targets = groups[triple.subject], groups[triple.object]
        predicate = _SAME.get(triple.predicate, triple.predicate)
        subject = pool.entities[triple.subject].name
        if subjects is None:
            continue  # its absence is reported above
        if targets is None:
            reasons.append(f"no target for {subject} to be {predicate}")
            continue
        pairs = ((first, second) for first in subjects for second in targets)
        places = (_places(first, second, aspect) for first, second in pairs)
        other = next((place for place in places if predicate not in place), None)
        if other is not None:
            reasons.append(f"expected {subject} {predicate} target, found {' and '.join(sorted(other))} target")
    for entity, objects in zip(pool.entities, detected, strict=True):
        if tag == EXACT and len(objects) > _count(entity):
            reasons.append(f"expected {entity.name}<{_count(entity) + 1}, found {len(objects)}")
    return ShownPicture(not reasons, tuple(reasons))


def _untold(scene: Scene, pool: Pool, tag: str) -> str:
    """Return the part of a prompt that neither rule nor reader can judge, or ""."""
    tells = scene.tells
    for entity in pool.entities:
        if not tells.names(entity.name):
            return f"the reader cannot tell {entity.name}"
        for attribute in entity.attributes:
            if not tells.describes(attribute):
                return f"the reader cannot tell {attribute}"
        if not tells.counts and (tag == EXACT or _count(entity) > 1):
            return "the reader cannot count"
    for triple in pool.triples:
        if _SAME.get(triple.predicate, triple.predicate) not in POSITIONS:
            return f"the rule does not cover {triple.predicate}"
        if any(entity.box is None for entity in scene.entities):
            return "the reader does not say where things are"
    return ""


def _count(entity: Entity) -> int:
    return 1 if entity.count is None else entity.count


def _found(scene: Scene, name: str, least: float, most: int) -> list[SeenEntity]:
    """Return the objects of a class, highest score first."""
    objects = [entity for entity in scene.entities if entity.name == name and entity.score >= least]
    return sorted(objects, key=lambda entity: -entity.score)[:most]


def _missing(entity: Entity, objects: list[SeenEntity]) -> str:
    """Return the reason why an entity is not drawn correctly, or ""."""
    count = _count(entity)
    if len(objects) < count:
        return f"expected {entity.name}>={count}, found {len(objects)}"
    for attribute in entity.attributes:
        numbers = Counter(word for candidate in objects[:count] for word in candidate.attributes)
        if numbers[attribute] < count:
            others = ", ".join(f"{number} {word}" for word, number in sorted(numbers.items()))
            return f"expected {attribute} {entity.name}>={count}, found {numbers[attribute]} {attribute}; and {others}"
    return ""


def _places(subject: SeenEntity, target: SeenEntity, aspect: float) -> frozenset[str]:
    if subject.box is None or target.box is None:
        return frozenset()
    return relative_positions(subject.box, target.box, aspect)
