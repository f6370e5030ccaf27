"""Result of inspecting one data set, and the command line that runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteLine:
    """Command line that runs on a data set.

    Attributes:
        suite: Name of the suite.
        data: The folder for ``data=``, relative to the inspected path.
        settings: Further settings, as ``key=value``.
        sets: The data sets used.
        maps: Folder of prediction maps, relative to the inspected path.
    """

    suite: str
    data: PurePosixPath = PurePosixPath(".")
    settings: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    maps: PurePosixPath | None = None

    def tokens(self, root: str) -> tuple[str, ...]:
        """Return the tokens of the command line, with paths below ``root`` as the user typed it."""

        def below(folder: PurePosixPath) -> str:
            return root if folder == PurePosixPath(".") else f"{root.rstrip('/')}/{folder}"

        maps = () if self.maps is None else ("model=predictions", f"folder={below(self.maps)}")
        return (f"suite={self.suite}", f"data={below(self.data)}", *maps, *self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Result of inspecting one data set or a part of one.

    Attributes:
        found: The recogniser's result.
        pairs: Images with their masks (images alone where it has no masks); None inside an archive.
        sizes: Number of images per size, ``width x height``, most first; empty inside an archive.
        rule: Naming rule of masks, if they differ from image names.
        notes: Remarks that do not stop a run.
        problems: Files that a run would refuse.
        line: Command line that runs on it, or None.
        also: Other command lines, each with its description.
        classes: Class, number of labelled images and published number (0: unknown).
        questions: Description of the number of questions.
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
