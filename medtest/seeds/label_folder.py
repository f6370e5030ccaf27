"""Labelled images that a user has: class folders, tables of labels, and public sets as they are downloaded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple, TypeAlias

from medtest.cases import Classes, Image, Mask, Seed, SeedRef
from medtest.errors import Mistake, UserMistakes
from medtest.imagefile import BadFileError
from medtest.plugins import PartSettings
from medtest.seeds.base import SeedProblem, SeedSource
from medtest.seeds.folder_check import Rules, check_pairs
from medtest.seeds.folder_layout import LayoutError, Pair, shown
from medtest.seeds.folder_metadata import Metadata
from medtest.seeds.folder_seed import (
    CHANGED,
    LONGEST_ID,
    below,
    data_root,
    frozen,
    id_of,
    metadata_of,
    nothing_left,
    read_mask_of,
    stop_at,
    without_row,
)
from medtest.seeds.frames import Reading, opened_frames
from medtest.seeds.label_choice import read_folder
from medtest.seeds.label_entries import Entry, Mapped, map_entries
from medtest.seeds.label_layouts.common import key_of
from medtest.seeds.label_layouts.medmnist import read_image
from medtest.seeds.label_settings import LabelFolderSettings
from medtest.seeds.npz_file import item_digests, npz_members
from medtest.seeds.volume_check import Slice


class Chosen(NamedTuple):
    """An entry that becomes a seed.

    Attributes:
        entry: The image as its data set lists it.
        labels: Its labels among the suite's classes; None where it is unlabelled.
        seed_id: Its id.
    """

    entry: Entry
    labels: tuple[str, ...] | None
    seed_id: str


@dataclass(slots=True)
class _Listing:
    """What one look at the folder found.

    Attributes:
        classes: The classes of its labels.
        refs: Seeds in order.
        digests: What determines each of them beside its reference.
        problems: Files that cannot be used.
        notices: What else is to know.
        contents: Image contents that were seen, and how often.
        unmatched: Images without a row in the metadata.
    """

    classes: Classes
    refs: list[SeedRef] = field(default_factory=list)
    digests: list[list[object]] = field(default_factory=list)
    problems: list[SeedProblem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    contents: Counter[str] = field(default_factory=Counter)
    unmatched: list[str] = field(default_factory=list)
    ignored: int = 0


class LabelFolder(SeedSource):
    """Labelled images from folders, tables and array files, every file looked at before a run."""

    Settings: ClassVar[type[PartSettings]] = LabelFolderSettings
    output_kind: ClassVar[str] = "label"
    needs_root: ClassVar[bool] = True
    revision: ClassVar[int] = 1

    settings: LabelFolderSettings

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._listing: _Listing | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def classes(self) -> Classes:
        """Return the classes of the labels; reads the folder where the suite does not state them."""
        settings = self.settings
        if settings.classes and settings.multi is not None:
            return Classes(names=tuple(settings.classes), multi=settings.multi)
        return self._listed().classes

    def refs(self) -> Sequence[SeedRef]:
        """Return every seed in natural order of names, each of its files looked at.

        Raises:
            UserMistakes: ``data=`` is missing or no folder, its layout is not understood, labels and classes do not
                fit, or files cannot be used and ``on_bad_seed`` is ``stop``: one report names every file.
        """
        return tuple(self._listed().refs)

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files left out under ``on_bad_seed: skip``."""
        return tuple(self._listed().problems)

    def notices(self) -> Sequence[str]:
        """Return what was left out for want of a class, what is missing, and images that are there twice."""
        return tuple(self._listed().notices)

    def ignored(self) -> int:
        """Return how many leftovers of operating systems and thumbnails were passed over."""
        return self._listed().ignored

    def digest(self) -> str:
        """Return a SHA-256 over classes and seeds in order: ids, clusters, strata, labels, contents of files."""
        listing = self._listed()
        head = [type(self).__name__, self.revision, list(listing.classes.names), listing.classes.multi]
        total = hashlib.sha256(json.dumps(head, ensure_ascii=True).encode())
        for ref, digests in zip(listing.refs, listing.digests, strict=True):
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), digests]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    def load(self, ref: SeedRef) -> Seed:
        """Read one seed's files.

        Raises:
            UserMistakes: A file has changed since it was looked at and cannot be read any more.
        """
        root = self._root()
        given = json.loads(ref.locator)
        labels = None if given["labels"] is None else tuple(given["labels"])
        now = given["image"]
        try:
            image = self._image(below(root, now), given)
            expected: Mask | None = None
            if given["mask"]:
                now = given["mask"]
                expected = read_mask_of(below(root, now), max(0, given["index"]), self._reading())
        except (BadFileError, IndexError) as error:
            raise UserMistakes([Mistake(where=shown(now), found=str(error), fix=CHANGED)]) from error
        if expected is not None and expected.shape != image.shape[:2]:
            raise UserMistakes([Mistake(where=shown(now), found="has another size than its image by now")])
        if expected is not None and not expected.any():
            expected = None  # an empty mask says that there is no lesion: nothing to keep off, nothing to score
        classes = Classes(names=tuple(given["classes"]), multi=given["multi"])
        return Seed(ref=ref, image=image, expected=frozen(expected), kind="label", classes=classes, labels=labels)

    def _image(self, path: Path, given: dict[str, Any]) -> Image:
        if given["part"]:
            return read_image(path, given["part"], given["index"])
        with opened_frames(path, self._reading()) as frames:
            low, high = given["span"]
            return frames.rgb(max(0, given["index"]), (low, high))

    def _reading(self) -> Reading:
        return Reading(max_pixels=self.settings.max_pixels)

    def _root(self) -> Path:
        return data_root(self.root, "your labelled images")

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> _Listing:
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def _list(self) -> _Listing:
        root, settings = self._root(), self.settings
        try:
            laid = read_folder(root, settings, dataset=self.dataset)
        except (LayoutError, BadFileError) as error:
            raise _layout_mistake(root, self.dataset, error) from error
        mapped = map_entries(
            laid,
            dataset=self.dataset,
            classes=settings.classes,
            multi=settings.multi,
            mapping=settings.mapping,
        )
        listing = _Listing(classes=mapped.classes, ignored=laid.ignored)
        listing.notices += [*laid.notices, *mapped.notices()]
        listing.problems += [*laid.problems, *mapped.problems]
        metadata = metadata_of(root, settings.metadata)
        self._add(root, self._chosen(mapped, listing), metadata, listing)
        if listing.problems and settings.on_bad_seed == "stop":
            raise stop_at(listing.problems)
        if not listing.refs:
            raise nothing_left(root, listing.problems, _why_nothing(mapped))
        if metadata is not None and listing.unmatched:
            raise without_row(metadata, listing.unmatched)
        twice = sum(listing.contents.values()) - len(listing.contents)
        if twice:
            listing.notices.append(f"{twice:,} images have the very contents of another; intervals take them for two.")
        return listing

    def _chosen(self, mapped: Mapped, listing: _Listing) -> list[Chosen]:
        """Return the entries that are taken: all, or so many of each set of labels, evenly spread; ids are distinct."""
        entries = mapped.entries
        if self.settings.per_class:
            entries = _spread(entries, self.settings.per_class)
            listing.notices.append(
                f"At most {self.settings.per_class:,} images of each class are taken, {len(entries):,} of "
                f"{len(mapped.entries):,}."
            )
        ids = [id_of(PurePosixPath(entry.name).parts) for entry, _ in entries]
        often = Counter(ids)
        return [
            # Names in other scripts lose their letters in an id, which a hash then tells apart.
            Chosen(entry=entry, labels=labels, seed_id=seed_id if often[seed_id] == 1 else _hashed(seed_id, entry.name))
            for (entry, labels), seed_id in zip(entries, ids, strict=True)
        ]

    def _add(self, root: Path, chosen: Sequence[Chosen], metadata: Metadata | None, listing: _Listing) -> None:
        arrays = [one for one in chosen if one.entry.index >= 0]
        files = [one for one in chosen if one.entry.index < 0]
        rules = Rules(reading=self._reading(), negatives=True)
        pairs = [(Pair(key=key_of(one.entry.name), image=one.entry.image, mask=one.entry.mask), None) for one in files]
        for one, checked in zip(files, check_pairs(root, pairs, rules), strict=True):
            if checked.problems:
                listing.problems += checked.problems
                continue
            for part in checked.slices:
                self._add_one(one, part, list(checked.digests[:2]), metadata, listing)
        for one, digest in _array_digests(root, arrays, listing.problems):
            self._add_one(one, Slice(index=one.entry.index), [digest, ""], metadata, listing)

    def _add_one(
        self,
        chosen: Chosen,
        part: Slice,
        digests: list[object],
        metadata: Metadata | None,
        listing: _Listing,
    ) -> None:
        entry, labels, name = chosen
        facts = metadata.of(self.dataset, (name, str(entry.image), entry.name, entry.image.name)) if metadata else None
        if metadata is not None and facts is None:
            listing.unmatched.append(shown(entry.image))
        locator = {
            "image": str(entry.image),
            "mask": str(entry.mask) if entry.mask is not None else "",
            "labels": labels,
            "classes": listing.classes.names,
            "multi": listing.classes.multi,
            "part": PurePosixPath(entry.name).parts[0] if entry.index >= 0 else "",
            "index": part.index,
            "span": part.span,
        }
        ref = SeedRef(
            dataset=self.dataset,
            seed_id=f"{name}{part.label}",
            cluster=(facts.cluster if facts else "") or entry.cluster or (name if part.label else ""),
            strata=facts.strata if facts else entry.strata,
            locator=json.dumps(locator, ensure_ascii=False),
        )
        listing.refs.append(ref)
        listing.digests.append([*digests, labels, part.index, *part.span])
        listing.contents[f"{digests[0]} {part.index if part.label else ''}"] += 1


