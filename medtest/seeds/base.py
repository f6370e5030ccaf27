"""What a source of seeds is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from medtest.cases import Classes, Seed, SeedRef
from medtest.plugins import Part, PartSettings, renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedProblem:
    """A file that cannot be a seed.

    Attributes:
        file: Path relative to the source's root.
        reason: What is wrong with it, in one phrase.
    """

    file: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Remarks:
    """What a look at files has to say beside what was looked for.

    Attributes:
        problems: Files and rows that cannot be used.
        notices: What else is to know.
        ignored: Leftovers of operating systems and thumbnails that were passed over.
    """

    problems: list[SeedProblem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    ignored: int = 0

    def take(self, other: Remarks) -> None:
        """Add the remarks of a look at some of the files."""
        self.problems += other.problems
        self.notices += other.notices
        self.ignored += other.ignored


class SeedSource(Part, ABC):
    """Where source cases come from. Listing is cheap, loading is one case at a time.

    Args:
        dataset: Id of the seeds entry in the suite; a source with several data sets derives theirs from folders.
        settings: An instance of the class's ``Settings``.
        root: The user's folder (``data=PATH``), for sources with ``needs_root``.
        suite_seed: The suite's ``seed``, for sources that make their images.

    Attributes:
        task: Name of the task that the seeds are for ("mask", "image", "region", "label", "answer", …).
        needs_root: Whether the source reads the user's folder.
        phantom: Whether the images are made and not real; tables say so.
    """

    Settings: ClassVar[type[PartSettings]] = PartSettings
    task: ClassVar[str] = "mask"
    needs_root: ClassVar[bool] = False
    phantom: ClassVar[bool] = False

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        if renamed(cls, "output_kind", "task"):
            cls.task = str(vars(cls)["output_kind"])

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        self.dataset = dataset
        self.settings = settings
        self.root = root
        self.suite_seed = suite_seed

    @abstractmethod
    def refs(self) -> Sequence[SeedRef]:
        """Return every seed in a fixed order (data set, then natural name order), checked and not loaded.

        Raises:
            UserMistakes: Files cannot be used and ``on_bad_seed`` is ``stop``; one report names every file.
        """

    @abstractmethod
    def load(self, ref: SeedRef) -> Seed:
        """Load one seed. Thread- and process-safe."""

    @abstractmethod
    def digest(self) -> str:
        """Return a SHA-256 over everything that determines the seeds (file contents, or generator and settings)."""

    def classes(self) -> Classes | None:
        """Return the classes of seeds of kind ``label`` where :meth:`refs` finds them; None where it does not."""
        return None

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files left out under ``on_bad_seed: skip``; known after :meth:`refs`."""
        return ()

    def notices(self) -> Sequence[str]:
        """Return what the user should know of the seeds beyond the files left out; known after :meth:`refs`."""
        return ()
