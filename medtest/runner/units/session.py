"""What a worker does once it has its job: open the systems, run units, draw strips."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import cv2
import psutil

from medtest.errors import MedtestError, UserMistakes
from medtest.runner.pool.layout import resolve_device
from medtest.runner.pool.messages import Device, Done, Failed, Halt, Job, Message, Ready, Task, UnitTask
from medtest.runner.privacy import Scrubber, ShownNames
from medtest.runner.records.rows import RowMaker
from medtest.runner.units.asking import AskingRunner
from medtest.runner.units.execute import Outbox, UnitRunner
from medtest.runner.units.parts import Parts, describe
from medtest.systems.asking import draws_calls


class Session:
    """The life of a worker.

    Args:
        job: What it is for.
        send: Puts a message into the pipe to the parent.
        own_process: Whether the process is the worker's alone, so that it may say how many threads torch uses.
    """

    def __init__(self, job: Job, send: Callable[[Message], None], *, own_process: bool = True) -> None:
        self._job = job
        self._own_process = own_process
        self._send = send
        self._process = psutil.Process()
        cv2.setNumThreads(1)

    def open(self) -> bool:
        """Load the systems and say so; on failure tell the parent why and return False."""
        job = self._job
        try:
            device = resolve_device(job.device)
            self._send(Device(device))
            parts = Parts(job.suite, None if job.data is None else Path(job.data), job.batch_size, kept=job.kept)
            systems = list(job.suite.build_systems().values())
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; the parent reports it
            self._send(Failed(_portable(error, "a worker could not start")))
            return False
        for number, system in enumerate(systems):
            if draws_calls(system) and not job.folders:
                continue  # only pictures are drawn, for which nobody is asked
            try:
                if draws_calls(system):
                    system.keep_in(Path(job.folders[number]), Path(job.shared), budget=job.budget, cache=job.cache)
                system.open(device=device, threads=job.threads)
            except Exception as error:  # noqa: BLE001 - the system under test may raise anything
                self._send(Failed(_portable(error, f"The system {system.record_name!r} cannot be loaded")))
                return False
        try:
            shared = Path(job.shared) if job.shared else None
            parts.open_reader(device=device, threads=job.threads, shared=shared, cache=job.cache)
        except Exception as error:  # noqa: BLE001 - the reader may be anybody's plug-in
            self._send(Failed(_portable(error, "the suite's reader cannot be loaded")))
            return False
        torch = sys.modules.get("torch")
        if torch is not None and device == "cpu" and self._own_process:
            torch.set_num_threads(job.threads)
        names = ShownNames(job.hash_key)
        maker = RowMaker(
            suite=(job.suite.name, job.suite.version),
            groups={name: relation.group for name, relation in parts.relations.items()},
            oracle=parts.oracle,
            strata=job.strata,
            names=names,
            scrub=Scrubber(names, job.hide),
        )
        self._parts = parts
        self._systems = systems
        outbox = Outbox(self._send, job.send_seconds)
        asking = [system for system in systems if draws_calls(system)] if job.folders else []
        self._asking = AskingRunner(parts, asking, maker, outbox, names, self._memory) if asking else None
        self._units = UnitRunner(parts, systems, maker, outbox)
        self._send(Ready(self._memory()))
        return True

    def run(self, task: Task | Halt) -> None:
        """Run a task and report that it is done; questions go on being answered, and are reported on, after it."""
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
            except UserMistakes as error:  # seen in the first answers; no further case would have one
                self._send(Failed(error))
                return
        else:
            from medtest.runner.pictures.strips import draw_strips

            errors = draw_strips(self._parts, self._systems, task)
        self._send(Done(task.index, self._memory(), errors))

    def close(self) -> None:
        """Close the systems and end the process."""
        self.close_systems()
        sys.stdout.flush()
        os._exit(0)

    def close_systems(self) -> None:
        """Close the systems, once no task is left."""
        if self._asking is not None:
            self._asking.close()
        closing = [system.close for system in self._systems]
        closing += [] if self._parts.reader is None else [self._parts.reader.close]
        for close in closing:
            with suppress(Exception):  # all records are safe; a system that fails to close harms nobody
                close()

    def _memory(self) -> int:
        """Return the resident bytes of the process, 0 where it is not the worker's alone: others' leaks are not its."""
        return int(self._process.memory_info().rss) if self._own_process else 0


def _portable(error: Exception, what: str) -> Exception:
    """Return an error that can cross the pipe and whose message a person can read."""
    if isinstance(error, MedtestError):
        import pickle

        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own object, made one line above
        except Exception:  # noqa: BLE001 - a subclass with its own constructor may not pickle
            return MedtestError(str(error))
        return error
    return MedtestError(f"{what}: {describe(error)}")
