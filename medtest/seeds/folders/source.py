"""What sources of seeds from a user's folder do alike: one look at every file before a run, one report, one digest.

A source of images with masks, with labels or with questions says what it finds (:meth:`FolderSource._look`) and how one
seed is loaded; the order of the checks, the words of their mistakes and the lines of the digest are here.
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

from medtest.cases import Classes, Image, Mask, SeedRef
from medtest.errors import Mistake, UserMistakes
from medtest.files.images import BadFileError
from medtest.plugins import digest_name
from medtest.seeds.base import Remarks, SeedProblem, SeedSource
from medtest.seeds.folders.check import Rules, check_pairs
from medtest.seeds.folders.files import CHANGED, below, data_root, frozen, nothing_left, stop_at, without_row
from medtest.seeds.folders.label_values import label_values
from medtest.seeds.folders.layout import LayoutError, Pair, shown
from medtest.seeds.folders.metadata import ImageFacts, Metadata
from medtest.seeds.folders.traits import FolderTraits
from medtest.seeds.volumes.check import Checked
from medtest.seeds.volumes.frames import FrameReading, opened_frames

Item = TypeVar("Item")


@dataclass(slots=True)
class Listing(Remarks):
    """What one look at the folder found.

    Attributes:
        refs: Seeds in order.
        digests: What determines each of them beside its reference, as JSON values.
        contents: Image contents that were seen, and how often; empty where nobody counts them.
        metadata: The CSV of patients and strata; None where the suite names none.
        unmatched: Images without a row in it.
        traits: What is odd about files that are used.
        classes: The classes of the labels; without names where seeds have no labels.
        nothing: Why there is no seed, should there be none.
    """

    refs: list[SeedRef] = field(default_factory=list)
    digests: list[list[object]] = field(default_factory=list)
    contents: Counter[str] = field(default_factory=Counter)
    metadata: Metadata | None = None
    unmatched: list[str] = field(default_factory=list)
    traits: FolderTraits = field(default_factory=FolderTraits)
    classes: Classes = Classes(names=())
    nothing: str = "no images at all"

    def facts(self, dataset: str, names: Sequence[str], image: PurePosixPath) -> ImageFacts | None:
        """Return what the metadata say of an image known under several names; an image without a row is noted.

        Args:
            dataset: Data set id.
            names: Names under which a row may know the image besides its path, the preferred first.
            image: Its file below the root.
        """
        if self.metadata is None:
            return None
        found = self.metadata.of(dataset, (names[0], str(image), *names[1:], image.name))
        if found is None:
            self.unmatched.append(shown(image))
        return found

    def add(
        self,
        ref: SeedRef,
        facts: ImageFacts | None,
        digests: list[object],
    ) -> None:
        """Write down one seed, its cluster and strata those of the metadata where they say any.

        Args:
            ref: The seed as its source knows it.
            facts: What the metadata say of it.
            digests: What determines it beside its reference, as JSON values.
        """
        if facts is not None:
            ref = replace(ref, cluster=facts.cluster or ref.cluster, strata=facts.strata)
        self.refs.append(ref)
        self.digests.append(digests)


class FolderSource(SeedSource):
    """Seeds from the folder that ``data=`` names, every file looked at once, before a run.

    Listing needs the whole folder; loading needs a reference alone, so that workers list nothing.

    Attributes:
        holds: What the user's folder holds, in words.
    """

    needs_root: ClassVar[bool] = True
    holds: ClassVar[str]

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._listing: Listing | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def refs(self) -> Sequence[SeedRef]:
        """Return every seed in a fixed order, each of its files looked at.

        Raises:
            UserMistakes: ``data=`` is missing or no folder, its layout is not understood, it and the suite do not fit,
                or files cannot be used and ``on_bad_seed`` is ``stop``: one report names every file.
        """
        return tuple(self._listed().refs)

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files and rows left out under ``on_bad_seed: skip``."""
        return tuple(self._listed().problems)

    def notices(self) -> Sequence[str]:
        """Return what was left out, what is missing, and images that are there twice."""
        return tuple(self._listed().notices)

    def ignored(self) -> int:
        """Return how many leftovers of operating systems and thumbnails were passed over."""
        return self._listed().ignored

    def digest(self) -> str:
        """Return a SHA-256 over the seeds in order: ids, clusters, strata, what they expect, contents of files."""
        listing = self._listed()
        head = [digest_name(type(self)).rpartition(":")[2], self.revision, *self._digest_head(listing)]
        total = hashlib.sha256(json.dumps(head, ensure_ascii=True).encode())
        for ref, digests in zip(listing.refs, listing.digests, strict=True):
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), digests]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    # -------------------------------------------------------------------------------------- what a source says

    @abstractmethod
    def _look(self, root: Path, listing: Listing) -> None:
        """Look at every file below the root and write down what is there.

        Raises:
            LayoutError: The folder is not laid out in a way that is understood.
            BadFileError: It cannot be read.
            UserMistakes: It and the suite do not fit.
        """

    def _digest_head(self, listing: Listing) -> list[object]:
        """Return what determines all seeds alike, as JSON values."""
        return []

    def _reading(self) -> FrameReading:
        """Return how files are opened."""
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
        """Return one mask of a file below a folder, that of the data where none is given; None without a file.

        Raises:
            UserMistakes: It cannot be read any more, or has another size than its image by now.
        """
        if not file:
            return None
        with still_there(file), opened_frames(below(root or self._root(), file), self._reading()) as frames:
            mask = frames.mask(index)
        if mask.shape != image.shape[:2]:
            raise Mistake(where=shown(file), found="has another size than its image by now").as_error()
        return frozen(mask)

    def _whole(
        self, root: Path, items: Sequence[tuple[Item, Pair]], rules: Rules, listing: Listing
    ) -> Iterator[tuple[Item, Checked]]:
        """Look at the files of every item, and yield those that can be used; problems and traits are written down."""
        pairs = [pair for _, pair in items]
        for (item, pair), checked in zip(items, check_pairs(root, pairs, rules), strict=True):
            if checked.problems:
                listing.problems += checked.problems
            else:
                listing.traits.add(shown(pair.mask or pair.image), checked.traits)
                yield item, checked

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> Listing:
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def _list(self) -> Listing:
        root, listing = self._root(), Listing()
        try:
            self._look(root, listing)
        except (LayoutError, BadFileError) as error:
            raise _layout_mistake(root, self.dataset, error) from error
        if listing.problems and self.settings.on_bad_seed == "stop":
            raise stop_at(listing.problems)
        if not listing.refs:
            raise nothing_left(root, listing.problems, listing.nothing)
        if listing.metadata is not None and listing.unmatched:
            raise without_row(listing.metadata, listing.unmatched)
        listing.notices += listing.traits.notices()
        twice = sum(listing.contents.values()) - len(listing.contents)
        if twice:
            listing.notices.append(f"{twice:,} images have the very contents of another; intervals take them for two.")
        return listing


@contextmanager
def still_there(file: str) -> Iterator[None]:
    """Put in words that a file that was looked at cannot be read any more.

    Raises:
        UserMistakes: Inside, the file was gone, led out of the folder, was no picture, or held fewer frames.
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
