"""Table of stored pictures: files by case address, or by prompt in the order of the rows."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

from medtest.core.cases import UNCHANGED, Address
from medtest.core.errors import MedtestError

TABLE = "pictures.csv"
"""Table that ``medtest prompts import`` writes, and that a folder of pictures is searched for."""
TABLE_COLUMNS = ("address", "file", "prompt_sha256")
"""Columns of that table; a case whose picture was not drawn has no file."""
_KEYS = ("address", "prompt")
_MOST_BYTES = 256 * 2**20


class PictureTable:
    """Rows of a CSV file with the columns ``file``, ``address``, ``prompt`` and ``prompt_sha256``.

    An address takes precedence over a prompt. Several rows of one prompt are several pictures of it: sources take the
    first, repeats of the unchanged prompt the next ones. White space in prompts is compared as single spaces.

    Args:
        path: The file.

    Raises:
        MedtestError: The table is invalid.
    """

    def __init__(self, path: Path) -> None:
        self._entries: dict[tuple[str, str], list[tuple[str, str]]] = {}
        rows = read_rows(path)
        if not rows or "file" not in rows[0] or not any(key in rows[0] for key in _KEYS):
            raise MedtestError(f"{path.name} lacks rows, or a column")
        for row in rows:
            entry = row["file"].strip(), row.get("prompt_sha256", "").strip()
            for key in _KEYS:
                if row.get(key) and (entry[0] or key == "address"):
                    self._entries.setdefault((key, _spaced(row[key])), []).append(entry)

    def find(self, address: Address, prompt: str) -> tuple[str, str] | None:
        """Return the file of a case and the SHA-256 of the prompt that was drawn.

        The file is a path below the folder, "" if the table says that there is none; the SHA-256 is "" if unknown. None
        if no row names the case's address or prompt, or too few name the prompt.
        """
        by_address = self._entries.get(("address", str(address)))
        if by_address:
            return by_address[0]
        entries = self._entries.get(("prompt", _spaced(prompt)), [])
        number = address.repeat + 1 if address.relation == UNCHANGED else address.repeat
        if address.relation != UNCHANGED and entries:
            number %= len(entries)
        return entries[number] if number < len(entries) else None


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; missing cells are "".

    Raises:
        MedtestError: It cannot be read, or is larger than 256 MB.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise MedtestError(f"{path.name} is larger than {_MOST_BYTES // 2**20} MB")
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
        return [{str(key): str(value or "") for key, value in row.items() if key is not None} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MedtestError(f"{path.name} cannot be read ({type(error).__name__})") from None


def words_sha256(prompt: str) -> str:
    """Return the SHA-256 of a prompt's words in UTF-8, in hexadecimal."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


def _spaced(text: str) -> str:
    return " ".join(text.split())
