"""Run preparation in the parent process, before anything heavy loads: seeds, systems, digests, folders, plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from medtest.core.cases import Classes, SeedRef
from medtest.core.errors import Mistake, UserMistakes
from medtest.relations.base import Relation
from medtest.runner.folder import SHARD_FOLDERS, earlier_folder, system_folder
from medtest.runner.privacy.rules import ShownNames, key_fingerprint
from medtest.runner.records.ledger import seeds_twice
from medtest.runner.records.rows import records_schema, strata_of
from medtest.runner.records.shards import columns_there
from medtest.runner.reporting.frozen import Followed, followed_notices, followed_plans
from medtest.seeds.base import SeedSource
from medtest.seeds.needed import check_needed
from medtest.suite.checking.misfits.listed import listed_mistakes
from medtest.suite.commandline.selection import check_selection, nothing_chosen
from medtest.suite.digest import Digest, digest_of, run_digest
from medtest.suite.model import Invocation, Selection, Suite
from medtest.suite.plan import Plan
from medtest.systems.base import System

_LISTED = 50
"""Maximum number of unusable files named in a message."""


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """Suite with all information of the parent process; no system is loaded.

    Attributes:
        suite: The suite.
        plan: All its cases.
        chosen: bool, one per case of the plan: True if this invocation must finish it.
        owners: Index of each seed's source.
        names: Display of ids.
        systems: The systems, in order, not opened.
        digests: Digests of the systems.
        folders: Folders of the systems.
        aside: Folders of the same runs under other names, which ``fresh=true`` also moves aside.
        schema: Schema of the records.
        strata: Columns that stratify tables.
        notices: Lines for the user.
        classes: Classes of the data sets that have any.
        frozen: Frozen plan that each system's run follows; None for none.
    """

    suite: Suite
    plan: Plan
    chosen: NDArray[np.bool_]
    owners: NDArray[np.int32]
    names: ShownNames
    systems: tuple[System, ...]
    digests: tuple[Digest, ...]
    folders: tuple[Path, ...]
    aside: tuple[Path, ...]
    schema: pa.Schema
    strata: tuple[str, ...]
    notices: tuple[str, ...]
    classes: Mapping[str, Classes]
    frozen: tuple[Followed | None, ...] = ()


def prepare_run(suite: Suite, invocation: Invocation) -> PreparedRun:
    """List seeds, check systems, and determine the folders, without loading anything heavy or writing anything.

    Raises:
        UserMistakes: Seeds or systems are unusable, or ``only=`` chooses nothing.
    """
    sources = suite.build_seeds(invocation.data)
    refs: list[SeedRef] = []
    owners: list[int] = []
    notices: list[str] = []
    for number, source in enumerate(sources):
        source_refs = source.places()
        refs += source_refs
        owners += [number] * len(source_refs)
        notices += source.notices()
        left_out = source.problems()
        if left_out:
            count = len(left_out)
            seeds = "1 seed" if count == 1 else f"{count:,} seeds"
            notices.append(f"{seeds} of {source.dataset} left out as unusable.")
            # File names may be patient names, and reasons quote words of prompts.
            if suite.privacy.seed_ids != "hashed" and suite.privacy.prompts != "none":
                notices += [f"Left out: {problem.file} {problem.reason}" for problem in left_out[:_LISTED]]
                if count > _LISTED:
                    notices.append(f"… and {count - _LISTED} more; on_bad_seed: stop names them all.")
    _check_seeds(refs)
    relations = suite.build_relations()
    systems = suite.build_systems()
    mistakes = [mistake for system in systems.values() for mistake in system.check()]
    mistakes += listed_mistakes(suite, sources, refs, relations, systems)
    notices += suite.build_oracle().notices()
    if mistakes:
        raise UserMistakes(mistakes)
    names = ShownNames.of(suite.privacy, invocation.home)
    plan = Plan(refs, relations, invocation.batch_size)
    # All parts of a run share one folder: a mistake in the needs of one stops them all, because all run again
    # afterwards.
    required = plan.needed(limit=invocation.limit, only=_plain_seeds(plan, invocation.only, names))
    notices += check_needed(sources, required, named=suite.privacy.seed_ids != "hashed")
    digests = _digests(suite, systems, sources, relations, names)
    folders, aside, folder_notices = _folders(invocation, suite, systems, digests)
    notices += folder_notices
    _check_folders(list(systems), folders)
    suite = _with_recorded_scores(suite, folders)
    strata = strata_of(refs)
    chosen = _chosen_places(plan, invocation, names)
    if not chosen.any():
        notices.append(f"Shard {invocation.shard} has no chosen case ({len(refs):,} seeds in total).")
    frozen = followed_plans(invocation.home, suite, digests)
    notices += followed_notices(invocation.home, suite.name, list(systems), frozen)
    return PreparedRun(
        suite=suite,
        plan=plan,
        chosen=chosen,
        owners=np.array(owners, dtype=np.int32),
        names=names,
        systems=tuple(systems.values()),
        digests=digests,
        folders=folders,
        aside=aside,
        schema=records_schema(suite.build_oracle(), strata, crafts=suite.crafts, searches=suite.searches),
        strata=strata,
        notices=tuple(notices),
        classes={
            source.dataset: source_classes for source in sources if (source_classes := source.classes()) is not None
        },
        frozen=frozen,
    )


def run_folders(
    suite: Suite, invocation: Invocation, sources: Sequence[SeedSource], relations: Mapping[str, Relation]
) -> tuple[Path, ...]:
    """Return the folders of a suite's systems for a run, whether or not they exist.

    Args:
        suite: The suite.
        invocation: Only ``home`` is used.
        sources: Its seed sources.
        relations: Its relations.
    """
    names = ShownNames.of(suite.privacy, invocation.home)
    systems = suite.build_systems()
    invocation = replace(invocation, fresh=False)
    return _folders(invocation, suite, systems, _digests(suite, systems, sources, relations, names))[0]


def _digests(
    suite: Suite,
    systems: Mapping[str, System],
    sources: Sequence[SeedSource],
    relations: Mapping[str, Relation],
    names: ShownNames,
) -> tuple[Digest, ...]:
    return tuple(
        _privacy_digest(
            run_digest(suite, name, seeds=sources, relations=relations, system=system),
            seed_ids=names.key,
            prompts=names.word_key if suite.task.prompts else None,
        )
        for name, system in systems.items()
    )


def _folders(
    invocation: Invocation, suite: Suite, systems: Mapping[str, System], digests: Sequence[Digest]
) -> tuple[tuple[Path, ...], tuple[Path, ...], list[str]]:
    """Return every system's folder, other folders to move aside, and notices.

    If only a folder under another name holds this run, that folder is used: names are not in digests.
    """
    names = [system.record_name for system in systems.values()]
    folders: list[Path] = []
    aside: list[Path] = []
    messages: list[str] = []
    part = None if invocation.shard is None else invocation.shard.folder
    for (key, system), digest in zip(systems.items(), digests, strict=True):
        target = system_folder(invocation.home, suite.name, system.record_name, digest.value)
        earlier = None if target.exists() else earlier_folder(invocation.home, suite.name, key, digest.value, names)
        if earlier is not None and not invocation.fresh:
            place = f"outputs/{suite.name}/{earlier.parent.name}/{earlier.name}"
            messages.append(
                f"{system.record_name}: this run started as {earlier.parent.name} and continues in {place}."
            )
            target = earlier
        elif earlier is not None and part is None:
            aside.append(earlier)
        folders.append(target if part is None else target / SHARD_FOLDERS / part)
    return tuple(folders), tuple(aside), messages


def _with_recorded_scores(suite: Suite, folders: Sequence[Path]) -> Suite:
    """Return the suite with the scores that its folders' records already hold: none is ever emptied."""
    scores = suite.build_oracle().scores
    recorded = {name for folder in folders for name in columns_there(folder) if name in scores}
    return replace(suite, held=tuple(dict.fromkeys((*suite.held, *(name for name in scores if name in recorded)))))


