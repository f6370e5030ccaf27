"""Messages between parent and workers, sent through pipes; of images they only contain thumbnails."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from medtest.core.cases import Output, Reason, SeedRef
from medtest.core.errors import ExitCode
from medtest.runner.records.answers import KeptAnswer
from medtest.suite.model import Invocation, KeptFollowUps, Suite
from medtest.systems.answering.asking import BudgetLimits

SHARED = -1
"""Index for "all systems" or "the whole unit" in a :class:`Place`."""

Place: TypeAlias = "tuple[int, int]"
"""(system index or SHARED, batch index or SHARED): current work of a worker inside a unit."""


@dataclass(frozen=True, slots=True)
class Job:
    """First message to a worker: everything it needs to build its parts.

    Attributes:
        suite: The suite.
        data: The user's data root as text, or None.
        batch_size: Images per call of a system.
        device: ``cpu``, ``cuda:N`` or ``auto``.
        threads: Intra-op threads.
        hash_key: Key for hashed ids, or None for plain ones.
        strata: Names of the metadata columns that stratify tables.
        send_seconds: Longest time before rows are sent.
        hide: Texts to hide in reasons (the data root, the home folder), with their replacements.
        kept: Source of existing follow-ups.
        folders: The systems' folders, which hold their requests and costs.
        shared: A folder shared by runs that holds answers by content.
        budget: Spending limit of each system.
        cache: True to reuse answers by content.
        store: Folder of the store for new follow-ups, as text.
        crafted: Source of existing crafted follow-ups; None if the run crafts its own.
        word_key: Key by which words of prompts are hidden, or None to show them.
        batch_seconds: Longest time for one batch of a reader with its own processes.
        readers: Number of such processes on a CPU; 0 for one per core.
        as_needed: True to open systems only when asked, which drawing stored answers never does.
        session: ``module:class`` of the session, a :class:`medtest.runner.units.session.Session`.
    """

    suite: Suite
    data: str | None
    batch_size: int
    device: str
    threads: int
    hash_key: bytes | None
    strata: tuple[str, ...]
    send_seconds: float
    hide: tuple[tuple[str, str], ...]
    kept: KeptFollowUps | None = None
    folders: tuple[str, ...] = ()
    shared: str = ""
    budget: BudgetLimits = BudgetLimits()
    cache: str = "use"
    store: str = ""
    crafted: Any = None
    word_key: bytes | None = None
    batch_seconds: float = 60.0
    readers: int = 0
    as_needed: bool = False
    session: str = "medtest.runner.units.session:Session"

    @classmethod
    def of(cls, suite: Suite, invocation: Invocation, *, hash_key: bytes | None, **more: Any) -> Job:
        """Create the job for a call of a suite; ``more`` are further attributes."""
        home, data = invocation.home.resolve(), invocation.data
        hide = [(str(home), "…"), (str(Path.home()), "~")]
        if data is not None:
            hide += [(str(data), "…"), (str(data.resolve()), "…")]
        defaults: dict[str, Any] = {
            "data": None if data is None else str(data),
            "batch_size": invocation.batch_size,
            "threads": invocation.threads or 1,
            "strata": (),
            "send_seconds": 1.0,
            "hide": tuple(hide),
        }
        return cls(suite=suite, hash_key=hash_key, **{**defaults, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTask:
    """Task of a worker: work on one seed.

    Attributes:
        index: Its number, equal to the unit's for units.
        source: Seed source of the seed.
        ref: The seed.
        given_up: Places that hung or crashed, with the reason for their cases.
        lost: Message about a task whose worker died; "" to run it again without the places given up.
    """

    lost: ClassVar[str] = ""
    index: int
    source: int
    ref: SeedRef
    given_up: dict[Place, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTask(PoolTask):
    """Task to run a unit.

    Attributes:
        todo: One ``bytes`` per system, a 1 for every case to record.
    """

    todo: tuple[bytes, ...]


class StoredCase(NamedTuple):
    """Case whose record is made again.

    Attributes:
        case: Its index in the unit.
        row: Its present record, in the order of the schema.
        answer: The stored answer; None if there is none.
        wanted: True if it is judged again; otherwise it is a source whose follow-ups are.
    """

    case: int
    row: tuple[Any, ...]
    answer: bytes | None
    wanted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask(PoolTask):
    """Task to judge stored answers of one system to one seed again.

    Attributes:
        unit: The unit's number.
        system: The system's index.
        cases: The cases, sources first.
    """

    lost: ClassVar[str] = "Stored answers to one seed could not be judged again, their records stay as they are"
    unit: int
    system: int
    cases: tuple[StoredCase, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """One sample strip.

    Attributes:
        system: The system's index.
        case: The case's index in its unit.
        file: The PNG to write.
        title: First line of its caption.
        detail: Second line.
        words: For questions: headings and texts beside the pictures.
        answers: The answers to source and follow-up, if records hold them.
        stored: The stored forms of those answers; the system is then not asked again.
    """

    system: int
    case: int
    file: str
    title: str
    detail: str
    words: tuple[tuple[str, str], ...] = ()
    answers: tuple[Output | None, Output | None] = (None, None)
    stored: tuple[bytes | None, bytes | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Montage:
    """One image under every scale of a relation, with every system's answer.

    Attributes:
        cases: The cases' indices in their unit, by ascending severity.
        file: The PNG to write.
        title: First line.
    """

    cases: tuple[int, ...]
    file: str
    title: str


@dataclass(frozen=True, slots=True)
class VolumePicture:
    """One volume with every system's answer, as slices and as surfaces.

    Attributes:
        case: The case's index in its unit.
        folder: Folder of the pictures.
        stem: Beginning of their names.
        title: Title above them, before the scale.
    """

    case: int
    folder: str
    stem: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StripTask(PoolTask):
    """Task to draw sample strips and montages of one seed.

    Attributes:
        strips: Strips to draw.
        montages: Montages of all systems.
        volumes: Volume pictures, if the seed is a volume.
    """

    lost: ClassVar[str] = "Sample strips of one seed could not be drawn"
    strips: tuple[Strip, ...]
    montages: tuple[Montage, ...] = ()
    volumes: tuple[VolumePicture, ...] = ()


@dataclass(frozen=True, slots=True)
class Halt:
    """To a worker whose systems are asked questions: start no further calls, and finish running ones.

    Attributes:
        index: Placeholder for the number of a task.
    """

    index: int = SHARED


@dataclass(frozen=True, slots=True)
class Device:
    """The worker knows the device of its systems but has not loaded them."""

    device: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has loaded every system."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker could not start, a system cannot answer at all, or the disk is full.

    Attributes:
        error: A MedtestError, which ends the run.
    """

    error: Exception


