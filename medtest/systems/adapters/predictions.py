"""A folder of prediction maps made elsewhere as a system under test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from medtest.cases import Address, Image, Json
from medtest.errors import Mistake
from medtest.plugins import TRUSTED
from medtest.systems.adapters.maps import read_map
from medtest.systems.base import Missing, RawAnswer, System, SystemSettings
from medtest.systems.files import folder_mistakes, folder_sha256, user_path

SUFFIXES = (".png", ".npy", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Looked for in this order."""
NO_PREDICTION = "no prediction"


class PredictionsSettings(SystemSettings):
    """Settings of a folder of predictions.

    Attributes:
        folder: The folder.
        values: ``probability``: pictures hold 0 to 255; ``labels``: every value but 0 is lesion.
        max_pixels: Larger pictures are refused before they are decoded.
    """

    folder: str = Field(default="", json_schema_extra=TRUSTED)
    values: Literal["probability", "labels"] = "probability"
    max_pixels: int = Field(default=64_000_000, ge=1)


class Predictions(System):
    """Maps found by the case's address.

    A source's map is ``<dataset>/<seed_id>.png``, a follow-up's
    ``<dataset>/<seed_id>/<relation>_s<severity>_f<frame>_r<repeat>.png``, the names under which ``medtest export``
    writes the images; a single data set may leave its folder out. Pictures hold a probability from 0 to 255; ``.npy``
    files hold any array that :mod:`medtest.systems.border` takes. A map that is not there makes its case SKIP.
    """

    Settings = PredictionsSettings

    def check(self) -> Sequence[Mistake]:
        """Return what is wrong with the folder."""
        found = folder_mistakes(self.settings.folder, where=self.name, key="folder")
        if found or any(_is_map(path) for path in user_path(self.settings.folder).rglob("*")):
            return found
        what = f"{self.settings.folder} (no map lies in it)"
        fix = "medtest export writes images under the names that maps shall have"
        return [Mistake(where=self.name, key="folder", found=what, allowed=", ".join(SUFFIXES), fix=fix)]

    def fingerprint(self) -> dict[str, Json]:
        """Return a SHA-256 over the names and contents of all maps."""
        return {"folder_sha256": folder_sha256(user_path(self.settings.folder), frozenset(SUFFIXES))}

    def open(self, *, device: str, threads: int) -> None:
        """Do nothing: maps are read one by one."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return each address's map, or ``Missing``."""
        return [self._answer(address) for address in addresses]

    def _answer(self, address: Address) -> RawAnswer:
        root = user_path(self.settings.folder)
        for candidate in candidates(address):
            for suffix in (*SUFFIXES, *(one.upper() for one in SUFFIXES)):
                path = root / f"{candidate}{suffix}"
                if path.is_file() and is_inside(root, path):
                    return read_map(path, max_pixels=self.settings.max_pixels, labels=self.settings.values == "labels")
        return Missing(NO_PREDICTION)


def _is_map(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.is_file()


def candidates(address: Address) -> Iterator[str]:
    """Yield paths without suffix, below the folder, where an address's map may lie."""
    name = address.seed_id if address.is_source else f"{address.seed_id}/{address.stem}"
    yield f"{address.dataset}/{name}"
    yield name


def is_inside(root: Path, path: Path) -> bool:
    """Say whether a path stays in the folder; seed ids come from file names and could climb."""
    return path.resolve().is_relative_to(root.resolve())
