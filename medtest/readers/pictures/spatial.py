"""Where one box lies relative to another: thresholds are relative to the boxes, so that no size of picture matters.

What boxes cannot tell they do not say: who rides, holds or wears what is no matter of boxes.

==================  =====================================================================================
predicate           of one box to another (sizes are those of the boxes, in pixels)
==================  =====================================================================================
``left of``         GenEval's rule, :func:`relative_positions`
``right of``        its reverse
``on``              its lower edge is at the other's upper edge to within :data:`CONTACT` of the summed heights,
                    its centre is above the other's, and half of the narrower one's width is shared
``above``           GenEval's rule, or ``on``
``under``           the reverse of ``above`` ("below" is the same predicate)
``in``              nine tenths of it lie inside the other, of which it fills at most :data:`FILLS`, and it does
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
"""Centres nearer than this share of both boxes' summed sizes, along an axis, are level on it."""
DIRECTION: Final = 0.5
"""What is left of the offset on an axis is above this share of the whole offset where a position is said of it."""
CONTACT: Final = 0.05
"""Edges nearer than this share of the summed heights are one."""
SHARED: Final = 0.5
"""Share of the narrower one's width above the other from which on a thing may stand on it."""
INSIDE: Final = 0.9
FILLS: Final = 0.8
OVERLAP: Final = 0.1
NEAR: Final = 0.5
MOST_RELATED: Final = 24
"""Entities of the highest scores of which relations are said: their number grows with the square."""
PREDICATES: Final = ("above", "behind", "in", "in front of", "left of", "near", "on", "right of", "under")
"""All that boxes tell."""
REVERSE: Final = {"left of": "right of", "above": "under", "in front of": "behind", "near": "near"}
"""Predicates that hold of a pair exactly where another one holds of the pair turned round."""
_NOTHING: Final = 1e-6


def relative_positions(one: Box, two: Box, aspect: float = 1.0) -> frozenset[str]:
    """Return how a box lies to another: of ``left of``, ``right of``, ``above``, ``below`` none, one or two.

    GenEval's rule (D. Ghosh et al., NeurIPS 2023; ``relative_position`` of its evaluation/evaluate_images.py, commit
    af4902f): the offset of the centres, on each axis less :data:`OFFSET` of the summed sizes, divided by its length
    before, is above :data:`DIRECTION`.

    Args:
        one: The box of which it is said.
        two: The box that it lies so to.
        aspect: Width of the picture divided by its height: boxes are fractions, directions are those of pixels.
    """
    first, second = (np.array(box, np.float64).reshape(2, 2) * (aspect, 1.0) for box in (one, two))
    offset = first.mean(0) - second.mean(0)
    sizes = np.abs(first[1] - first[0]) + np.abs(second[1] - second[0])
    rest = np.maximum(np.abs(offset) - OFFSET * sizes, 0.0) * np.sign(offset)
    if (np.abs(rest) < _NOTHING).all():
        return frozenset()
    x, y = rest / np.linalg.norm(offset)
    said = {"left of": x < -DIRECTION, "right of": x > DIRECTION, "above": y < -DIRECTION, "below": y > DIRECTION}
    return frozenset(name for name, holds in said.items() if holds)


def relations(one: Box, two: Box, aspect: float = 1.0) -> frozenset[str]:
    """Return all of :data:`PREDICATES` that hold of a box to another, as the table of this module says.

    Args:
        one: The box of which they are said, as fractions of the picture.
        two: The box to which they hold.
        aspect: Width of the picture divided by its height.
    """
    first, second = _stretched(one, aspect), _stretched(two, aspect)
    positions = relative_positions(first, second)
    said: set[str] = {name for name in ("left of", "right of") if name in positions}
    on, bears = _stands_on(first, second), _stands_on(second, first)
    if "above" in positions or on:
        said.add("above")
    if "below" in positions or bears:
        said.add("under")
    if on:
        said.add("on")
    inside, holds = _lies_in(first, second), _lies_in(second, first)
    if inside:
        said.add("in")
    if _is_near(first, second):
        said.add("near")
    if not (on or bears or inside or holds) and _shared(first, second) >= OVERLAP * min(_area(first), _area(second)):
        lower = first[3] - second[3]
        least = CONTACT * (_height(first) + _height(second))
        said |= {"in front of"} if lower > least else {"behind"} if -lower > least else set()
    return frozenset(said)


def triples_of(entities: Sequence[SeenEntity], aspect: float = 1.0) -> tuple[Triple, ...]:
    """Return every relation that boxes tell between entities.

    Both directions of a pair are said (``left of`` and ``right of``), and all predicates that hold, for a caption may
    name any of them. Entities without a box have no relations; of more than :data:`MOST_RELATED` with one those of the
    highest scores have some.

    Args:
        entities: What was seen.
        aspect: Width of the picture divided by its height.

    Returns:
        Triples by index, ordered by subject, object and predicate.
    """
    placed = [(index, one.box, one.score) for index, one in enumerate(entities) if one.box is not None]
    kept = sorted(sorted(placed, key=lambda one: -one[2])[:MOST_RELATED])
    return tuple(_triples([(index, box) for index, box, _ in kept], aspect))


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


def _shared(one: Box, two: Box) -> float:
    """Return the area that two boxes share."""
    width = min(one[2], two[2]) - max(one[0], two[0])
    height = min(one[3], two[3]) - max(one[1], two[1])
    return max(width, 0.0) * max(height, 0.0)


def _stands_on(one: Box, two: Box) -> bool:
    if abs(one[3] - two[1]) > CONTACT * (_height(one) + _height(two)) or one[1] + one[3] >= two[1] + two[3]:
        return False
    return min(one[2], two[2]) - max(one[0], two[0]) >= SHARED * min(_width(one), _width(two))


def _lies_in(one: Box, two: Box) -> bool:
    if _area(one) <= 0.0 or _area(one) > FILLS * _area(two) or _shared(one, two) < INSIDE * _area(one):
        return False
    return two[3] - one[3] > CONTACT * (_height(one) + _height(two))


def _is_near(one: Box, two: Box) -> bool:
    across = max(one[0] - two[2], two[0] - one[2], 0.0)
    down = max(one[1] - two[3], two[1] - one[3], 0.0)
    return math.hypot(across, down) <= NEAR * (math.sqrt(_area(one)) + math.sqrt(_area(two))) / 2.0
