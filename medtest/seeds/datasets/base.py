"""What a recogniser is and what it finds. A recogniser is one class in one file of ``recognisers/``.

Other packages bring theirs by entry points in the group ``medtest.recognisers``.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import PurePosixPath
from typing import ClassVar, Literal, TypeAlias

from medtest.core.errors import MedtestError
from medtest.seeds.datasets.facts import Facts, known
from medtest.seeds.datasets.tree import Tree

Holds: TypeAlias = Literal["masks", "images", "labels", "questions", "maps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A data set, or a part of one, that a recogniser found.

    Attributes:
        layout: How it is packed, in words.
        where: The folder that holds it, relative to the root.
        images: Folder of its images.
        masks: Folder of its masks; None where it has none.
        count: How many image files it has.
        mask_count: How many mask files.
        dataset: Id of a known data set, or "".
        part: Which part or edition of it this is; "" for the whole.
        title: What it is where no known data set is meant; "" for the name of its folder.
        image_names: Pattern of its images' names where other files lie beside them.
        mask_names: Pattern of its masks' names.
        holds: What kind of expected answer it has.
        rank: Which of several copies is preferred; the smaller.
        claims: Further folders that it explains, so that no other recogniser is asked about them.
        reader: Of labelled images: the layout that reads it.
        tables: Files that hold its labels and splits, or its questions.
    """

    layout: str
    where: PurePosixPath
    images: PurePosixPath
    masks: PurePosixPath | None = None
    count: int
    mask_count: int = 0
    dataset: str = ""
    part: str = ""
    title: str = ""
    image_names: str = ""
    mask_names: str = ""
    holds: Holds = "masks"
    rank: int = 0
    claims: tuple[PurePosixPath, ...] = ()
    reader: str = ""
    tables: tuple[PurePosixPath, ...] = ()

    @property
    def facts(self) -> Facts | None:
        """What was published of it."""
        return known().get(self.dataset)


class Recogniser(ABC):
    """Finds data sets that are packed in one way.

    Attributes:
        name: What it looks for, in a word.
        order: Recognisers of a smaller number look first; folders that one has explained are not asked about again.
    """

    name: ClassVar[str]
    order: ClassVar[int] = 50

    @abstractmethod
    def find(self, tree: Tree) -> Sequence[Found]:
        """Return every data set of this kind below a root, from names alone."""


GROUP = "medtest.recognisers"


@cache
def recognisers() -> tuple[Recogniser, ...]:
    """Return every recogniser, in the order they look.

    Raises:
        MedtestError: Another package's cannot be loaded.
    """
    from medtest.seeds.datasets import recognisers as ours

    for module in pkgutil.iter_modules(ours.__path__):
        importlib.import_module(f"{ours.__name__}.{module.name}")
    below = _all_below(Recogniser)  # type: ignore[type-abstract]
    classes = [c for c in below if c.__module__.startswith(ours.__name__)]
    for point in entry_points(group=GROUP):
        try:
            classes.append(point.load())
        except (ImportError, AttributeError) as error:
            raise MedtestError(f"recogniser {point.name!r} cannot be loaded: {error}") from error
    return tuple(sorted((c() for c in classes), key=lambda r: (r.order, r.name)))


def _all_below(base: type[Recogniser]) -> list[type[Recogniser]]:
    return [c for below in base.__subclasses__() for c in (below, *_all_below(below))]


def recognise(tree: Tree) -> list[Found]:
    """Return every data set below a root; a folder is explained once."""
    found: list[Found] = []
    explained: set[tuple[PurePosixPath, str]] = set()
    labelled: set[PurePosixPath] = set()
    for recogniser in recognisers():
        new = [f for f in recogniser.find(tree) if not _explained(f, explained, labelled)]
        # Images with a table of labels or questions may have masks as well, and are a data set of either kind.
        labelled |= {f.images for f in new if f.holds in ("labels", "questions")}
        others = [f for f in new if f.holds not in ("labels", "questions")]
        explained |= {(f.images, f.image_names) for f in others} | {(f.images, "") for f in others}
        explained |= {(f.masks, "") for f in others if f.masks is not None}
        explained |= {(folder, "") for f in new for folder in f.claims}
        found += new
    return [
        replace(f, part=_edition(f), title=f.title or f.where.name or tree.name)
        for f in sorted(found, key=lambda f: (f.where, f.rank, f.dataset))
    ]


def _explained(found: Found, explained: set[tuple[PurePosixPath, str]], labelled: set[PurePosixPath]) -> bool:
    if found.holds in ("labels", "questions"):
        return any((folder, "") in explained for folder in found.claims)
    return (found.images, "") in explained or (found.holds == "images" and found.images in labelled)


def _edition(found: Found) -> str:
    if found.part or found.facts is None or found.count == found.facts.images:
        return found.part
    return found.facts.copy_named(found.count)
