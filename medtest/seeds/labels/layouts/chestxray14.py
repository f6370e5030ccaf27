"""ChestX-ray14: ``Data_Entry_2017.csv``, the lists of its parts, and CheXNet's lists with 14 columns of 0 and 1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from medtest.core.errors import UserMistakes
from medtest.phantoms.classes import CHEST
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.folders.files import table_below
from medtest.seeds.folders.layout import LayoutError, natural_key, shown
from medtest.seeds.folders.table import Sheet, SheetRow, column_name, read_table
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder, fold
from medtest.seeds.labels.layouts.common import Images, key_of, list_images
from medtest.seeds.labels.settings import LabelFolderSettings

NO_FINDING = "no finding"
_PATIENT = re.compile(r"(?P<patient>[0-9]{8})_[0-9]{3}")
_PARTS = {
    "train_val_list.txt": "train",
    "train_list.txt": "train",
    "val_list.txt": "val",
    "test_list.txt": "test",
}
"""Parts of the lists; the archive's own train_val list counts as the training part."""


@dataclass(slots=True)
class Listed:
    """Content of the tables.

    Attributes:
        labels: Findings by image, in the data set's words.
        views: View position (PA or AP) by image.
        parts: Images by part.
        wrong: Problems of unusable rows by image.
    """

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    wrong: dict[str, SeedProblem] = field(default_factory=dict)


def read_chestxray14(root: Path, dataset: Found, settings: LabelFolderSettings) -> LabelledFolder:
    """Read lists and findings, and locate the images of the requested part.

    Raises:
        UserMistakes: A list cannot be read, or the requested part has no list.
        LayoutError: The findings or all images are missing.
    """
    listed = Listed()
    for name in dataset.tables:
        _read(read_table(table_below(root, str(name), "table"), shown(name)), name, listed)
    if not listed.labels and not listed.wrong:
        raise LayoutError(
            "lists of images without findings",
            "put Data_Entry_2017.csv beside them, or take CheXNet's lists with 14 columns",
            key="table",
        )
    part, names = _select_part(listed, settings.split)
    images = Images(list_images(root, [dataset.images]))
    laid = LabelledFolder(names=CHEST.names, multi=True, classes=CHEST.names)
    laid.take(images.files)
    missing = _add(names, listed, images, laid)
    if not laid.entries and not laid.problems:
        raise LayoutError(
            f"none of the {missing:,} listed images is in {shown(dataset.images)}",
            "unpack the images there",
            key="images",
        )
    if part:
        laid.notices.append(f"The {part} part is taken, {len(laid.entries):,} images; split: all takes every part.")
    if missing:
        laid.notices.append(f"Partial: {missing:,} of {missing + len(laid.entries):,} listed images are not there.")
    return laid


def _read(table: Sheet, name: PurePosixPath, listed: Listed) -> None:
    if name.suffix.lower() == ".csv":
        _read_entries(table, listed)
        return
    names = [row.cells[0] for row in table.rows]
    listed.parts.setdefault(_PARTS.get(name.name.lower(), ""), []).extend(names)
    if len(table.rows[0].cells) > 1:
        for row in table.rows:
            if len(row.cells) != 1 + len(CHEST.names) or set(row.cells[1:]) - {"0", "1"}:
                listed.wrong[row.cells[0]] = _row_problem(
                    table, row, " ".join(row.cells[1:])[:80], "14 columns of 0 and 1"
                )
                continue
            flags = zip(CHEST.names, row.cells[1:], strict=True)
            listed.labels[row.cells[0]] = tuple(finding for finding, flag in flags if flag == "1")


def _read_entries(table: Sheet, listed: Listed) -> None:
    header = [column_name(cell) for cell in table.rows[0].cells]
    if "image_index" not in header or "finding_labels" not in header:
        problem, allowed = f"columns {', '.join(table.rows[0].cells[:6])}", "Image Index and Finding Labels among them"
        raise UserMistakes([table.mistake(problem, line=1, key="table", allowed=allowed)])
    image, findings = header.index("image_index"), header.index("finding_labels")
    view = header.index("view_position") if "view_position" in header else -1
    for row in table.rows[1:]:
        if len(row.cells) <= max(image, findings, view):
            if len(row.cells) > image:
                problem, allowed = f"{len(row.cells)} values", f"{len(header)} as in the first row"
                listed.wrong[row.cells[image]] = _row_problem(table, row, problem, allowed)
            continue
        own = (part.strip() for part in row.cells[findings].split("|"))
        listed.labels[row.cells[image]] = tuple(part for part in own if part and fold(part) != fold(NO_FINDING))
        if view >= 0:
            listed.views[row.cells[image]] = row.cells[view]


def _row_problem(table: Sheet, row: SheetRow, reason: str, allowed: str) -> SeedProblem:
    return SeedProblem(file=table.where, line=row.line, key="table", reason=reason, allowed=allowed)


def _select_part(listed: Listed, split: str) -> tuple[str, list[str]]:
    """Return the selected part, "" for everything, and the names of its images."""
    named = (*listed.labels, *listed.wrong, *(n for names in listed.parts.values() for n in names))
    everything = list(dict.fromkeys(named))
    if split == "all" or (split == "auto" and "test" not in listed.parts):
        return "", everything
    part = "test" if split == "auto" else split
    if part not in listed.parts:
        present = ", ".join(sorted(name for name in listed.parts if name)) or "none"
        raise LayoutError(f"no list of the {part} part", f"split: all takes every image; parts: {present}", key="split")
    return part, listed.parts[part]


def _add(names: Iterable[str], listed: Listed, images: Images, laid: LabelledFolder) -> int:
    """Add images in natural order and return the number of missing ones."""
    missing = 0
    for name in sorted(dict.fromkeys(names), key=natural_key):
        try:
            path = images.find(name)
        except KeyError as error:
            laid.add_wrong(SeedProblem(file=shown(name), reason=error.args[0]), key_of(name))
            continue
        if path is None:
            missing += 1
        elif name in listed.wrong:
            laid.add_wrong(listed.wrong[name], path.stem, path)
        elif name not in listed.labels:
            problem = SeedProblem(file=shown(path), reason="has no findings in any table")
            laid.add_wrong(problem, path.stem, path)
        else:
            match = _PATIENT.fullmatch(path.stem)
            view = listed.views.get(name, "")
            laid.entries.append(
                LabelEntry(
                    image=path,
                    name=path.stem,
                    labels=listed.labels[name],
                    cluster=match["patient"] if match else "",
                    strata=(("view", view),) if view else (),
                )
            )
    return missing
