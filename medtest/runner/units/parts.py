"""Parts of a suite in one worker: making cases and answering batches with them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from medtest.core.cases import (
    Address,
    FollowUp,
    Image,
    Output,
    Peers,
    PreparedSeed,
    Reason,
    ReasonCode,
    Seed,
    SeedRef,
    Verdict,
    image_sha256,
)
from medtest.core.errors import BadOutput, OtherClasses
from medtest.core.files.by_content import DamagedFile, PictureFiles
from medtest.core.oracles.base import Oracle
from medtest.core.tasks.base import SystemInput, task_of
from medtest.preparation import prepare
from medtest.readers.base import BatchReader, KeptReader, Unreadable
from medtest.relations.base import CraftedRelation, Relation
from medtest.relations.calibration.searching.queries import query_at
from medtest.relations.series import follow_up, on_any_image
from medtest.runner.records.answers import KeptAnswer
from medtest.runner.records.crafted import CraftedCases
from medtest.runner.records.rows import params_text
from medtest.runner.units.made_case import MadeCase, SystemAnswer, describe, not_made
from medtest.seeds.base import SeedKey, SeedSource
from medtest.seeds.needed import check_needed
from medtest.suite.model import MAPS, KeptFollowUps, Selection, Suite
from medtest.suite.plan import Plan, Unit
from medtest.systems.base import Missing, RawAnswer, System

NOT_STORED = (ReasonCode.FOLLOW_UP_NOT_STORED, ReasonCode.FOLLOW_UP_LOST)
"""Reasons of crafted cases that a later run may have."""


class Parts:
    """Seeds, relations and the oracle of a suite, built once per process.

    Args:
        suite: The suite.
        data: The user's data root.
        batch_size: Images per call of a system.
        stored: Source of existing follow-ups.

    Attributes:
        crafted: Source of existing crafted follow-ups; None if no run provides them.
        drawn: Pictures drawn by text-to-image systems, one store per system's folder.
    """

    def __init__(
        self, suite: Suite, data: Path | None, batch_size: int, *, stored: KeptFollowUps | None = None
    ) -> None:
        self.suite = suite
        self.sources: tuple[SeedSource, ...] = suite.build_seeds(data)
        self.relations: dict[str, Relation] = suite.build_relations()
        self.oracle: Oracle = suite.build_oracle()
        self.reader: KeptReader[Any, Any] | None = None
        self.batch_size = batch_size
        self.crafted: CraftedCases | None = None
        self.drawn: Sequence[PictureFiles] = ()
        self._stored = stored
        self._by_dataset: dict[str, Peers] = {}

    def open_reader(self, *, device: str, threads: int, shared: Path | None, cache: str) -> None:
        """Open the suite's reader, if its oracle depends on one; until then no answer is read.

        A reader with its own processes is opened there (:mod:`medtest.runner.units.seeing`).

        Raises:
            MedtestError: It cannot be loaded.
        """
        reader = self.suite.build_reader()
        if reader is not None:
            self.reader = KeptReader(reader, shared=shared, cache=cache)
            if not reader.own_processes:
                self.reader.open(device=device, threads=threads)

    def read(self, seed: PreparedSeed, answers: Sequence[SystemAnswer]) -> list[SystemAnswer]:
        """Return answers with the reader's facts; an answer on which the reader fails is an ERROR."""
        if self.reader is None:
            return list(answers)
        reader, contents = self.reader.reader, []
        for answer in answers:
            contents.append(None if answer.output is None else reader.content(answer.output, seed))
        facts = iter(self.reader.facts([content for content in contents if content is not None]))
        return [
            answer if content is None else _read(answer, content, next(facts), reader)
            for answer, content in zip(answers, contents, strict=True)
        ]

    def content(self, seed: PreparedSeed, answer: SystemAnswer) -> Any | None:
        """Return the content of an answer for the suite's reader, None if there is none."""
        if self.reader is None or answer.output is None:
            return None
        return self.reader.reader.content(answer.output, seed)

    def keep(self, seed: PreparedSeed, output: Output | None) -> KeptAnswer | None:
        """Return the stored form of an answer; None if there is no answer, or its task or the suite stores none."""
        form = "none" if self.suite.privacy.images == "none" else self.suite.answers
        if output is None or form == "none":
            return None
        try:
            data = task_of(seed.kind).storage.keep(output, seed, maps=form == MAPS)
        except Exception:  # noqa: BLE001 - a task may come from a plug-in; its case is asked again if needed
            return None
        return None if data is None else KeptAnswer.of(data, form)

    def with_facts(self, answer: SystemAnswer, content: Any, facts: Any) -> SystemAnswer:
        """Return an answer with the facts read from it; an answer on which the reader failed is an ERROR."""
        return answer if self.reader is None else _read(answer, content, facts, self.reader.reader)

    def unit(self, ref: SeedRef) -> Unit:
        """Return the unit of one seed, as defined by the plan."""
        return Plan((ref,), self.relations, self.batch_size).unit(0, 0)

    def refs(self) -> list[tuple[int, SeedRef]]:
        """Return all seeds, each with the number of its seed source.

        Raises:
            UserMistakes: A seed is unusable.
        """
        return [(number, ref) for number, source in enumerate(self.sources) for ref in source.refs()]

    def needed_refs(
        self, *, limit: int | None = None, only: Selection | None = None, needed: Collection[SeedKey] | None = None
    ) -> list[tuple[int, SeedRef]]:
        """Return all seeds in their places, like :meth:`refs`, but check only the needed ones.

        Args:
            limit: First N seeds of each data set that the caller needs.
            only: Part of the plan that the caller needs.
            needed: Data sets and ids of the seeds that the caller needs, instead of ``limit`` and ``only``.

        Raises:
            UserMistakes: A needed seed is unusable.
        """
        refs = [(number, ref) for number, source in enumerate(self.sources) for ref in source.places()]
        if needed is None:
            needed = self.plan(refs).needed(limit=limit, only=only or Selection())
        check_needed(self.sources, needed)
        return refs

    def plan(self, refs: Sequence[tuple[int, SeedRef]]) -> Plan:
        """Return the plan of seeds listed by :meth:`refs`."""
        return Plan([ref for _, ref in refs], self.relations, self.batch_size)

    def prepared(self, source: int, ref: SeedRef) -> PreparedSeed:
        """Load and prepare a seed."""
        return self.prepare(self.sources[source].load(ref))

    def prepare(self, seed: Seed) -> PreparedSeed:
        """Prepare a loaded seed."""
        settings = self.suite.prepare
        prepared = prepare(seed, size=settings.size, resize=settings.resize)
        return replace(prepared, peers=self._peers(seed.ref.dataset)) if self.suite.controls else prepared

    def _peers(self, dataset: str) -> Peers | None:
        """Return the usable cases of a data set, which controls show instead of one another."""
        if dataset not in self._by_dataset:
            for number, source in enumerate(self.sources):
                places = source.places()
                bad = source.faults().of_seeds
                usable: dict[str, list[SeedRef]] = {}
                for ref in places:
                    if (ref.dataset, ref.seed_id) not in bad:
                        usable.setdefault(ref.dataset, []).append(ref)
                for name, refs in usable.items():
                    self._by_dataset[name] = Peers(refs, partial(self.prepared, number))
        return self._by_dataset.get(dataset)

    def make(self, seed: PreparedSeed, address: Address, system: int = 0) -> MadeCase:
        """Make one case's image; exceptions of a relation become verdicts.

        Args:
            seed: The prepared source case.
            address: The case.
            system: For a crafted case: place in the suite of the system whose run stores it.
        """
        if address.is_source:
            follow = with_facts(seed, FollowUp(image=seed.image, prompt=seed.prompt, params={}, scale=0.0))
            return _made_case(seed, address, follow, seed.sha256)
        relation = self.relations[address.relation]
        if isinstance(relation, CraftedRelation):
            return self._stored_crafted(seed, address, system)
        if query_at(relation, address) is not None:
            return self._recorded_query(seed, address, system, relation)
        stored = None if self._stored is None else self._stored.find(seed, address)
        case = self.make_by(seed, address, lambda: stored or follow_up(relation, seed, address, self.suite.seed))
        if stored is not None and case.follow is not None and relation.frames() > 1 and case.sha256 == seed.sha256:
            # A stored first frame is a copy; a made one is the source image itself, which is not asked about again.
            return replace(case, follow=replace(case.follow, image=seed.image))
        return case

    def make_by(self, seed: PreparedSeed, address: Address, make: Callable[[], FollowUp]) -> MadeCase:
        """Make one case's image with a function; its exceptions become verdicts."""
        try:
            follow = make()
            check_follow_up(follow, seed)
            follow = with_facts(seed, follow)
        except Exception as error:  # noqa: BLE001 - a relation may come from a plug-in; its failure is a verdict
            return not_made(address, error)
        follow.image.setflags(write=False)  # all systems share it
        sha256 = seed.sha256 if follow.prompt is None and follow.image is seed.image else follow.sha256
        return _made_case(seed, address, follow, sha256)

    def _recorded_query(self, seed: PreparedSeed, address: Address, system: int, relation: Relation) -> MadeCase:
        """Make the follow-up of a search's query from its record; nothing is searched again."""
        row = None if self.crafted is None else self.crafted.row(system, seed, address)
        if row is not None and row["followup_sha256"]:
            params = json.loads(row["params"] or "{}")
            return self.make_by(
                seed, address, lambda: on_any_image(relation, seed, lambda coloured: relation.apply(coloured, params))
            )
        code = ReasonCode.NOT_APPLICABLE if row is not None else ReasonCode.FOLLOW_UP_NOT_STORED
        text = "a search chose it from a system's answers, and no run recorded it" if row is None else row["reason"]
        return MadeCase(address=address, follow=None, verdict=Verdict.SKIP, reason=Reason(code, text))

    def pixels(self, sha256: str) -> Image | None:
        """Return a picture drawn by a system, uint8 H×W×3; None if no run's folder holds it any more."""
        for files in self.drawn:
            with suppress(DamagedFile):
                return files.read("images", sha256)
        return None

    def owner(self, address: Address, system: int) -> int:
        """Return the system that a case belongs to: its own if it is crafted or searched, else the first for all."""
        relation = self.relations.get(address.relation)
        own = isinstance(relation, CraftedRelation) or query_at(relation, address) is not None
        return system if own else 0

    def _stored_crafted(self, seed: PreparedSeed, address: Address, system: int) -> MadeCase:
        crafted = None if self.crafted is None else self.crafted.find(system, seed, address)
        if isinstance(crafted, FollowUp):
            crafted.image.setflags(write=False)
            return _made_case(seed, address, with_facts(seed, crafted), image_sha256(crafted.image))
        recorded = None if self.crafted is None or crafted else self.crafted.look(system, seed, address)
        if crafted:
            reason = Reason(ReasonCode.NOT_APPLICABLE, crafted)
        elif recorded is None or not recorded.problem:
            reason = Reason(ReasonCode.FOLLOW_UP_NOT_STORED, "it was crafted on a system, and no run stored its pixels")
        else:
            text = f"it was crafted on a system, and its stored pixels are lost: {recorded.problem}"
            reason = Reason(ReasonCode.FOLLOW_UP_LOST, text)
        return MadeCase(address=address, follow=None, verdict=Verdict.SKIP, reason=reason)


