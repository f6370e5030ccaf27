"""Rehearsal of a transform on a pattern of dots, before a suite runs: are pixels where the library puts masks?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from medtest.core.cases import Effect
from medtest.core.errors import BadOutput, NotApplicable
from medtest.core.oracles.dots import dot_pattern, dot_shift
from medtest.core.oracles.moves import moved_mask, moved_points
from medtest.relations.perturb.library import Companions, Moves
from medtest.relations.perturb.movement import coordinates, effect_of
from medtest.relations.perturb.transform import Transform

SIDE = 192
"""Rows and columns of the pattern."""
DRAWS = 3
"""Draws of a level."""
_DICE = 0.97
"""Least agreement of a moved disc with the library's own mask path."""
_POINTS = 1.5
"""Largest median distance in pixels between moved points and the library's own path of points."""


def rehearse(transform: Transform, stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a transform in a few draws, one sentence for each kind.

    Args:
        transform: The transform.
        stated: Arguments without mistakes.
    """
    pattern = dot_pattern(SIDE, SIDE)
    mask = np.hypot(*(np.mgrid[0:SIDE, 0:SIDE] - 90.0)) < 40.0
    points = np.stack(np.meshgrid([60.0, 90.0, 120.0], [60.0, 90.0, 120.0]), axis=-1).reshape(-1, 2)
    kinds: set[str] = set()
    skipped: list[str] = []
    for seed in range(DRAWS):
        try:
            companions = Companions()
            if transform.moves is Moves.WITH_MASKS:
                companions = Companions(grid=coordinates(SIDE, SIDE), mask=mask, points=points)
            changed, moved = transform.change(stated, seed, pattern, companions)
            again, _ = transform.change(stated, seed, pattern, Companions())
            effect = Effect() if moved.grid is None else effect_of(moved.grid)
        except NotApplicable as error:
            skipped.append(str(error))  # SKIP in a run, too
            wrong = []
        except BadOutput as error:
            wrong = [f"it {error}"]
        except Exception as error:  # noqa: BLE001 - of any library
            wrong = [f"it fails on a picture: {' '.join(str(error).split()) or type(error).__name__}"]
        else:
            wrong = [] if np.array_equal(changed, again) else ["its random numbers cannot be seeded"]
            wrong += _disagreements(transform, pattern, changed, effect, companions, moved)
        for sentence in wrong:
            kind = sentence.partition(":")[0]
            if kind not in kinds:
                kinds.add(kind)
                yield sentence
    if len(skipped) == DRAWS:
        yield f"it suits no picture in {DRAWS} of {DRAWS} draws: {skipped[0]}"


def _disagreements(
    transform: Transform, pattern: Any, changed: Any, effect: Effect, companions: Companions, moved: Companions
) -> Iterator[str]:
    if transform.moves is Moves.WITHOUT_MASKS:
        return
    shift = dot_shift(pattern, changed, effect)
    if shift.mirrored:
        yield "it mirrors the picture, which its library does not do to masks"
    elif shift.differs:
        yield f"it moves pixels, and its library does not move masks alike: {shift.distance or 0:.1f} px (median)"
    if companions.mask is not None and moved.mask is not None and effect.moves:
        expected = moved_mask(companions.mask, effect)
        total = int(expected.sum()) + int(moved.mask.sum())
        agreement = 2.0 * int((expected & moved.mask).sum()) / max(total, 1)
        if total > 400 and agreement < _DICE:
            yield f"its masks move otherwise than its coordinates: Dice {agreement:.2f}"
    if companions.points is not None and moved.points is not None and len(moved.points) == len(companions.points):
        distance = np.hypot(*(moved.points - moved_points(companions.points, effect)).T)
        if float(np.median(distance)) > _POINTS:
            yield f"its points move otherwise than its masks: {float(np.median(distance)):.1f} px (median)"
