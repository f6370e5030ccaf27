"""Capsule frames with lesions that are asked for, for products that draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from medtest.phantoms.capsule.generator import SIZE, render
from medtest.phantoms.capsule.lesions import RADII, Lesion, place_lesions
from medtest.phantoms.drawing import portable_opencv
from medtest.phantoms.fields import Field
from medtest.phantoms.labelled import LabelledPhantom

LESIONS = {"erosion": "erosions", **{kind: kind for kind in RADII if kind != "erosions"}}
"""Kinds of lesions by the names of findings."""
_NAMES = {kind: name for name, kind in LESIONS.items()}
MOST_OF_ONE = 5


def findings_of(facts: Mapping[str, Any]) -> list[str]:
    """Return the finding of each lesion of a phantom.

    Args:
        facts: Facts of a phantom (:func:`medtest.phantoms.capsule.make`).
    """
    return [_NAMES[lesion["kind"]] for lesion in facts["lesions"]]


def draw_capsule(
    part: Callable[[str], np.random.Generator], counts: Mapping[str, int], *, size: int = SIZE
) -> LabelledPhantom:
    """Draw one frame. It is a drawing for tests and no clinical evidence.

    Args:
        part: Returns the random stream of a part of the picture.
        counts: Number of lesions by finding, one of :data:`LESIONS`, at most :data:`MOST_OF_ONE` of each.
        size: Pixels a side, 128 to 1024.
    """

    def plan(light: Field) -> list[Lesion]:
        lesions: list[Lesion] = []
        for name, count in counts.items():
            rng = part(f"plan {name}")
            contrast = float(rng.uniform(0.7, 1.0))
            lesions += place_lesions(rng, LESIONS[name], min(count, MOST_OF_ONE), contrast, light, len(lesions))
        return lesions

    with portable_opencv():
        return render(part, size, plan)
