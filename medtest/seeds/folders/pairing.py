"""Listing of image files and pairing of images with masks, by names alone."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from medtest.core.files.images import BadFileError
from medtest.core.files.links import broken
from medtest.core.files.walk import WalkedFolder, walk
from medtest.seeds.base import Remarks, SeedProblem
from medtest.seeds.folders.formats import UNREAD, has_no_suffix, is_ignored, is_unnamed_dicom, suffix_of, without_suffix
from medtest.seeds.folders.layout import DataSet, LayoutError, Pair, holds_pairs, natural_key, shown

DEEPEST = 6
"""Depth to which folders below an image folder are followed."""

Rule: TypeAlias = tuple[str, re.Pattern[str]]

_ANY = re.S | re.I
"""Naming rules ignore case; names themselves do not."""

RULES: tuple[Rule, ...] = (
    ("<name>", re.compile(r"(?P<stem>.+)", _ANY)),
    ("<name>_mask", re.compile(r"(?P<stem>.+)[_\- ]mask", _ANY)),
    ("mask_<name>", re.compile(r"mask[_\- ](?P<stem>.+)", _ANY)),
    ("p<name>", re.compile(r"p(?P<stem>.+)", _ANY)),
    ("<name>_gt", re.compile(r"(?P<stem>.+)[_\- ](?:gt|ground[_\- ]?truth)", _ANY)),
    ("gt_<name>", re.compile(r"gt[_\- ](?P<stem>.+)", _ANY)),
    ("<name>_segmentation", re.compile(r"(?P<stem>.+)[_\- ](?:segmentation|seg|label)", _ANY)),
    ("<name> for <name>_0000", re.compile(r"(?P<stem>.+)", _ANY)),
)
"""Rules by which masks are named after their image; one rule holds for a whole data set.

The last is nnU-Net's, whose images carry a channel number.
"""

_CHANNEL = RULES[-1]


class FaultyPair(NamedTuple):
    """Image and the problems of its files."""

    pair: Pair
    problems: tuple[SeedProblem, ...] = ()


@dataclass(slots=True)
class Pairing(Remarks):
    """Result of joining files by name; unmatched files are problems.

    Attributes:
        pairs: Joined files, in natural order.
        faulty: Images without mask or without a unique name, in natural order.
        rule: Naming rule of the masks.
    """

    pairs: list[Pair] = field(default_factory=list)
    faulty: list[FaultyPair] = field(default_factory=list)
    rule: str = ""

    def all_problems(self) -> list[SeedProblem]:
        """Return the problems of images and of all other files."""
        return [*self.problems, *(problem for faulty in self.faulty for problem in faulty.problems)]

    def in_order(self) -> list[FaultyPair]:
        """Return every image in natural order, usable ones without problems."""
        return sorted([*map(FaultyPair, self.pairs), *self.faulty], key=lambda faulty: _order(faulty.pair))


@dataclass(slots=True)
class Files(Remarks):
    """The image files below a folder.

    Attributes:
        by_key: Paths relative to the root by key.
    """

    by_key: dict[str, list[PurePosixPath]] = field(default_factory=dict)

    def named(self, pattern: str) -> Files:
        """Return the files whose name matches a pattern (all if it is empty), with the same problems."""
        if not pattern:
            return self
        match = re.compile(pattern, _ANY).fullmatch
        matching = {key: paths for key, paths in self.by_key.items() if match(key.rpartition("/")[2])}
        return replace(self, by_key=matching)


def list_files(root: Path, folder: PurePosixPath) -> Files:
    """Return the pictures, DICOM and NIfTI files below a folder by key, and the files that cannot be read.

    The key is the path below the folder without suffix, in Unicode's composed form (macOS writes the decomposed one); A
    and a are different names, as are ß and ss. Unsupported picture formats are problems; links are followed.
    """
    listed = Files(by_key=defaultdict(list))
    try:
        for below in walk(root, folder, deepest=DEEPEST, ignored=is_ignored):
            _take_folder(root, folder, below, listed)
    except BadFileError as error:
        raise LayoutError(f"folder {shown(folder)} {error}", "give a smaller folder") from error
    listed.by_key = dict(listed.by_key)
    return listed


def _take_folder(root: Path, folder: PurePosixPath, below: WalkedFolder, listed: Files) -> None:
    """Add the files of one sub-folder to the listing."""
    listed.ignored += len(below.passed)
    for trouble in below.troubles:
        if trouble.loses:
            listed.problems.append(SeedProblem(file=shown(trouble.path), reason=trouble.reason))
        else:
            listed.notices.append(f"{shown(trouble.path)} {trouble.reason}.")
    for name in below.files:
        path = below.path / name
        if path.suffix.lower() in UNREAD:
            reason = f"{path.suffix} files are not read; convert it"
            listed.problems.append(SeedProblem(file=shown(path), reason=reason))
        elif suffix_of(name) or is_unnamed_dicom(root / path):
            key = composed(str(without_suffix(path.relative_to(folder))))
            listed.by_key[key].append(path)
        elif name in below.broken and has_no_suffix(name):  # the link's target is unknown
            listed.problems.append(SeedProblem(file=shown(path), reason=broken(root / path)))


def composed(name: str) -> str:
    """Return a name in Unicode's composed form, which is used for comparison."""
    return unicodedata.normalize("NFC", name)


