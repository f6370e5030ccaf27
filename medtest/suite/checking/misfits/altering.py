"""Relations that alter the diagnosis itself, refused in a suite of labels unless the suite permits them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from medtest.core.cases import Classes
from medtest.core.errors import Mistake
from medtest.relations.base import Relation
from medtest.suite.model import PartPlan, Suite

_WORD = re.compile(r"[a-z]+")


def altered(relation: type[Relation] | Relation, classes: Classes) -> tuple[str, ...]:
    """Return the classes whose names contain a word of a diagnosis that a relation alters."""
    return tuple(name for name in classes.names if relation.alters & set(_WORD.findall(name.lower())))


def reason(name: str, relation: type[Relation] | Relation, classes: Sequence[str]) -> tuple[str, str, str]:
    """Return the message for a relation that alters these classes: found, allowed, fix."""
    names = ", ".join(classes)
    return (
        f"a relation that alters the diagnosis {names}",
        f"relations that preserve {names}",
        f"{relation.alters_why}: remove it, or set may_alter: [{name}] if this is intended",
    )


def altering(
    plans: Sequence[PartPlan], allowed: Sequence[str], classes: Classes
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield id and message of the relations that alter one of these classes without permission."""
    for plan in plans:
        if plan.id in allowed:
            continue
        relation = plan.info.load()
        names = altered(relation, classes)
        if names:
            yield plan.id, reason(plan.id, relation, names)


def altering_mistakes(suite: Suite, classes: Mapping[str, Classes | None]) -> list[Mistake]:
    """Return the mistakes of relations that alter a class of a data set, once the classes of listed seeds are known.

    Args:
        suite: The suite.
        classes: Classes by data set; None if the seeds do not name them.
    """
    mistakes: dict[str, Mistake] = {}
    for known_classes in classes.values():
        if known_classes is None:
            continue
        for name, (actual, allowed, fix) in altering(suite.relations, suite.may_alter, known_classes):
            mistakes.setdefault(
                name, Mistake(where="suite", key=f"relations.{name}", found=actual, allowed=allowed, fix=fix)
            )
    return list(mistakes.values())
