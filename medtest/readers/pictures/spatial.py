"""Position of one box relative to another; thresholds are relative to the boxes, so that picture size has no effect.

Only relations that boxes can show are covered; riding, holding or wearing cannot be derived from boxes.

==================  =====================================================================================
predicate           of one box to another (sizes are those of the boxes, in pixels)
==================  =====================================================================================
``left of``         GenEval's rule, :func:`relative_positions`
``right of``        its reverse
``on``              its lower edge is at the other's upper edge to within :data:`CONTACT` of the summed heights,
                    its centre is above the other's, and half of the narrower one's width is shared
``above``           GenEval's rule, or ``on``
``under``           the reverse of ``above`` ("below" is the same predicate)
``in``              nine tenths of it are inside the other, of which it fills at most :data:`FILLS`, and it does
                    not reach down to the other's lower edge
``in front of``     they overlap by :data:`OVERLAP` of the smaller one, neither is in or on the other, and its
                    lower edge is further down: what stands nearer on a floor stands lower in a picture
``behind``          the reverse of ``in front of``
``near``            the gap between them is at most :data:`NEAR` of the mean of their sizes (roots of their areas);
                    what touches or overlaps is near
==================  =====================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from medtest.core.scenes import Box, SeenEntity, Triple

OFFSET: Final = 0.1
"""Along an axis, centres closer than this share of the summed sizes of both boxes count as level."""
DIRECTION: Final = 0.5
"""Minimum share of the whole offset that the reduced offset on an axis needs for a position to be reported."""
CONTACT: Final = 0.05
"""Edges closer than this share of the summed heights count as touching."""
SHARED: Final = 0.5
"""Minimum share of the narrower box's width that must be above the other for an object to stand on it."""
INSIDE: Final = 0.9
FILLS: Final = 0.8
OVERLAP: Final = 0.1
NEAR: Final = 0.5
MOST_RELATED: Final = 24
"""Maximum number of entities for relations, by score, because the number of pairs grows with the square."""
PREDICATES: Final = ("above", "behind", "in", "in front of", "left of", "near", "on", "right of", "under")
"""All predicates that follow from boxes."""
_NOTHING: Final = 1e-6


def relative_positions(subject: Box, reference: Box, aspect: float = 1.0) -> frozenset[str]:
    """Return the position of a box relative to another: up to two of ``left of``, ``right of``, ``above``, ``below``.

    GenEval's rule (D. Ghosh et al., NeurIPS 2023; ``relative_position`` in its evaluation/evaluate_images.py, commit
    af4902f): the offset of the centres is reduced on each axis by :data:`OFFSET` of the summed sizes and divided by its
    original length; a position is reported if the result exceeds :data:`DIRECTION`.

    Args:
        subject: The box whose position is returned.
        reference: The reference box.
        aspect: Width of the picture divided by its height: boxes are fractions, but directions refer to pixels.
    """
    first, second = (np.array(box, np.float64).reshape(2, 2) * (aspect, 1.0) for box in (subject, reference))
    offset = first.mean(0) - second.mean(0)
    sizes = np.abs(first[1] - first[0]) + np.abs(second[1] - second[0])
    rest = np.maximum(np.abs(offset) - OFFSET * sizes, 0.0) * np.sign(offset)
    if (np.abs(rest) < _NOTHING).all():
        return frozenset()
    x, y = rest / np.linalg.norm(offset)
    checks = {"left of": x < -DIRECTION, "right of": x > DIRECTION, "above": y < -DIRECTION, "below": y > DIRECTION}
    return frozenset(name for name, holds in checks.items() if holds)


def relations(subject: Box, other: Box, aspect: float = 1.0) -> frozenset[str]:
    """Return all of :data:`PREDICATES` that hold between a box and another, as listed in the table of this module.

    Args:
        subject: The subject, as fractions of the picture.
        other: The object.
        aspect: Width of the picture divided by its height.
    """
    first, second = _stretched(subject, aspect), _stretched(other, aspect)
    positions = relative_positions(first, second)
    names: set[str] = {name for name in ("left of", "right of") if name in positions}
    on, bears = _is_on(first, second), _is_on(second, first)
    if "above" in positions or on:
        names.add("above")
    if "below" in positions or bears:
        names.add("under")
    if on:
        names.add("on")
    inside, holds = _is_inside(first, second), _is_inside(second, first)
    if inside:
        names.add("in")
    if _is_near(first, second):
        names.add("near")
    if not (on or bears or inside or holds) and _shared(first, second) >= OVERLAP * min(_area(first), _area(second)):
        lower = first[3] - second[3]
        least = CONTACT * (_height(first) + _height(second))
        names |= {"in front of"} if lower > least else {"behind"} if -lower > least else set()
    return frozenset(names)


def triples_of(entities: Sequence[SeenEntity], aspect: float = 1.0) -> tuple[Triple, ...]:
    """Return every relation between entities that follows from their boxes.

    Both directions of a pair are included (``left of`` and ``right of``), and all predicates that hold, because a
    caption may use any of them. Entities without a box have no relations; if more than :data:`MOST_RELATED` have one,
    only those with the highest scores are used.

    Args:
        entities: The detected entities.
        aspect: Width of the picture divided by its height.

    Returns:
        Triples by index, ordered by subject, object and predicate.
    """
    placed = [(index, entity.box, entity.score) for index, entity in enumerate(entities) if entity.box is not None]
    selected = sorted(sorted(placed, key=lambda entry: -entry[2])[:MOST_RELATED])
    return tuple(_triples([(index, box) for index, box, _ in selected], aspect))


def _triples(placed: Sequence[tuple[int, Box]], aspect: float) -> Iterator[Triple]:
    for index, box in placed:
        for other, its in placed:
            if other != index:
                for name in sorted(relations(box, its, aspect)):
                    yield Triple(subject=index, predicate=name, object=other)


def _stretched(box: Box, aspect: float) -> Box:
    return box[0] * aspect, box[1], box[2] * aspect, box[3]


def _width(box: Box) -> float:
    return box[2] - box[0]


def _height(box: Box) -> float:
    return box[3] - box[1]


def _area(box: Box) -> float:
    return max(_width(box), 0.0) * max(_height(box), 0.0)


def _shared(first: Box, second: Box) -> float:
    """Return the area of the intersection of two boxes."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(width, 0.0) * max(height, 0.0)


def _is_on(first: Box, second: Box) -> bool:
    if (
        abs(first[3] - second[1]) > CONTACT * (_height(first) + _height(second))
        or first[1] + first[3] >= second[1] + second[3]
    ):
        return False
    return min(first[2], second[2]) - max(first[0], second[0]) >= SHARED * min(_width(first), _width(second))


def _is_inside(first: Box, second: Box) -> bool:
    if _area(first) <= 0.0 or _area(first) > FILLS * _area(second) or _shared(first, second) < INSIDE * _area(first):
        return False
    return second[3] - first[3] > CONTACT * (_height(first) + _height(second))


def _is_near(first: Box, second: Box) -> bool:
    across = max(first[0] - second[2], second[0] - first[2], 0.0)
    down = max(first[1] - second[3], second[1] - first[3], 0.0)
    return math.hypot(across, down) <= NEAR * (math.sqrt(_area(first)) + math.sqrt(_area(second))) / 2.0
