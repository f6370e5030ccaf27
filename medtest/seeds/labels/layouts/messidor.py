"""Messidor: folders Base11 … Base34 of images and a workbook of grades for each; also saved as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from medtest.core.errors import UserMistakes
from medtest.phantoms.classes import FUNDUS
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.folders.files import table_below
from medtest.seeds.folders.layout import shown
from medtest.seeds.folders.table import Sheet, column_name, read_table
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder
from medtest.seeds.labels.layouts.common import Images, key_of, list_images, note_missing, rows_with_images
from medtest.seeds.labels.settings import LabelFolderSettings

GRADES = ("0", "1", "2", "3")
"""Grades of retinopathy by microaneurysms, haemorrhages and new vessels (Decencière et al. 2014)."""

_IMAGE = ("image_name", "image", "name", "image_id")
_GRADE = ("retinopathy_grade", "retinopathy_grades", "dr_grade", "adjudicated_dr_grade", "grade", "diagnosis", "level")
_DEPARTMENT = ("ophthalmologic_department", "department")


def read_messidor(root: Path, dataset: Found, settings: LabelFolderSettings) -> LabelledFolder:
    """Read every table of grades and locate its images.

    Raises:
        UserMistakes: A table cannot be read or lacks the columns.
        LayoutError: All images are missing.
    """
    images = Images(list_images(root, [dataset.images]))
    mapping = dict(zip(GRADES, FUNDUS.names, strict=True))
    laid = LabelledFolder(names=GRADES, mapping=mapping, classes=FUNDUS.names)
    laid.take(images.files)
    for name in dataset.tables:
        _add(read_table(table_below(root, str(name), "table"), shown(name)), images, laid)
    note_missing(laid, "images that the tables name", dataset.images, "unpack the images beside the tables")
    unlisted = images.count - len(images.asked)
    if unlisted:
        laid.notices.append(f"{unlisted:,} images have no grade; left out.")
    return laid


def _add(table: Sheet, images: Images, laid: LabelledFolder) -> None:
    """Add the images of one table."""
    header = [column_name(cell) for cell in table.rows[0].cells]
    places = [next((header.index(name) for name in names if name in header), -1) for names in (_IMAGE, _GRADE)]
    if min(places) < 0:
        problem = f"columns {', '.join(table.rows[0].cells)}"
        allowed = "Image name and Retinopathy grade, as in Annotation_Base11.xls"
        raise UserMistakes([table.mistake(problem, line=1, key="table", allowed=allowed)])
    image, grade = places
    department = next((header.index(name) for name in _DEPARTMENT if name in header), -1)

    def graded() -> Iterator[tuple[str, str, tuple[str, ...]]]:
        for row in table.rows[1:]:
            where = f"{table.where}:{row.line}"
            cells = (*row.cells, *[""] * (len(header) - len(row.cells)))
            if cells[grade] in GRADES:
                yield where, cells[image], cells
            else:
                reason = f"grade {cells[grade]!r} is none of {', '.join(GRADES)}"
                laid.add_wrong(SeedProblem(file=where, reason=reason), key_of(cells[image]) or where)

    for path, cells in rows_with_images(graded(), images, laid):
        strata = (("department", cells[department]),) if department >= 0 else ()
        laid.entries.append(LabelEntry(image=path, name=path.stem, labels=(cells[grade],), strata=strata))
