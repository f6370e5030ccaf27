"""Base class of seed sources, and the problems they report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from medtest.core.cases import Classes, Seed, SeedRef
from medtest.core.errors import Mistake, UserMistakes
from medtest.core.plugins import Part, PartSettings

SeedKey: TypeAlias = tuple[str, str]
"""Data set and seed id."""

MOST_REPORTED = 1000
"""Most unusable files that a report names; further ones are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedProblem:
    """A file that cannot be a seed.

    Attributes:
        file: Path relative to the source's root.
        reason: The problem, in one phrase.
        line: Line of a table; None for a whole file.
        key: Setting or column concerned, or "".
        allowed: Allowed values.
        skipped: Whether ``on_bad_seed: skip`` leaves it out.
    """

    file: str
    reason: str
    line: int | None = None
    key: str = ""
    allowed: str = ""
    skipped: bool = True

    @property
    def where(self) -> str:
        """File name, with the line number for a row of a table."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def as_mistake(self) -> Mistake:
        """Return the problem as an entry of an error report."""
        return Mistake(where=self.file, line=self.line, key=self.key, found=self.reason, allowed=self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedFaults:
    """Unusable files and rows, by the seeds that they affect.

    Attributes:
        of_seeds: Problems by data set and seed id of each seed that cannot be used.
        others: Problems that belong to no seed: a mask without image, an unreadable folder.
    """

    of_seeds: Mapping[SeedKey, tuple[SeedProblem, ...]] = field(default_factory=dict)
    others: tuple[SeedProblem, ...] = ()

    def all(self) -> tuple[SeedProblem, ...]:
        """Return every problem."""
        every = (*self.others, *(problem for problems in self.of_seeds.values() for problem in problems))
        return tuple(dict.fromkeys(every))


@dataclass(slots=True, kw_only=True)
class Remarks:
    """Problems and notices collected while files are inspected.

    Attributes:
        problems: Files and rows that cannot be used.
        notices: Further remarks for the user.
        ignored: Leftovers of operating systems and thumbnails that were skipped.
    """

    problems: list[SeedProblem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    ignored: int = 0

    def take(self, other: Remarks) -> None:
        """Add the remarks of another inspection."""
        self.problems += other.problems
        self.notices += other.notices
        self.ignored += other.ignored


class SeedSource(Part, ABC):
    """Base class of seed sources. Listing is cheap; cases are loaded one at a time.

    Args:
        dataset: Id of the seeds entry in the suite; a source with several data sets derives their ids from folders.
        settings: An instance of the class's ``Settings``.
        root: The user's folder (``data=PATH``), for sources with ``needs_root`` or ``takes_root``.
        suite_seed: The suite's ``seed``, for sources that generate their images.

    Attributes:
        task: Name of the task that the seeds are for ("mask", "image", "region", "label", "answer", …).
        needs_root: Whether the source reads the user's folder.
        takes_root: Whether the source reads the user's folder if there is one, and its own images otherwise.
        phantom: Whether the images are synthetic; tables say so.
    """

    Settings: ClassVar[type[PartSettings]] = PartSettings
    task: ClassVar[str] = "mask"
    needs_root: ClassVar[bool] = False
    takes_root: ClassVar[bool] = False
    phantom: ClassVar[bool] = False

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        self.dataset = dataset
        self.settings = settings
        self.root = root
        self.suite_seed = suite_seed

    def refs(self) -> Sequence[SeedRef]:
        """Return every seed in a fixed order (data set, then natural name order), checked but not loaded.

        Subclasses implement this method, or :meth:`places` and :meth:`faults` if files can be unusable.

        Raises:
            UserMistakes: Files cannot be used and ``on_bad_seed`` is ``stop``; one report lists every file.
        """
        if problems := self.faults().all():
            raise self.refusal(problems)
        return self.places()

    def places(self) -> Sequence[SeedRef]:
        """Return every seed in its place, including those that cannot be used.

        ``limit`` counts places; :meth:`faults` names the seeds that cannot be loaded. Defaults to :meth:`refs`.
        """
        return self.refs()

    def faults(self) -> SeedFaults:
        """Return the problems that stop a call using the affected seed; available after :meth:`places`."""
        return SeedFaults()

    def unread(self) -> frozenset[SeedKey]:
        """Return the seeds of which only file headers were read, in a command with a time limit."""
        return frozenset()

    def refusal(self, problems: Sequence[SeedProblem]) -> UserMistakes:
        """Return a single error report on all unusable files."""
        return stop_at(problems)

    @abstractmethod
    def load(self, ref: SeedRef) -> Seed:
        """Load one seed. Thread- and process-safe."""

    @abstractmethod
    def digest(self) -> str:
        """Return a SHA-256 over everything that determines the seeds (file contents, or generator and settings)."""

    def classes(self) -> Classes | None:
        """Return the classes found by :meth:`refs` for seeds of kind ``label``; None for other sources."""
        return None

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files left out under ``on_bad_seed: skip``; available after :meth:`refs`."""
        return ()

    def notices(self) -> Sequence[str]:
        """Return remarks about the seeds for the user; available after :meth:`refs`."""
        return ()


def stop_at(problems: Sequence[SeedProblem]) -> UserMistakes:
    """Return a single error report on all unusable files."""
    count = len({problem.where for problem in problems})
    files = "1 file" if count == 1 else f"{count:,} files"
    hint = " (on_bad_seed: skip leaves them out)" if any(problem.skipped for problem in problems) else ""
    if len(problems) > MOST_REPORTED:
        hint += f", the first {MOST_REPORTED:,} problems shown"
    return UserMistakes(
        [problem.as_mistake() for problem in problems[:MOST_REPORTED]],
        heading=f"{files} of the data cannot be used{hint}",
    )
