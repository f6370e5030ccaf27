"""Where images and masks lie in a user's folder, and which mask belongs to which image. Names only, no contents."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from medtest.cases import ID_PATTERN
from medtest.seeds.base import SeedProblem

Layout: TypeAlias = Literal["auto", "images_masks", "original_ground_truth", "sets", "images"]

IMAGE_FOLDERS = ("images", "image", "imgs", "img", "original", "originals")
"""Names of image folders, lower case, in the order they are preferred."""

MASK_FOLDERS = ("masks", "mask", "ground truth", "ground_truth", "ground-truth", "groundtruth", "gt", "segmentations")
"""Names of mask folders, lower case."""

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".dib", ".tif", ".tiff", ".webp")
"""Suffixes of files that are taken for pictures; what they hold decides how they are read."""

OTHER_PICTURES = (".gif", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".dcm", ".npy", ".mat", ".svg", ".ppm", ".pgm")
"""Suffixes of pictures in formats that are not read: left out they would be lost without a word."""

IGNORED = ("thumbs.db", "desktop.ini", "__macosx", "$recycle.bin", "@eadir")
"""What operating systems leave in folders; names that begin with a dot are ignored too."""

DEEPEST = 6
"""Folders below an image folder are followed to this depth."""

MOST_FILES = 1_000_000
"""More files than this are not a data set but a wrong folder."""

Rule: TypeAlias = tuple[str, re.Pattern[str]]

RULES: tuple[Rule, ...] = (
    ("<name>", re.compile(r"(?P<stem>.+)", re.S)),
    ("<name>_mask", re.compile(r"(?P<stem>.+)[_\- ]mask", re.S)),
    ("mask_<name>", re.compile(r"mask[_\- ](?P<stem>.+)", re.S)),
    ("p<name>", re.compile(r"p(?P<stem>.+)", re.S)),
    ("<name>_gt", re.compile(r"(?P<stem>.+)[_\- ](?:gt|ground[_\- ]?truth)", re.S)),
    ("gt_<name>", re.compile(r"gt[_\- ](?P<stem>.+)", re.S)),
    ("<name>_segmentation", re.compile(r"(?P<stem>.+)[_\- ](?:segmentation|seg|label)", re.S)),
)
"""How masks may be named after their image. One rule holds for a whole data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """The folders of one data set, relative to the root.

    Attributes:
        name: Its id.
        images: Folder of images.
        masks: Folder of masks; the same as ``images`` where they lie side by side; None for images alone.
    """

    name: str
    images: PurePosixPath
    masks: PurePosixPath | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An image and its mask, as paths relative to the root, and the key that joins them (lower case, no suffix)."""

    key: str
    image: PurePosixPath
    mask: PurePosixPath | None = None


@dataclass(slots=True)
class Pairing:
    """What joining by names gave."""

    pairs: list[Pair] = field(default_factory=list)
    problems: list[SeedProblem] = field(default_factory=list)


class LayoutError(Exception):
    """The folder is not laid out in a way that is understood; the message says what was looked for."""

    def __init__(self, found: str, fix: str, key: str = "data") -> None:
        super().__init__(found)
        self.found, self.fix, self.key = found, fix, key


# --------------------------------------------------------------------------------------------------------- folders


def shown(path: PurePosixPath | Path | str) -> str:
    """Return a path for people: control characters and undecodable bytes escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(path))


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which ``img2`` comes before ``img10``."""
    parts = re.split(r"([0-9]+)", text)
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part)


def is_ignored(name: str) -> bool:
    """Say whether an operating system's leftover has this name."""
    return name.startswith(".") or name.lower() in IGNORED


def _subfolders(root: Path, relative: PurePosixPath) -> list[str]:
    try:
        with os.scandir(root / relative) as entries:
            names = [entry.name for entry in entries if not is_ignored(entry.name) and entry.is_dir()]
    except OSError as error:
        raise LayoutError(
            f"folder {shown(relative)} cannot be read ({error.strerror})", "give yourself read permission"
        ) from error
    return sorted(names, key=natural_key)


def _one_of(names: Iterable[str], wanted: Sequence[str], where: PurePosixPath) -> str | None:
    by_rank: dict[int, list[str]] = defaultdict(list)
    for name in names:
        if name.lower() in wanted:
            by_rank[wanted.index(name.lower())].append(name)
    if not by_rank:
        return None
    best = by_rank[min(by_rank)]
    if len(best) > 1:
        raise LayoutError(
            f"{shown(where)} holds {' and '.join(repr(b) for b in best)}", "keep one of them, or name one in the suite"
        )
    return best[0]


def _pair_of_folders(
    root: Path, relative: PurePosixPath, images: Sequence[str], masks: Sequence[str]
) -> DataSet | None:
    names = _subfolders(root, relative)
    image_folder, mask_folder = _one_of(names, images, relative), _one_of(names, masks, relative)
    if image_folder is None:
        return None
    return DataSet(
        name="", images=relative / image_folder, masks=None if mask_folder is None else relative / mask_folder
    )


