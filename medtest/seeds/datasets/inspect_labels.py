"""Inspection of labelled data sets: images per class against the published counts, and the matching suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.inspect_notes import look_at, size_notes
from medtest.seeds.datasets.looked import Looked, SuiteLine
from medtest.seeds.folders.check import Rules
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.labels.entries import LabelledFolder, fold
from medtest.seeds.labels.layouts import READERS
from medtest.seeds.labels.settings import LabelFolderSettings
from medtest.seeds.volumes.frames import FrameReading
from medtest.seeds.volumes.npz_file import npz_members

SUITES = {"wce_folder": CAPSULE, "skin_folder": DERMOSCOPY, "fundus_folder": FUNDUS, "chest_folder": CHEST}
"""Suites for the user's labelled images, by their classes."""


def look_at_labels(root: Path, dataset: Found, progress: Callable[[int], None]) -> Looked:
    """Read a data set's labels and the sizes of its images.

    Args:
        root: The inspected folder.
        dataset: The recogniser's result.
        progress: Called with the number of images read.

    Raises:
        LayoutError: The files are not a labelled data set, or too incomplete to be read.
        UserMistakes: A table cannot be read.
    """
    laid = READERS[dataset.reader](root, dataset, LabelFolderSettings(split="all"))
    files = [
        Pair(image=entry.image, mask=entry.mask) for entry in laid.entries if entry.index < 0 and entry.wrong is None
    ]
    sizes, problems, notices = look_at(root, files, Rules(reading=FrameReading(), negatives=True), progress)
    sizes = _array_sizes(root, laid) + sizes
    wrong = [entry.wrong for entry in laid.entries if entry.wrong is not None]
    counts = Counter(label for entry in laid.entries for label in entry.labels or ())
    none = sum(entry.labels == () for entry in laid.entries)
    suite = _suite(laid, counts)
    notes = [*laid.notices, *_unused_label_notes(laid, counts, suite)]
    if none:
        notes.append(f"{none:,} images have no finding")
    masks = sum(entry.mask is not None for entry in laid.entries)
    if masks:
        notes.append(f"{masks:,} images have a mask of their lesion")
    if not suite:
        notes.append("its classes are none of a suite's own: state classes and mapping (see docs/label-data.md)")
    return Looked(
        found=dataset,
        pairs=len(laid.entries),
        classes=_classes(dataset, laid, counts),
        sizes=tuple(sizes.most_common()),
        problems=(*laid.problems, *wrong, *problems),
        notes=(*size_notes(dataset, sizes), *(note.rstrip(".") for note in (*notes, *notices))),
        line=SuiteLine(suite=suite, data=dataset.where, settings=_settings(dataset)) if suite else None,
    )


def _classes(dataset: Found, laid: LabelledFolder, counts: Counter[str]) -> tuple[tuple[str, int, int], ...]:
    published = {fold(name): count for name, count in (dataset.facts.class_counts if dataset.facts else ())}
    named = [name for name in laid.names if counts[name] or published.get(fold(name))]
    named += [name for name in counts if name not in named]
    whole = dataset.facts is not None and len(laid.entries) <= dataset.facts.images
    return tuple((name, counts[name], published.get(fold(name), 0) if whole else 0) for name in named)


def _suite(laid: LabelledFolder, counts: Counter[str]) -> str:
    """Return the suite whose classes match the data set's, by the layout's mapping or by name."""
    present = {fold(name) for name, count in counts.items() if count}
    for suite, classes in SUITES.items():
        if laid.classes == classes.names:
            return suite
        if present and present <= {fold(name) for name in classes.names} and (len(present) > 1 or classes.multi):
            return suite
    return ""


def _unused_label_notes(laid: LabelledFolder, counts: Counter[str], suite: str) -> list[str]:
    gone = [name for name in counts if laid.mapping.get(name) == ""]
    if not suite or not gone:
        return []
    images = sum(counts[name] for name in gone)
    return [f"{images:,} images have no class in {suite} unless you map them: {', '.join(gone)}"]


def _settings(dataset: Found) -> tuple[str, ...]:
    """Return the settings that select this data set among others in its folder."""
    tables = [
        shown(table.relative_to(dataset.where)) for table in dataset.tables if table.is_relative_to(dataset.where)
    ]
    settings = []
    if dataset.reader == "medmnist" and tables:
        settings.append(f"seeds.folder.table={tables[0]}")
    elif dataset.reader == "table" and tables:
        settings.append(f"seeds.folder.table={tables[0]}")
        if dataset.images != dataset.where and dataset.images.is_relative_to(dataset.where):
            settings.append(f"seeds.folder.images={shown(dataset.images.relative_to(dataset.where))}")
    elif dataset.reader == "isic":
        settings += [f"seeds.folder.layout={dataset.reader}", f"seeds.folder.split={dataset.part}"]
    if dataset.reader in ("chestxray14", "medmnist"):
        settings.append("seeds.folder.split=all")
    return tuple(settings)


def _array_sizes(root: Path, laid: LabelledFolder) -> Counter[str]:
    """Return the image sizes of array files, read from the arrays' headers."""
    parts = Counter((e.image, PurePosixPath(e.name).parts[0]) for e in laid.entries if e.index >= 0)
    sizes: Counter[str] = Counter()
    for (file, part), count in parts.items():
        shape = npz_members(root / file)[f"{part}_images"].shape
        sizes[f"{shape[2]}x{shape[1]}"] += count
    return sizes