def _order(pair: Pair) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return the sort key of a pair: numbers by value, A next to a."""
    return natural_key(pair.key.casefold()), pair.key


def _base(rule: Rule, key: str) -> str | None:
    """Return the key of the image that a mask's key names under a rule."""
    folder, slash, name = key.rpartition("/")
    match = rule[1].fullmatch(name)
    if match is None:
        return None
    return f"{folder}{slash}{match['stem']}{'_0000' if rule is _CHANNEL else ''}"


def same_names(paths: Sequence[PurePosixPath]) -> tuple[SeedProblem, ...]:
    """Return the problems of files that differ only in their suffix; none for a single file."""
    return tuple(
        SeedProblem(
            file=shown(path),
            reason=f"has the same name as {', '.join(shown(other.name) for other in paths if other != path)}",
        )
        for path in (paths if len(paths) > 1 else ())
    )


def _single(paths_by_key: dict[str, list[PurePosixPath]]) -> tuple[dict[str, PurePosixPath], dict[str, FaultyPair]]:
    """Return the files with a unique name, and for each duplicate name its first file and problems."""
    single = {key: paths[0] for key, paths in paths_by_key.items() if len(paths) == 1}
    doubled = {
        key: FaultyPair(Pair(key=key, image=paths[0]), same_names(paths))
        for key, paths in paths_by_key.items()
        if len(paths) > 1
    }
    return single, doubled


def pair_images(root: Path, dataset: DataSet) -> Pairing:
    """Return every image of a data set without masks; files named as masks of others are left out."""
    files = list_files(root, dataset.images).named(dataset.image_names)
    pairing = Pairing()
    pairing.take(files)
    images, doubled = _single(files.by_key)
    masks: set[str] = set()
    if dataset.masks == dataset.images and not dataset.image_names:
        for rule in RULES[1:]:
            if rule[0] != "p<name>" and rule is not _CHANNEL:
                masks |= {key for key in images if _base(rule, key) in images}
    pairs = [Pair(key=key, image=path) for key, path in images.items() if key not in masks]
    pairing.pairs, pairing.faulty = sorted(pairs, key=_order), _in_order(doubled)
    return pairing


def _in_order(faulty: Mapping[str, FaultyPair]) -> list[FaultyPair]:
    return sorted(faulty.values(), key=lambda faulty: _order(faulty.pair))


