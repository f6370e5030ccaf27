"""Outline of a run, without loading a model: cases by cell, follow-ups, systems, and estimated duration."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtest.core.errors import UserMistakes
from medtest.core.files import read_object
from medtest.core.probes import Need
from medtest.preparation import prepare
from medtest.relations.base import CraftedRelation, Relation
from medtest.seeds.base import SeedSource
from medtest.seeds.needed import check_needed
from medtest.suite.checking.misfits.listed import listed_mistakes
from medtest.suite.commandline.selection import check_selection, nothing_chosen
from medtest.suite.model import Invocation, Suite
from medtest.suite.plan import ChosenSeed, Plan, craft_batches
from medtest.systems.answering.asking import Asking, Quote, draws_calls
from medtest.systems.base import System

DEFAULT_MS = 30.0
"""Assumed milliseconds per case of a system that was never timed here.

A case of a compact network costs 44 ms of processor time, so about this on two cores; a published network costs many
times as much.
"""

_TIMINGS = ".timings.json"


@dataclass(frozen=True, kw_only=True)
class RelationOutline:
    """Share of one relation in the plan.

    Attributes:
        id: The relation's id.
        group: Its group.
        severities: Severities to run.
        repeats: Draws per seed and severity.
        frames: Frames of each sequence; 1 if a follow-up is one image.
        passes: Approximate number of images passed through a network to craft its follow-ups, for one system; each with
            a gradient if the relation needs one. 0 for relations that need no system.
        gradients: True if those passes include backward passes.
        cases: All chosen cases, for one system.
        per_cell: Chosen cases of the smallest cell (data set × severity), for one system.
        independent: Patients, videos or seeds in that cell, on which its interval is based.
        published: True if its parameters are drawn from published ranges instead of levels.
    """

    id: str
    group: str
    severities: tuple[int, ...]
    repeats: int
    cases: int
    per_cell: int
    independent: int
    frames: int = 1
    passes: int = 0
    gradients: bool = False
    published: bool = False


@dataclass(frozen=True, kw_only=True)
class SystemOutline:
    """Share of one system in the plan.

    Attributes:
        id: Its id in the suite.
        record_name: Its name in records and folders.
        notice: Its own line for the user, or "".
        ms_per_case: Milliseconds per case.
        timed: True if those were measured here.
        asked: True if it answers questions, in a time that is unknown until a run was timed.
        quote: Calls, tokens and price of a model over an API, at most; None for other systems.
    """

    id: str
    record_name: str
    notice: str
    ms_per_case: float
    timed: bool
    asked: bool = False
    quote: Quote | None = None


@dataclass(frozen=True, kw_only=True)
class Outline:
    """Outline of a run.

    Attributes:
        suite: The suite.
        datasets: Chosen seeds by data set.
        relations: In the suite's order.
        systems: In the suite's order.
        sources: Chosen source cases, for one system.
        follow_ups: Chosen follow-ups, for one system.
        planned: Cases of the whole suite, for one system; more than the chosen ones under ``limit`` and ``only``.
        seconds: Estimate for all systems together.
        notices: Notices of the seed sources: known data sets that are missing or incomplete.
        clusters: Patients, videos or seeds of all data sets.
        questions: Chosen questions, 0 if none are asked.
        disk: Maximum bytes of crafted follow-ups, for one system; None if their size is the images' own.
    """

    suite: Suite
    datasets: Mapping[str, int]
    relations: tuple[RelationOutline, ...]
    systems: tuple[SystemOutline, ...]
    sources: int
    follow_ups: int
    planned: int
    seconds: float
    notices: tuple[str, ...] = ()
    clusters: int = 0
    questions: int = 0
    disk: int | None = 0


def outline(suite: Suite, invocation: Invocation) -> Outline:
    """Count the cases that an invocation would run.

    Args:
        suite: The checked suite.
        invocation: Provides ``data``, ``limit``, ``only``, ``shard``, ``batch_size`` and ``home``.

    Returns:
        The counts and an estimate of the time; reusable results of earlier runs are not considered.

    Raises:
        UserMistakes: Seeds are unusable, or ``only=`` chooses nothing.
    """
    relations = suite.build_relations()
    sources_of_seeds = suite.build_seeds(invocation.data)
    refs = [ref for source in sources_of_seeds for ref in source.places()]
    systems_of_suite = suite.build_systems()
    if mistakes := listed_mistakes(suite, sources_of_seeds, refs, relations, systems_of_suite):
        raise UserMistakes(mistakes)
    plan = Plan(refs, relations, invocation.batch_size)
    if suite.privacy.seed_ids == "plain":  # otherwise seeds may be named as shown in reports
        check_selection(invocation.only, refs)
    required = plan.needed(limit=invocation.limit, only=invocation.only)
    unneeded = check_needed(sources_of_seeds, required, named=suite.privacy.seed_ids != "hashed")
    seeds: Counter[str] = Counter()
    questions: Counter[str] = Counter()
    cases_by_question: Counter[tuple[str, str]] = Counter()
    clusters: dict[str, set[str]] = {}
    crafting = _Crafting(relations, invocation.batch_size)
    _, *steps = plan.chosen_steps(invocation.only)
    step_counts = Counter(
        (step.relation, step.severity) for step, chosen in zip(plan.shape, steps, strict=True) if chosen
    )
    changed = sum(step_counts.values())  # number of follow-ups of one question, equal for all seeds
    limits = invocation.limit, invocation.only, invocation.shard
    for seed in plan.chosen_seeds(limit=limits[0], only=limits[1], shard=limits[2]) if changed else ():
        dataset, items = seed.ref.dataset, seed.items
        crafting.take(plan, seed, steps)
        for at in items:
            cases_by_question[dataset, seed.ref.items[at]] += 1 + changed
        seeds[dataset] += 1
        questions[dataset] += len(items)
        clusters.setdefault(dataset, set()).add(seed.ref.cluster)
    sources = questions.total()
    follow_ups = sources * changed
    levels: dict[str, dict[int, int]] = {}
    for (relation_id, severity), count in step_counts.items() if sources else ():
        levels.setdefault(relation_id, {})[severity] = count
    shares = tuple(
        RelationOutline(
            id=name,
            group=relation.group,
            severities=tuple(severity for severity in relation.severities() if severity in levels[name]),
            repeats=relation.repeats(),
            frames=relation.frames(),
            cases=sources * sum(levels[name].values()),
            per_cell=min(questions.values()) * min(levels[name].values()),
            independent=min(map(len, clusters.values())),
            passes=crafting.passes.get(name, 0),
            gradients=relation.needs is Need.GRADIENTS,
            published=bool(relation.settings.drawn),
        )
        for name, relation in relations.items()
        if name in levels
    )
    if not follow_ups and (invocation.shard is None or not changed):
        raise nothing_chosen(invocation.only)
    timings = read_timings(invocation.home)
    quotes = _quotes(suite, sources_of_seeds, systems_of_suite, cases_by_question)
    systems = tuple(
        SystemOutline(
            id=name,
            record_name=system.record_name,
            notice=system.notice(),
            ms_per_case=timings.get(system.record_name, DEFAULT_MS),
            timed=system.record_name in timings,
            asked=draws_calls(system),
            quote=quotes.get(name),
        )
        for name, system in systems_of_suite.items()
    )
    # a pass with its gradient takes about three without
    passes = sum(share.passes * (3 if share.gradients else 1) for share in shares)
    return Outline(
        suite=suite,
        datasets=seeds,
        relations=shares,
        systems=systems,
        sources=sources,
        follow_ups=follow_ups,
        planned=plan.total,
        seconds=sum(s.ms_per_case for s in systems) * (sources + follow_ups + passes) / 1000.0,
        notices=(
            *(notice for source in sources_of_seeds for notice in source.notices()),
            *unneeded,
            *suite.build_oracle().notices(),
        ),
        clusters=sum(map(len, clusters.values())),
        questions=len({item for _, item in cases_by_question if item}),
        disk=crafting.bytes_at_most(suite),
    )


class _Crafting:
    """Counter of the work of crafting follow-ups; batches are crafted whole, whichever of their cases are chosen.

    Args:
        relations: The suite's relations by id.
        batch_size: Images per batch.
    """

    def __init__(self, relations: Mapping[str, Relation], batch_size: int) -> None:
        self._crafted = {
            name: relation for name, relation in relations.items() if isinstance(relation, CraftedRelation)
        }
        self._batch_size = batch_size
        self.passes: dict[str, int] = {}
        self._kept = 0

    def take(self, plan: Plan, seed: ChosenSeed, steps: Sequence[bool]) -> None:
        """Count the work of a seed's chosen follow-ups.

        Args:
            plan: The plan.
            seed: The seed.
            steps: Which follow-ups of each question are chosen, in the plan's order.
        """
        if not self._crafted:
            return
        unit = plan.unit(seed.unit, seed.position)
        chosen = {row * plan.row + at for row in seed.items for at, step in enumerate(steps, start=1) if step}
        crafted = {unit.cases[at] for at in chosen if unit.cases[at].relation in self._crafted}
        self._kept += len(crafted)
        batches = craft_batches(unit, self._crafted, self._batch_size)
        for batch in {b.number: b for index, b in batches.items() if unit.cases[index] in crafted}.values():
            relation = self._crafted[batch.relation]
            passes = sum(relation.network_passes(unit.cases[index].severity) for index in batch.cases)
            self.passes[batch.relation] = self.passes.get(batch.relation, 0) + passes

    def bytes_at_most(self, suite: Suite) -> int | None:
        """Return the maximum size of the stored pixels: noise hardly compresses."""
        if suite.privacy.images == "none" or not self._kept:
            return 0
        return None if suite.prepare.size is None else self._kept * 3 * suite.prepare.size**2


def _quotes(
    suite: Suite,
    sources: Sequence[SeedSource],
    systems: Mapping[str, System],
    cases_by_question: Mapping[tuple[str, str], int],
) -> dict[str, Quote]:
    """Return the quotes of the systems that are asked over an API.

    One image of each data set represents all of it; calls with stored answers of an earlier run are not subtracted.
    """
    asking = {name: system for name, system in systems.items() if draws_calls(system)}
    if not asking:
        return {}
    calls = [call for source in sources for call in _example_calls(suite, source, cases_by_question)]
    quotes = {name: system.quote(calls) for name, system in asking.items()}
    return {name: quote for name, quote in quotes.items() if quote is not None}


def _example_calls(
    suite: Suite, source: SeedSource, cases_by_question: Mapping[tuple[str, str], int]
) -> Iterator[tuple[Asking, int]]:
    """Yield a call for every question of a data set's seeds, with the number of such calls."""
    remaining = {(dataset, item) for dataset, item in cases_by_question if dataset == source.dataset}
    unusable = source.faults().of_seeds
    for ref in source.places():
        if (ref.dataset, ref.seed_id) in unusable:
            continue
        unasked = [item for item in ref.items if (ref.dataset, item) in remaining]
        if not unasked:
            continue
        seed = prepare(source.load(ref), size=suite.prepare.size, resize=suite.prepare.resize)
        asks = {ask.item: ask for ask in seed.asks}
        groups = [tuple(unasked)] if seed.together else [(item,) for item in unasked]
        for group in groups:
            remaining -= {(ref.dataset, item) for item in group}
            yield (
                Asking(
                    number=0,
                    label="",
                    addresses=tuple(replace(ref.source, item=item) for item in group),
                    image=seed.image,
                    prompt=seed.prompt,
                    sha256=seed.sha256,
                    asks=tuple(asks[item] for item in group if item),
                    together=seed.together,
                ),
                max(cases_by_question[ref.dataset, item] for item in group),
            )
        if not remaining:
            return


def read_timings(home: Path) -> dict[str, float]:
    """Return the milliseconds per case by system, as measured by the last runs under ``home``."""
    content = read_object(home / "outputs" / _TIMINGS)
    return {str(k): float(v) for k, v in content.items() if isinstance(v, (int, float)) and 0 < v < 1e7}


def write_timings(home: Path, names: Sequence[str], ms_per_case: float) -> None:
    """Store a run's timing for the estimates of later plans; a read-only folder is ignored."""
    if not ms_per_case > 0:
        return
    path = home / "outputs" / _TIMINGS
    content = {**read_timings(home), **{name: round(ms_per_case, 2) for name in names}}
    try:
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return
