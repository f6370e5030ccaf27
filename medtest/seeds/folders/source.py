"""Base class of sources that read the user's folder: one check of every file, one report, one digest.

A source of images with masks, with labels or with questions implements its listing (:meth:`FolderSource._look`) and how
one seed is loaded; the order of checks, error messages and digest lines are shared here.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, TypeVar

from medtest.core.cases import Classes, Image, Mask, SeedRef
from medtest.core.errors import Mistake, UserMistakes
from medtest.core.files.images import BadFileError
from medtest.core.plugins import digest_name
from medtest.seeds.base import Remarks, SeedFaults, SeedKey, SeedProblem, SeedSource, stop_at
from medtest.seeds.folders.check import Rules, check_pairs
from medtest.seeds.folders.files import CHANGED, below, data_root, frozen, nothing_left
from medtest.seeds.folders.label_values import label_values
from medtest.seeds.folders.layout import LayoutError, Pair, shown
from medtest.seeds.folders.metadata import ImageFacts, Metadata
from medtest.seeds.folders.traits import FolderTraits
from medtest.seeds.volumes.check import Checked
from medtest.seeds.volumes.frames import FrameReading, opened_frames

Item = TypeVar("Item")

ONE_ROW = "one row for each image, as long as the first"
"""Requirement on a CSV of patients and strata."""

UNUSABLE = "unusable"
"""Locator key of a seed that only keeps its place."""


@dataclass(slots=True)
class Listing(Remarks):
    """Seeds and problems found while listing a folder.

    Attributes:
        keeps: Whether seeds that cannot be used keep their places (``on_bad_seed: stop``) or are left out.
        refs: Seeds in order.
        digests: Further values that determine each seed, as JSON values.
        faults: Problems of seeds that keep their places.
        contents: Number of occurrences of each image content; empty if not counted.
        metadata: The CSV of patients and strata; None if the suite names none.
        traits: Oddities of usable files.
        unread: Indices of seeds of which only file headers were read.
        classes: The classes of the labels; without names for seeds without labels.
        nothing: Reason to report if no seed is found.
    """

    keeps: bool = True
    refs: list[SeedRef] = field(default_factory=list)
    digests: list[list[object]] = field(default_factory=list)
    faults: dict[SeedKey, tuple[SeedProblem, ...]] = field(default_factory=dict)
    contents: Counter[str] = field(default_factory=Counter)
    metadata: Metadata | None = None
    traits: FolderTraits = field(default_factory=FolderTraits)
    unread: list[int] = field(default_factory=list)
    classes: Classes = Classes(names=())
    nothing: str = "no images at all"

    def facts(self, dataset: str, names: Sequence[str], image: PurePosixPath) -> ImageFacts | None:
        """Return the metadata of an image known under several names; a missing row is an unusable one.

        Args:
            dataset: Data set id.
            names: Names that a row may use besides the path, in order of preference.
            image: Image file below the root.
        """
        if self.metadata is None:
            return None
        facts = self.metadata.of(dataset, (names[0], str(image), *names[1:], image.name))
        return ImageFacts(wrong=f"no row for {shown(image)}") if facts is None else facts

    def add(
        self,
        ref: SeedRef,
        facts: ImageFacts | None,
        digests: list[object],
    ) -> None:
        """Add a seed, with cluster and strata from the metadata if present.

        A seed whose row is missing or invalid is unusable even if bad files are skipped: its interval would be too
        narrow.

        Args:
            ref: The seed as listed by its source.
            facts: Its metadata.
            digests: Further values that determine it, as JSON values.
        """
        if facts is not None and facts.wrong and self.metadata is not None:
            problem = SeedProblem(
                file=self.metadata.where, key="metadata", reason=facts.wrong, allowed=ONE_ROW, skipped=False
            )
            self.faults[ref.dataset, ref.seed_id] = (problem,)
        elif facts is not None:
            ref = replace(ref, cluster=facts.cluster or ref.cluster, strata=facts.strata)
        self.refs.append(ref)
        self.digests.append(digests)

    def fault(self, ref: SeedRef, checked: Checked) -> None:
        """Add an unusable seed: in its place, or among the files left out.

        Args:
            ref: The seed, its locator still empty.
            checked: Its problems, and the digests of its readable files.
        """
        if not self.keeps:
            self.problems += checked.problems
            return
        first = checked.problems[0]
        self.refs.append(replace(ref, locator=json.dumps({UNUSABLE: [first.file, first.reason]})))
        self.digests.append([UNUSABLE, *checked.digests])
        self.faults[ref.dataset, ref.seed_id] = checked.problems


class FolderSource(SeedSource):
    """Base class of sources that read the folder given as ``data=``; every file is checked once before a run.

    Listing needs the whole folder; loading needs only a reference, so workers list nothing.

    Attributes:
        holds: Description of the folder's content, for messages.
    """

    needs_root: ClassVar[bool] = True
    holds: ClassVar[str]

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._listing: Listing | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def places(self) -> Sequence[SeedRef]:
        """Return every seed in its place with all files checked, including unusable ones.

        Raises:
            UserMistakes: As :meth:`refs`, except for unusable files.
        """
        return tuple(self._listed().refs)

    def faults(self) -> SeedFaults:
        """Return the unusable files that were not left out."""
        listing = self._listed()
        return SeedFaults(of_seeds=listing.faults, others=tuple(listing.problems) if listing.keeps else ())

    def unread(self) -> frozenset[SeedKey]:
        """Return the seeds of which only file headers were read, in a command with a time limit."""
        refs = self.places()
        return frozenset((refs[at].dataset, refs[at].seed_id) for at in self._listed().unread if at < len(refs))

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files and rows left out under ``on_bad_seed: skip``."""
        listing = self._listed()
        return () if listing.keeps else tuple(listing.problems)

    def notices(self) -> Sequence[str]:
        """Return notices on files left out, missing data and duplicate images."""
        return tuple(self._listed().notices)

    def ignored(self) -> int:
        """Return the number of skipped thumbnails and files left by operating systems."""
        return self._listed().ignored

    def digest(self) -> str:
        """Return a SHA-256 over the seeds in order: ids, clusters, strata, expected answers, file contents."""
        listing = self._listed()
        head = [digest_name("seeds", type(self)), self.revision, *self._digest_head(listing)]
        total = hashlib.sha256(json.dumps(head, ensure_ascii=True).encode())
        for ref, digests in zip(listing.refs, listing.digests, strict=True):
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), digests]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    # ---------------------------------------------------------------------------------------- implemented by subclasses

    @abstractmethod
    def _look(self, root: Path, listing: Listing) -> None:
        """Check every file below the root and fill the listing.

        Raises:
            LayoutError: The folder has an unknown layout.
            BadFileError: The folder cannot be read.
            UserMistakes: The folder does not fit the suite.
        """

    def _digest_head(self, listing: Listing) -> list[object]:
        """Return the values that determine all seeds, as JSON values."""
        return []

    def _reading(self) -> FrameReading:
        """Return the options for reading files."""
        values = label_values(getattr(self.settings, "label_values", ()))
        return FrameReading(max_pixels=self.settings.max_pixels, label_values=values)

    # ------------------------------------------------------------------------------------------------ one file

    def _root(self) -> Path:
        return data_root(self.root, self.holds)

    def _frame(self, file: str, index: int, span: tuple[float, float]) -> Image:
        """Return one image of a file below the root, uint8 H×W×3 RGB."""
        with still_there(file), opened_frames(below(self._root(), file), self._reading()) as frames:
            return frames.rgb(index, span)

    def _mask(self, file: str | None, index: int, image: Image, root: Path | None = None) -> Mask | None:
        """Return one mask of a file below ``root`` (default: the data folder); None without a file.

        Raises:
            UserMistakes: The mask can no longer be read, or no longer has its image's size.
        """
        if not file:
            return None
        with still_there(file), opened_frames(below(root or self._root(), file), self._reading()) as frames:
            mask = frames.mask(index)
        if mask.shape != image.shape[:2]:
            raise Mistake(where=shown(file), found="no longer has the size of its image").as_error()
        return frozen(mask)

    def _looked_at(
        self, root: Path, items: Sequence[tuple[Item, Pair, tuple[SeedProblem, ...]]], rules: Rules, listing: Listing
    ) -> Iterator[tuple[Item, Pair, Checked]]:
        """Check the files of every item in order, except items with known problems, and collect their traits.

        Args:
            root: The user's folder.
            items: The caller's handle of an image, its files, and problems known beforehand.
            rules: Requirements of the settings.
            listing: Receives the traits.

        Yields:
            Every item with its files and their check, including problems.
        """
        looks = check_pairs(root, [pair for _, pair, wrong in items if not wrong], rules)
        for item, pair, wrong in items:
            checked = Checked(digests=("", "", ""), problems=wrong) if wrong else next(looks)
            if checked.headers:
                listing.unread.append(len(listing.refs))
            if not checked.problems:
                listing.traits.add(shown(pair.mask or pair.image), checked.traits)
            yield item, pair, checked

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> Listing:
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def _list(self) -> Listing:
        root, listing = self._root(), Listing(keeps=self.settings.on_bad_seed == "stop")
        try:
            self._look(root, listing)
        except (LayoutError, BadFileError) as error:
            raise _layout_mistake(root, self.dataset, error) from error
        if not listing.refs:
            if listing.problems and listing.keeps:
                raise stop_at(listing.problems)
            raise nothing_left(root, listing.problems, listing.nothing)
        if listing.metadata is not None:
            listing.problems += listing.metadata.problems
        listing.notices += listing.traits.notices(f"seeds.{self.dataset}.label_values")
        twice = sum(listing.contents.values()) - len(listing.contents)
        if twice:
            listing.notices.append(f"{twice:,} images are exact copies of another; intervals count each of them.")
        return listing