def _read(answer: SystemAnswer, content: Any, facts: Any, reader: BatchReader[Any, Any]) -> SystemAnswer:
    if isinstance(facts, Unreadable):
        reason = Reason(ReasonCode.READER_ERROR, f"reader: {facts.reason}")
        return replace(answer, output=None, unread=answer.output, verdict=Verdict.ERROR, reason=reason)
    output = None if answer.output is None else answer.output.read_as(facts)
    return replace(answer, output=output, texts=reader.texts(content, facts))


def _made_case(seed: PreparedSeed, address: Address, follow: FollowUp, sha256: str) -> MadeCase:
    return MadeCase(address=address, follow=follow, sha256=sha256, kind=seed.kind, spec=seed.spec, classes=seed.classes)


def with_facts(seed: PreparedSeed, follow: FollowUp) -> FollowUp:
    """Return a follow-up with the facts of its task."""
    facts = task_of(seed.kind).border.facts(seed, follow)
    return replace(follow, facts={**follow.facts, **facts}) if facts else follow


def check_follow_up(follow: object, seed: PreparedSeed) -> None:
    """Check the result of a relation.

    Raises:
        BadOutput: It is not a follow-up of this seed.
    """
    if not isinstance(follow, FollowUp):
        raise BadOutput(f"gave {type(follow).__name__} where a FollowUp is expected")
    image = follow.image
    if (follow.prompt is None) != (seed.prompt is None):
        actual, expected = ("an image", "a prompt") if follow.prompt is None else ("a prompt", "an image")
        raise BadOutput(f"gave {actual} where {expected} is expected")
    if not isinstance(image, np.ndarray):
        raise BadOutput(f"gave {type(image).__name__} as an image")
    if image.shape != seed.image.shape or image.dtype != seed.image.dtype:
        raise BadOutput(
            f"gave an image of shape {image.shape}, {image.dtype}; {seed.image.shape}, {seed.image.dtype} is expected"
        )
    if not math.isfinite(follow.scale):
        raise BadOutput(f"gave the scale {follow.scale}")
    try:
        params_text(follow.params)
    except (TypeError, ValueError) as error:
        raise BadOutput(f"gave parameters that JSON cannot hold: {error}") from error


