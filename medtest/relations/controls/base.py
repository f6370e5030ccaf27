"""Base class of controls, and what they share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import CONTROLS, REMOVE, Effect, Mask, Params, Peers, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.oracles.controls import EVIDENCE
from medtest.relations.base import Relation, RelationSettings
from medtest.relations.controls.erasing import LARGEST, too_large
from medtest.relations.levels import number


class ControlSettings(RelationSettings):
    """Settings of controls, which have one severity unless they say otherwise."""

    known_severities: ClassVar[tuple[int, ...]] = (1,)

    severities: list[int] = [1]


class ControlRelation(Relation):
    """Relation that removes the evidence for an answer, or as a sham as much of something else."""

    Settings: ClassVar[type[RelationSettings]] = ControlSettings
    group: ClassVar[str] = CONTROLS
    control: ClassVar[str] = EVIDENCE

    def named_classes(self) -> list[tuple[str, str]]:
        """Return the labels that may stay."""
        return [("no_finding", name) for name in getattr(self.settings, "no_finding", ())]


def removal(what: str, other: PreparedSeed | None = None, **data: Any) -> Effect:
    """Return the effect of a control.

    Args:
        what: What was removed, in the words of tables.
        other: The case that is shown instead, if any.
        data: Further details, JSON values.
    """
    return Effect(kind=REMOVE, data={"removed": what, **data}, other=other)


def lesion_of(seed: PreparedSeed) -> Mask:
    """Return a seed's lesion, bool H×W.

    Raises:
        NotApplicable: There is none, its place is unknown, or it is too large to be replaced.
    """
    if seed.mask is None:
        raise NotApplicable("the place of the lesion is unknown: the case has no mask")
    if not seed.mask.any():
        raise NotApplicable("there is no lesion")
    if too_large(seed.mask, seed.frame):
        share = 100.0 * int(np.count_nonzero(seed.mask)) / max(1, int(np.count_nonzero(~seed.frame)))
        raise NotApplicable(f"the lesion covers {share:.0f} % of the field, more than {100 * LARGEST:.0f} %")
    return seed.mask


def strangers(seed: PreparedSeed, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the numbers of the data set's cases of other patients, in random order.

    Raises:
        NotApplicable: There are none.
    """
    numbers = [] if seed.peers is None else seed.peers.strangers(seed.ref)
    if not numbers:
        raise NotApplicable("the data set has no case of another patient")
    return rng.permutation(np.array(numbers, np.int64))


def other_case(seed: PreparedSeed, params: Params) -> PreparedSeed:
    """Return the case named by a control's parameters.

    Raises:
        NotApplicable: The data set is unknown.
    """
    case: PreparedSeed = peers_of(seed).case(int(number(params, "case")))
    return case


def peers_of(seed: PreparedSeed) -> Peers:
    """Return a seed's data set.

    Raises:
        NotApplicable: It is unknown.
    """
    if seed.peers is None:
        raise NotApplicable("the other cases of the data set are unknown")
    return seed.peers


def turn(rng: np.random.Generator) -> float:
    """Draw the direction in which tissue is looked for first, in turns."""
    return round(float(rng.random()), 4)
