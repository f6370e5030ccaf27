"""Folder of stored results, images or regions, as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.core.errors import Mistake
from medtest.core.files.walk import files_below
from medtest.core.plugins import TRUSTED
from medtest.core.probes import Need
from medtest.systems.adapters.folders.predictions import NO_PREDICTION, file_of
from medtest.systems.adapters.image_files import READABLE, read_image
from medtest.systems.base import Algorithm, Missing, RawAnswer, SystemSettings
from medtest.systems.files import folder_mistakes, folder_sha256, user_path

_BYTES_A_VALUE = 16
_SPARE_BYTES = 1 << 24


class ResultsSettings(SystemSettings):
    """Settings of a folder of results.

    Attributes:
        folder: The folder.
    """

    folder: str = Field(default="", json_schema_extra=TRUSTED)


class Results(Algorithm):
    """Results found by the case's address: images, or regions (labels; 0 is outside).

    The result of a source case is ``<dataset>/<seed_id>.png``, that of a follow-up case
    ``<dataset>/<seed_id>/<relation>_s<severity>_f<frame>_r<repeat>.png``, the names under which ``medtest export``
    writes the images (or ``.npy``, ``.nii.gz``, ``.tif`` …); the folder may be omitted if there is only one data set. A
    missing file makes its case SKIP.
    """

    Settings: ClassVar[type[SystemSettings]] = ResultsSettings
    tasks: ClassVar[tuple[str, ...]] = ("image", "region")
    probed: ClassVar[Need] = Need.NOTHING

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the folder."""
        mistakes = folder_mistakes(self.settings.folder, where=self.name, key="folder")
        if mistakes or any(_is_result(path) for path in files_below(user_path(self.settings.folder))):
            return mistakes
        problem = f"{self.settings.folder} (no result found)"
        fix = "name results like the images that medtest export writes"
        return [Mistake(where=self.name, key="folder", found=problem, allowed=", ".join(READABLE), fix=fix)]

    def fingerprint(self) -> dict[str, Json]:
        """Return a SHA-256 over the names and contents of all results."""
        suffixes = frozenset({*READABLE, ".gz"})
        return {"folder_sha256": folder_sha256(user_path(self.settings.folder), suffixes)}

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return each address's result, or ``Missing``."""
        return [self._answer(*case) for case in zip(images, specs, addresses, strict=True)]

    def _answer(self, image: Image, spec: ImageSpec, address: Address) -> RawAnswer:
        path = file_of(address, user_path(self.settings.folder), READABLE)
        if path is None:
            return Missing(NO_PREDICTION)
        most = image.size * _BYTES_A_VALUE + _SPARE_BYTES
        return read_image(path, spec, max_bytes=most, max_values=4 * image.size, region=self.task.masks)


def _is_result(path: Path) -> bool:
    return path.name.lower().endswith(READABLE)
