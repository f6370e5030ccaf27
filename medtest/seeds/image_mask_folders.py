"""Folders of images and masks that a user has."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from medtest.cases import Mask, Seed, SeedRef
from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.imagefile import MAX_PIXELS, MOST_PIXELS, BadFileError, read_mask, read_rgb
from medtest.plugins import TRUSTED, PartSettings
from medtest.seeds.base import SeedProblem, SeedSource
from medtest.seeds.folder_check import Rules, check_pairs
from medtest.seeds.folder_layout import (
    DataSet,
    Layout,
    LayoutError,
    Pair,
    find_datasets,
    list_pictures,
    natural_key,
    pair_images,
    pair_with_masks,
    shown,
)
from medtest.seeds.folder_metadata import Facts, Metadata, read_metadata

LONGEST_ID = 120
"""Seed ids are cut to this many characters, with a hash at the end."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def _inside(value: str) -> str:
    path = PurePosixPath(value.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in value or "\0" in value or value.startswith("~"):
        raise ValueError("must be a path below the data folder, without '..'")
    return value


class ImageMaskFoldersSettings(PartSettings):
    """How a folder is read; see ``docs`` on bringing data.

    Attributes:
        layout: ``auto``; ``images_masks`` (images/ and masks/); ``original_ground_truth`` (Original/ and Ground
            Truth/); ``sets`` (folders of such pairs, each a data set, also below TestDataset/); ``images`` (pictures
            in the folder itself, masks beside them as <name>_mask if there are any).
        images: Image folder below the root, where its name is none of the known ones.
        masks: Mask folder below the root.
        sets: Ids of the data sets to take; all when empty.
        labels: ``required``, or ``none`` to test without masks.
        on_bad_seed: ``stop`` with one report, or ``skip`` bad files and count them.
        negatives: Whether an empty mask (no lesion) is allowed.
        max_pixels: Largest picture that is decoded.
        metadata: CSV below the root that names patient or video (clusters) and strata.
        avoid: Folder of rough masks that objects and text keep off, for images without masks; never predictions of a
            system under test.
    """

    layout: Layout = "auto"
    images: str = ""
    masks: str = ""
    sets: list[str] = []
    labels: Literal["required", "none"] = "required"
    on_bad_seed: Literal["stop", "skip"] = "stop"
    negatives: bool = False
    max_pixels: int = Field(default=MAX_PIXELS, ge=1, le=MOST_PIXELS)
    metadata: str = ""
    avoid: str = Field(default="", json_schema_extra=TRUSTED)

    _below = field_validator("images", "masks", "metadata")(_inside)


@dataclass(slots=True)
class _Listing:
    """What one look at the folder found."""

    refs: list[SeedRef] = field(default_factory=list)
    digests: list[tuple[str, str, str]] = field(default_factory=list)
    problems: list[SeedProblem] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)


