"""Images made by the other attacks of a suite, for a relation that keeps the worst of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from medtest.core.cases import Address, Image
from medtest.relations.adversarial.gathering import feeding, scale_of
from medtest.relations.base import Relation

if TYPE_CHECKING:
    from medtest.runner.units.made_case import MadeCase


def beside(
    relations: Mapping[str, Relation], cases: Sequence[Address], index: int, make: Callable[[int], MadeCase]
) -> list[tuple[str, Image]]:
    """Return the images that noise and other attacks of no larger scale made from a case's image, with relations.

    Args:
        relations: The suite's relations by id.
        cases: The cases of the image's unit.
        index: Index of the case to be made.
        make: Makes the case at an index.
    """
    case = cases[index]
    names = feeding(relations, case.relation)
    most = scale_of(relations[case.relation], case.severity)
    images: list[tuple[str, Image]] = []
    for place, candidate in enumerate(cases if most is not None else ()):
        if candidate.relation in names and candidate.item == case.item:
            scale = scale_of(relations[candidate.relation], candidate.severity)
            follow = make(place).follow if scale is not None and most is not None and scale <= most else None
            if follow is not None:
                images.append((candidate.relation, follow.image))
    return images
