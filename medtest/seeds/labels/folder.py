"""The user's labelled images: class folders, tables of labels, and public data sets as downloaded."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias

from medtest.core.cases import Classes, Seed, SeedRef
from medtest.core.files.images import BadFileError
from medtest.core.plugins import PartSettings
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.check import Rules
from medtest.seeds.folders.files import below, ids_in_place, marked, metadata_of
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.folders.source import FolderSource, Listing, still_there, usable
from medtest.seeds.labels.choice import read_folder
from medtest.seeds.labels.entries import LabelEntry, Mapped, map_entries
from medtest.seeds.labels.layouts.medmnist import read_image
from medtest.seeds.labels.settings import LabelFolderSettings
from medtest.seeds.volumes.check import Checked, Slice
from medtest.seeds.volumes.npz_file import item_digests, npz_members

Labelled: TypeAlias = tuple[LabelEntry, tuple[str, ...] | None]
"""Image as listed by its data set, and its labels among the suite's classes; None if unlabelled."""

Chosen: TypeAlias = tuple[LabelEntry, tuple[str, ...] | None, str]
"""Labelled image and the id of its seed."""


class LabelFolder(FolderSource):
    """Labelled images from folders, tables and array files, all checked before a run."""

    Settings: ClassVar[type[PartSettings]] = LabelFolderSettings
    task: ClassVar[str] = "label"
    revision: ClassVar[int] = 1
    holds: ClassVar[str] = "your labelled images"

    settings: LabelFolderSettings

    def classes(self) -> Classes:
        """Return the classes of the labels; the folder is read if the suite does not state them."""
        settings = self.settings
        if settings.classes and settings.multi is not None:
            return Classes(names=tuple(settings.classes), multi=settings.multi)
        return self._listed().classes

    def load(self, ref: SeedRef) -> Seed:
        """Read one seed's files.

        Raises:
            UserMistakes: A file has changed since it was checked and cannot be read any more.
        """
        fields = usable(ref)
        file, index = fields["image"], max(0, fields["index"])
        labels = None if fields["labels"] is None else tuple(fields["labels"])
        if fields["part"]:
            with still_there(file):
                image = read_image(below(self._root(), file), fields["part"], index)
        else:
            image = self._frame(file, index, tuple(fields["span"]))
        expected = marked(self._mask(fields["mask"], index, image))
        classes = Classes(names=tuple(fields["classes"]), multi=fields["multi"])
        return Seed(ref=ref, image=image, expected=expected, kind="label", classes=classes, labels=labels)

    def _digest_head(self, listing: Listing) -> list[object]:
        classes = listing.classes
        return [list(classes.names), classes.multi]

    # --------------------------------------------------------------------------------------------------- listing

    def _look(self, root: Path, listing: Listing) -> None:
        settings = self.settings
        laid = read_folder(root, settings)
        mapped = map_entries(
            laid,
            dataset=self.dataset,
            classes=settings.classes,
            multi=settings.multi,
            mapping=settings.mapping,
        )
        listing.classes = mapped.classes
        listing.take(laid)
        listing.notices += mapped.notices()
        listing.nothing = _empty_reason(mapped)
        listing.metadata = metadata_of(root, settings.metadata)
        self._add(root, self._select_entries(mapped, listing), listing)

    def _select_entries(self, mapped: Mapped, listing: Listing) -> list[Chosen]:
        """Return the entries to use, with distinct ids: all, or an evenly spread sample of each set of labels."""
        entries = mapped.entries
        if not listing.keeps:
            listing.problems += [entry.wrong for entry, _ in entries if entry.wrong is not None]
            entries = [pair for pair in entries if pair[0].wrong is None]
        if self.settings.per_class:
            entries = _spread(entries, self.settings.per_class)
            listing.notices.append(
                f"At most {self.settings.per_class:,} images of each class are taken, {len(entries):,} of "
                f"{len(mapped.entries):,}."
            )
        ids = ids_in_place([entry.name for entry, _ in entries], [entry.wrong is None for entry, _ in entries])
        return [(entry, labels, seed_id) for (entry, labels), seed_id in zip(entries, ids, strict=True)]

    def _add(self, root: Path, chosen: Sequence[Chosen], listing: Listing) -> None:
        arrays = [(entry, labels, seed_id) for entry, labels, seed_id in chosen if entry.index >= 0]
        files = [
            ((entry, labels, seed_id), Pair(image=entry.image, mask=entry.mask), entry.problems)
            for entry, labels, seed_id in chosen
            if entry.index < 0
        ]
        rules = Rules(reading=self._reading(), negatives=True)
        for item, _, checked in self._looked_at(root, files, rules, listing):
            if checked.problems:
                _, _, seed_id = item
                listing.fault(SeedRef(dataset=self.dataset, seed_id=seed_id), checked)
                continue
            for part in checked.slices:
                self._add_one(item, part, list(checked.digests[:2]), listing)
        for item, digest, problem in _array_digests(root, arrays, listing.problems):
            entry, _, seed_id = item
            wrong = entry.wrong or problem
            if wrong is not None:
                checked = Checked(digests=(digest, "", ""), problems=(wrong,))
                listing.fault(SeedRef(dataset=self.dataset, seed_id=seed_id), checked)
            else:
                self._add_one(item, Slice(index=entry.index), [digest, ""], listing)

    def _add_one(self, chosen: Chosen, part: Slice, digests: list[object], listing: Listing) -> None:
        entry, labels, name = chosen
        classes = listing.classes
        locator = {
            "image": str(entry.image),
            "mask": str(entry.mask) if entry.mask is not None else "",
            "labels": labels,
            "classes": classes.names,
            "multi": classes.multi,
            "part": PurePosixPath(entry.name).parts[0] if entry.index >= 0 else "",
            "index": part.index,
            "span": part.span,
        }
        ref = SeedRef(
            dataset=self.dataset,
            seed_id=f"{name}{part.label}",
            cluster=entry.cluster or (name if part.label else ""),
            strata=entry.strata,
            locator=json.dumps(locator, ensure_ascii=False),
        )
        facts = listing.facts(self.dataset, (name, entry.name), entry.image)
        listing.add(ref, facts, [*digests, labels, part.index, *part.span])
        listing.contents[f"{digests[0]} {part.index if part.label else ''}"] += 1


