"""Stored pictures, found by case address or prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from medtest.api.drawn.store import pixels_of
from medtest.core.cases import UNCHANGED, Address, Image, Json, Prompt
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files.images import BadFileError, read_bytes
from medtest.core.files.walk import file_below, files_below
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.folders.predictions import file_of
from medtest.systems.answering.asking import Asking
from medtest.systems.base import SystemSettings
from medtest.systems.files import cached_sha256, file_mistakes, folder_mistakes, folder_sha256, user_path
from medtest.systems.pictures.local import LocalDrawing, NotDrawn
from medtest.systems.pictures.picture_table import TABLE, PictureTable, words_sha256

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")
"""File suffixes, in search order."""
_SUFFIXES = (*SUFFIXES, *(suffix.upper() for suffix in SUFFIXES))
EXPORTED = "prompts.csv"
"""Exported prompts, one row for each picture to be drawn."""
NO_PICTURE = "no picture"
ONE_PICTURE = "no further picture of this prompt was drawn"
SAME_PICTURE = "its picture is the source's own, not one that was drawn again"
OTHER_PROMPT = "the table's picture is of another prompt; export the prompts again"


class FinishedPicturesSettings(SystemSettings):
    """Settings of stored pictures.

    Attributes:
        folder: Folder of the pictures.
        table: CSV file with a column ``file`` (below the folder) and ``address``, ``prompt`` or both; "" takes
            ``pictures.csv`` of the folder, or without it finds files by address.
        kept_size: Longer side in pixels to which pictures are resized before they are stored; null keeps their size.
    """

    folder: str = Field(default="", json_schema_extra=TRUSTED)
    table: str = Field(default="", json_schema_extra=TRUSTED)
    kept_size: int | None = Field(default=None, ge=16, le=4096)


class FinishedPictures(LocalDrawing):
    """Stored pictures by case address.

    The picture of a source case is ``<dataset>/<seed_id>.png``, that of a follow-up case
    ``<dataset>/<seed_id>/<relation>_s<severity>_f<frame>_r<repeat>.png``; the folder may be omitted if there is only
    one data set. A table overrides this (:class:`~medtest.systems.pictures.picture_table.PictureTable`): each row maps
    an address as shown in records, or a prompt, to a file. A case without a picture is an ERROR.

    A repeat of the unchanged prompt needs another picture than the source's: with the same one the rate of random
    differences would be 0 by construction. Such a case is SKIP, and the floor counts as not measured.
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
        try:
            table = self._table
        except MedtestError as error:
            allowed = "a CSV file with a column file, and address or prompt"
            return [Mistake(where=self.name, key="table", found=str(error), allowed=allowed)]
        if table is None and not any(path.suffix in _SUFFIXES for path in files_below(user_path(own.folder))):
            problem = f"{own.folder} (no picture found)"
            return [Mistake(where=self.name, key="folder", found=problem, allowed=", ".join(SUFFIXES))]
        if table is None and (user_path(own.folder) / EXPORTED).is_file():
            problem = f"{own.folder}, whose prompts are exported and whose pictures are not matched yet"
            fix = f"medtest prompts import file={own.folder}"
            allowed = f"a folder with {TABLE}"
            return [Mistake(where=self.name, key="folder", found=problem, allowed=allowed, fix=fix)]
        return ()

    def fingerprint(self) -> dict[str, Json]:
        """Return a SHA-256 over the names and contents of all pictures, and one over the table."""
        printed: dict[str, Json] = {
            "folder_sha256": folder_sha256(user_path(self.settings.folder), frozenset(_SUFFIXES))
        }
        if self._table_path is not None:
            printed["table_sha256"] = cached_sha256(self._table_path)
        return printed

    @cached_property
    def _table_path(self) -> Path | None:
        """The table: the named one, or the one of ``medtest prompts import`` in the folder; None without one."""
        if self.settings.table:
            return user_path(self.settings.table)
        beside = user_path(self.settings.folder) / TABLE
        return beside if beside.is_file() else None

    @cached_property
    def _table(self) -> PictureTable | None:
        """The table's rows; raises MedtestError if it is invalid."""
        return None if self._table_path is None else PictureTable(self._table_path)

    # ------------------------------------------------------------------------------------------------------- the run

    def draw(self, call: Asking) -> Image:
        """Return the case's picture.

        Raises:
            LookupError: There is none, or that of another prompt.
            NotDrawn: Fewer pictures of a prompt were drawn than the plan has cases.
            BadFileError: It cannot be read.
        """
        path = self._file(call.addresses[0], call.required_prompt)
        if call.addresses[0].relation != UNCHANGED:
            if path is None:
                raise LookupError(NO_PICTURE)
            return self._pixels(path)
        source = self._file(call.addresses[0].source(), call.required_prompt)
        if path is None or path == source:
            raise NotDrawn(ONE_PICTURE)
        pixels = self._pixels(path)
        if source is not None and np.array_equal(pixels, self._pixels(source)):
            raise NotDrawn(SAME_PICTURE)
        return pixels

    def _pixels(self, path: Path) -> Image:
        try:
            return pixels_of(read_bytes(path), self.kept_size)
        except BadFileError as error:
            raise BadFileError(f"{path.name} {error}") from None

    def _file(self, address: Address, prompt: Prompt) -> Path | None:
        folder = user_path(self.settings.folder)
        if self._table is None:
            return file_of(address, folder, _SUFFIXES)
        entry = self._table.find(address, prompt.text)
        if entry is None:
            return None
        file, prompt_sha256 = entry
        if not file:
            raise NotDrawn(ONE_PICTURE)
        if prompt_sha256 not in ("", words_sha256(prompt.text)):
            raise LookupError(OTHER_PROMPT)
        return file_below(folder, file)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_table", "_table_path")}
