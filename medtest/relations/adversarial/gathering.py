"""Relations whose results feed one that keeps the worst of all attacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtest.relations.base import CraftedRelation, Relation

_EACH = "each"


def feeding(relations: Mapping[str, Relation], name: str) -> tuple[str, ...]:
    """Return the relations whose follow-ups feed a gathering relation, in the suite's order; empty for other relations.

    They are attacks and noise of no larger scale that do not gather themselves. A relation crafted on a named system
    gets nothing crafted on each system, because its results must not depend on the systems under test.

    Args:
        relations: The suite's relations by id.
        name: Id of the relation that may gather.
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
        and not (_is_named(relation) and isinstance(attack, CraftedRelation) and not _is_named(attack))
        and any((scale_of(attack, severity) or most + 1) <= most for severity in attack.severities())
    )


def _is_named(relation: CraftedRelation) -> bool:
    return bool(relation.settings.crafted_on != _EACH)


def scale_of(relation: Relation, severity: int) -> float | None:
    """Return the scale of a relation's severity as set in its settings; None if not set."""
    levels: Any = getattr(relation.settings, "levels", None)
    level = levels.get(severity) if isinstance(levels, Mapping) else None
    scale = getattr(level, "scale", level)
    return float(scale) if isinstance(scale, int | float) else None
