"""Sizes of a data set's images, and what is worth knowing of its counts beside the published ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from medtest.imagefile import BadFileError
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.facts import Facts
from medtest.seeds.folder_layout import shown
from medtest.seeds.folder_pairing import Pairing
from medtest.seeds.frames import FrameReading, opened_frames

MOST_SIZES = 4
"""More sizes that nobody published are not named one by one."""


def sizes_of(root: Path, pairing: Pairing, progress: Callable[[int], None]) -> tuple[Counter[str], list[SeedProblem]]:
    """Return sizes of images and which files cannot be read or differ from their image, from headers alone."""
    sizes: Counter[str] = Counter()
    problems: list[SeedProblem] = []
    reading = FrameReading()
    for number, pair in enumerate(pairing.pairs, start=1):
        now = pair.image
        try:
            with opened_frames(root / pair.image, reading) as image:
                sizes[f"{image.width}x{image.height}"] += image.count
                if pair.mask is not None:
                    now = pair.mask
                    with opened_frames(root / pair.mask, reading) as mask:
                        reason = image.fits(mask)
                    if reason:
                        problems.append(SeedProblem(file=shown(pair.mask), reason=reason))
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
