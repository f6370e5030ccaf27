"""The CSV that says which patient or video an image comes from, and what else may stratify tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medtest.errors import Mistake, UserMistakes
from medtest.seeds.folders.table import column_name, read_table, usual_columns

ID_COLUMNS = usual_columns("image")
"""Columns that may name the image, in the order they are preferred."""

CLUSTER_COLUMNS = usual_columns("cluster")
"""Columns that may name what images have in common, in the order they are preferred."""

DATASET_COLUMN = "dataset"

MOST_STRATA = 20
LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What the CSV says about one image."""

    cluster: str
    strata: tuple[tuple[str, str], ...]


class Metadata:
    """Rows of the CSV by data set (or none) and image.

    Args:
        where: The file as people know it.
        rows: (data set or "", image's name without suffix, lower case) → facts.
    """

    def __init__(self, where: str, rows: Mapping[tuple[str, str], ImageFacts]) -> None:
        self.where = where
        self._rows = rows

    def of(self, dataset: str, names: Iterable[str]) -> ImageFacts | None:
        """Return the facts of an image known under several names."""
        for name in names:
            key = _plain(name)
            facts = self._rows.get((dataset, key)) or self._rows.get(("", key))
            if facts is not None:
                return facts
        return None


def _plain(name: str) -> str:
    path = PurePosixPath(name.strip().replace("\\", "/"))
    return str(path.with_suffix("") if re.fullmatch(r"\.[A-Za-z]{3,4}", path.suffix) else path).casefold()


def read_metadata(path: Path, where: str) -> Metadata:
    """Read the CSV (UTF-8; comma, semicolon or tab between values).

    Raises:
        UserMistakes: It cannot be read, lacks a column that names images, repeats an image, or is too large.
    """
    sheet = read_table(path, where, key="metadata", lists=False)
    mistakes: list[Mistake] = []

    def stop(found: str, allowed: str = "") -> UserMistakes:
        return sheet.mistake(found, line=1, key="metadata", allowed=allowed).as_error()

    columns = [column_name(name) for name in sheet.rows[0].cells]
    if len(set(columns)) < len(columns):
        raise stop(f"has a column twice ({', '.join(sorted({c for c in columns if columns.count(c) > 1}))})")
    identifier = next((name for name in ID_COLUMNS if name in columns), None)
    if identifier is None:
        raise stop(f"columns {', '.join(columns)}", f"one of {', '.join(ID_COLUMNS)} names the image")
    cluster = next((name for name in CLUSTER_COLUMNS if name in columns), None)
    # CVC-ClinicDB's metadata.csv gives paths of its copies, which stratify nothing.
    strata = [
        name
        for name in columns
        if name and name not in (identifier, cluster, DATASET_COLUMN) and not name.endswith("_path")
    ]
    if len(strata) > MOST_STRATA:
        raise stop(f"{len(strata)} columns to stratify by", f"at most {MOST_STRATA}")
    rows: dict[tuple[str, str], ImageFacts] = {}
    for line in sheet.rows[1:]:
        if len(line.cells) != len(columns):
            allowed = f"{len(columns)} as in line 1"
            mistakes.append(sheet.mistake(f"{len(line.cells)} values", line=line.line, allowed=allowed))
            continue
        row = {name: value[:LONGEST_VALUE] for name, value in zip(columns, line.cells, strict=True)}
        key = (row.get(DATASET_COLUMN, ""), _plain(row[identifier]))
        if key in rows:
            mistakes.append(sheet.mistake(f"{row[identifier]!r} a second time", line=line.line, key=identifier))
            continue
        rows[key] = ImageFacts(
            cluster=row[cluster] if cluster else "", strata=tuple((name, row[name]) for name in strata)
        )
    if mistakes:
        raise UserMistakes(mistakes)
    return Metadata(where, rows)
