"""Uniform access to images: a picture, a DICOM file's frames, a NIfTI volume's slices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from medtest.core.cases import Image, Mask
from medtest.core.files.images import MAX_PIXELS, BadFileError, decode_size, read_bytes, read_rgb
from medtest.core.files.masks import LabelValue, read_mask
from medtest.seeds.folders.formats import kind_of
from medtest.seeds.volumes.dicom_file import dicom_mask, dicom_rgb, dicom_shape
from medtest.seeds.volumes.nifti_file import LETTERS, Axis, NiftiVolume, opened_volume

Which: TypeAlias = Literal["all", "middle", "largest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReading:
    """Options for reading files.

    Attributes:
        max_pixels: Bound on a picture's, frame's or slice's pixels, checked before decoding.
        axis: Plane in which volumes are cut.
        window: Centre and width for grey DICOM and NIfTI images; empty for the file's own.
        label_values: Mask values that mark the lesion. If empty, every value but 0 of a volume does, and pictures are
            read as described in :mod:`medtest.core.files.masks`.
        label_key: Full key of this setting in suites and on command lines.
        slices: Images selected of a file with several: ``all``, the ``middle`` one, or the one with the ``largest``
            lesion.
        every: Select every n-th image, counted from the first.
    """

    max_pixels: int = MAX_PIXELS
    axis: Axis = "axial"
    window: tuple[float, ...] = ()
    label_values: tuple[LabelValue, ...] = ()
    label_key: str = "label_values"
    slices: Which = "all"
    every: int = 1

    @property
    def levels(self) -> tuple[int, ...]:
        """The ``label_values`` that are not colours."""
        return tuple(value for value in self.label_values if isinstance(value, int))


class Frames(ABC):
    """The images of one file.

    Attributes:
        count: Number of images.
        height: Rows of each.
        width: Columns of each.
    """

    count: int = 1
    height: int
    width: int

    @property
    def span(self) -> tuple[float, float]:
        """Values shown black and white, if shared by the whole file; (0, 0) otherwise."""
        return 0.0, 0.0

    def label(self, index: int) -> str:
        """Return the suffix that identifies one image of the file."""
        return ""

    def prefer_all(self) -> None:  # noqa: B027 - most files have nothing to prepare
        """Prepare for reading every image."""

    def fits(self, other: Frames) -> str:
        """Return the reason why another file cannot be the mask of this one, or ""."""
        if (other.height, other.width) != (self.height, self.width):
            return f"is {other.width}×{other.height}, but its image is {self.width}×{self.height}"
        if other.count != self.count:
            return f"holds {other.count} images, but its image file holds {self.count}"
        return ""

    @abstractmethod
    def rgb(self, index: int, span: tuple[float, float]) -> Image:
        """Return one image as uint8 H×W×3 RGB; ``span`` is the file's."""

    @abstractmethod
    def mask(self, index: int) -> Mask:
        """Return one image as bool H×W mask."""


class _Picture(Frames):
    def __init__(self, path: Path, reading: FrameReading) -> None:
        self._path, self._reading = path, reading
        content = read_bytes(path, max_pixels=reading.max_pixels)
        self.height, self.width = decode_size(content, max_pixels=reading.max_pixels)

    def rgb(self, index: int, span: tuple[float, float]) -> Image:
        return read_rgb(self._path, max_pixels=self._reading.max_pixels)

    def mask(self, index: int) -> Mask:
        reading = self._reading
        return read_mask(self._path, max_pixels=reading.max_pixels, values=reading.label_values)


class _Dicom(Frames):
    def __init__(self, path: Path, reading: FrameReading) -> None:
        self._path, self._reading = path, reading
        self.count, self.height, self.width = dicom_shape(path, max_pixels=reading.max_pixels)

    def label(self, index: int) -> str:
        return f"_f{index + 1:04d}" if self.count > 1 else ""

    def rgb(self, index: int, span: tuple[float, float]) -> Image:
        return dicom_rgb(self._path, index, max_pixels=self._reading.max_pixels, window=self._reading.window)

    def mask(self, index: int) -> Mask:
        return dicom_mask(self._path, index, max_pixels=self._reading.max_pixels, values=self._reading.levels)


class _Nifti(Frames):
    def __init__(self, path: Path, volume: NiftiVolume, reading: FrameReading) -> None:
        self._packed = path.name.lower().endswith(".gz")
        self._volume, self._reading = volume, reading
        self.count, self.height, self.width = volume.slices, volume.height, volume.width

    @property
    def span(self) -> tuple[float, float]:
        return self._volume.window(self._reading.window)

    def label(self, index: int) -> str:
        return f"_{LETTERS[self._reading.axis]}{index:03d}" if self.count > 1 else ""

    def prefer_all(self) -> None:
        if self._packed:
            self._volume.unpack()

    def fits(self, other: Frames) -> str:
        if not isinstance(other, _Nifti):
            return "is not a NIfTI file, but its image is"
        own, theirs = self._volume.shape, other._volume.shape
        if own != theirs:
            return f"is {'×'.join(map(str, theirs))} voxels, but its image is {'×'.join(map(str, own))}"
        if not self._volume.has_position_of(other._volume):
            return "has another position in space than its image (other affine)"
        return ""

    def rgb(self, index: int, span: tuple[float, float]) -> Image:
        return self._volume.rgb(index, *span)

    def mask(self, index: int) -> Mask:
        return self._volume.lesion(index, self._reading.levels)


@contextmanager
def opened_frames(path: Path, reading: FrameReading) -> Iterator[Frames]:
    """Open a file of any kind after checking its size against the bound.

    Raises:
        BadFileError: The file or one of its images cannot be read.
    """
    kind = kind_of(path.name)
    try:
        if kind == "nifti":
            with opened_volume(path, reading.axis, max_pixels=reading.max_pixels) as volume:
                yield _Nifti(path, volume, reading)
        else:
            yield (_Dicom if kind == "dicom" else _Picture)(path, reading)
    except MemoryError as error:
        raise BadFileError("is too large for this machine's memory") from error
