"""Run digest, which names the folder of a run: everything that changes inputs or outputs of one system under one suite.

It covers the seeds, the relations with their parameters, the preparation, the suite's ``seed`` and the system, each
with its class's ``revision`` and hashes of its files. It does not cover the suite's name, version and description, the
oracle and its thresholds, gates, privacy, tracking, the device, workers, limits: none of them changes a case.

Paths are never included: a file counts by its content, through a part's ``fingerprint()`` or ``digest()``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtest.core.cases import Json
from medtest.core.tasks.base import Task, task_of
from medtest.relations.adversarial.gathering import feeding
from medtest.relations.base import CraftedRelation, Relation
from medtest.relations.calibration.searching.queries import REVISION as SEARCH_REVISION
from medtest.seeds.base import SeedSource
from medtest.suite.composed import counted_settings
from medtest.suite.model import EACH, PartPlan, Suite, reader_entry
from medtest.systems.base import System

DIGEST_LENGTH = 24
"""Hexadecimal digits of a digest: 96 bits, short enough for a folder's name."""


@dataclass(frozen=True, kw_only=True)
class Digest:
    """Digest with the data it covers.

    Attributes:
        value: 24 hexadecimal digits.
        covers: The covered data, JSON values only, without paths.
    """

    value: str
    covers: Mapping[str, Any]


def run_digest(
    suite: Suite,
    system_id: str,
    *,
    seeds: Sequence[SeedSource],
    relations: Mapping[str, Relation],
    system: System,
) -> Digest:
    """Return the digest of one system under one suite.

    Args:
        suite: The suite.
        system_id: The system's id in it.
        seeds: The built seed sources, in the suite's order.
        relations: The built relations by id.
        system: The built system, not opened.

    Returns:
        The digest with the data it covers.
    """
    from medtest.preparation import REVISION as PREPARATION_REVISION  # imports cv2 and similar libraries

    plan = next(p for p in suite.systems if p.id == system_id)
    covers: dict[str, Json] = {
        "seed": suite.seed,
        "seeds": {
            p.id: {
                "source": p.info.digest_name,
                "revision": type(source).revision,
                "settings": counted_settings(p),
                "digest": source.digest(),
            }
            for p, source in zip(suite.seeds, seeds, strict=True)
        },
        "relations": {p.id: entry_beside(suite, p, relations, crafter=(plan, system)) for p in suite.relations},
        "preparation": {**suite.prepare.covers(), "revision": PREPARATION_REVISION},
        "system": system_entry(plan, system, suite.task),
    }
    return Digest(value=digest_of(covers), covers=covers)


def oracle_digest(suite: Suite) -> Digest:
    """Return the digest of a suite's judgement: oracle, settings, reader, primary criterion and tables."""
    oracle = suite.oracle
    covers: dict[str, Json] = {
        "oracle": oracle.part.info.digest_name,
        "revision": oracle.part.info.load().revision,
        "settings": counted_settings(oracle.part),
        "primary": {
            "score": oracle.primary.score,
            "threshold": oracle.primary.threshold,
            "against": oracle.primary.against,
        },
        "scores": list(oracle.scores),
        "thresholds": list(oracle.thresholds),
        "against": list(oracle.against),
        **reader_entry(suite.build_reader()),
    }
    return Digest(value=digest_of(covers), covers=covers)


def digest_of(covers: Mapping[str, Any]) -> str:
    """Return the digest of JSON data: SHA-256 over its canonical form (sorted keys, no spaces, ASCII)."""
    text = json.dumps(covers, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_LENGTH]


def system_entry(plan: PartPlan, system: System, task: Task) -> dict[str, Json]:
    """Return the covered data of a system: name, revision, settings and the digests of its files."""
    return {
        "system": plan.info.digest_name,
        "revision": type(system).revision,
        "settings": {**_counted_settings(plan, task), **system.resolved()},
        "fingerprint": system.fingerprint(),
    }


def system_digest(plan: PartPlan, system: System, task: Task) -> str:
    """Return the digest of a system alone, which identifies attacks trained against it."""
    return digest_of(system_entry(plan, system, task))


def relation_entry(
    plan: PartPlan, relation: Relation, *, crafter: tuple[PartPlan, System] | None, task: str
) -> dict[str, Any]:
    """Return the covered data of a relation.

    Args:
        plan: The relation.
        relation: The same, built.
        crafter: For a crafted relation: its system; None if unknown.
        task: Name of the suite's task.
    """
    settings = counted_settings(plan)
    entry: dict[str, Any] = {
        "relation": plan.info.digest_name,
        "revision": relation.revision,
        "settings": settings,
    }
    fingerprint = getattr(relation, "fingerprint", None)
    if callable(fingerprint):
        entry["fingerprint"] = fingerprint()
    if plan.search:
        entry["search"] = {"for": plan.search, "revision": SEARCH_REVISION}
    if isinstance(relation, CraftedRelation):
        is_named = settings.pop("crafted_on") != EACH
        if crafter is not None:
            entry["crafted_on"] = system_entry(*crafter, task_of(task)) if is_named else EACH
            entry["fingerprint"] = {
                **entry["fingerprint"],
                **relation.fingerprint_on(system_digest(*crafter, task_of(task))),
            }
    return entry


def entry_beside(
    suite: Suite, plan: PartPlan, relations: Mapping[str, Relation], *, crafter: tuple[PartPlan, System]
) -> dict[str, Any]:
    """Return the covered data of a relation in its suite, including the relations that it gathers from.

    Args:
        suite: The suite.
        plan: The relation.
        relations: All of the suite's relations, built, by id.
        crafter: The system under test, on which it is crafted unless it names another.
    """

    def entry(relation_plan: PartPlan) -> dict[str, Any]:
        on_system = crafter_of(suite, relation_plan.id) or crafter
        return relation_entry(relation_plan, relations[relation_plan.id], crafter=on_system, task=suite.kind)

    names = feeding(relations, plan.id)
    if not names:
        return entry(plan)
    return {
        **entry(plan),
        "beside": {
            relation_plan.id: digest_of(entry(relation_plan))
            for relation_plan in suite.relations
            if relation_plan.id in names
        },
    }


def _counted_settings(plan: PartPlan, task: Task) -> dict[str, Any]:
    """Omit settings that change no answer: marks in tables, and label settings for other tasks."""
    fields = type(plan.settings).model_fields
    extras = {name: field.json_schema_extra for name, field in fields.items()}
    labels = {name for name, extra in extras.items() if isinstance(extra, dict) and extra.get("label_only")}
    left_out = {"trained_on"} | (labels if not task.labels else set())
    return {key: value for key, value in counted_settings(plan).items() if key not in left_out}


def crafter_of(suite: Suite, relation: str) -> tuple[PartPlan, System] | None:
    """Return the named crafting system of a relation; None for one that is crafted on each system, or on none."""
    crafter = suite.crafters.get(relation)
    return None if crafter is None else (crafter, suite.build_crafters()[relation])