def dataset_id(folder: str) -> str:
    """Return a data set's id from its folder's name: lower case, other characters than ``[a-z0-9_-]`` become ``-``."""
    text = unicodedata.normalize("NFKD", folder).encode("ascii", "ignore").decode().lower()
    text = re.sub(r"[^a-z0-9_-]+", "-", text).strip("-_")[:64]
    return text if ID_PATTERN.fullmatch(text) else "set"


def _sets_below(root: Path, relative: PurePosixPath, images: Sequence[str], masks: Sequence[str]) -> list[DataSet]:
    found: dict[str, DataSet] = {}
    for name in _subfolders(root, relative):
        pair = _pair_of_folders(root, relative / name, images, masks)
        if pair is None:
            continue
        identifier = dataset_id(name)
        if identifier in found:
            first = found[identifier].images.parent
            raise LayoutError(
                f"folders {shown(first)} and {shown(relative / name)} would both be data set {identifier!r}",
                "rename one of them",
            )
        found[identifier] = DataSet(name=identifier, images=pair.images, masks=pair.masks)
    return list(found.values())


def _has_pictures(root: Path, relative: PurePosixPath) -> bool:
    with os.scandir(root / relative) as entries:
        return any(not is_ignored(e.name) and e.name.lower().endswith(IMAGE_SUFFIXES) for e in entries)


def find_datasets(root: Path, *, name: str, layout: Layout, images: str, masks: str) -> list[DataSet]:
    """Return the data sets below a root.

    Args:
        root: The user's folder.
        name: Id of the data set when there is only one.
        layout: Where to look; ``auto`` tries a pair of folders in the root, then in its sub-folders (also below one
            called ``TestDataset``), then pictures in the root itself.
        images: Name of the image folder, instead of the known ones; "." for the root itself.
        masks: Name of the mask folder, instead of the known ones.

    Raises:
        LayoutError: Nothing of the kind is there.
    """
    here = PurePosixPath(".")
    if images or masks:
        named = DataSet(name=name, images=here / images, masks=here / masks if masks else None)
        if _is_folder(root, named.images) and (named.masks is None or _is_folder(root, named.masks)):
            return [named]
    image_names: Sequence[str] = (images.lower(),) if images else IMAGE_FOLDERS
    mask_names: Sequence[str] = (masks.lower(),) if masks else MASK_FOLDERS
    if layout == "original_ground_truth" and not images:
        image_names = ("original", "originals")
    if layout not in ("sets", "images"):
        pair = _pair_of_folders(root, here, image_names, mask_names)
        if pair is not None:
            return [DataSet(name=name, images=pair.images, masks=pair.masks)]
    if layout in ("auto", "sets"):
        below = [here / folder for folder in _subfolders(root, here) if folder.lower() == "testdataset"]
        for start in [*below, here]:
            sets = _sets_below(root, start, image_names, mask_names)
            if sets:
                return sets
    if layout in ("auto", "images") and _has_pictures(root, here):
        return [DataSet(name=name, images=here, masks=here)]
    raise LayoutError(
        f"layout {layout}: no {' or '.join(image_names[:2])} folder{'' if layout == 'sets' else ' and no pictures'}",
        "give the folder that holds images/ and masks/ (or Original/ and 'Ground Truth/'), or folders of such pairs",
    )


def _is_folder(root: Path, relative: PurePosixPath) -> bool:
    return (root / relative).is_dir()


# ----------------------------------------------------------------------------------------------------------- files


def list_pictures(root: Path, folder: PurePosixPath) -> tuple[dict[str, list[PurePosixPath]], list[SeedProblem]]:
    """Return the pictures below a folder by key, and what cannot be read there.

    The key is the path below the folder without suffix, lower case, in Unicode's composed form (macOS writes the
    decomposed one). A link that leads out of the root is a problem, as is a picture in a format that is not read.
    """
    found: dict[str, list[PurePosixPath]] = defaultdict(list)
    problems: list[SeedProblem] = []
    real_root = root.resolve()
    if not _inside(real_root, root / folder):
        return {}, [SeedProblem(file=shown(folder), reason="is a link that leads out of the data folder")]
    waiting = [(folder, 0)]
    count = 0
    while waiting:
        here, depth = waiting.pop()
        try:
            with os.scandir(root / here) as entries:
                listed = sorted((e for e in entries if not is_ignored(e.name)), key=lambda e: e.name)
        except OSError as error:
            problems.append(SeedProblem(file=shown(here), reason=f"folder cannot be read ({error.strerror})"))
            continue
        count += len(listed)
        if count > MOST_FILES:
            raise LayoutError(f"folder {shown(folder)} holds more than {MOST_FILES} files", "give a smaller folder")
        for entry in listed:
            path = here / entry.name
            if entry.is_symlink() and not _inside(real_root, root / path):
                problems.append(SeedProblem(file=shown(path), reason="is a link that leads out of the data folder"))
            elif entry.is_dir():
                if entry.is_symlink() or depth == DEEPEST:
                    why = "is a linked folder" if entry.is_symlink() else "is too deep a folder"
                    problems.append(SeedProblem(file=shown(path), reason=f"{why}; its files are not read"))
                else:
                    waiting.append((path, depth + 1))
            elif path.suffix.lower() in OTHER_PICTURES:
                problems.append(SeedProblem(file=shown(path), reason=f"{path.suffix} files are not read; convert it"))
            elif path.suffix.lower() in IMAGE_SUFFIXES:
                below = path.relative_to(folder).with_suffix("")
                found[unicodedata.normalize("NFC", str(below)).casefold()].append(path)
    return dict(found), problems