@dataclass(frozen=True, slots=True)
class Begin:
    """The worker starts something that may take long."""

    index: int
    place: Place


Row: TypeAlias = "tuple[int, int, tuple[Any, ...], tuple[KeptAnswer, ...]]"
"""(system index, case index in the unit, values in the order of the schema, stored answer and thumbnails)."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result of a unit, or of a part of it.

    Attributes:
        index: The unit's number.
        content: A list of :data:`Row`, or the result type of another session.
    """

    index: int
    content: Any


@dataclass(frozen=True, slots=True)
class Done:
    """The task is finished and all its rows are sent.

    Attributes:
        index: Its number.
        memory: Resident bytes of the worker.
        errors: Failures, for the user.
    """

    index: int
    memory: int
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spent:
    """A system with paid calls stopped before its cases were done, usually because its budget is reached.

    Attributes:
        system: Its index.
        text: The reason, for the user.
        code: The exit code for it.
    """

    system: int
    text: str
    code: ExitCode


@dataclass(frozen=True, slots=True)
class Told:
    """Progress of the calls of a system.

    Attributes:
        system: Its index.
        text: A short description.
    """

    system: int
    text: str


@dataclass(frozen=True, slots=True)
class LoadedModules:
    """The worker imported modules that another worker may start with; used by the process that started it.

    Attributes:
        modules: Their names, in import order.
    """

    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """Sent by the parent's reader when a worker's pipe closes."""


Message: TypeAlias = "Device | Ready | Failed | Begin | TaskResult | Done | Spent | Told | Gone"
