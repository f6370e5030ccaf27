"""Images with a CSV of labels: one column of one or several names, or a 0/1 column for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medtest.core.errors import UserMistakes, nearest_name
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.folders.files import table_below
from medtest.seeds.folders.layout import LayoutError, shown
from medtest.seeds.folders.metadata import CLUSTER_COLUMNS, ID_COLUMNS
from medtest.seeds.folders.table import Sheet, SheetRow, column_name, read_table, usual_columns
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder, fold
from medtest.seeds.labels.layouts.common import Images, entry_name, join_masks, key_of, list_images
from medtest.seeds.labels.settings import LabelFolderSettings

IMAGE_COLUMNS = (*ID_COLUMNS, *usual_columns("image_of_label"))
"""Columns that may name the image, in order of preference."""

LABEL_COLUMNS = usual_columns("label")
"""Columns that may hold labels, in order of preference."""

TRUE, FALSE = ("1", "1.0"), ("0", "0.0", "")
"""Table values that mean that a class applies, or not."""

NONE_TRUE = ("nofinding", "none", "nofindings")
"""Table values of a multi-label column that mean no class, in plain form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Roles of a table's columns.

    Attributes:
        names: All column names in plain form.
        shown: All column names as written.
        image: Index of the image column.
        label: Index of the label column; -1 if each class has a column.
        classes: Indices of the class columns.
        cluster: Index of the patient or video column; -1 without one.
    """

    names: tuple[str, ...]
    shown: tuple[str, ...]
    image: int
    label: int
    classes: tuple[int, ...] = ()
    cluster: int = -1


def read_label_table(root: Path, dataset: Found, settings: LabelFolderSettings) -> LabelledFolder:
    """Read a CSV of labels and locate its images.

    Raises:
        UserMistakes: The table cannot be read, or its columns are ambiguous.
        LayoutError: All images that it names are missing.
    """
    name = dataset.tables[0]
    table = read_table(table_below(root, str(name), "table"), shown(name))
    images = Images(list_images(root, [dataset.images]))
    columns, rows = _columns(table, images, settings)
    laid = LabelledFolder(names=())
    laid.take(images.files)
    multi = _read_rows(table, columns, rows, settings, images, dataset.images, laid)
    laid.multi = multi
    masks = PurePosixPath(settings.masks) if settings.masks else dataset.masks
    if masks is not None and laid.entries:
        join_masks(root, masks, laid)
    unlisted = images.count - len(images.asked)
    if unlisted and masks != dataset.images:
        laid.notices.append(f"{unlisted:,} images in {shown(dataset.images)} have no row in {shown(name)}; left out.")
    return laid


def _columns(table: Sheet, images: Images, settings: LabelFolderSettings) -> tuple[Columns, list[SheetRow]]:
    """Return the roles of columns and the rows below the header; a table of two columns may lack a header."""
    first, rest = table.rows[0], list(table.rows[1:])
    names = tuple(column_name(cell) for cell in first.cells)
    chosen = {"image_column": settings.image_column, "label_column": settings.label_column}
    headless = len(names) == 2 and not any(chosen.values()) and not set(names) & {*IMAGE_COLUMNS}
    if headless and _has_image(images, first.cells[0]):
        return Columns(names=("image", "label"), shown=("image", "label"), image=0, label=1), [first, *rest]
    for key, text in chosen.items():
        if text and column_name(text) not in names:
            nearest = nearest_name(text, first.cells)
            allowed = ", ".join(first.cells)
            raise UserMistakes([table.mistake(repr(text), line=1, key=key, allowed=allowed, nearest=nearest)])
    image = _place(names, (column_name(chosen["image_column"]),) if chosen["image_column"] else IMAGE_COLUMNS)
    if image < 0:
        problem, allowed = f"columns {', '.join(first.cells)}", f"one of {', '.join(IMAGE_COLUMNS)} names the image"
        fix = "set image_column to the one that names the image"
        raise UserMistakes([table.mistake(problem, line=1, key="image_column", allowed=allowed, fix=fix)])
    label = _place(names, (column_name(chosen["label_column"]),) if chosen["label_column"] else LABEL_COLUMNS, image)
    cluster = _place(names, CLUSTER_COLUMNS, image)
    classes = () if label >= 0 else _flags(rest, names, (image, cluster), settings)
    if label < 0 and not classes:
        problem, allowed = (
            f"columns {', '.join(first.cells)}",
            f"one of {', '.join(LABEL_COLUMNS)}, or columns of 0 and 1",
        )
        fix = "set label_column to the one that holds labels"
        raise UserMistakes([table.mistake(problem, line=1, key="label_column", allowed=allowed, fix=fix)])
    columns = Columns(names=names, shown=first.cells, image=image, label=label, classes=classes, cluster=cluster)
    return columns, rest


def _has_image(images: Images, name: str) -> bool:
    try:
        return images.find(name) is not None
    except KeyError:
        return True


def _place(names: Sequence[str], candidates: Sequence[str], but: int = -1) -> int:
    return next((names.index(name) for name in candidates if name in names and names.index(name) != but), -1)


def _flags(
    rows: Sequence[SheetRow], names: Sequence[str], but: Sequence[int], settings: LabelFolderSettings
) -> tuple[int, ...]:
    """Return the indices of 0/1 columns; only those of the suite's classes if it states them."""
    spoken = {fold(name) for name in (*settings.classes, *settings.mapping)}
    flags = []
    for place, name in enumerate(names):
        values = {row.cells[place] for row in rows if len(row.cells) > place}
        if place in but or not name or (settings.classes and fold(name) not in spoken):
            continue
        if values <= {*TRUE, *FALSE} and values - {""}:
            flags.append(place)
    return tuple(flags)


