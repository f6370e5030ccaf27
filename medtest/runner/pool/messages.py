"""What parent and workers say to one another through their pipes; images never pass here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from medtest.core.cases import Output, SeedRef
from medtest.core.errors import ExitCode
from medtest.runner.records.answers import KeptAnswer
from medtest.suite.model import Invocation, KeptFollowUps, Suite
from medtest.systems.answering.asking import BudgetLimits

SHARED = -1
"""Stands for "all systems" or "the whole unit" in a :class:`Place`."""

Place: TypeAlias = "tuple[int, int]"
"""(system index or SHARED, batch index or SHARED): what a worker is busy with inside a unit."""


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
        strata: Names of the metadata's columns that stratify tables.
        send_seconds: Time it may keep rows to itself.
        hide: Texts that must not show in reasons (the data root, the home folder), with what stands for them.
        kept: Where follow-ups may be taken from instead of being made.
        folders: The systems' folders, where what they were asked and what it cost is kept.
        shared: A folder that runs share, where answers are kept by content.
        budget: What each system may spend.
        cache: Whether answers by content are taken.
        store: Folder of a store of follow-ups that are made, as text.
        crafted: Where crafted follow-ups are taken from instead of being crafted; None where a run crafts its own.
        word_key: Key by which words of prompts are hidden, or None where they are shown.
        batch_seconds: Longest time for one batch of a reader that reads in processes of its own.
        readers: How many such processes, on a CPU; 0 for one a core.
        as_needed: Systems are opened when one is asked, which drawing pictures of stored answers never does.
        session: ``module:class`` of what does the work, a :class:`medtest.runner.units.session.Session`.
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
        """Return what a call of a suite tells its workers; ``more`` are further attributes."""
        home, data = invocation.home.resolve(), invocation.data
        hide = [(str(home), "…"), (str(Path.home()), "~")]
        if data is not None:
            hide += [(str(data), "…"), (str(data.resolve()), "…")]
        given: dict[str, Any] = {
            "data": None if data is None else str(data),
            "batch_size": invocation.batch_size,
            "threads": invocation.threads or 1,
            "strata": (),
            "send_seconds": 1.0,
            "hide": tuple(hide),
        }
        return cls(suite=suite, hash_key=hash_key, **{**given, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTask:
    """What a worker is handed: something to do with one seed.

    Attributes:
        index: Its number, of units the unit's.
        source: Which seed source the seed comes from.
        ref: The seed.
        given_up: Places that hung or crashed, with the reason their cases get.
        lost: What is said of a task whose worker died; "" where it is handed out again, what it hung on given up.
    """

    lost: ClassVar[str] = ""
    index: int
    source: int
    ref: SeedRef
    given_up: dict[Place, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTask(PoolTask):
    """Run a unit.

    Attributes:
        todo: One ``bytes`` per system, a 1 for every case that is to be recorded.
    """

    todo: tuple[bytes, ...]


class StoredCase(NamedTuple):
    """A case whose record is made again.

    Attributes:
        case: Its index in the unit.
        row: Its record as it stands, in the order of the schema.
        answer: What the run kept of its answer; None where there was none.
        wanted: Whether it is judged again; else it is a source whose follow-ups are.
    """

    case: int
    row: tuple[Any, ...]
    answer: bytes | None
    wanted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask(PoolTask):
    """Judge stored answers of one system to one seed again.

    Attributes:
        unit: The unit's number.
        system: The system's index.
        cases: What is judged, sources first.
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
        words: Of questions: headings and texts that stand beside the pictures.
        answers: The answers to source and follow-up, where records hold them.
        stored: What the folder keeps of those answers; the system is not asked again then.
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
        folder: Where the pictures go.
        stem: How their names begin.
        title: What stands above them, before the scale.
    """

    case: int
    folder: str
    stem: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StripTask(PoolTask):
    """Draw sample strips of one seed, and montages of it.

    Attributes:
        strips: What to draw.
        montages: What to draw of all systems together.
        volumes: What to draw of volumes, if the seed is one.
    """

    lost: ClassVar[str] = "Sample strips of one seed could not be drawn"
    strips: tuple[Strip, ...]
    montages: tuple[Montage, ...] = ()
    volumes: tuple[VolumePicture, ...] = ()


@dataclass(frozen=True, slots=True)
class Halt:
    """To a worker whose systems are asked questions: draw nothing further, and let calls under way end.

    Attributes:
        index: It stands where tasks have their number.
    """

    index: int = SHARED


@dataclass(frozen=True, slots=True)
class Device:
    """The worker knows where its systems will run; it has not loaded them."""

    device: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has loaded every system.

    Attributes:
        memory: Its resident bytes.
    """

    memory: int


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


Row: TypeAlias = "tuple[int, int, tuple[Any, ...], KeptAnswer | None]"
"""(system index, case index in the unit, values in the order of the schema, what is kept of the answer)."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of a unit, or of a part of it.

    Attributes:
        index: The unit's number.
        content: A list of :data:`Row`; what another session makes of it.
    """

    index: int
    content: Any


@dataclass(frozen=True, slots=True)
class Done:
    """The task is finished and all its rows are sent.

    Attributes:
        index: Its number.
        memory: Resident bytes of the worker.
        errors: What could not be done, for the user.
    """

    index: int
    memory: int
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spent:
    """A system that is asked questions has stopped before its cases were done: its budget is reached, mostly.

    Attributes:
        system: Its index.
        text: Why, for the user.
        code: The exit code that says so.
    """

    system: int
    text: str
    code: ExitCode


@dataclass(frozen=True, slots=True)
class Told:
    """How far the calls of a system are.

    Attributes:
        system: Its index.
        text: In a few words.
    """

    system: int
    text: str


@dataclass(frozen=True, slots=True)
class LoadedModules:
    """The worker imported modules that another may begin with; taken by what started it.

    Attributes:
        modules: Their names, in the order in which they came.
    """

    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """Made by the parent's reader when a worker's pipe closes."""


Message: TypeAlias = "Device | Ready | Failed | Begin | TaskResult | Done | Spent | Told | Gone"