class ImageMaskFolders(SeedSource):
    """Images with masks (or without) from folders, joined by name, every file looked at before a run."""

    Settings: ClassVar[type[PartSettings]] = ImageMaskFoldersSettings
    output_kind = "mask"
    needs_root = True
    revision = 1

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._listing: _Listing | None = None

    # ------------------------------------------------------------------------------------------------- interface

    def refs(self) -> Sequence[SeedRef]:
        """Return every seed, by data set and then in natural order of names, each of its files looked at.

        Raises:
            UserMistakes: ``data=`` is missing or no folder, its layout is not understood, or files cannot be used and
                ``on_bad_seed`` is ``stop``: one report names every file.
        """
        return tuple(self._listed().refs)

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files left out under ``on_bad_seed: skip``."""
        return tuple(self._listed().problems)

    def digest(self) -> str:
        """Return a SHA-256 over the seeds in order: ids, clusters, strata, and the contents of their files."""
        listing = self._listed()
        total = hashlib.sha256(json.dumps([type(self).__name__, self.revision]).encode())
        for ref, digests in zip(listing.refs, listing.digests, strict=True):
            line = [ref.dataset, ref.seed_id, ref.cluster, list(ref.strata), list(digests)]
            total.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        return total.hexdigest()

    def load(self, ref: SeedRef) -> Seed:
        """Read one seed's files.

        Raises:
            UserMistakes: A file has changed since it was looked at and cannot be read any more.
        """
        root = self._root()
        image, mask, avoid = json.loads(ref.locator)
        bound = self.settings.max_pixels
        now = image
        try:
            pixels = read_rgb(_below(root, image), max_pixels=bound)
            now = mask
            expected = read_mask(_below(root, mask), max_pixels=bound) if mask else None
            now = avoid
            rough = read_mask(_below(self._avoid_root(), avoid), max_pixels=bound) if avoid else None
        except BadFileError as error:
            fix = "leave the data alone while a run lasts, or start again"
            raise UserMistakes([Mistake(where=shown(now), found=str(error), fix=fix)]) from error
        for name, other in ((mask, expected), (avoid, rough)):
            if other is not None and other.shape != pixels.shape[:2]:
                raise UserMistakes([Mistake(where=shown(name), found="has another size than its image by now")])
        return Seed(ref=ref, image=pixels, expected=_frozen(expected), avoid=_frozen(rough))

    # --------------------------------------------------------------------------------------------------- listing

    def _listed(self) -> _Listing:
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def _root(self) -> Path:
        if self.root is None:
            raise UserMistakes(
                [
                    Mistake(
                        where="command line",
                        key="data",
                        found="nothing",
                        allowed="the folder that holds your images and masks",
                        fix="add data=PATH",
                    )
                ]
            )
        if not self.root.is_dir():
            found = "is a file" if self.root.exists() else "does not exist"
            raise UserMistakes(
                [Mistake(where="command line", key="data", found=f"{shown(self.root)} {found}", allowed="a folder")]
            )
        return self.root

    def _avoid_root(self) -> Path:
        folder = Path(self.settings.avoid).expanduser()
        if not folder.is_dir():
            raise UserMistakes(
                [
                    Mistake(
                        where="command line",
                        key=f"seeds.{self.dataset}.avoid",
                        found=f"{shown(folder)} is no folder",
                        allowed="a folder of rough masks named like the images",
                    )
                ]
            )
        return folder

    def _list(self) -> _Listing:
        root, settings = self._root(), self.settings
        try:
            datasets = self._datasets(root)
            listing = _Listing()
            metadata = self._metadata(root)
            for dataset in datasets:
                self._add(root, dataset, metadata, listing)
        except LayoutError as error:
            raise UserMistakes(
                [Mistake(where=shown(root.name or "."), key=error.key, found=error.found, fix=error.fix)],
                heading="the data folder cannot be used",
            ) from error
        if listing.problems and settings.on_bad_seed == "stop":
            raise UserMistakes(
                [Mistake(where=p.file, found=p.reason) for p in listing.problems],
                heading=f"{_count(listing.problems)} of the data cannot be used (on_bad_seed: skip leaves them out)",
            )
        if not listing.refs:
            reasons = [Mistake(where=p.file, found=p.reason) for p in listing.problems]
            raise UserMistakes(
                reasons or [Mistake(where=shown(root.name or "."), key="data", found="no images at all")],
                heading="the data folder holds no usable image",
            )
        if metadata is not None and listing.unmatched:
            # Their intervals would be too narrow without a word.
            raise UserMistakes(
                Mistake(
                    where=metadata.where,
                    key="metadata",
                    found=f"no row for {name}",
                    allowed="one row for each image",
                )
                for name in listing.unmatched
            )
        return listing

    def _datasets(self, root: Path) -> list[DataSet]:
        settings = self.settings
        found = find_datasets(
            root, name=self.dataset, layout=settings.layout, images=settings.images, masks=settings.masks
        )
        if settings.sets:
            names = [dataset.name for dataset in found]
            unknown = [name for name in settings.sets if name not in names]
            if unknown:
                raise UserMistakes(
                    [
                        Mistake(
                            where="suite",
                            key=f"seeds.{self.dataset}.sets",
                            found=name,
                            allowed=", ".join(names),
                            nearest=nearest_name(name, names),
                        )
                        for name in unknown
                    ]
                )
            found = [dataset for dataset in found if dataset.name in settings.sets]
        if settings.labels == "required":
            for dataset in found:
                if dataset.masks is None:
                    raise LayoutError(
                        f"no masks folder beside {shown(dataset.images)}", "set labels: none to test without masks"
                    )
        return sorted(found, key=lambda dataset: natural_key(dataset.name))

    def _add(self, root: Path, dataset: DataSet, metadata: Metadata | None, listing: _Listing) -> None:
        labelled = self.settings.labels == "required"
        pairing = pair_with_masks(root, dataset) if labelled else pair_images(root, dataset)
        listing.problems += pairing.problems
        identifiers = self._identifiers(pairing.pairs, listing.problems)
        rough = self._rough_masks(dataset, listing.problems)
        chosen = [(pair, rough.get(pair.key)) for pair in pairing.pairs if pair.key in identifiers]
        rules = Rules(
            max_pixels=self.settings.max_pixels,
            negatives=self.settings.negatives,
            avoid_root=self._avoid_root() if rough else None,
        )
        for (pair, avoid), checked in zip(chosen, check_pairs(root, chosen, rules), strict=True):
            if checked.problems:
                listing.problems += checked.problems
                continue
            seed_id = identifiers[pair.key]
            below = pair.image.relative_to(dataset.images)
            facts = metadata.of(dataset.name, (seed_id, str(pair.image), str(below), below.name)) if metadata else None
            if metadata is not None and facts is None:
                listing.unmatched.append(shown(pair.image))
            listing.refs.append(_ref(dataset.name, seed_id, facts, pair, avoid))
            listing.digests.append(checked.digests)

    def _identifiers(self, pairs: Sequence[Pair], problems: list[SeedProblem]) -> dict[str, str]:
        """Return seed ids by key; files whose names become one id are problems."""
        by_id: dict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            by_id[seed_identifier(pair)].append(pair)
        found = {}
        for identifier, same in by_id.items():
            if len(same) == 1:
                found[same[0].key] = identifier
                continue
            for pair in same:
                others = ", ".join(shown(other.image) for other in same if other is not pair)
                reason = f"gets the same seed id {identifier!r} as {others}; rename it"
                problems.append(SeedProblem(file=shown(pair.image), reason=reason))
        return found

    def _rough_masks(self, dataset: DataSet, problems: list[SeedProblem]) -> dict[str, PurePosixPath]:
        """Return the rough masks by key, relative to the avoid folder or its sub-folder for the data set."""
        if not self.settings.avoid:
            return {}
        root = self._avoid_root()
        own = PurePosixPath(dataset.name) if (root / dataset.name).is_dir() else PurePosixPath(".")
        found, wrong = list_pictures(root, own)
        problems += [SeedProblem(file=f"avoid: {p.file}", reason=p.reason) for p in wrong]
        for paths in found.values():
            if len(paths) > 1:
                problems += [
                    SeedProblem(file=f"avoid: {shown(p)}", reason="has a name that occurs twice") for p in paths
                ]
        return {key: paths[0] for key, paths in found.items() if len(paths) == 1}

    # -------------------------------------------------------------------------------------------------- metadata

    def _metadata(self, root: Path) -> Metadata | None:
        name = self.settings.metadata
        if not name:
            return None
        path = root / name
        if not path.exists():
            raise UserMistakes([Mistake(where=shown(name), key="metadata", found="does not exist in the data folder")])
        if not path.resolve().is_relative_to(root.resolve()):
            raise UserMistakes(
                [Mistake(where=shown(name), key="metadata", found="is a link that leads out of the data folder")]
            )
        return read_metadata(path, shown(name))


def seed_identifier(pair: Pair) -> str:
    """Return a seed's id: its path without suffix, other characters than letters, digits and ``._-`` replaced by _."""
    parts = pair.image.with_suffix("").parts[-(pair.key.count("/") + 1) :]
    text = _UNSAFE.sub("_", "_".join(parts)).lstrip(".") or "_"
    if len(text) > LONGEST_ID:
        text = f"{text[: LONGEST_ID - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text


def _ref(dataset: str, seed_id: str, facts: Facts | None, pair: Pair, avoid: PurePosixPath | None) -> SeedRef:
    paths = [str(pair.image), str(pair.mask) if pair.mask else None, str(avoid) if avoid else None]
    return SeedRef(
        dataset=dataset,
        seed_id=seed_id,
        cluster=facts.cluster if facts else "",
        strata=facts.strata if facts else (),
        locator=json.dumps(paths),
    )


def _below(root: Path, relative: str) -> Path:
    """Return a file's path, once more made sure of: a link may have been put there since."""
    path = root / relative
    try:
        inside = path.resolve(strict=True).is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:
        raise BadFileError("is not there any more") from error
    if not inside:
        raise BadFileError("leads out of the data folder")
    return path


def _frozen(mask: Mask | None) -> Mask | None:
    if mask is not None:
        mask.setflags(write=False)
    return mask


def _count(problems: Sequence[SeedProblem]) -> str:
    files = len({problem.file for problem in problems})
    return "1 file" if files == 1 else f"{files} files"
