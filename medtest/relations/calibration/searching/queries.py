"""Queries of a search, and relations that cannot be searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from medtest.core.cases import Address
from medtest.relations.base import BY_SEVERITY, CraftedRelation, Relation
from medtest.relations.calibration.interpolation import is_numeric, level_fields

MILDEST: Final = "mildest"
WORST: Final = "worst"
REPEATED: Final = "mildest-repeated"
"""``search`` of a row that shows one of the two ends of a bracket again, to see whether the answer repeats."""
RANDOM: Final = "worst-random"
"""``search`` of a row of the random search beside ``worst``."""
REVISION = 1
"""Revision of the search, part of a run's digest: raise it if the same answers lead to other queries."""
BISECTIONS = 8
REPEATS = 8
"""Queries that show the mildest failing picture and its passing neighbour again, in turn."""
BUDGET = 50
"""Queries of ``worst``, and of the random search beside it."""


class Query(NamedTuple):
    """Query of a search: ``search`` of its row, and its number among those of this name, from 0."""

    name: str
    number: int


QUERIES: Mapping[str, tuple[Query, ...]] = {
    MILDEST: (
        *(Query(MILDEST, number) for number in range(BISECTIONS)),
        *(Query(REPEATED, number) for number in range(REPEATS)),
    ),
    WORST: (
        *(Query(WORST, number) for number in range(BUDGET)),
        *(Query(RANDOM, number) for number in range(BUDGET)),
    ),
}
"""Queries of each search, in the order of their frames."""


def queries_of(relation: Relation) -> tuple[Query, ...]:
    """Return the queries of a relation's search; empty without one."""
    return QUERIES[relation.searched] if relation.searched else ()


def query_at(relation: Relation | None, address: Address) -> Query | None:
    """Return the query that an address names; None for any other case."""
    if relation is None or not relation.searched or address.severity != 0:
        return None
    return QUERIES[relation.searched][address.frame]


class Unfit(NamedTuple):
    """Reason why a relation cannot be searched: its setting, what was found, what is allowed, and how to fix it."""

    setting: str
    found: str
    allowed: str
    fix: str = ""


def unfit(relation: Relation) -> Unfit | None:
    """Return the first reason why a relation cannot be searched; None if it can."""
    settings = relation.settings
    levels = relation.levels()
    if settings.drawn:
        return Unfit("mode", "search with mode: published", "levels", "a search needs levels to look between")
    if not levels:
        return Unfit("search", "a relation without levels", "relations with numeric levels")
    if isinstance(relation, CraftedRelation):
        fix = "attacks have their own search: minimal: true" if hasattr(settings, "minimal") else ""
        return Unfit("search", "a relation that is crafted on a system", "relations whose severities nest", fix)
    if not relation.nested:
        fix = "its draws differ between severities; add calibrate: {ssim: [0.95, 0.8]}, whose targets share their draws"
        return Unfit("search", "a relation whose severities do not nest", "relations whose severities nest", fix)
    if relation.frames() > 1:
        return Unfit("search", "a relation of sequences", "relations of single pictures")
    chosen = {severity: levels[severity] for severity in relation.severities()}
    if len(chosen) < 2:
        setting, noun = ("severities", "severity") if settings.calibrate is None else ("calibrate.ssim", "target")
        return Unfit(setting, f"{len(chosen)} {noun}", "at least two, between which the search looks")
    fields = {severity: level_fields(level) for severity, level in levels.items()}
    for severity, values in fields.items():
        for name, value in values.items():
            if isinstance(value, list | tuple) or not is_numeric(value):
                place = f"levels.{severity}.{name}" if name else f"levels.{severity}"
                fix = "arguments that all levels share belong in params" if hasattr(settings, "params") else ""
                return Unfit(place, f"{value!r}", "a number, since a search looks between levels", fix)
    first, *others = fields.items()
    for severity, values in others:
        if set(values) != set(first[1]):
            actual, expected = ", ".join(sorted(values)), ", ".join(sorted(first[1]))
            return Unfit(f"levels.{severity}", f"the fields {actual}", f"those of level {first[0]}: {expected}")
    if relation.scale_unit == BY_SEVERITY:
        return Unfit("levels", "levels in which no single number above 0 grows", "one that grows: it is the scale")
    return None
