"""Phantoms of classification suites, and their random streams.

The four generators (:mod:`~medtest.phantoms.capsule`, :mod:`~medtest.phantoms.skin`, :mod:`~medtest.phantoms.fundus`,
:mod:`~medtest.phantoms.chest`) exercise a test suite without clinical images. They are drawings: a system's scores on
them say nothing about its performance on patients and are not clinical evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from medtest.core.cases import Image, Json, Mask
from medtest.core.portable import key_generator

MIN_SIZE, MAX_SIZE = 128, 1024
"""Allowed pixels a side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledPhantom:
    """Drawn image with known labels.

    Attributes:
        image: uint8 size×size×3 RGB.
        labels: Names of the classes that hold, in class order: exactly one, or any number of chest findings.
        mask: bool size×size, True on every lesion and never outside the field of view; None for kinds without mask.
        facts: Description as JSON values. The labels follow from it by the definition in the kind's ``judge``,
            and it is the same for every size, except for shares of area.
    """

    image: Image
    labels: tuple[str, ...]
    mask: Mask | None
    facts: dict[str, Json] = field(default_factory=dict)


def stream(suite_seed: int, kind: str, index: int, part: str = "") -> np.random.Generator:
    """Return the generator of one part of one phantom, keyed by ``[suite_seed, "labelled", kind, index, part]``.

    Each part has its own stream, so a phantom does not depend on the number of phantoms, and its parts do not depend
    on the picture's size.
    """
    return key_generator([int(suite_seed), "labelled", kind, int(index), part])


def balanced(suite_seed: int, kind: str, index: int, names: Sequence[str]) -> str:
    """Return the class of phantom ``index``: each run of ``len(names)`` indices contains every class once, shuffled."""
    block, place = divmod(index, len(names))
    order = stream(suite_seed, kind, block, "classes").permutation(len(names))
    return names[int(order[place])]


def check_request(index: int, size: int) -> None:
    """Check index and size of a phantom.

    Raises:
        ValueError: ``index`` below 0, or ``size`` outside 128 to 1024.
    """
    if index < 0:
        raise ValueError(f"index {index}; phantoms count from 0")
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(f"size {size} is outside {MIN_SIZE}–{MAX_SIZE} pixels a side")
