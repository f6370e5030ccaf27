"""Crafted follow-ups outside a run: finding the run that stores their pixels, or crafting a case again.

A case is the same in two runs with equal seed, preparation, relation and crafting system, whichever system was tested:
a case crafted on each of two systems is crafted on the first by name when it is shown to the second. So a folder of any
system serves, and of any suite that agrees in these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from medtest.core.cases import Address, FollowUp, Json, PreparedSeed, SeedRef
from medtest.core.errors import MedtestError, Mistake, UserMistakes, typed_error
from medtest.core.files import read_object
from medtest.preparation import REVISION as PREPARATION_REVISION
from medtest.relations.base import CraftedRelation
from medtest.runner.folder import OUTPUTS, RECORDS, RUN_FILE
from medtest.runner.pool.dispatch import Dispatcher
from medtest.runner.pool.layout import Layout, device_is_certain
from medtest.runner.pool.messages import Job, PoolTask, Row, UnitTask
from medtest.runner.pool.workplace import Workplace
from medtest.runner.prepared import run_folders
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.crafted import CraftedCases
from medtest.runner.records.rows import records_schema, strata_of
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.parts import Parts
from medtest.suite.digest import crafter_of, entry_beside, system_entry
from medtest.suite.model import EACH, Invocation, PartPlan, Suite
from medtest.suite.plan import Plan, craft_batches


def crafted_of(parts: Parts) -> frozenset[str]:
    """Return the ids of relations that are crafted on a system."""
    return frozenset(name for name, relation in parts.relations.items() if isinstance(relation, CraftedRelation))


def crafting_system(suite: Suite, relation: str) -> PartPlan:
    """Return the system on which a relation's follow-ups were crafted.

    Raises:
        UserMistakes: Several systems have follow-ups of their own.
    """
    crafter = suite.crafters.get(relation)
    if crafter is not None:
        return crafter
    if len(suite.systems) > 1:
        names = [plan.id for plan in suite.systems]
        raise typed_error(
            "model",
            f"{len(names)} systems, each with follow-ups of {relation} that were crafted on it",
            f"one of {', '.join(names)}",
            f"Choose one: model={names[0]}",
        )
    return suite.systems[0]


def crafted_runs(suite: Suite, invocation: Invocation, parts: Parts, *, by_source: bool = False) -> CraftedCases | None:
    """Return the location of a suite's crafted and searched follow-ups; None for a suite without any.

    Args:
        suite: The suite.
        invocation: Only ``home`` is used.
        parts: The suite's parts.
        by_source: As in :class:`CraftedCases`.
    """
    if not (suite.crafts or suite.searches):
        return None
    return CraftedCases(
        folders=run_folders(suite, invocation, parts.sources, parts.relations),
        names=ShownNames.of(suite.privacy, invocation.home),
        more=_matching_runs(suite, invocation, parts),
        by_source=by_source,
    )


def _matching_runs(suite: Suite, invocation: Invocation, parts: Parts) -> dict[tuple[int, str], tuple[Path, ...]]:
    """Return folders in which relations were crafted alike, by system and relation; the newest first."""
    built, plans = suite.build_systems(), {plan.id: plan for plan in suite.relations}
    runs = list(_runs(invocation.home, suite.name))
    folders = {}
    for number, system in enumerate(suite.systems):
        for name in sorted(crafted_of(parts)):
            under_test = (system, built[system.id])
            crafter = crafter_of(suite, name) or under_test
            entry = entry_beside(suite, plans[name], parts.relations, crafter=under_test)
            settings = {
                "seed": suite.seed,
                "preparation": {**suite.prepare.covers(), "revision": PREPARATION_REVISION},
                "relation": {**entry, "crafted_on": system_entry(*crafter, suite.task)},
            }
            folders[number, name] = tuple(folder for folder, covers in runs if settings in _crafted_in(covers))
    return folders


def _runs(home: Path, suite: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    runs = []
    for file in (home / OUTPUTS).glob(f"*/*/*/{RUN_FILE}"):
        content = read_object(file)
        covers = content.get("covers")
        if isinstance(covers, dict) and (file.parent / RECORDS).is_file():
            is_same_suite = content.get("suite") == suite
            runs.append((is_same_suite, str(content.get("finished_at", "")), file.parent, covers))
    for _, _, folder, covers in sorted(runs, key=lambda run: run[:3], reverse=True):
        yield folder, covers


def _crafted_in(covers: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    relations = covers.get("relations")
    for entry in relations.values() if isinstance(relations, dict) else ():
        if isinstance(entry, dict) and "crafted_on" in entry:
            crafted_on = covers.get("system") if entry["crafted_on"] == EACH else entry["crafted_on"]
            yield {
                "seed": covers.get("seed"),
                "preparation": covers.get("preparation"),
                "relation": {**entry, "crafted_on": crafted_on},
            }


def is_in_runs(suite: Suite, invocation: Invocation, parts: Parts, relation: str) -> bool:
    """Return True if the system of a crafted relation is unambiguous and a run may have its follow-ups."""
    if relation not in suite.crafters and len(suite.systems) > 1:
        return False
    cases = crafted_runs(suite, invocation, parts)
    return cases is not None and _is_available(cases, relation)


def _is_available(cases: CraftedCases, relation: str) -> bool:
    return bool(cases.more[0, relation]) or any(folder.is_dir() for folder in cases.folders)


def read_from_runs(suite: Suite, invocation: Invocation, parts: Parts, relations: Iterable[str] | None = None) -> None:
    """Let parts take crafted follow-ups from runs.

    Args:
        suite: The suite.
        invocation: Only ``home`` is used.
        parts: The suite's parts; unchanged for a suite without such relations.
        relations: The relations; None for all.

    Raises:
        UserMistakes: No run has follow-ups of a relation, or several systems have their own.
    """
    names = [name for name in parts.relations if relations is None or name in set(relations)]
    names = [name for name in names if name in crafted_of(parts)]
    if not names:
        return
    for relation in names:
        crafting_system(suite, relation)
    cases = crafted_runs(suite, invocation, parts)
    assert cases is not None  # noqa: S101 - it has such a relation
    parts.crafted = cases
    mistakes = [not_crafted(suite, name) for name in names if not _is_available(cases, name)]
    if mistakes:
        raise UserMistakes(mistakes)


def not_crafted(suite: Suite, relation: str, more: str = "") -> Mistake:
    """Return the mistake for a relation whose follow-ups are stored by no run.

    Args:
        suite: The suite.
        relation: The relation.
        more: Further arguments of the command whose run would store them, after suite and system.
    """
    model = suite.systems[0].id if len(suite.systems) == 1 else "NAME"
    fix = f"Run it first, which stores the crafted follow-ups: medtest run suite={suite.name} model={model}{more}"
    if suite.privacy.images == "none":
        fix = "The suite has privacy: {images: none}, so no run keeps crafted follow-ups."
    return Mistake(
        where="suite",
        key=f"relations.{relation}",
        found="a relation that is crafted on a system, without a run that stores its follow-ups",
        allowed="relations that need no system, or a run in outputs/",
        fix=fix,
    )


def crafted_facts(parts: Parts) -> dict[str, Json]:
    """Return the crafting systems of a suite's crafted follow-ups; empty if none are taken from runs."""
    suite = parts.suite
    if parts.crafted is None:
        return {}
    built = suite.build_systems()
    tested = [(plan, built[plan.id]) for plan in suite.systems]
    pairs = {name: crafter_of(suite, name) or tested[0] for name in sorted(crafted_of(parts))}
    return {"crafted_on": {name: system_entry(*pair, suite.task) for name, pair in pairs.items()}}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crafted:
    """Reconstructed crafted case.

    Attributes:
        follow: The follow-up.
        sha256: SHA-256 of its image.
        on: Name of the system on which it was crafted.
        folder: The run's folder with its pixels; None if it was crafted again.
        recorded: SHA-256 in a run's record of it; "" if no run has recorded it.
        problem: Reason why the run's stored form was not used; "" if it was used, or none was stored.
    """

    follow: FollowUp
    sha256: str
    on: str
    folder: Path | None = None
    recorded: str = ""
    problem: str = ""