def pair_with_masks(root: Path, dataset: DataSet) -> Pairing:
    """Join images and masks by name and report unmatched files: images in their places, others separately.

    One naming rule holds for the whole data set: the one that joins most masks. If two rules join equally many masks
    but differently, all images are reported as faulty.
    """
    everything = list_files(root, dataset.images)
    files = everything.named(dataset.image_names)
    pairing = Pairing()
    pairing.take(files)
    problems = pairing.problems
    together = not dataset.mask_names and dataset.masks in (dataset.images, None)
    if together:
        mask_files = files
    elif dataset.masks == dataset.images:
        mask_files = everything.named(dataset.mask_names)
    else:
        mask_files = list_files(root, dataset.masks or dataset.images).named(dataset.mask_names)
        pairing.take(mask_files)
    images, faulty = _single(files.by_key)
    masks, doubled_masks = (images, {}) if together else _single(mask_files.by_key)
    best = _best_rule(images, masks, rules=RULES[1:] if together else RULES)
    if best is None:
        reason = "names of masks fit those of images in two ways; rename the masks like their images"
        problem = SeedProblem(file=shown(dataset.masks or dataset.images), reason=reason)
        alike = {key: FaultyPair(Pair(key=key, image=path), (problem,)) for key, path in images.items()}
        pairing.faulty = _in_order(alike | faulty)
        return pairing
    rule, joined = best
    if not joined and images:
        example = f" (an image is called {shown(next(iter(images.values())).name)}"
        example += f", a mask {shown(next(iter(masks.values())).name)})" if masks and not together else ")"
        raise LayoutError(
            f"none of the {len(images)} images in {shown(dataset.images)} has a mask{example}",
            "name masks like their images, or set labels: none to test without masks"
            if (whole := holds_pairs(root)) is None
            else f"type the folder that holds images and masks: data={shown(whole)}",
        )
    pairs = [Pair(key=base, image=images[base], mask=masks[key]) for key, base in joined.items()]
    if together:
        for key in set(images) - set(joined.values()) - set(joined):
            faulty[key] = _faulty(images, key, "has no mask beside it")
    else:
        # Duplicate names are already reported; their partners are not mistakes.
        doubled = set(faulty)
        for key, masks_of_one in doubled_masks.items():
            base = next(
                (base for candidate in RULES if candidate[0] == rule and (base := _base(candidate, key)) in images),
                None,
            )
            if base is None:
                problems += masks_of_one.problems
            else:
                faulty[base] = FaultyPair(Pair(key=base, image=images[base]), masks_of_one.problems)
        without = set(images) - set(joined.values()) - set(doubled_masks) - set(faulty)
        faulty |= {key: _faulty(images, key, "has no mask") for key in without}
        others = {key.casefold(): images[key] for key in sorted(without)}
        for key in sorted(set(masks) - set(joined) - doubled):
            bases = (base for rule in RULES if (base := _base(rule, key)) is not None)
            other = next((others[base.casefold()] for base in bases if base.casefold() in others), None)
            hint = f"; {shown(other)} is another name: upper and lower case count" if other is not None else ""
            problems.append(SeedProblem(file=shown(masks[key]), reason=f"is a mask without image{hint}"))
    pairing.pairs, pairing.faulty, pairing.rule = sorted(pairs, key=_order), _in_order(faulty), rule
    return pairing


def _faulty(images: Mapping[str, PurePosixPath], key: str, reason: str) -> FaultyPair:
    path = images[key]
    return FaultyPair(Pair(key=key, image=path), (SeedProblem(file=shown(path), reason=reason),))


def _best_rule(
    images: dict[str, PurePosixPath], masks: dict[str, PurePosixPath], *, rules: Sequence[Rule]
) -> tuple[str, dict[str, str]] | None:
    """Return the best rule and its mask key → image key; None if two rules tie but disagree."""
    candidates: list[tuple[str, dict[str, str]]] = []
    for rule in rules:
        joined = {}
        for key in masks:
            base = _base(rule, key)
            if base is not None and base in images and (base != key or rule is RULES[0]):
                joined[key] = base
        # Two masks of one image under one rule (x_mask and x-mask) make the rule ambiguous.
        candidates.append((rule[0], joined if len(set(joined.values())) == len(joined) else {}))
    most = max(len(joined) for _, joined in candidates)
    best = [(name, joined) for name, joined in candidates if len(joined) == most]
    return best[0] if most == 0 or all(joined == best[0][1] for _, joined in best) else None


def mask_of(key: str) -> list[str]:
    """Return the keys of images that a file could be the mask of; none for plain names."""
    bases = [_base(rule, key) for rule in RULES[1:] if rule is not _CHANNEL and rule[0] != "p<name>"]
    return [base for base in bases if base is not None and base != key]
