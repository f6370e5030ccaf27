"""What the other attacks of a suite made of an image, for a relation that keeps the worst of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from medtest.core.cases import Address, Image
from medtest.relations.base import Relation
from medtest.relations.gathering import feeding, scale_of

if TYPE_CHECKING:
    from medtest.runner.units.parts import MadeCase


def beside(
    relations: Mapping[str, Relation], cases: Sequence[Address], index: int, make: Callable[[int], MadeCase]
) -> list[tuple[str, Image]]:
    """Return what other attacks of no larger scale, and noise, made of the image of a case, each with its relation.

    Args:
        relations: The suite's relations by id.
        cases: The cases of the image's unit.
        index: The place of the case that is to be made among them.
        make: Makes the case at a place.
    """
    case = cases[index]
    names = feeding(relations, case.relation)
    most = scale_of(relations[case.relation], case.severity)
    images: list[tuple[str, Image]] = []
    for place, other in enumerate(cases if most is not None else ()):
        if other.relation in names and other.item == case.item:
            scale = scale_of(relations[other.relation], other.severity)
            follow = make(place).follow if scale is not None and most is not None and scale <= most else None
            if follow is not None:
                images.append((other.relation, follow.image))
    return images