def _read_rows(
    table: Sheet,
    columns: Columns,
    rows: Sequence[SheetRow],
    settings: LabelFolderSettings,
    images: Images,
    folder: PurePosixPath,
    laid: LabelledFolder,
) -> bool:
    """Add an entry for each row, and return True if several labels may apply at once."""
    several = settings.multi is not False
    even = [len(row.cells) == len(columns.names) for row in rows]
    own = [
        _labels(row, columns, settings.separator if several else "") if fits else ()
        for row, fits in zip(rows, even, strict=True)
    ]
    flags = bool(columns.classes)
    valid = [labels for labels, fits in zip(own, even, strict=True) if fits]
    multi = any(len(labels) > 1 for labels in valid) or (flags and any(not labels for labels in valid))
    multi = multi if settings.multi is None else settings.multi
    if not flags and multi:
        own = [tuple(label for label in labels if fold(label) not in NONE_TRUE) for labels in own]
    lines: dict[PurePosixPath, int] = {}
    names = dict.fromkeys(columns.shown[place] for place in columns.classes)
    for row, labels, fits in zip(rows, own, even, strict=True):
        if not fits:
            name = row.cells[columns.image] if len(row.cells) > columns.image else f"line {row.line}"
            problem_text, allowed = f"{len(row.cells)} values", f"{len(columns.names)} as in the first row"
            problem = SeedProblem(file=table.where, line=row.line, reason=problem_text, allowed=allowed)
            laid.add_wrong(problem, key_of(name))
            continue
        path = _image(table, row, row.cells[columns.image], images, lines, laid)
        names |= dict.fromkeys(labels)
        if path is None:
            continue
        laid.entries.append(
            LabelEntry(
                image=path,
                name=entry_name(path, folder),
                labels=labels,
                cluster=row.cells[columns.cluster] if columns.cluster >= 0 else "",
            )
        )
    laid.names = tuple(names if flags else sorted(names))
    if not any(even):
        table.even(rows, len(columns.names))
    if not lines and all(even):
        example = rows[0].cells[columns.image] if rows else "none"
        raise LayoutError(
            f"none of the images that {table.where} names is in {shown(folder)} (the first is {shown(example)})",
            "set images to the folder that holds them",
            key="images",
        )
    return multi


def _labels(row: SheetRow, columns: Columns, separator: str) -> tuple[str, ...]:
    if columns.classes:
        return tuple(columns.shown[place] for place in columns.classes if row.cells[place] in TRUE)
    cell = row.cells[columns.label]
    parts = cell.split(separator) if separator else [cell]
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _image(
    table: Sheet, row: SheetRow, name: str, images: Images, lines: dict[PurePosixPath, int], laid: LabelledFolder
) -> PurePosixPath | None:
    """Return the image file of a row; a row without valid image keeps its place as unusable."""
    reason = ""
    path = None
    try:
        path = images.find(name)
    except KeyError as error:
        reason = f"{shown(name)} {error.args[0]}"
    if path is None:
        reason = reason or f"{shown(name)} is not in the folder of images"
    elif path in lines:
        reason = f"{shown(name)} a second time (first in line {lines[path]})"
    else:
        lines[path] = row.line
        return path
    problem = SeedProblem(file=f"{table.where}:{row.line}", reason=reason)
    laid.add_wrong(problem, key_of(name) or f"line {row.line}")
    return None