def _spread(entries: Sequence[Labelled], most: int) -> list[Labelled]:
    """Return at most ``most`` entries of each set of labels, evenly spread over their order."""
    by_labels: dict[tuple[str, ...] | None, list[int]] = defaultdict(list)
    for number, (_, labels) in enumerate(entries):
        by_labels[labels].append(number)
    numbers_kept: set[int] = set()
    for numbers in by_labels.values():
        count = min(most, len(numbers))
        numbers_kept.update(numbers[(2 * k + 1) * len(numbers) // (2 * count)] for k in range(count))
    return [entry for number, entry in enumerate(entries) if number in numbers_kept]


def _array_digests(
    root: Path, chosen: Sequence[Chosen], problems: list[SeedProblem]
) -> Iterator[tuple[Chosen, str, SeedProblem | None]]:
    """Yield entries of array files with the SHA-256 of their pixels, or with their problem.

    Each member is read once. Damage after the last needed item, or a wrong checksum, is a problem of no single entry.
    """
    by_member: dict[tuple[PurePosixPath, str], dict[int, Chosen]] = defaultdict(dict)
    for entry, labels, seed_id in chosen:
        by_member[entry.image, PurePosixPath(entry.name).parts[0]][entry.index] = entry, labels, seed_id
    for (file, part), pending in by_member.items():
        try:
            path = below(root, str(file))
            for index, digest in enumerate(item_digests(path, npz_members(path)[f"{part}_images"])):
                if index in pending:
                    yield pending.pop(index), digest, None
        except (BadFileError, KeyError) as error:
            problem = SeedProblem(file=shown(file), reason=str(error))
            yield from ((item, "", problem) for _, item in sorted(pending.items()))
            if not pending:
                problems.append(problem)


def _empty_reason(mapped: Mapped) -> str:
    if not mapped.left_out:
        return "no images at all"
    names = ", ".join(repr(name) for name, _ in mapped.left_out.most_common(8))
    return f"no image of a class of this suite ({', '.join(mapped.classes.names)}); it has {names}: state a mapping"
