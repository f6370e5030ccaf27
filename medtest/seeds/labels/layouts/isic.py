"""ISIC 2016 and 2017 as published: folders of images, ground-truth CSVs, folders of lesion masks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from medtest.phantoms.classes import DERMOSCOPY
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.folders.files import table_below
from medtest.seeds.folders.layout import shown
from medtest.seeds.folders.pairing import composed, list_files
from medtest.seeds.folders.table import Sheet, SheetRow, column_name, read_table
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder
from medtest.seeds.labels.layouts.common import (
    Images,
    join_masks,
    key_of,
    list_images,
    masks_among,
    note_missing,
    rows_with_images,
)
from medtest.seeds.labels.settings import LabelFolderSettings

NAMES = ("benign", "malignant", "melanoma", "seborrheic keratosis", "nevus")
"""Labels of ISIC: 2016 has benign and malignant (0 and 1 in its test part).

2017 has one column each for melanoma and seborrheic keratosis; images with neither are nevi.
"""

MAPPING = {
    "benign": "benign",
    "malignant": "melanoma",
    "melanoma": "melanoma",
    "seborrheic keratosis": "benign",
    "nevus": "benign",
}
"""Melanoma against everything else, as in ISIC 2016's task and in 2017's first."""

_MASK = r"(?P<stem>.+)_segmentation"
_IMAGE = re.compile(r"isic_[0-9]+", re.I)
_FLAGS = {"0": False, "0.0": False, "1": True, "1.0": True}


def read_isic(root: Path, dataset: Found, settings: LabelFolderSettings) -> LabelledFolder:
    """Read one part (training, validation or test) of ISIC 2016 or 2017.

    Raises:
        UserMistakes: The table cannot be read.
        LayoutError: All of its images are missing.
    """
    name = dataset.tables[0]
    table = read_table(table_below(root, str(name), "table"), shown(name))
    files = list_images(root, [dataset.images])
    masks = masks_among(files.by_key, _MASK)
    own = {image: files.by_key[mask][0] for image, mask in masks.items()}
    files.by_key = {key: paths for key, paths in files.by_key.items() if _IMAGE.fullmatch(key.rpartition("/")[2])}
    images = Images(files)
    laid = LabelledFolder(names=NAMES, mapping=MAPPING, classes=DERMOSCOPY.names)
    laid.take(files)
    rows = ((f"{table.where}:{row.line}", row.cells[0], label) for row, label in _labelled(table, laid))
    for path, label in rows_with_images(rows, images, laid):
        mask = own.get(composed(path.stem))
        laid.entries.append(LabelEntry(image=path, name=path.stem, labels=(label,), mask=mask))
    note_missing(laid, f"images that {table.where} names", dataset.images, "unpack the images beside the CSV")
    folder = PurePosixPath(settings.masks) if settings.masks else dataset.masks
    if folder is not None and not own and list_files(root, folder).by_key:
        join_masks(root, folder, laid)
    return laid


def _labelled(table: Sheet, laid: LabelledFolder) -> Iterator[tuple[SheetRow, str]]:
    """Yield rows with their labels, in 2017's form (a header, two columns of 0 and 1) or 2016's (two columns).

    Rows with other values keep their places as unusable.
    """
    header = [column_name(cell) for cell in table.rows[0].cells]
    of_2017 = "melanoma" in header
    melanoma = header.index("melanoma") if of_2017 else -1
    keratosis = header.index("seborrheic_keratosis") if "seborrheic_keratosis" in header else -1
    columns = len(header) if of_2017 else 2
    for row in table.rows[of_2017:]:
        try:
            if len(row.cells) != columns:
                raise _WrongRowError(f"{len(row.cells)} values", "", f"{columns} as in the first row")
            label = _of_2017(row, melanoma, keratosis) if of_2017 else _of_2016(row)
        except _WrongRowError as error:
            problem_text, key, allowed = error.args
            problem = SeedProblem(file=table.where, line=row.line, key=key, reason=problem_text, allowed=allowed)
            laid.add_wrong(problem, key_of(row.cells[0]))
            continue
        yield row, label


class _WrongRowError(Exception):
    """Unusable row; arguments: what was found, its key, and the allowed values."""


def _of_2016(row: SheetRow) -> str:
    values = {"benign": False, "malignant": True, **_FLAGS}
    return "malignant" if _value(row.cells[1].lower(), values) else "benign"


def _of_2017(row: SheetRow, melanoma: int, keratosis: int) -> str:
    if _value(row.cells[melanoma], _FLAGS):
        return "melanoma"
    if keratosis >= 0:
        return "seborrheic keratosis" if _value(row.cells[keratosis], _FLAGS) else "nevus"
    return "benign"


def _value(text: str, values: dict[str, bool]) -> bool:
    if text not in values:
        raise _WrongRowError(repr(text), "table", ", ".join(values))
    return values[text]
