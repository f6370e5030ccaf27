"""Which relations feed one that keeps the worst of all attacks on an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.relations.base import CraftedRelation, Relation

_EACH = "each"


def feeding(relations: Mapping[str, Relation], name: str) -> tuple[str, ...]:
    """Return the relations whose follow-ups a relation that gathers is handed, in the suite's order; else none.

    They are attacks and noise of no larger scale, and gather nothing themselves. One that is crafted on a named system
    is handed nothing that is crafted on each: it must be the same whichever systems are tested.

    Args:
        relations: The suite's relations by id.
        name: The id of the one that may gather.
    """
    relation = relations.get(name)
    if not (isinstance(relation, CraftedRelation) and relation.gathers):
        return ()
    most = max((scale_of(relation, severity) or 0.0 for severity in relation.severities()), default=0.0)
    return tuple(
        other
        for other, attack in relations.items()
        if attack.beside_attacks
        and not getattr(attack, "gathers", False)
        and not (_named(relation) and isinstance(attack, CraftedRelation) and not _named(attack))
        and any((scale_of(attack, severity) or most + 1) <= most for severity in attack.severities())
    )


def _named(relation: CraftedRelation) -> bool:
    return bool(relation.settings.crafted_on != _EACH)


def scale_of(relation: Relation, severity: int) -> float | None:
    """Return the scale of a relation's severity as its settings say it; None where they do not."""
    levels: Any = getattr(relation.settings, "levels", None)
    level = levels.get(severity) if isinstance(levels, Mapping) else None
    scale = getattr(level, "scale", level)
    return float(scale) if isinstance(scale, int | float) else None
