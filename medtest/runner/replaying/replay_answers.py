"""Reconstruction of a case with its systems: ask each, score its answers, and draw a strip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from medtest.core.cases import Address, SeedRef
from medtest.core.errors import MedtestError
from medtest.runner.folder import output_problems
from medtest.runner.pictures.samples import Sample, sample_of, score_columns
from medtest.runner.pool.dispatch import Dispatcher
from medtest.runner.pool.layout import Layout, device_is_certain
from medtest.runner.pool.messages import Job, PoolTask, Row, Strip, StripTask, UnitTask
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.records.rows import records_schema
from medtest.runner.replaying.crafted_runs import crafted_runs
from medtest.runner.replaying.replay import find
from medtest.runner.reporting.outcome import Limits
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Suite


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Answer of one system to a reconstructed case.

    Attributes:
        system: Its name in records.
        file: The strip: source, follow-up, truth and both answers.
        verdict: By the suite's primary criterion; "" for systems that answer questions, which are not asked again.
        words: The score before and after, or the reason for its absence.
    """

    system: str
    file: Path
    verdict: str = ""
    words: str = ""


def replay_strips(
    suite: Suite, invocation: Invocation, address: str | Address, folder: Path, *, scratch: Path | None = None
) -> tuple[Answered, ...]:
    """Reconstruct one case, ask every system of the suite, score its answers and draw a strip for each.

    The case's whole batch is inferred, as in a run, so that scores equal those of the records. Strips name the seed
    according to the suite's privacy settings.

    Args:
        suite: Its suite, with its systems.
        invocation: Location of the user's data, and the device.
        address: As in :func:`medtest.runner.replaying.replay.replay_case`.
        folder: Folder for ``strip-<system>.png``.
        scratch: As in :func:`medtest.runner.replaying.replay.replay_case`.

    Raises:
        UserMistakes: The suite has no such case.
        MedtestError: A system cannot be loaded, or the strip cannot be drawn.
    """
    parts = Parts(suite, invocation.data, invocation.batch_size)
    place = find(suite, invocation, parts, address)
    names = ShownNames.of(suite.privacy, invocation.home)
    again = _Again(suite, parts, place, folder, names)
    with output_problems(folder / "strip.png"):
        folder.mkdir(parents=True, exist_ok=True)
    needed = any(type(system).needs_device for system in suite.build_systems().values())
    device = device_is_certain(invocation.device, needed=needed) or "auto"
    runs = crafted_runs(suite, invocation, parts)
    if runs is not None and scratch is not None and scratch.is_dir():  # cases that replay_case crafted again
        relation = parts.unit(place[1]).cases[place[2]].relation
        scratch_folders = {
            (n, relation): (*runs.more.get((n, relation), ()), scratch) for n in range(len(suite.systems))
        }
        runs = replace(runs, more={**runs.more, **scratch_folders})
    job = Job.of(suite, invocation, hash_key=names.key, device=device, hide=(), crafted=runs)
    dispatcher = Dispatcher(
        job=job,
        tasks=again.questions(),
        batch_seconds=invocation.batch_seconds,
        limits=Limits(),
        result=again.take,
        renew=again.left,
        layout=lambda _device: Layout(workers=1, threads=job.threads),
        more=again.strips,
    )
    dispatcher.run()
    answered = again.answered()
    missing = [answer.file.name for answer in answered if not answer.file.is_file()]
    if missing:
        raise MedtestError(" ".join(dispatcher.notices) or f"{', '.join(missing)} could not be drawn.")
    return answered


class _Again:
    """One case of a suite: its questions, answers, and strips to draw.

    Args:
        suite: The suite.
        parts: Its parts.
        case_place: Position of the case.
        folder: Folder of the strips.
        names: Display of seeds.
    """

    def __init__(
        self, suite: Suite, parts: Parts, place: tuple[int, SeedRef, int], folder: Path, names: ShownNames
    ) -> None:
        self._source, self._ref, self._case = place
        self._shown_id = names.seed_id(self._ref.dataset, self._ref.seed_id)
        self._cases = parts.unit(self._ref).cases
        self._silent = suite.task.stream  # asking a question again would cost money, and may give another answer
        systems = [system.record_name for system in suite.build_systems().values()]
        self._shown = [Answered(system=name, file=(folder / f"strip-{name}.png").resolve()) for name in systems]
        self._judged: dict[int, Sample] = {}
        self._columns = records_schema(parts.oracle, (), crafts=suite.crafts, searches=suite.searches).names
        self._compared = score_columns(parts.oracle, suite.oracle.primary)

    def questions(self) -> Iterator[PoolTask]:
        """Yield the task to ask every system."""
        if not self._silent:
            todo = bytes(int(index == self._case) for index in range(len(self._cases)))
            yield UnitTask(index=0, source=self._source, ref=self._ref, todo=(todo,) * len(self._shown))

    def take(self, rows: list[Row], _unit: int) -> None:
        """Store records of the case, one per system."""
        for number, _, row, _ in rows:
            record = dict(zip(self._columns, row, strict=True))
            self._judged[number] = sample_of(record, self._compared, kind="", place=self._case, file="")

    def left(self, task: UnitTask) -> UnitTask | None:
        """Return an unfinished task of a dead worker with the remaining systems."""
        todo = tuple(bytes(len(flags)) if number in self._judged else flags for number, flags in enumerate(task.todo))
        return replace(task, todo=todo) if any(map(any, todo)) else None

    def strips(self) -> Iterator[PoolTask]:
        """Return the task to draw the strips, with the results known by then."""
        strips = []
        for number, answer in enumerate(self._shown):
            address = replace(self._cases[self._case], seed_id=self._shown_id)
            title, detail = f"{address}  \N{MIDDLE DOT}  {answer.system}", ""
            if number in self._judged:
                title, detail = self._judged[number].caption(answer.system)
            strips.append(Strip(number, self._case, str(answer.file), title, detail))
        return iter([StripTask(index=1, source=self._source, ref=self._ref, strips=tuple(strips))])

    def answered(self) -> tuple[Answered, ...]:
        """Return every system's answer to the case."""
        return tuple(
            replace(
                answer, verdict=str(self._judged[number].verdict), words=self._judged[number].caption(answer.system)[1]
            )
            if number in self._judged
            else answer
            for number, answer in enumerate(self._shown)
        )