def answers(system: System, cases: Sequence[MadeCase], began: Callable[[], None]) -> list[SystemAnswer]:
    """Ask a system about one batch, or one by one if the batch raised, so that one bad case does not fail the others.

    Args:
        system: The opened system.
        cases: Cases that have an image.
        began: Called before every call of the system, at which the time limit starts.
    """
    try:
        return _ask(system, cases, began)
    except BaseException:  # noqa: BLE001, S110 - the system under test may raise anything, SystemExit too
        pass
    results: list[SystemAnswer] = []
    for case in cases:
        started = time.perf_counter()
        try:
            results += _ask(system, (case,), began)
        except BaseException as error:  # noqa: BLE001 - as above; this is what a verdict ERROR means
            elapsed = 1000.0 * (time.perf_counter() - started)
            code = ReasonCode.INVALID_ANSWER if isinstance(error, BadOutput) else ReasonCode.SYSTEM_ERROR
            reason = Reason(code, describe(error))
            results.append(SystemAnswer(output=None, verdict=Verdict.ERROR, reason=reason, elapsed_ms=elapsed))
    return results


def _ask(system: System, cases: Sequence[MadeCase], began: Callable[[], None]) -> list[SystemAnswer]:
    images = [case.follow.image for case in cases if case.follow is not None]
    began()
    started = time.perf_counter()
    addresses = [case.address for case in cases]
    raw_answers = system.answer_batch(images, [case.spec for case in cases], addresses)
    elapsed = 1000.0 * (time.perf_counter() - started) / len(cases)
    try:
        count = len(raw_answers)
    except TypeError:
        raise BadOutput(f"gave {type(raw_answers).__name__} where one answer per image is expected") from None
    if count != len(cases):
        raise BadOutput(f"gave {count} answers for {len(cases)} images")
    with_image = [case for case in cases if case.follow is not None]
    return [_checked(system, answer, case, elapsed) for answer, case in zip(raw_answers, with_image, strict=True)]


def _checked(system: System, answer: RawAnswer, case: MadeCase, elapsed_ms: float) -> SystemAnswer:
    if isinstance(answer, Missing):
        reason = Reason(ReasonCode.NO_PREDICTION, answer.reason)
        return SystemAnswer(output=None, verdict=Verdict.SKIP, reason=reason)
    try:
        output = _output(system, answer, case)
    except BadOutput as error:
        count = error.count if isinstance(error, OtherClasses) else 0
        reason = Reason(ReasonCode.INVALID_ANSWER, str(error))
        return SystemAnswer(output=None, verdict=Verdict.ERROR, reason=reason, elapsed_ms=elapsed_ms, classes=count)
    return SystemAnswer(output=output, elapsed_ms=elapsed_ms)


def _output(system: System, answer: RawAnswer, case: MadeCase) -> Output:
    if case.follow is None:
        raise BadOutput("answered a case that has no image")
    system_input = SystemInput(image=case.follow.image, spec=case.spec, classes=case.classes)
    return case.task.border.check(answer, system_input, system)
