"""Seeds from the user's folders of images and masks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

from medtest.core.cases import Seed, SeedRef
from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error
from medtest.core.plugins import PartSettings
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.known import coverage, known_datasets
from medtest.seeds.folders.check import Rules
from medtest.seeds.folders.files import distinct_ids, hashed_id, metadata_of
from medtest.seeds.folders.formats import without_suffix
from medtest.seeds.folders.label_values import label_values
from medtest.seeds.folders.layout import (
    DataSet,
    LayoutError,
    Pair,
    check_folder_links,
    find_datasets,
    natural_key,
    shown,
)
from medtest.seeds.folders.pairing import FaultyPair, list_files, pair_images, pair_with_masks
from medtest.seeds.folders.settings import ImageMaskFoldersSettings
from medtest.seeds.folders.source import FolderSource, Listing, usable
from medtest.seeds.volumes.check import Slice
from medtest.seeds.volumes.frames import FrameReading


class ImageMaskFolders(FolderSource):
    """Images with or without masks from folders, joined by name and all checked before a run."""

    Settings: ClassVar[type[PartSettings]] = ImageMaskFoldersSettings
    task: ClassVar[str] = "mask"
    revision: ClassVar[int] = 2
    holds: ClassVar[str] = "your images and masks"

    def load(self, ref: SeedRef) -> Seed:
        """Read one seed's files.

        Raises:
            UserMistakes: A file has changed since it was checked and cannot be read any more.
        """
        image, mask, avoid, *rest = usable(ref)
        index, span = (int(rest[0]), (float(rest[1]), float(rest[2]))) if rest else (0, (0.0, 0.0))
        pixels = self._frame(image, index, span)
        expected = self._mask(mask, index, pixels)
        rough = self._mask(avoid, index, pixels, self._avoid_root()) if avoid else None
        return Seed(ref=ref, image=pixels, expected=expected, avoid=rough)

    def _reading(self) -> FrameReading:
        settings = self.settings
        return FrameReading(
            max_pixels=settings.max_pixels,
            axis=settings.axis,
            window=tuple(settings.window),
            label_values=label_values(settings.label_values),
            label_key=f"seeds.{self.dataset}.label_values",
            slices=settings.slices,
            every=settings.every,
        )

    # --------------------------------------------------------------------------------------------------- listing

    def _avoid_root(self) -> Path:
        folder = Path(self.settings.avoid).expanduser()
        if not folder.is_dir():
            raise typed_error(
                f"seeds.{self.dataset}.avoid",
                f"{shown(folder)} is not a folder",
                "a folder of rough masks named like the images",
            )
        return folder

    def _look(self, root: Path, listing: Listing) -> None:
        datasets = self._datasets(root)
        listing.metadata = metadata_of(root, self.settings.metadata)
        used: set[tuple[str, str]] = set()
        for dataset in datasets:
            self._add(root, dataset, used, listing)
        listing.notices += self._coverage(datasets, listing.refs)

    def _datasets(self, root: Path) -> list[DataSet]:
        settings = self.settings
        datasets_found = find_datasets(
            root,
            name=self.dataset,
            layout=settings.layout,
            images=settings.images,
            masks=settings.masks,
            known=lambda folder: known_datasets(folder, settings.sets),
        )
        if settings.sets:
            names = [dataset.name for dataset in datasets_found]
            unknown = [name for name in settings.sets if name not in names]
            if unknown and (settings.missing_sets == "stop" or len(unknown) == len(settings.sets)):
                raise UserMistakes(
                    [
                        Mistake(
                            where="suite",
                            key=f"seeds.{self.dataset}.sets",
                            found=name,
                            allowed=", ".join(dict.fromkeys(names)),
                            nearest=nearest_name(name, names),
                            fix="medtest data inspect PATH says what is there",
                        )
                        for name in unknown
                    ]
                )
            datasets_found = [dataset for dataset in datasets_found if dataset.name in settings.sets]
        if settings.labels == "required":
            for dataset in datasets_found:
                if dataset.masks is None:
                    check_folder_links(root, dataset.images.parent)
                    raise LayoutError(
                        f"no masks folder beside {shown(dataset.images)}", "set labels: none to test without masks"
                    )
        return sorted(datasets_found, key=lambda dataset: natural_key(dataset.name))

    def _coverage(self, datasets: Sequence[DataSet], refs: Sequence[SeedRef]) -> tuple[str, ...]:
        """Describe which known data sets are missing or incomplete, for the layout ``known``."""
        if self.settings.layout != "known":
            return ()
        counts = dict(Counter(ref.dataset for ref in refs))
        requested = self.settings.sets or list(dict.fromkeys(dataset.name for dataset in datasets))
        return coverage(requested, counts)

    def _add(self, root: Path, dataset: DataSet, used: set[tuple[str, str]], listing: Listing) -> None:
        labelled = self.settings.labels == "required"
        pairing = pair_with_masks(root, dataset) if labelled else pair_images(root, dataset)
        listing.take(pairing)
        listed = pairing.in_order() if listing.keeps else [FaultyPair(pair) for pair in pairing.pairs]
        if not listing.keeps:
            listing.problems += [problem for faulty in pairing.faulty for problem in faulty.problems]
        ids = distinct_ids(["/".join(name_parts(faulty.pair)) for faulty in listed])
        rough = self._rough_masks(dataset, listing.problems)
        items = [
            (seed_id, replace(faulty.pair, avoid=rough.get(faulty.pair.key)), faulty.problems)
            for faulty, seed_id in zip(listed, ids, strict=True)
        ]
        rules = Rules(
            reading=self._reading(),
            negatives=self.settings.negatives,
            avoid_root=self._avoid_root() if rough else None,
        )
        for name, pair, checked in self._looked_at(root, items, rules, listing):
            if checked.problems:
                distinct = name if (dataset.name, name) not in used else hashed_id(name, str(pair.image))
                used.add((dataset.name, distinct))
                listing.fault(SeedRef(dataset=dataset.name, seed_id=distinct), checked)
                continue
            facts = listing.facts(dataset.name, (name, str(pair.image.relative_to(dataset.images))), pair.image)
            for part in checked.slices:
                seed_id = f"{name}{part.label}"
                if (dataset.name, seed_id) in used:
                    reason = f"gets the same seed id {seed_id!r} as another file; rename it"
                    distinct = hashed_id(seed_id, str(pair.image))
                    problem = SeedProblem(file=shown(pair.image), reason=reason)
                    ref = SeedRef(dataset=dataset.name, seed_id=distinct)
                    listing.fault(ref, replace(checked, problems=(problem,)))
                    continue
                used.add((dataset.name, seed_id))
                cluster = name if part.label else ""  # images of one file form one cluster
                locator = json.dumps([*_files(pair), *_place(part)])
                ref = SeedRef(dataset=dataset.name, seed_id=seed_id, cluster=cluster, locator=locator)
                listing.add(ref, facts, [*checked.digests, *_place(part)])

    def _rough_masks(self, dataset: DataSet, problems: list[SeedProblem]) -> dict[str, PurePosixPath]:
        """Return the rough masks by key, relative to the avoid folder or its sub-folder for the data set."""
        if not self.settings.avoid:
            return {}
        root = self._avoid_root()
        own = PurePosixPath(dataset.name) if (root / dataset.name).is_dir() else PurePosixPath(".")
        listed = list_files(root, own)
        paths_by_key = listed.by_key
        problems += [SeedProblem(file=f"avoid: {p.file}", reason=p.reason) for p in listed.problems]
        for paths in paths_by_key.values():
            if len(paths) > 1:
                problems += [
                    SeedProblem(file=f"avoid: {shown(p)}", reason="has a name that occurs twice") for p in paths
                ]
        return {key: paths[0] for key, paths in paths_by_key.items() if len(paths) == 1}


def name_parts(pair: Pair) -> tuple[str, ...]:
    """Return the parts of an image's path, without suffix, that form its seed id."""
    return without_suffix(pair.image).parts[-(pair.key.count("/") + 1) :]


def _files(pair: Pair) -> list[str | None]:
    return [None if path is None else str(path) for path in (pair.image, pair.mask, pair.avoid)]


def _place(part: Slice) -> list[float]:
    """Return a slice's index in its file and its grey range; nothing for a picture."""
    return [] if part.index < 0 else [part.index, *part.span]
