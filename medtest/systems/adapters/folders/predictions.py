"""Folders of stored answers as systems under test: predictions (maps or labels), and results (images or regions)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.core.errors import Mistake
from medtest.core.files.walk import file_below, files_below
from medtest.core.plugins import TRUSTED
from medtest.core.probes import Need
from medtest.systems.adapters.folders import label_files
from medtest.systems.adapters.folders.label_files import LabelsFile, read_case, table_problem, tables_in
from medtest.systems.adapters.folders.maps import read_map
from medtest.systems.adapters.image_files import READABLE, read_image
from medtest.systems.adapters.tensors import FORMS, ClassListSettings, classes_of
from medtest.systems.base import Algorithm, Missing, RawAnswer, System, SystemSettings
from medtest.systems.files import folder_mistakes, folder_sha256, user_path

SUFFIXES = (".png", ".npy", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""File suffixes, in search order."""
NO_PREDICTION = "no prediction"


class PredictionsSettings(ClassListSettings):
    """Settings of a folder of predictions.

    Attributes:
        folder: The folder.
        values: For maps ``probability``: pictures hold 0 to 255; ``labels``: every value but 0 is lesion. For labels
            ``probability`` or ``logits``: a number per class; ``labels``: names of classes.
        max_pixels: Larger pictures are rejected before decoding.
    """

    folder: str = Field(default="", json_schema_extra=TRUSTED)
    values: Literal["probability", "logits", "labels"] = "probability"
    max_pixels: int = Field(default=64_000_000, ge=1)


class Predictions(System):
    """Maps found by the case's address.

    The map of a source case is ``<dataset>/<seed_id>.png``, that of a follow-up case
    ``<dataset>/<seed_id>/<relation>_s<severity>_f<frame>_r<repeat>.png``, the names under which ``medtest export``
    writes the images; the folder may be omitted if there is only one data set. Pictures hold a probability from 0 to
    255; ``.npy`` files hold any array accepted by :mod:`medtest.core.tasks.border`. A missing map makes its case SKIP.

    For labels, tables in the folder and files under the same names are read as described in
    :mod:`medtest.systems.adapters.folders.label_files`.
    """

    finished: ClassVar[bool] = True
    Settings = PredictionsSettings
    settings: PredictionsSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask", "label")
    probed: ClassVar[Need] = Need.NOTHING
    _table: LabelsFile | None = None

    def __init__(self, name: str, settings: PredictionsSettings) -> None:
        super().__init__(name, settings)
        self.classes = classes_of(settings)
        self.answer_form = FORMS[settings.values]

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the folder."""
        mistakes = folder_mistakes(self.settings.folder, where=self.name, key="folder")
        if self.task.labels and not mistakes:
            return self._label_mistakes()
        if not mistakes and self.settings.values == "logits":
            allowed = "probability, labels (logits are for suites of labels)"
            return [Mistake(where=self.name, key="values", found="logits", allowed=allowed)]
        if mistakes or any(_is_map(path) for path in files_below(user_path(self.settings.folder))):
            return mistakes
        problem = f"{self.settings.folder} (no map found)"
        fix = "name maps like the images that medtest export writes"
        return [Mistake(where=self.name, key="folder", found=problem, allowed=", ".join(SUFFIXES), fix=fix)]

    def _label_mistakes(self) -> list[Mistake]:
        folder = user_path(self.settings.folder)
        mistakes: list[Mistake] = []
        for path in tables_in(folder):
            problem = table_problem(path, labels=self.settings.values == "labels")
            if problem:
                mistakes.append(Mistake(where=self.name, key="folder", found=f"{path.name}, which {problem}"))
        if (
            mistakes
            or tables_in(folder)
            or any(path.suffix.lower() in label_files.SUFFIXES for path in files_below(folder))
        ):
            return mistakes
        empty = f"{self.settings.folder} (no table and no answer found)"
        fix = "a table has a column address or file, and label or one column for each class"
        allowed = ", ".join((label_files.TABLE, *label_files.SUFFIXES))
        return [Mistake(where=self.name, key="folder", found=empty, allowed=allowed, fix=fix)]

    def fingerprint(self) -> dict[str, Json]:
        """Return a SHA-256 over the names and contents of all predictions."""
        suffixes = SUFFIXES if not self.task.labels else (label_files.TABLE, *label_files.SUFFIXES)
        return {"folder_sha256": folder_sha256(user_path(self.settings.folder), frozenset(suffixes))}

    def open(self, *, device: str, threads: int) -> None:
        """Read tables of labels; maps are read one by one.

        Raises:
            MedtestError: A table cannot be read.
        """
        if self.task.labels:
            self._table = LabelsFile(user_path(self.settings.folder), labels=self.settings.values == "labels")

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return each address's map or label, or ``Missing``."""
        if self.task.labels:
            return [self._label(address) for address in addresses]
        return [self._answer(address) for address in addresses]

    def _label(self, address: Address) -> RawAnswer:
        names = tuple(candidates(address))
        answer_in_table = None if self._table is None else self._table.find(names)
        if answer_in_table is not None:
            return answer_in_table
        path = file_of(address, user_path(self.settings.folder), label_files.SUFFIXES)
        answer: RawAnswer = Missing(NO_PREDICTION) if path is None else read_case(path)
        return answer

    def _answer(self, address: Address) -> RawAnswer:
        path = file_of(address, user_path(self.settings.folder), (*SUFFIXES, *(suffix.upper() for suffix in SUFFIXES)))
        if path is None:
            return Missing(NO_PREDICTION)
        return read_map(path, max_pixels=self.settings.max_pixels, labels=self.settings.values == "labels")


def _is_map(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def candidates(address: Address) -> Iterator[str]:
    """Yield candidate paths of an address's map, below the folder and without suffix."""
    name = address.seed_id if address.is_source else f"{address.seed_id}/{address.stem}"
    yield f"{address.dataset}/{name}"
    yield name


def file_of(address: Address, folder: Path, suffixes: Sequence[str]) -> Path | None:
    """Return the first file of an address in a folder with one of these suffixes, None if there is none.

    Links are followed; a name that leads out of the folder matches no file.
    """
    paths = (file_below(folder, f"{name}{suffix}") for name in candidates(address) for suffix in suffixes)
    return next((path for path in paths if path is not None), None)


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

    finished: ClassVar[bool] = True
    Settings: ClassVar[type[SystemSettings]] = ResultsSettings
    settings: ResultsSettings
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
