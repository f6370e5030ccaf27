"""Check of files that may hold several images: DICOM frames, slices of a volume, and their masks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from medtest.core.files.images import BadFileError, damage_is, opened_file
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.traits import Trait
from medtest.seeds.volumes.frames import FrameReading, Frames, opened_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One image of a file.

    Attributes:
        index: Index from 0; -1 for a picture, which is the whole file.
        label: Suffix added to the file's name in the seed id.
        span: Values shown black and white.
    """

    index: int = -1
    label: str = ""
    span: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Result of checking the files of one image or volume.

    Attributes:
        digests: SHA-256 of image, mask and rough mask, marked if earlier versions of medtest read another mask from the
            file; empty for missing or unreadable files.
        problems: Problems of its files.
        slices: Selected images: one for a picture, several of a DICOM file's frames or a volume's slices.
        traits: Oddities that do not stop a run.
        size: Height and width of each image; None if unreadable.
        count: Number of images in the file, selected or not.
        headers: Whether only headers were read, so that further problems are possible.
    """

    digests: tuple[str, str, str]
    problems: tuple[SeedProblem, ...] = ()
    slices: tuple[Slice, ...] = (Slice(),)
    traits: tuple[Trait, ...] = ()
    size: tuple[int, int] | None = None
    count: int = 1
    headers: bool = False


Named: TypeAlias = tuple[str, Path]


class _Problem(Exception):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(reason)
        self.problem = SeedProblem(file=file, reason=reason)


def check_volume(paths: tuple[Named, Named | None, Named | None], reading: FrameReading, *, negatives: bool) -> Checked:
    """Check every selected image of a file, one after the other.

    Args:
        paths: Image, mask and rough mask, each with its name for messages.
        reading: Reading options, and which images are selected.
        negatives: Whether images without lesion are kept; otherwise they are silently left out, unless no image of
            the file has one.
    """
    try:
        image, mask, rough = ("" if named is None else _digest(named) for named in paths)
        slices, frames = _slices(paths, reading, negatives=negatives)
    except _Problem as stop:
        return Checked(digests=("", "", ""), problems=(stop.problem,))
    size = frames.height, frames.width
    return Checked(digests=(image, mask, rough), slices=tuple(slices), size=size, count=frames.count)


def check_headers(paths: tuple[Named, Named | None, Named | None], reading: FrameReading) -> Checked:
    """Check only the headers of a file and of its masks; arguments as in :func:`check_volume`."""
    try:
        with ExitStack() as stack:
            frames, _ = _opened(stack, paths, reading)
            size = frames.height, frames.width
            return Checked(digests=("", "", ""), size=size, count=frames.count, headers=True)
    except _Problem as stop:
        return Checked(digests=("", "", ""), problems=(stop.problem,), headers=True)


def _opened(
    stack: ExitStack, paths: tuple[Named, Named | None, Named | None], reading: FrameReading
) -> tuple[Frames, list[tuple[Named, Frames]]]:
    """Open a file and its masks, and check that they fit."""
    image, *masks = paths
    frames = _open(stack, image, reading)
    others = [(named, _open(stack, named, reading)) for named in masks if named is not None]
    for named, other in others:
        reason = frames.fits(other)
        if reason:
            raise _Problem(named[0], reason)
    return frames, others


def _digest(named: Named) -> str:
    with _problem_of(named), opened_file(named[1]) as (file, _):
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open(stack: ExitStack, named: Named, reading: FrameReading) -> Frames:
    with _problem_of(named):
        return stack.enter_context(opened_frames(named[1], reading))


@contextmanager
def _problem_of(named: Named) -> Iterator[None]:
    """Turn errors of reading a file into its problem."""
    try:
        with damage_is("is damaged or truncated"):
            yield
    except MemoryError as error:
        raise _Problem(named[0], "is too large for this machine's memory") from error
    except BadFileError as error:
        raise _Problem(named[0], str(error)) from error


def _slices(
    paths: tuple[Named, Named | None, Named | None], reading: FrameReading, *, negatives: bool
) -> tuple[list[Slice], Frames]:
    image, mask, _ = paths
    with ExitStack() as stack:
        frames, others = _opened(stack, paths, reading)
        chosen: Sequence[int] = range(0, frames.count, reading.every)
        if mask is not None:
            chosen = _with_lesion(mask, others[0][1], chosen, reading, negatives=negatives)
        elif reading.slices != "all":
            chosen = [chosen[len(chosen) // 2]]
        return _readable(image, frames, chosen), frames


def _readable(image: Named, frames: Frames, chosen: Sequence[int]) -> list[Slice]:
    """Decode every selected image to check that it is intact."""
    with _problem_of(image):
        frames.prefer_all()
        span = frames.span
        for index in chosen:
            frames.rgb(index, span)
    return [Slice(index=index, label=frames.label(index), span=span) for index in chosen]


def _with_lesion(
    named: Named, masks: Frames, indices: Sequence[int], reading: FrameReading, *, negatives: bool
) -> Sequence[int]:
    areas: dict[int, int] = {}
    with _problem_of(named):
        masks.prefer_all()
        for index in indices:
            mask = masks.mask(index)
            areas[index] = int(mask.sum())
            if areas[index] == mask.size:
                which = f"image {index + 1} of {masks.count} " if masks.count > 1 else ""
                raise BadFileError(f"{which}is white all over")
    selected = [index for index in indices if areas[index] or negatives]
    if not selected:
        where = f"in any of the {len(areas)} images looked at" if masks.count > 1 else "in it"
        raise _Problem(named[0], f"has no lesion {where}; negatives: true allows it")
    if reading.slices == "largest":
        return [max(selected, key=lambda index: (areas[index], -index))]
    return [selected[len(selected) // 2]] if reading.slices == "middle" else selected
