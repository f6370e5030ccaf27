"""Looking at every file of a folder once, before a run: is it whole, do sizes fit, is the mask a mask."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from medtest.imagefile import BadFileError, check_decodes, is_turned, read_bytes
from medtest.maskfile import LesionMask, decode_mask
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.formats import kind_of
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.folders.traits import LARGE, Trait
from medtest.seeds.volumes.check import Choose, Slice, check_volume
from medtest.seeds.volumes.frames import FrameReading

THREADS = 4
"""Decoders leave Python's lock, so a few threads use the cores there are; each holds one file."""

CHUNK = 256
"""Pairs handed to the threads at once, so that a large folder is streamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a folder's settings demand.

    Attributes:
        reading: How files are read, with the bound on their pixels.
        negatives: Whether empty masks are allowed.
        avoid_root: Folder of rough masks, or None.
        choose: Which images of a file with several are taken.
    """

    reading: FrameReading
    negatives: bool
    avoid_root: Path | None = None
    choose: Choose = Choose()

    @property
    def max_pixels(self) -> int:
        """Bound on a picture's pixels."""
        return self.reading.max_pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What looking at one pair gave.

    Attributes:
        digests: SHA-256 of image, mask and rough mask, with a mark where medtest once read another mask of the file;
            empty where there is none or it cannot be read.
        problems: What is wrong with its files.
        traits: What is odd about them and stops nothing.
        slices: Its images: one for a picture, as many as are taken of a DICOM file's frames or a volume's slices.
    """

    digests: tuple[str, str, str]
    problems: tuple[SeedProblem, ...]
    slices: tuple[Slice, ...] = (Slice(),)
    traits: tuple[Trait, ...] = ()


def check_pairs(root: Path, pairs: Sequence[tuple[Pair, PurePosixPath | None]], rules: Rules) -> Iterator[Checked]:
    """Look at pairs (and the rough mask of each, below ``rules.avoid_root``), in order, streaming."""
    threads = min(THREADS, os.cpu_count() or 1)
    if len(pairs) < 4 or threads == 1:
        yield from (check_pair(root, pair, avoid, rules) for pair, avoid in pairs)
        return
    waiting = iter(pairs)
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="check") as pool:
        while chunk := list(islice(waiting, CHUNK)):
            yield from pool.map(lambda item: check_pair(root, item[0], item[1], rules), chunk)


def check_pair(root: Path, pair: Pair, avoid: PurePosixPath | None, rules: Rules) -> Checked:
    """Look at one image, its mask and its rough mask."""
    problems: list[SeedProblem] = []
    traits: list[Trait] = []
    rough = avoid if rules.avoid_root is not None else None
    if any(path is not None and kind_of(path.name) != "picture" for path in (pair.image, pair.mask, rough)):
        paths = (
            (shown(pair.image), root / pair.image),
            (shown(pair.mask), root / pair.mask) if pair.mask is not None else None,
            (f"avoid: {shown(rough)}", rules.avoid_root / rough) if rough and rules.avoid_root else None,
        )
        found = check_volume(paths, rules.reading, rules.choose, negatives=rules.negatives)
        return Checked(digests=found.digests, problems=found.problems, slices=found.slices)
    size, turned, image_digest = _image(root, pair.image, rules, problems)
    mask_digest = avoid_digest = ""
    if pair.mask is not None:
        mask_digest = _mask(root, pair.mask, (size, turned), rules, problems, traits)
    if avoid is not None and rules.avoid_root is not None:
        avoid_digest = _rough(rules.avoid_root, avoid, size, rules, problems)
    digests = (image_digest, mask_digest, avoid_digest)
    return Checked(digests=digests, problems=tuple(problems), traits=tuple(traits))


def _image(
    root: Path, path: PurePosixPath, rules: Rules, problems: list[SeedProblem]
) -> tuple[tuple[int, int] | None, bool, str]:
    try:
        data = read_bytes(root / path, max_pixels=rules.max_pixels)
        size = check_decodes(data.content, max_pixels=rules.max_pixels)
        return size, is_turned(data.content, max_pixels=rules.max_pixels), data.sha256
    except BadFileError as error:
        problems.append(SeedProblem(file=shown(path), reason=str(error)))
        return None, False, ""


def _mask(
    root: Path,
    path: PurePosixPath,
    image: tuple[tuple[int, int] | None, bool],
    rules: Rules,
    problems: list[SeedProblem],
    traits: list[Trait],
) -> str:
    size, image_turned = image
    try:
        data = read_bytes(root / path, max_pixels=rules.max_pixels)
        read = decode_mask(data.content, max_pixels=rules.max_pixels, values=rules.reading.label_values)
        turned = is_turned(data.content, max_pixels=rules.max_pixels)
    except BadFileError as error:
        problems.append(SeedProblem(file=shown(path), reason=str(error)))
        return ""
    mask = read.mask
    if size is not None and mask.shape != size:
        height, width = mask.shape
        reason = f"is {width}×{height}, but its image is {size[1]}×{size[0]}"
        if turned != image_turned:
            reason += f" (only the {'mask' if turned else 'image'}'s file says that it is to be turned)"
        problems.append(SeedProblem(file=shown(path), reason=reason))
    elif mask.all():
        problems.append(SeedProblem(file=shown(path), reason="is white all over"))
    elif not mask.any() and not rules.negatives:
        what = "no value of label_values; " if rules.reading.label_values else ""
        reason = f"is empty ({what}brightest value {read.brightest}; lesion is above 127); negatives: true allows it"
        problems.append(SeedProblem(file=shown(path), reason=reason))
    if mask.mean() > LARGE:
        traits.append("large")
    if read.specks:
        traits.append("specks")
    if size is not None and turned != image_turned:
        traits.append("turned")
    return _marked(data.sha256, read)


def _marked(sha256: str, read: LesionMask) -> str:
    """Return a mask's digest, with a mark where medtest once read another mask of the same bytes."""
    return f"{sha256}+levels" if read.revised else sha256


def _rough(
    root: Path, path: PurePosixPath, size: tuple[int, int] | None, rules: Rules, problems: list[SeedProblem]
) -> str:
    name = f"avoid: {shown(path)}"
    try:
        data = read_bytes(root / path, max_pixels=rules.max_pixels)
        read = decode_mask(data.content, max_pixels=rules.max_pixels, values=rules.reading.label_values)
        mask = read.mask
    except BadFileError as error:
        problems.append(SeedProblem(file=name, reason=str(error)))
        return ""
    if size is not None and mask.shape != size:
        reason = f"is {mask.shape[1]}×{mask.shape[0]}, but its image is {size[1]}×{size[0]}"
        problems.append(SeedProblem(file=name, reason=reason))
    return _marked(data.sha256, read)
