"""Base class of recognisers and their results. A recogniser is one class in one file of ``recognisers/``.

Other packages add recognisers by entry points in the group ``medtest.recognisers``.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import PurePosixPath
from typing import ClassVar, Literal, TypeAlias

from medtest.core.errors import MedtestError
from medtest.seeds.datasets.facts import Facts, known
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.layout import DataSet

Holds: TypeAlias = Literal["masks", "images", "labels", "questions", "maps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Data set, or part of one, found by a recogniser.

    Attributes:
        layout: Description of the packing.
        where: The folder that holds it, relative to the root.
        images: Folder of its images.
        masks: Folder of its masks; None without masks.
        count: Number of image files.
        mask_count: Number of mask files.
        dataset: Id of a known data set, or "".
        part: Part or edition; "" for the whole.
        title: Title if it is not a known data set; "" for the name of its folder.
        image_names: Pattern of image names, if the folder holds other files.
        mask_names: Pattern of mask names.
        holds: Kind of expected answer.
        rank: Preference among copies; smaller is better.
        claims: Further folders that belong to it, which other recognisers then skip.
        reader: Layout that reads labelled images.
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

    def as_dataset(self, name: str) -> DataSet:
        """Return its folders as a data set with an id."""
        return DataSet(
            name=name,
            images=self.images,
            masks=self.masks,
            image_names=self.image_names,
            mask_names=self.mask_names,
        )

    @property
    def facts(self) -> Facts | None:
        """Published facts of the data set; None if it is unknown."""
        return known().get(self.dataset)


class Recogniser(ABC):
    """Base class of recognisers: each finds data sets that are packed in one way.

    Attributes:
        name: Short name of what it finds.
        order: Position in the sequence of recognisers; folders claimed by earlier ones are skipped.
    """

    name: ClassVar[str]
    order: ClassVar[int] = 50

    @abstractmethod
    def find(self, tree: Tree) -> Iterable[Found]:
        """Return every data set of this kind below a root, judged by names alone."""


GROUP = "medtest.recognisers"


@cache
def recognisers() -> tuple[Recogniser, ...]:
    """Return every recogniser in order of application.

    Raises:
        MedtestError: A recogniser of another package cannot be loaded.
    """
    from medtest.seeds.datasets import recognisers as ours

    for module in pkgutil.iter_modules(ours.__path__):
        importlib.import_module(f"{ours.__name__}.{module.name}")
    classes = [c for c in Recogniser.__subclasses__() if c.__module__.startswith(ours.__name__)]
    for point in entry_points(group=GROUP):
        try:
            classes.append(point.load())
        except (ImportError, AttributeError) as error:
            raise MedtestError(f"recogniser {point.name!r} cannot be loaded: {error}") from error
    return tuple(sorted((c() for c in classes), key=lambda r: (r.order, r.name)))


def recognise(tree: Tree) -> list[Found]:
    """Return every data set below a root; each folder is claimed once."""
    results: list[Found] = []
    explained: set[tuple[PurePosixPath, str]] = set()
    labelled: set[PurePosixPath] = set()
    for recogniser in recognisers():
        new = [f for f in recogniser.find(tree) if not _is_explained(f, explained, labelled)]
        # Images with a table of labels or questions may have masks as well, and are then a data set of both kinds.
        labelled |= {f.images for f in new if f.holds in ("labels", "questions")}
        others = [f for f in new if f.holds not in ("labels", "questions")]
        explained |= {(f.images, f.image_names) for f in others} | {(f.images, "") for f in others}
        explained |= {(f.masks, "") for f in others if f.masks is not None}
        explained |= {(folder, "") for f in new for folder in f.claims}
        results += new
    return [
        replace(f, part=_edition(f), title=f.title or f.where.name or tree.name)
        for f in sorted(results, key=lambda f: (f.where, f.rank, f.dataset))
    ]


def _is_explained(candidate: Found, explained: set[tuple[PurePosixPath, str]], labelled: set[PurePosixPath]) -> bool:
    if candidate.holds in ("labels", "questions"):
        return any((folder, "") in explained for folder in candidate.claims)
    return (candidate.images, "") in explained or (candidate.holds == "images" and candidate.images in labelled)


def _edition(dataset: Found) -> str:
    if dataset.part or dataset.facts is None or dataset.count == dataset.facts.images:
        return dataset.part
    return dataset.facts.copy_named(dataset.count)
