"""Relations that would alter the diagnosis itself: refused in a suite of labels, unless the suite means it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from medtest.core.cases import Classes
from medtest.core.errors import Mistake
from medtest.relations.base import Relation
from medtest.suite.model import PartPlan, Suite

_WORD = re.compile(r"[a-z]+")


def altered(relation: type[Relation] | Relation, classes: Classes) -> tuple[str, ...]:
    """Return the classes whose names hold a word of a diagnosis that a relation alters."""
    return tuple(name for name in classes.names if relation.alters & set(_WORD.findall(name.lower())))


def reason(name: str, relation: type[Relation] | Relation, found: Sequence[str]) -> tuple[str, str, str]:
    """Return what a message says of a relation that alters these classes: found, allowed, fix."""
    names = ", ".join(found)
    return (
        f"a relation that alters the diagnosis {names}",
        f"relations that leave {names} as it is",
        f"{relation.alters_why}: take it out, or say may_alter: [{name}] where that is meant",
    )


def altering(
    plans: Sequence[PartPlan], allowed: Sequence[str], classes: Classes
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield id and message of the relations of a suite that alter one of these classes and are not allowed to."""
    for plan in plans:
        if plan.id in allowed:
            continue
        relation = plan.info.load()
        found = altered(relation, classes)
        if found:
            yield plan.id, reason(plan.id, relation, found)


def altering_mistakes(suite: Suite, classes: Mapping[str, Classes | None]) -> list[Mistake]:
    """Return the relations that alter a class of a data set, where the classes are known once seeds are listed.

    Args:
        suite: The suite.
        classes: Classes by data set; None where the seeds say nothing of them.
    """
    told: dict[str, Mistake] = {}
    for known in classes.values():
        if known is None:
            continue
        for name, (found, allowed, fix) in altering(suite.relations, suite.may_alter, known):
            told.setdefault(
                name, Mistake(where="suite", key=f"relations.{name}", found=found, allowed=allowed, fix=fix)
            )
    return list(told.values())