def _inside(real_root: Path, path: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(real_root)
    except (OSError, RuntimeError):
        return False


def _base(rule: Rule, key: str) -> str | None:
    """Return the key of the image that a mask's key names under a rule."""
    folder, slash, name = key.rpartition("/")
    match = rule[1].fullmatch(name)
    return None if match is None else f"{folder}{slash}{match['stem']}"


def _single(found: dict[str, list[PurePosixPath]], problems: list[SeedProblem]) -> dict[str, PurePosixPath]:
    single = {}
    for key, paths in found.items():
        if len(paths) == 1:
            single[key] = paths[0]
            continue
        for path in paths:
            others = ", ".join(shown(other.name) for other in paths if other != path)
            problems.append(SeedProblem(file=shown(path), reason=f"has the same name as {others}"))
    return single


def pair_images(root: Path, dataset: DataSet) -> Pairing:
    """Return every image of a data set on its own; files named as masks of others beside them are left out."""
    found, problems = list_pictures(root, dataset.images)
    images = _single(found, problems)
    masks: set[str] = set()
    if dataset.masks == dataset.images:
        for rule in RULES[1:]:
            if rule[0] != "p<name>":
                masks |= {key for key in images if _base(rule, key) in images}
    pairs = [Pair(key=key, image=path) for key, path in images.items() if key not in masks]
    return Pairing(sorted(pairs, key=lambda pair: natural_key(pair.key)), problems)


def pair_with_masks(root: Path, dataset: DataSet) -> Pairing:
    """Join images and masks by name, and report every file that is left over.

    One naming rule holds for the whole data set: the one that joins most masks. If two rules join equally many but
    differently, nothing is guessed.
    """
    found, problems = list_pictures(root, dataset.images)
    together = dataset.masks == dataset.images
    if together or dataset.masks is None:
        mask_found = found
    else:
        mask_found, mask_problems = list_pictures(root, dataset.masks)
        problems += mask_problems
    images = _single(found, problems)
    masks = images if together else _single(mask_found, problems)
    joined = _best_rule(images, masks, rules=RULES[1:] if together else RULES)
    if joined is None:
        problems.append(
            SeedProblem(
                file=shown(dataset.masks or dataset.images),
                reason="names of masks fit those of images in two ways; rename the masks like their images",
            )
        )
        return Pairing([], problems)
    if not joined and images:
        example = f" (an image is called {shown(next(iter(images.values())).name)}"
        example += f", a mask {shown(next(iter(masks.values())).name)})" if masks and not together else ")"
        raise LayoutError(
            f"none of the {len(images)} images in {shown(dataset.images)} has a mask{example}",
            "name masks like their images, or set labels: none to test without masks",
        )
    pairs = [Pair(key=base, image=images[base], mask=masks[key]) for key, base in joined.items()]
    if together:
        alone = set(images) - set(joined.values()) - set(joined)
        problems += [SeedProblem(file=shown(images[key]), reason="has no mask beside it") for key in sorted(alone)]
    else:
        # Files with a doubled name were reported as such; their partners are no mistakes of their own.
        doubled = {key for key, paths in found.items() if len(paths) > 1}
        doubled_masks = {key for key, paths in mask_found.items() if len(paths) > 1}
        for key in sorted(set(images) - set(joined.values()) - doubled_masks):
            problems.append(SeedProblem(file=shown(images[key]), reason="has no mask"))
        for key in sorted(set(masks) - set(joined) - doubled):
            problems.append(SeedProblem(file=shown(masks[key]), reason="is a mask without image"))
    return Pairing(sorted(pairs, key=lambda pair: natural_key(pair.key)), problems)


def _best_rule(
    images: dict[str, PurePosixPath], masks: dict[str, PurePosixPath], *, rules: Sequence[Rule]
) -> dict[str, str] | None:
    """Return mask key → image key under the rule that joins most; None when two rules disagree about as many."""
    candidates: list[dict[str, str]] = []
    for rule in rules:
        joined = {}
        for key in masks:
            base = _base(rule, key)
            if base is not None and base in images and (base != key or rule is RULES[0]):
                joined[key] = base
        # Two masks of one image under one rule (x_mask and x-mask) leave the pairing open.
        candidates.append(joined if len(set(joined.values())) == len(joined) else {})
    most = max(len(joined) for joined in candidates)
    best = [joined for joined in candidates if len(joined) == most]
    return best[0] if most == 0 or all(joined == best[0] for joined in best) else None
