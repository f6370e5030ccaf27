"""Known data sets below a root, as the folder source reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from medtest.core.files.images import BadFileError
from medtest.seeds.datasets.base import Found, recognise
from medtest.seeds.datasets.facts import known
from medtest.seeds.datasets.tree import tree_of_folder
from medtest.seeds.folders.layout import DataSet, LayoutError


def known_datasets(root: Path, requested: Sequence[str] = ()) -> list[DataSet]:
    """Return the folders of every known data set below a root; folders of one set share its id.

    Of several copies the most complete is taken. PraNet's training and test parts together are a whole set, and
    EndoScene's CVC-612 replaces CVC-ClinicDB if that is requested and missing.

    Args:
        root: The user's folder.
        requested: Ids that the suite names.

    Raises:
        LayoutError: The folder cannot be read.
    """
    try:
        datasets = recognise(tree_of_folder(root))
    except BadFileError as error:
        raise LayoutError(f"the folder {error}", "give a folder that you may read") from error
    return [found.as_dataset(name) for name, parts in chosen(datasets, requested).items() for found in parts]


def chosen(datasets: Sequence[Found], requested: Sequence[str] = ()) -> dict[str, list[Found]]:
    """Return the folders selected for each known data set, by its id; arguments as in :func:`known_datasets`."""
    by_set: dict[str, list[Found]] = {}
    for dataset in datasets:
        if dataset.dataset and dataset.holds == "masks":
            by_set.setdefault(dataset.dataset, []).append(dataset)
    selected = {name: _best(parts) for name, parts in by_set.items()}
    for facts in known().values():
        if facts.stands_for in requested and facts.key in selected and facts.stands_for not in selected:
            selected[facts.stands_for] = selected[facts.key]
    return selected


def _best(parts: Sequence[Found]) -> list[Found]:
    """Return one complete copy, else the known parts of the set, else the largest."""
    facts = parts[0].facts
    largest = max(parts, key=lambda f: (f.count, -f.rank))
    if facts is None or largest.count >= facts.images:
        return [largest]
    named: dict[str, Found] = {}
    for part in sorted(parts, key=lambda f: (-f.count, f.rank)):
        if part.part and part.count <= facts.images:
            named.setdefault(part.part, part)
    together = list(named.values())
    if len(together) > 1 and sum(f.count for f in together) <= facts.images:
        return together
    return [largest]


def coverage(requested: Sequence[str], counts: Mapping[str, int]) -> tuple[str, ...]:
    """Describe which of the requested data sets are missing or incomplete.

    Args:
        requested: Ids of data sets.
        counts: Number of images present of each.
    """
    lines = []
    for name in requested:
        facts = known().get(name)
        count = counts.get(name, 0)
        if facts is None:
            continue
        if not count:
            lines.append(f"{facts.title} is missing below data=PATH: {facts.images:,} images.")
        elif count != facts.images:
            edition = facts.copy_named(count)
            of = f" ({edition})" if edition else ""
            lines.append(f"{facts.title}: {count:,} of the {facts.images:,} published images are present{of}.")
    return tuple(f"Partial: {line}" for line in lines)
