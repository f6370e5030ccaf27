"""Sizes of a data set's images, and what is worth knowing of its counts beside the published ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from medtest.files.images import BadFileError, check_decodes, read_bytes
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.facts import Facts
from medtest.seeds.folders.formats import kind_of
from medtest.seeds.folders.layout import shown
from medtest.seeds.volumes.frames import FrameReading, opened_frames

Files: TypeAlias = "tuple[PurePosixPath, PurePosixPath | None]"
"""An image and its mask."""

MOST_SIZES = 4
"""More sizes that nobody published are not named one by one."""


class Pixels:
    """Decodes pictures while there is time: a truncated one may have a whole header.

    Args:
        seconds: Time from the first picture on; what comes later is seen by its header alone.

    Attributes:
        read: Pictures whose pixels were read.
        left: Files whose pixels were not: later pictures, volumes and DICOM files.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None
        self.read = self.left = 0

    def check(self, path: Path) -> None:
        """Decode a picture, if there is time.

        Raises:
            BadFileError: It is not whole.
        """
        now = time.monotonic()
        self._end = now + self._seconds if self._end is None else self._end
        if now >= self._end or kind_of(path.name) != "picture":
            self.left += 1
            return
        self.read += 1
        check_decodes(read_bytes(path).content)

    def notes(self) -> tuple[str, ...]:
        """Return which files' pixels were not read."""
        if not self.left:
            return ()
        return (
            f"pixels of {self.read:,} of {self.read + self.left:,} files were read, the others' headers alone "
            f"(pictures for {self._seconds:g} s, no DICOM files and volumes); a run reads all of them before it begins",
        )


def sizes_of(
    root: Path, files: Sequence[Files], pixels: Pixels, progress: Callable[[int], None]
) -> tuple[Counter[str], list[SeedProblem]]:
    """Return sizes of images, and which files are not whole or differ from their image.

    Args:
        root: Where they lie.
        files: Each image with its mask, if it has one.
        pixels: Reads pictures to their end.
        progress: Told how many images were looked at.
    """
    sizes: Counter[str] = Counter()
    problems: list[SeedProblem] = []
    reading = FrameReading()
    for number, (now, mask) in enumerate(files, start=1):
        try:
            with opened_frames(root / now, reading) as image:
                sizes[f"{image.width}x{image.height}"] += image.count
                pixels.check(root / now)
                if mask is not None:
                    now = mask
                    with opened_frames(root / now, reading) as found:
                        reason = image.fits(found)
                    if reason:
                        problems.append(SeedProblem(file=shown(now), reason=reason))
                    pixels.check(root / now)
        except BadFileError as error:
            problems.append(SeedProblem(file=shown(now), reason=str(error)))
        progress(number)
    return sizes, problems


def count_notes(found: Found) -> tuple[str, ...]:
    """Return how many images there are beside masks and beside what is published."""
    facts = found.facts
    notes = []
    if found.holds == "masks" and found.masks is not None and found.mask_count != found.count:
        notes.append(f"{found.count:,} images, but {found.mask_count:,} masks")
    if facts is None or found.count == facts.images:
        return tuple(notes)
    if found.count > facts.images:
        notes.append(f"{found.count - facts.images:,} images more than published: other files among them, or a copy")
    elif not found.part:
        notes.append(f"{facts.images - found.count:,} of the published images are missing")
    return tuple(notes)


def size_notes(found: Found, sizes: Counter[str]) -> tuple[str, ...]:
    """Return what sizes of images say of a copy."""
    facts = found.facts
    if facts is None or not sizes:
        return ()
    published = (*facts.sizes, *facts.other_sizes)
    if facts.sizes:
        other = [size for size in sizes if size not in published]
        named = ", ".join(other[:MOST_SIZES]) + (" and others" if len(other) > MOST_SIZES else "")
        notes = [f"{named} where {' or '.join(published)} is published: a resized copy"] if other else []
        copies = sorted(size for size in sizes if size in published)
        if len(copies) > 1:
            notes.append(f"mixes copies of {' and '.join(copies)}: masks of one do not fit images of the other")
        if facts.size_note and copies:
            notes.append(facts.size_note)
        return tuple(notes)
    return _resized(facts, sizes)


def _resized(facts: Facts, sizes: Counter[str]) -> tuple[str, ...]:
    if facts.largest and len(sizes) == 1 and sum(sizes.values()) > 20:
        return (f"all of one size, but {facts.smallest} to {facts.largest} are published: a resized copy",)
    return ()


def frame_notes(frames: int, files: int) -> tuple[str, ...]:
    """Return how many frames or slices files hold, where they hold several."""
    words = "1 file" if files == 1 else f"{files:,} files"
    return (f"{frames:,} frames or slices in {words}",) if frames > files else ()
