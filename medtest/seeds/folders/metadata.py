"""The CSV that says which patient or video an image comes from, and what else may stratify tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medtest.errors import Mistake, UserMistakes
from medtest.imagefile import BadFileError, read_bytes

ID_COLUMNS = ("seed_id", "image_id", "file", "filename", "file_name", "image", "name", "id", "frame_id")
"""Columns that may name the image, in the order they are preferred."""

CLUSTER_COLUMNS = (
    "cluster",
    "patient",
    "patient_id",
    "video",
    "video_id",
    "sequence",
    "sequence_id",
    "case",
    "case_id",
)
"""Columns that may name what images have in common, in the order they are preferred."""

DATASET_COLUMN = "dataset"

MOST_PIXELS_WORTH = 1_000_000
"""Bound on the file's size, in the units of :func:`read_bytes` (32 MB)."""

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
    """Read the CSV (UTF-8; comma, semicolon or tab).

    Raises:
        UserMistakes: It cannot be read, lacks a column that names images, repeats an image, or is too large.
    """
    mistakes: list[Mistake] = []

    def stop(found: str, allowed: str = "", line: int | None = None) -> UserMistakes:
        return Mistake(where=where, line=line, key="metadata", found=found, allowed=allowed).as_error()

    try:
        text = read_bytes(path, max_pixels=MOST_PIXELS_WORTH).content.decode("utf-8-sig")
    except BadFileError as error:
        raise stop(str(error)) from error
    except UnicodeDecodeError as error:
        raise stop(f"is not UTF-8 (byte {error.start})", "CSV in UTF-8") from error
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise stop(f"is not CSV ({error})") from error
    if not lines:
        raise stop("is empty")
    columns = [_column(name) for name in lines[0]]
    if len(set(columns)) < len(columns):
        raise stop(f"has a column twice ({', '.join(sorted({c for c in columns if columns.count(c) > 1}))})", line=1)
    identifier = next((name for name in ID_COLUMNS if name in columns), None)
    if identifier is None:
        raise stop(f"columns {', '.join(columns)}", f"one of {', '.join(ID_COLUMNS)} names the image", line=1)
    cluster = next((name for name in CLUSTER_COLUMNS if name in columns), None)
    # CVC-ClinicDB's metadata.csv gives paths of its copies, which stratify nothing.
    strata = [
        name
        for name in columns
        if name and name not in (identifier, cluster, DATASET_COLUMN) and not name.endswith("_path")
    ]
    if len(strata) > MOST_STRATA:
        raise stop(f"{len(strata)} columns to stratify by", f"at most {MOST_STRATA}", line=1)
    rows: dict[tuple[str, str], ImageFacts] = {}
    for number, values in enumerate(lines[1:], start=2):
        if not any(value.strip() for value in values):
            continue
        if len(values) != len(columns):
            mistakes.append(
                Mistake(where=where, line=number, found=f"{len(values)} values", allowed=f"{len(columns)} as in line 1")
            )
            continue
        row = {name: value.strip()[:LONGEST_VALUE] for name, value in zip(columns, values, strict=True)}
        key = (row.get(DATASET_COLUMN, ""), _plain(row[identifier]))
        if key in rows:
            mistakes.append(
                Mistake(where=where, line=number, key=identifier, found=f"{row[identifier]!r} a second time")
            )
            continue
        rows[key] = ImageFacts(
            cluster=row[cluster] if cluster else "", strata=tuple((name, row[name]) for name in strata)
        )
    if mistakes:
        raise UserMistakes(mistakes)
    return Metadata(where, rows)


def _column(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")[:64]
