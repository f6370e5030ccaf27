"""What a look at one data set gave, and the line that runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteLine:
    """How to run on a data set.

    Attributes:
        suite: Name of the suite.
        data: The folder for ``data=``, relative to the inspected path.
        settings: Further settings, as ``key=value``.
        sets: The data sets that it takes.
        maps: Folder of prediction maps that it reads, relative to the inspected path.
    """

    suite: str
    data: PurePosixPath = PurePosixPath(".")
    settings: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    maps: PurePosixPath | None = None

    def tokens(self, root: str) -> tuple[str, ...]:
        """Return the tokens of the command line, below a path as it was typed."""

        def below(folder: PurePosixPath) -> str:
            return root if folder == PurePosixPath(".") else f"{root.rstrip('/')}/{folder}"

        maps = () if self.maps is None else ("model=predictions", f"folder={below(self.maps)}")
        return (f"suite={self.suite}", f"data={below(self.data)}", *maps, *self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One data set, or a part of one, as it lies there.

    Attributes:
        found: What it is.
        pairs: Images with their masks (images alone where it has no masks); None inside an archive.
        sizes: How many images of each size, ``width x height``, most first; empty inside an archive.
        rule: How masks are named after images, where not alike.
        notes: What is worth knowing and stops nothing.
        problems: Files that a run would refuse.
        line: How to run on it, or None.
        also: Other ways to run on it, each with what it does.
        classes: Of labelled images: how many of each class there are, and how many are published (0: not known).
        questions: Of images with questions: how many there are, in words.
    """

    found: Found
    pairs: int | None = None
    sizes: tuple[tuple[str, int], ...] = ()
    rule: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[SeedProblem, ...] = ()
    line: SuiteLine | None = None
    also: tuple[tuple[str, SuiteLine], ...] = ()
    classes: tuple[tuple[str, int, int], ...] = ()
    questions: tuple[str, ...] = ()