def _check_seeds(refs: Sequence[SeedRef]) -> None:
    if not refs:
        raise Mistake(where="suite", key="seeds", found="no seed", allowed="at least one").as_error()
    duplicates = seeds_twice(refs)
    if duplicates:
        raise UserMistakes(
            Mistake(where="suite", key="seeds", found=f"{dataset}/{seed_id} twice", fix="Give each source another id.")
            for dataset, seed_id in duplicates[:20]
        )


def _check_folders(names: Sequence[str], folders: Sequence[Path]) -> None:
    owners: dict[Path, str] = {}
    for name, folder in zip(names, folders, strict=True):
        if folder in owners:
            raise Mistake(
                where="suite",
                key=f"systems.{name}",
                found=f"the same system as systems.{owners[folder]}",
                fix="Remove one of them.",
            ).as_error()
        owners[folder] = name


def _privacy_digest(digest: Digest, *, seed_ids: bytes | None, prompts: bytes | None) -> Digest:
    """Return a separate digest for hashed records: a folder with plain ids is never continued with hashed ones."""
    hidden = {"seed_ids": seed_ids, "prompts": prompts}
    fingerprints = {name: f"hashed with key {key_fingerprint(key)}" for name, key in hidden.items() if key is not None}
    covers = {**digest.covers, **fingerprints}
    return Digest(value=digest_of(covers), covers=covers) if fingerprints else digest


def _chosen_places(plan: Plan, invocation: Invocation, names: ShownNames) -> NDArray[np.bool_]:
    """Return which places this invocation must execute.

    Raises:
        UserMistakes: A chosen seed or question does not exist, or nothing is chosen.
    """
    only = _plain_seeds(plan, invocation.only, names)
    check_selection(only, plan.refs, lambda ref: names.seed_id(ref.dataset, ref.seed_id))
    chosen = np.zeros((len(plan.refs), plan.cases_per_seed // plan.row, plan.row), dtype=np.bool_)
    steps = np.array(plan.chosen_steps(only))
    # a source goes with its follow-ups: without any it is not run either, unless the suite has nothing else
    steps[0] &= plan.row == 1 or bool(steps[1:].any())
    for seed in plan.chosen_seeds(limit=invocation.limit, only=only, shard=invocation.shard):
        chosen[seed.unit, seed.items] = steps
    if not chosen.any() and not (steps.any() and any(plan.chosen_seeds(limit=invocation.limit, only=only))):
        raise nothing_chosen(only)
    return chosen.reshape(-1)


def _plain_seeds(plan: Plan, only: Selection, names: ShownNames) -> Selection:
    """Resolve ``only=seed:…`` names as shown by a report with hashed ids."""
    if names.key is None or not only.seeds:
        return only
    plain_ids = {names.seed_id(ref.dataset, ref.seed_id): ref.seed_id for ref in plan.refs}
    return replace(only, seeds=frozenset(plain_ids.get(seed, seed) for seed in only.seeds))
