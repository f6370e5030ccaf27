"""Capsule frames with any of five lesions, one kind or several in a frame, for networks that read findings.

Drawings like those of products that draw what is ordered (:mod:`medtest.phantoms.capsule.ordered`), without clinical
evidence.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from medtest.phantoms.capsule.generator import SIZE
from medtest.phantoms.capsule.ordered import draw_capsule, findings_of
from medtest.phantoms.classes import CAPSULE_FINDINGS
from medtest.phantoms.labelled import LabelledPhantom, check_request, stream

REVISION = 1
"""Increased whenever the same random numbers give other pixels."""
WHAT = "capsule findings"
KINDS_IN_A_FRAME = (0.15, 0.5, 0.25, 0.1)
"""Probabilities of no lesion, and of lesions of one, two and three kinds."""
MOST = {"bleeding": 1, "angiectasia": 3, "ulcer": 3, "erosion": 5, "erythema": 1}
"""Largest number of each lesion."""


def make(index: int, suite_seed: int, *, size: int = SIZE) -> LabelledPhantom:
    """Draw one frame, with the names of the findings in it as labels.

    Args:
        index: Index from 0.
        suite_seed: The suite's seed.
        size: Pixels a side, 128 to 1024.

    Raises:
        ValueError: The index or size is out of range.
    """
    check_request(index, size)
    part = partial(stream, suite_seed, WHAT, index)
    rng = part("findings")
    kinds = int(rng.choice(len(KINDS_IN_A_FRAME), p=KINDS_IN_A_FRAME))
    names = [str(name) for name in rng.choice(CAPSULE_FINDINGS.names, size=kinds, replace=False)]
    counts = {name: int(rng.integers(1, MOST[name] + 1)) for name in names}
    frame = draw_capsule(part, counts, size=size)
    drawn = findings_of(frame.facts)
    return replace(frame, labels=tuple(name for name in CAPSULE_FINDINGS.names if name in drawn))