def usable(ref: SeedRef) -> Any:
    """Return the content of a seed's locator.

    Raises:
        UserMistakes: The seed is unusable and only keeps its place.
    """
    located = json.loads(ref.locator)
    if isinstance(located, dict) and UNUSABLE in located:
        file, reason = located[UNUSABLE]
        raise Mistake(where=file, found=reason).as_error()
    return located


@contextmanager
def still_there(file: str) -> Iterator[None]:
    """Raise a readable error if a file checked earlier can no longer be read.

    Raises:
        UserMistakes: The file is missing, leads out of the folder, is not a picture, or holds fewer frames.
    """
    try:
        yield
    except (BadFileError, IndexError) as error:
        raise Mistake(where=shown(file), found=str(error), fix=CHANGED).as_error() from error


def _layout_mistake(root: Path, dataset: str, error: LayoutError | BadFileError) -> UserMistakes:
    if isinstance(error, BadFileError):
        return Mistake(where=shown(root.name or "."), key="data", found=str(error), allowed="a folder").as_error()
    key = error.key if error.key == "data" else f"seeds.{dataset}.{error.key}"
    return UserMistakes(
        [Mistake(where=shown(root.name or "."), key=key, found=error.found, fix=error.fix)],
        heading="the data folder cannot be used",
    )