Labelled: TypeAlias = tuple[Entry, tuple[str, ...] | None]


def _hashed(seed_id: str, name: str) -> str:
    return f"{seed_id[: LONGEST_ID - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _spread(entries: Sequence[Labelled], most: int) -> list[Labelled]:
    """Return at most so many entries of each set of labels, evenly spread over their order."""
    by_labels: dict[tuple[str, ...] | None, list[int]] = defaultdict(list)
    for number, (_, labels) in enumerate(entries):
        by_labels[labels].append(number)
    kept: set[int] = set()
    for numbers in by_labels.values():
        count = min(most, len(numbers))
        kept.update(numbers[(2 * k + 1) * len(numbers) // (2 * count)] for k in range(count))
    return [one for number, one in enumerate(entries) if number in kept]


def _array_digests(root: Path, chosen: Sequence[Chosen], problems: list[SeedProblem]) -> Iterator[tuple[Chosen, str]]:
    """Yield entries of array files with the SHA-256 of their pixels; each member is read once."""
    by_member: dict[tuple[PurePosixPath, str], dict[int, Chosen]] = defaultdict(dict)
    for one in chosen:
        by_member[one.entry.image, PurePosixPath(one.entry.name).parts[0]][one.entry.index] = one
    for (file, part), wanted in by_member.items():
        try:
            path = below(root, str(file))
            for index, digest in enumerate(item_digests(path, npz_members(path)[f"{part}_images"])):
                if index in wanted:
                    yield wanted[index], digest
        except (BadFileError, KeyError) as error:
            problems.append(SeedProblem(file=shown(file), reason=str(error)))


def _why_nothing(mapped: Mapped) -> str:
    if not mapped.left_out:
        return "no images at all"
    names = ", ".join(repr(name) for name, _ in mapped.left_out.most_common(8))
    return f"no image of a class of this suite ({', '.join(mapped.classes.names)}); it has {names}: state a mapping"


def _layout_mistake(root: Path, dataset: str, error: LayoutError | BadFileError) -> UserMistakes:
    if isinstance(error, BadFileError):
        return UserMistakes([Mistake(where=shown(root.name or "."), key="data", found=str(error), allowed="a folder")])
    key = error.key if error.key == "data" else f"seeds.{dataset}.{error.key}"
    return UserMistakes(
        [Mistake(where=shown(root.name or "."), key=key, found=error.found, fix=error.fix)],
        heading="the data folder cannot be used",
    )