def crafted_again(
    suite: Suite,
    invocation: Invocation,
    parts: Parts,
    seed: PreparedSeed,
    place: tuple[int, SeedRef, int],
    scratch: Path | None = None,
) -> Crafted:
    """Return a crafted case as stored by a run, else crafted again on its system, in a separate worker.

    Args:
        suite: The suite.
        invocation: Provides ``home``, ``data``, ``device``, ``batch_seconds`` and ``batch_size``.
        parts: Its parts.
        seed: The prepared source case.
        place: Number of its seed source, its seed, and the case's index in its unit.
        scratch: A private folder of this call, which keeps newly crafted cases for later use; None for none.

    Raises:
        UserMistakes: Several systems have such a case of their own, or the relation does not apply to this seed.
        MedtestError: The system cannot be loaded, or crafting failed.
    """
    source, ref, case = place
    address = parts.unit(ref).cases[case]
    crafter = crafting_system(suite, address.relation)
    runs = crafted_runs(suite, invocation, parts)
    assert runs is not None  # noqa: S101 - the case is crafted
    stored = runs.look(0, seed, address)
    follow = None if stored is None else runs.find(0, seed, address)
    if stored is not None and isinstance(follow, FollowUp):
        return Crafted(
            follow=follow,
            sha256=stored.record["followup_sha256"],
            on=stored.record["crafted_on"] or "",
            folder=stored.folder,
            recorded=stored.record["followup_sha256"],
        )
    if isinstance(follow, str):
        raise refusal(follow, stored.record["verdict"] if stored is not None else "SKIP", address)
    recorded = "" if stored is None else str(stored.record["followup_sha256"])
    if stored is not None:  # pixels depend on the batch in which they are crafted
        batch = read_object(stored.folder / RUN_FILE).get("batch_size")
        invocation = replace(invocation, batch_size=batch) if isinstance(batch, int) else invocation
    place_for_pixels = TemporaryDirectory(prefix="medtest-crafted-") if scratch is None else nullcontext(scratch)
    with place_for_pixels as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        crafted_cases = craft_anew(suite, invocation, parts, crafter, (source, ref, (case,)), folder)
        crafted = crafted_cases.look(0, seed, address)
        follow = crafted_cases.find(0, seed, address)
    if crafted is None or not isinstance(follow, FollowUp):
        raise refusal(
            str(follow or "the follow-up could not be crafted"),
            crafted.record["verdict"] if crafted else "ERROR",
            address,
        )
    return Crafted(
        follow=follow,
        sha256=crafted.record["followup_sha256"],
        on=crafted.record["crafted_on"] or "",
        recorded=recorded,
        problem="" if stored is None else stored.problem,
    )


