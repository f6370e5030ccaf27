"""Stored pictures, found by case address or prompt."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from medtest.api.drawn.store import pixels_of
from medtest.core.cases import Image, Json
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files.images import BadFileError, read_bytes
from medtest.core.files.walk import files_below, named_below
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.folders.predictions import file_of
from medtest.systems.answering.asking import Asking
from medtest.systems.base import SystemSettings
from medtest.systems.files import cached_sha256, file_mistakes, folder_mistakes, folder_sha256, user_path
from medtest.systems.pictures.local import LocalDrawing

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")
"""File suffixes, in search order."""
_SUFFIXES = (*SUFFIXES, *(suffix.upper() for suffix in SUFFIXES))
_KEYS = ("address", "prompt")
_MOST_TABLE = 256 * 2**20
NO_PICTURE = "no picture"


class FinishedPicturesSettings(SystemSettings):
    """Settings of stored pictures.

    Attributes:
        folder: Folder of the pictures.
        table: CSV file with a column ``file`` (below the folder) and ``address``, ``prompt`` or both; "" finds files by
            address only.
        kept_size: Longer side in pixels to which pictures are resized before they are stored; null keeps their size.
    """

    folder: str = Field(default="", json_schema_extra=TRUSTED)
    table: str = Field(default="", json_schema_extra=TRUSTED)
    kept_size: int | None = Field(default=None, ge=16, le=4096)


class FinishedPictures(LocalDrawing):
    """Stored pictures by case address.

    The picture of a source case is ``<dataset>/<seed_id>.png``, that of a follow-up case
    ``<dataset>/<seed_id>/<relation>_s<severity>_f<frame>_r<repeat>.png``; the folder may be omitted if there is only
    one data set. A table overrides this: each row maps an address as shown in records, or a prompt, to a file; the
    first match wins. A case without a picture is an ERROR.
    """

    finished: ClassVar[bool] = True
    Settings: ClassVar[type[FinishedPicturesSettings]] = FinishedPicturesSettings
    settings: FinishedPicturesSettings

    @property
    def kept_size(self) -> int | None:
        """Longer side to which pictures are resized."""
        return self.settings.kept_size

    # --------------------------------------------------------------------------------------------- before the run

    def check(self) -> Sequence[Mistake]:
        """Return the problems of folder and table."""
        own = self.settings
        mistakes = folder_mistakes(own.folder, where=self.name, key="folder")
        if own.table:
            mistakes += file_mistakes(own.table, where=self.name, key="table", suffixes=(".csv",))
        if mistakes:
            return mistakes
        if own.table:
            try:
                _ = self._rows
            except MedtestError as error:
                allowed = "a CSV file with a column file, and address or prompt"
                return [Mistake(where=self.name, key="table", found=str(error), allowed=allowed)]
        elif not any(path.suffix in _SUFFIXES for path in files_below(user_path(own.folder))):
            problem = f"{own.folder} (no picture found)"
            return [Mistake(where=self.name, key="folder", found=problem, allowed=", ".join(SUFFIXES))]
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return a SHA-256 over the names and contents of all pictures, and one over the table."""
        printed: dict[str, Json] = {
            "folder_sha256": folder_sha256(user_path(self.settings.folder), frozenset(_SUFFIXES))
        }
        if self.settings.table:
            printed["table_sha256"] = cached_sha256(user_path(self.settings.table))
        return printed

    @cached_property
    def _rows(self) -> dict[tuple[str, str], str]:
        """Files of the table by column and value; raises MedtestError if the table is invalid."""
        path = user_path(self.settings.table)
        try:
            if path.stat().st_size > _MOST_TABLE:
                raise MedtestError(f"{path.name} is larger than {_MOST_TABLE // 2**20} MB")
            rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise MedtestError(f"{path.name} cannot be read ({type(error).__name__})") from None
        if not rows or "file" not in rows[0] or not any(key in rows[0] for key in _KEYS):
            raise MedtestError(f"{path.name} lacks rows, or a column")
        files: dict[tuple[str, str], str] = {}
        for row in rows:
            for key in _KEYS:
                if row.get(key) and row["file"]:
                    files.setdefault((key, row[key].strip()), row["file"].strip())
        return files

    # ------------------------------------------------------------------------------------------------------- the run

    def draw(self, call: Asking) -> Image:
        """Return the case's picture.

        Raises:
            LookupError: There is none.
            BadFileError: It cannot be read.
        """
        path = self._file(call)
        if path is None:
            raise LookupError(NO_PICTURE)
        try:
            return pixels_of(read_bytes(path).content, self.kept_size)
        except BadFileError as error:
            raise BadFileError(f"{path.name} {error}") from None

    def _file(self, call: Asking) -> Path | None:
        folder = user_path(self.settings.folder)
        if not self.settings.table:
            return file_of(call.addresses[0], folder, _SUFFIXES)
        keys = (("address", str(call.addresses[0])), ("prompt", call.required_prompt.text.strip()))
        named = next((self._rows[key] for key in keys if key in self._rows), None)
        if named is None:
            return None
        path = named_below(folder, named)
        return path if path is not None and path.is_file() else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_rows"}
