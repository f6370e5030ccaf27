"""Remarks on image sizes and counts compared with the published ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.folders.check import Looks, Rules, check_pairs
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.folders.traits import FolderTraits

MOST_SIZES = 4
"""Most unpublished sizes that are named individually."""


def unread_notes(looks: Looks) -> tuple[str, ...]:
    """Return a note on the number of files of which only headers were read."""
    if not looks.headers:
        return ()
    return (
        f"pixels of {looks.read:,} of {looks.read + looks.headers:,} files were read, the others' headers alone "
        f"(for {looks.seconds:g} s); a run reads all of them before it begins",
    )


def look_at(
    root: Path, pairs: Sequence[Pair], rules: Rules, progress: Callable[[int], None]
) -> tuple[Counter[str], list[SeedProblem], Sequence[str]]:
    """Check files as a run does.

    Args:
        root: Folder of the files.
        pairs: Images with their masks, if any.
        rules: Requirements of a run.
        progress: Called with the number of images checked.

    Returns:
        The number of images per size, ``width x height``; problems that a run would refuse; and oddities that do not
        stop a run.
    """
    sizes: Counter[str] = Counter()
    problems: list[SeedProblem] = []
    traits = FolderTraits()
    for number, (pair, checked) in enumerate(zip(pairs, check_pairs(root, pairs, rules), strict=True), start=1):
        if checked.size is not None:
            sizes[f"{checked.size[1]}x{checked.size[0]}"] += checked.count
        if checked.problems:
            problems += checked.problems
        else:
            traits.add(shown(pair.mask or pair.image), checked.traits)
        progress(number)
    return sizes, problems, traits.notices()


def count_notes(dataset: Found) -> tuple[str, ...]:
    """Return notes on the number of images compared with masks and with the published number."""
    facts = dataset.facts
    notes = []
    if dataset.holds == "masks" and dataset.masks is not None and dataset.mask_count != dataset.count:
        notes.append(f"{dataset.count:,} images, but {dataset.mask_count:,} masks")
    if facts is None or dataset.count == facts.images:
        return tuple(notes)
    if dataset.count > facts.images:
        notes.append(f"{dataset.count - facts.images:,} images more than published: other files among them, or a copy")
    elif not dataset.part:
        notes.append(f"{facts.images - dataset.count:,} of the published images are missing")
    return tuple(notes)


def size_notes(dataset: Found, sizes: Counter[str]) -> tuple[str, ...]:
    """Return notes on image sizes that point to a resized copy."""
    facts = dataset.facts
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
    if facts.largest and len(sizes) == 1 and sum(sizes.values()) > 20:
        return (f"all of one size, but {facts.smallest} to {facts.largest} are published: a resized copy",)
    return ()


def frame_notes(frames: int, files: int) -> tuple[str, ...]:
    """Return a note on files that hold several frames or slices."""
    words = "1 file" if files == 1 else f"{files:,} files"
    return (f"{frames:,} frames or slices in {words}",) if frames > files else ()
