"""Session of a worker after it received its job: open the systems, run units, draw strips."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import cv2
import psutil

from medtest.core.errors import MedtestError, OutputProblem, UserMistakes
from medtest.core.files.by_content import PictureFiles
from medtest.core.records import PICTURES
from medtest.runner.pool.layout import resolve_device, usable_cores
from medtest.runner.pool.messages import Device, Done, Failed, Halt, Job, Message, Ready, StripTask, UnitTask
from medtest.runner.privacy.hidden_words import HiddenWords
from medtest.runner.privacy.rules import Scrubber, ShownNames
from medtest.runner.records.crafted import CraftedCases
from medtest.runner.records.rows import RowMaker
from medtest.runner.units.asking import AskingRunner
from medtest.runner.units.crafting import Crafter
from medtest.runner.units.execute import UnitRunner
from medtest.runner.units.made_case import describe
from medtest.runner.units.open_units import Outbox, Recorder
from medtest.runner.units.parts import Parts
from medtest.runner.units.searching.searcher import Searcher
from medtest.runner.units.seeing import ReadingStage
from medtest.suite.digest import system_digest
from medtest.systems.answering.asking import draws_calls
from medtest.systems.base import System


class Session:
    """Session of a worker.

    Args:
        job: Its job.
        send: Sends a message through the pipe to the parent.
        own_process: True if the process belongs to the worker alone, so that it may set torch's number of threads.
    """

    def __init__(self, job: Job, send: Callable[[Message], None], *, own_process: bool = True) -> None:
        self._job = job
        self._own_process = own_process
        self.send = send
        self._process = psutil.Process()
        self._extra: list[System] = []
        cv2.setNumThreads(1)

    def open(self) -> bool:
        """Load the required parts and report it; on failure report the reason to the parent and return False."""
        try:
            self._load()
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; the parent reports it
            self.send(Failed(_picklable_error(error, "a worker could not start")))
            return False
        self.send(Ready())
        return True

    def _load(self) -> None:
        job = self._job
        device = resolve_device(job.device)
        self.send(Device(device))
        self._build()
        self._systems = list(job.suite.build_systems().values())
        self._opened = _OpenedSystems(lambda number: self._open_system(number, device))
        for number in range(len(self._systems)) if not job.as_needed else ():
            self._opened[number]
        try:
            shared = Path(job.shared) if job.shared else None
            self.parts.open_reader(device=device, threads=job.threads, shared=shared, cache=job.cache)
        except Exception as error:
            raise _picklable_error(error, "the suite's reader cannot be loaded") from error
        self._use_threads(device)
        crafts = job.suite.crafts
        outbox = Outbox(self.send, job.send_seconds)
        recorder = Recorder(
            parts=self.parts, systems=self._systems, maker=self._maker(), outbox=outbox, searcher=self._searcher()
        )
        # Strips show stored answers: nobody is asked.
        asks = bool(job.folders) and not job.as_needed
        asking = [system for system in self._systems if draws_calls(system)] if asks else []
        stage = self._stage(device) if asking else None
        self._asking = (
            AskingRunner(recorder, asking, self.names, self._memory, stage, job.batch_seconds) if asking else None
        )
        self._units = UnitRunner(recorder, self._crafter(device, outbox) if crafts and not job.as_needed else None)

    def _open_system(self, number: int, device: str) -> System:
        job, system = self._job, self._systems[number]
        if draws_calls(system) and not job.folders:
            return system  # only pictures are drawn, for which no system is asked
        try:
            if draws_calls(system):
                system.keep_in(Path(job.folders[number]), Path(job.shared), budget=job.budget, cache=job.cache)
            system.open(device=device, threads=job.threads)
        except Exception as error:
            raise _picklable_error(error, f"The system {system.record_name!r} cannot be loaded") from error
        self._use_threads(device)
        return system

    def _use_threads(self, device: str) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and device == "cpu" and self._own_process:
            torch.set_num_threads(self._job.threads)

    def _maker(self) -> RowMaker:
        """Return the row maker of the job's suite."""
        job = self._job
        return RowMaker(
            suite=(job.suite.name, job.suite.version),
            groups={name: relation.group for name, relation in self.parts.relations.items()},
            oracle=self.parts.oracle,
            strata=job.strata,
            names=self.names,
            scrub=self.scrub,
            crafts=job.suite.crafts,
            searched={name: relation for name, relation in self.parts.relations.items() if relation.searched},
            words=HiddenWords.of(job.suite, job.word_key),
        )

    def _stage(self, device: str) -> ReadingStage | None:
        """Return the reading stage for a reader with its own processes."""
        reader, job = self.parts.reader, self._job
        if reader is None or not reader.reader.own_processes:
            return None
        processes = 1 if device != "cpu" else max(1, job.readers or usable_cores())
        return ReadingStage(
            reader,
            job,
            device=device,
            processes=processes,
            fail=lambda error: self.send(Failed(_picklable_error(error, ""))),
        )

    def _build(self) -> None:
        """Build the suite's parts."""
        job = self._job
        self.parts = Parts(job.suite, None if job.data is None else Path(job.data), job.batch_size, stored=job.kept)
        self.names = ShownNames(job.hash_key)
        self.parts.crafted = job.crafted
        if job.crafted is None and job.folders:
            self.parts.crafted = CraftedCases([Path(folder) for folder in job.folders], self.names)
        self.parts.drawn = [PictureFiles(Path(folder) / PICTURES) for folder in job.folders]
        self.scrub = Scrubber(self.names, job.hide)

    def _searcher(self) -> Searcher | None:
        job = self._job
        if not job.suite.searches:
            return None
        return Searcher(parts=self.parts, folders=[Path(folder) for folder in job.folders], names=self.names)

    def _crafter(self, device: str, outbox: Outbox) -> Crafter:
        """Return the crafter, after opening the crafting systems that are not under test."""
        job, suite = self._job, self._job.suite
        plans = dict(zip((plan.id for plan in suite.systems), self._systems, strict=True))
        digests = {id(plans[plan.id]): system_digest(plan, plans[plan.id], suite.task) for plan in suite.systems}
        crafters: dict[str, System] = {}
        for name, system in suite.build_crafters().items():
            plan = suite.crafters[name]
            tested = next((plans[tested_plan.id] for tested_plan in suite.systems if tested_plan == plan), None)
            if tested is None and id(system) not in digests:
                system.open(device=device, threads=job.threads)
                self._extra.append(system)
                digests[id(system)] = system_digest(plan, system, suite.task)
            crafters[name] = tested or system
        keep = job.folders if suite.privacy.images != "none" else ()
        return Crafter(
            parts=self.parts,
            systems=self._systems,
            named=crafters,
            digests=digests,
            folders=[Path(folder) for folder in keep],
            began=outbox.begin,
            earlier=job.crafted,
        )

    def run(self, task: UnitTask | StripTask | Halt) -> None:
        """Run a task and report that it is done; calls of questions continue afterwards and report themselves."""
        if isinstance(task, Halt):
            if self._asking is not None:
                self._asking.halt()
            return
        errors: tuple[str, ...] = ()
        if isinstance(task, UnitTask) and self._asking is not None:
            self._asking.run(task)
            return
        if isinstance(task, UnitTask):
            try:
                self._units.run(task)
            except (UserMistakes, OutputProblem) as error:  # no further case would have an answer, or be stored
                self.send(Failed(error))
                return
        else:
            from medtest.runner.pictures.strips import draw_strips

            try:
                errors = draw_strips(self.parts, self._opened, task)
            except OutputProblem as error:  # a full disk is not the system's fault; the next call draws them
                errors = (str(error),)
        self.send(Done(task.index, self._memory(), errors))

    def close(self) -> None:
        """Close the systems after the last task."""
        if self._asking is not None:
            self._asking.close()
        closing = [system.close for system in (*self._opened.values(), *self._extra)]
        closing += [] if self.parts.reader is None else [self.parts.reader.close]
        for close in closing:
            with suppress(Exception):  # all records are safe; a system that fails to close does no harm
                close()

    def _memory(self) -> int:
        """Return the resident bytes of the process, 0 if it is not the worker's alone, because others may leak."""
        return int(self._process.memory_info().rss) if self._own_process else 0


class _OpenedSystems(dict[int, System]):
    """Systems by number, each opened at its first use."""

    def __init__(self, open_system: Callable[[int], System]) -> None:
        super().__init__()
        self._open = open_system

    def __missing__(self, number: int) -> System:
        self[number] = self._open(number)
        return self[number]


def _picklable_error(error: Exception, context: str) -> Exception:
    """Return an error that can be pickled and has a readable message."""
    if isinstance(error, MedtestError):
        import pickle

        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own object, made one line above
        except Exception:  # noqa: BLE001 - a subclass with its own constructor may not pickle
            return MedtestError(str(error))
        return error
    return MedtestError(f"{context}: {describe(error)}")