def refusal(reason: str, verdict: str, address: Address) -> MedtestError:
    """Return the error for a case without a follow-up: a user's mistake if it was skipped."""
    if verdict == "SKIP":
        return typed_error("address", f"a skipped case: {reason}")
    return MedtestError(f"{address}: {reason}")


def craft_anew(
    suite: Suite,
    invocation: Invocation,
    parts: Parts,
    on: PartPlan,
    place: tuple[int, SeedRef, Sequence[int]],
    folder: Path,
) -> CraftedCases:
    """Craft cases of one seed as in a run, in a worker with the run's time limit; pixels are written to a folder.

    Args:
        suite: The suite.
        invocation: As for a run.
        parts: The suite's parts.
        on: The crafting system.
        place: Number of the seed source, the seed, and the cases' indices in its unit; their batches are crafted whole.
        folder: An empty folder, or one in which an earlier call crafted them.

    Returns:
        Location of the cases; a case that could not be crafted has a record with the reason.

    Raises:
        MedtestError: The system cannot be loaded.
    """
    source, ref, indices = place
    names, strata = ShownNames.of(suite.privacy, invocation.home), strata_of([ref])
    if (folder / RECORDS).is_file():
        return CraftedCases([folder], names)
    cases = [parts.unit(ref).cases[index] for index in indices]
    crafting_suite = _crafting_suite(suite, on, {case.relation for case in cases})
    relations = {plan.id: parts.relations[plan.id] for plan in crafting_suite.relations}
    unit = Plan((ref,), relations, invocation.batch_size).unit(0, 0)
    batches = craft_batches(unit, set(relations), invocation.batch_size)
    whole = {
        case_index for index, case in enumerate(unit.cases) if case in cases for case_index in batches[index].cases
    }
    todo = bytes(int(index in whole) for index in range(len(unit.cases)))
    (system,) = crafting_suite.build_systems().values()
    device = device_is_certain(invocation.device, needed=type(system).needs_device) or "auto"
    job = Job.of(
        crafting_suite,
        invocation,
        hash_key=names.key,
        device=device,
        strata=strata,
        folders=(str(folder),),
        shared=str(folder),
    )
    rows: list[Row] = []

    def left(task: Any) -> PoolTask | None:
        finished = {case for _, case, _, _ in rows}
        unfinished = bytes(int(bool(flag) and index not in finished) for index, flag in enumerate(todo))
        return replace(task, todo=(unfinished,)) if any(unfinished) else None

    Dispatcher(
        job=job,
        tasks=iter([UnitTask(index=0, source=source, ref=ref, todo=(todo,))]),
        batch_seconds=invocation.batch_seconds,
        limits=Limits(),
        result=lambda new_rows, _unit: rows.extend(new_rows),
        renew=left,
        layout=lambda _device: Layout(workers=1, threads=job.threads),
        workplace=Workplace(in_process=type(system).in_process),
    ).run()
    schema = records_schema(parts.oracle, strata, crafts=True)
    values = [dict(zip(schema.names, row, strict=True)) for _, _, row, _ in rows]
    pq.write_table(pa.Table.from_pylist(values, schema=schema), folder / RECORDS)
    return CraftedCases([folder], names)


def _crafting_suite(suite: Suite, on: PartPlan, relations: Collection[str]) -> Suite:
    """Return a suite of some relations, with their crafting system in place of the systems under test."""
    return replace(
        suite,
        systems=(on,),
        relations=tuple(plan for plan in suite.relations if plan.id in relations),
        crafters={name: plan for name, plan in suite.crafters.items() if name in relations},
        privacy=replace(suite.privacy, images="samples"),  # the pixels go to a private folder of this call
    )
