"""``exclude: {study: FILE}``: follow-ups judged unfit by people, which no rate counts.

The file is the ``flagged.csv`` of ``medtest study report``. People judged pixels and not addresses, so a follow-up is
left out if its relation and the SHA-256 of its image are listed: other pixels at the same address were not judged.
"""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ("relation", "followup_sha256")
"""Required columns of the file; others are for human readers."""

COPY = "excluded_by_study.csv"
"""Name of the copy in a run's folder, with which its tables can be remade."""

MAX_BYTES = 32 * 2**20
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}\.csv")
_SHA = re.compile(r"[0-9a-f]{64}")


class BadListError(Exception):
    """Raised if a file is not a list of follow-ups; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Excluded follow-ups.

    Attributes:
        file: Name of the list, without its folder.
        cases: (relation id, SHA-256 of the follow-up's image).
    """

    file: str
    cases: frozenset[tuple[str, str]]

    def text(self) -> str:
        """Return the list as file content for :func:`read_exclusion`."""
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(sorted(self.cases))
        return out.getvalue()


def find_list(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the file of a list beside the suites, from the first folder that has it; do not follow links out of it."""
    for folder in folders:
        path = folder / name
        if path.is_file() and path.resolve().parent == folder.resolve():
            return path
    return None


def read_exclusion(path: Path) -> Exclusion:
    """Read a list.

    Raises:
        BadListError: It is unreadable, or not a list.
    """
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadListError("is not a regular file")
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadListError(f"cannot be read ({error.strerror or error})") from error
    if len(content) > MAX_BYTES:
        raise BadListError(f"is larger than {MAX_BYTES // 2**20} MiB")
    try:
        table = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
        if missing:
            raise BadListError(f"lacks the column {missing[0]} of a study's flagged.csv")
        rows = [(row["relation"] or "", row["followup_sha256"] or "") for row in table]
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadListError(f"is not a CSV file in UTF-8 ({error})") from error
    for number, (_, sha256) in enumerate(rows, start=2):
        if not _SHA.fullmatch(sha256):
            raise BadListError(f"has no SHA-256 in line {number}, column followup_sha256")
    return Exclusion(file=path.name, cases=frozenset(rows))
