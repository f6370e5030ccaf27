"""CSV metadata: patient or video of each image, and further strata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medtest.core.errors import UserMistakes
from medtest.seeds.base import SeedProblem
from medtest.seeds.folders.table import column_name, read_table, usual_columns

ID_COLUMNS = usual_columns("image")
"""Columns that may name the image, in order of preference."""

CLUSTER_COLUMNS = usual_columns("cluster")
"""Columns that may name the cluster, in order of preference."""

DATASET_COLUMN = "dataset"

MOST_STRATA = 20
LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """Metadata of one image.

    Attributes:
        cluster: Patient or video; "" without such a column.
        strata: Columns and values that stratify tables.
        wrong: Why its row is missing or unusable; "" for a usable one.
    """

    cluster: str = ""
    strata: tuple[tuple[str, str], ...] = ()
    wrong: str = ""


class Metadata:
    """Rows of the CSV by data set (or none) and image.

    Args:
        where: Name of the file for messages.
        rows: (data set or "", image's name without suffix, lower case) → facts.
        problems: Unusable rows that name no image.

    Attributes:
        where: Name of the file for messages.
        problems: Unusable rows that name no image.
    """

    def __init__(
        self, where: str, rows: Mapping[tuple[str, str], ImageFacts], problems: Sequence[SeedProblem] = ()
    ) -> None:
        self.where = where
        self.problems = tuple(problems)
        self._rows = rows

    def of(self, dataset: str, names: Iterable[str]) -> ImageFacts | None:
        """Return the facts of an image known under several names; None if no row matches."""
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

    A row of wrong length, or a second row for an image, is an error only for calls that need that image.

    Raises:
        UserMistakes: The file cannot be read, lacks a column that names images, or is too large.
    """
    sheet = read_table(path, where, key="metadata", lists=False)

    def stop(problem: str, allowed: str = "") -> UserMistakes:
        return sheet.mistake(problem, line=1, key="metadata", allowed=allowed).as_error()

    columns = [column_name(name) for name in sheet.rows[0].cells]
    if len(set(columns)) < len(columns):
        raise stop(f"has a column twice ({', '.join(sorted({c for c in columns if columns.count(c) > 1}))})")
    identifier = next((name for name in ID_COLUMNS if name in columns), None)
    if identifier is None:
        raise stop(f"columns {', '.join(columns)}", f"one of {', '.join(ID_COLUMNS)} names the image")
    cluster = next((name for name in CLUSTER_COLUMNS if name in columns), None)
    # CVC-ClinicDB's metadata.csv has columns with paths of its copies, which are not strata.
    strata = [
        name
        for name in columns
        if name and name not in (identifier, cluster, DATASET_COLUMN) and not name.endswith("_path")
    ]
    if len(strata) > MOST_STRATA:
        raise stop(f"{len(strata)} columns to stratify by", f"at most {MOST_STRATA}")
    rows: dict[tuple[str, str], ImageFacts] = {}
    problems: list[SeedProblem] = []
    for line in sheet.rows[1:]:
        uneven = len(line.cells) != len(columns)
        row = {name: value[:LONGEST_VALUE] for name, value in zip(columns, line.cells, strict=False)}
        key = (row.get(DATASET_COLUMN, ""), _plain(row.get(identifier, "")))
        wrong = ""
        if uneven:
            wrong = f"line {line.line} has {len(line.cells)} values, line 1 {len(columns)}"
        elif key in rows:
            wrong = f"line {line.line} names {row[identifier]!r} a second time"
        if wrong and not row.get(identifier):
            problems.append(SeedProblem(file=where, reason=wrong, skipped=False))
        elif wrong:
            rows[key] = ImageFacts(wrong=wrong)
        else:
            rows[key] = ImageFacts(
                cluster=row[cluster] if cluster else "", strata=tuple((name, row[name]) for name in strata)
            )
    return Metadata(where, rows, problems)
