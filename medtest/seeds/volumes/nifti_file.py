"""Reading of NIfTI volumes slice by slice: bounds before decoding, orientation from the header, no text kept.

A slice is cut along one anatomical axis after the volume's axes are turned to the nearest of right-left, back-front,
foot-head (nibabel's ``io_orientation``), so that one patient scanned in two ways gives the same pictures. It is shown
in radiological convention: axial and coronal slices with the patient's right on the left side, axial ones with the
front up, coronal and sagittal ones with the head up, sagittal ones with the front on the left. Slices are numbered from
0: axial from the feet, coronal from the back, sagittal from the left.

Values become 8 bits by one window for a whole volume: the requested one, else the header's ``cal_min`` and ``cal_max``,
else the 0.5th and 99.5th percentile of the values (of a regular sample of at most about two million); 8-bit volumes are
unchanged. In a volume of labels the lesion is everything but 0, or the requested values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.core.files.images import BadFileError, damage_is
from medtest.volumes.libraries import nibabel_library
from medtest.volumes.nifti import check_head

Axis: TypeAlias = Literal["axial", "coronal", "sagittal"]
_CANONICAL: dict[str, int] = {"sagittal": 0, "coronal": 1, "axial": 2}
LETTERS: dict[str, str] = {"sagittal": "x", "coronal": "y", "axial": "z"}
"""Letters of the axes in seed ids."""

MOST_BYTES = 4 * 2**30
"""Largest size of a volume's values in bytes, unpacked."""

_SAMPLE = 2_000_000
_SAME_PLACE_MM = 1e-2


class NiftiVolume:
    """Opened volume; :meth:`plane` reads one slice.

    Args:
        image: nibabel's image.
        axis: Plane in which it is cut.

    Attributes:
        shape: Voxels along the file's own axes.
        slices: Slices along the axis.
        height: Rows of a slice.
        width: Columns of a slice.
    """

    def __init__(self, image: Any, axis: Axis) -> None:
        library = nibabel_library()
        self._image = image
        proxy = image.dataobj
        # Slope and intercept are left out to read stored values.
        self._data: Any = library.arrayproxy.ArrayProxy(proxy.file_like, (proxy.shape, proxy.dtype, proxy.offset))
        self.shape = (*(int(n) for n in image.shape), 1)[:3]
        orientation = library.io_orientation(image.affine)
        whole = bool(np.isfinite(orientation).all()) and len(orientation) == 3
        self._orientation = orientation if whole else np.array([[0, 1], [1, 1], [2, 1]])
        self._cut = int(np.flatnonzero(self._orientation[:, 0] == _CANONICAL[axis])[0])
        rest = [n for n in range(3) if n != self._cut]
        first, second = sorted(rest, key=lambda n: float(self._orientation[n, 0]))
        self.slices, self.height, self.width = (self.shape[n] for n in (self._cut, second, first))

    def has_position_of(self, other: NiftiVolume) -> bool:
        """Return True if the voxels of another volume of the same shape are at the same positions."""
        own, theirs = (np.asarray(volume._image.affine, dtype=np.float64) for volume in (self, other))
        return bool(np.allclose(own, theirs, rtol=1e-3, atol=_SAME_PLACE_MM))

    def unpack(self) -> None:
        """Read all values at once, faster if every slice of a packed file is needed; discard the volume after."""
        with _reading():
            self._data = np.asanyarray(self._data)

    def plane(self, index: int) -> NDArray[Any]:
        """Return one slice in display orientation, as stored values (before slope and intercept)."""
        number = index if self._orientation[self._cut, 1] > 0 else self.shape[self._cut] - 1 - index
        where: list[Any] = [slice(None)] * 3
        where[self._cut] = number
        cut = tuple(where) + (0,) * (len(self._image.shape) - 3)
        if len(self._image.shape) == 2:
            cut = cut[:2]
        with _reading():
            values = np.asanyarray(self._data[cut])
        rest = [n for n in range(3) if n != self._cut]
        values = values.reshape(tuple(self.shape[n] for n in rest))
        for place, n in enumerate(rest):
            if self._orientation[n, 1] < 0:
                values = np.flip(values, place)
        if self._orientation[rest[0], 0] > self._orientation[rest[1], 0]:
            values = values.T
        shown: NDArray[Any] = values[::-1, ::-1].T
        return shown

    @property
    def scaling(self) -> tuple[float, float]:
        """Slope and intercept from stored values to the volume's."""
        slope, intercept = float(self._image.dataobj.slope), float(self._image.dataobj.inter)
        return (slope, intercept) if math.isfinite(slope) and math.isfinite(intercept) and slope else (1.0, 0.0)

    @property
    def is_rgb(self) -> bool:
        """Whether voxels hold colours."""
        return self._image.get_data_dtype().fields is not None

    def rgb(self, index: int, low: float, high: float) -> Image:
        """Return one slice as uint8 H×W×3 RGB, ``low`` black and ``high`` white (colours unchanged)."""
        values = self.plane(index)
        if self.is_rgb:
            return np.ascontiguousarray(np.stack([values[name] for name in ("R", "G", "B")], axis=-1))
        slope, intercept = self.scaling
        level = np.nan_to_num(values.astype(np.float64) * slope + intercept, nan=low, posinf=high, neginf=low)
        share = np.clip((level - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(level)
        grey = np.rint(255 * share).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)

    def lesion(self, index: int, labels: Sequence[int]) -> Mask:
        """Return one slice of a volume of labels as bool H×W: voxels in ``labels``, or any but 0 if it is empty.

        Raises:
            BadFileError: The volume holds colours.
        """
        if self.is_rgb:
            raise BadFileError("holds colours, not labels")
        slope, intercept = self.scaling
        values = np.rint(np.nan_to_num(self.plane(index).astype(np.float64) * slope + intercept))
        return np.ascontiguousarray(np.isin(values, labels) if labels else values != 0)

    def window(self, setting: Sequence[float]) -> tuple[float, float]:
        """Return the darkest and the brightest value shown.

        Args:
            setting: Centre and width, or empty.
        """
        if len(setting) == 2:
            return setting[0] - setting[1] / 2, setting[0] + setting[1] / 2
        header, kind = self._image.header, self._image.get_data_dtype()
        low, high = float(header["cal_min"]), float(header["cal_max"])
        if math.isfinite(low) and math.isfinite(high) and high > low:
            return low, high
        if self.is_rgb or (kind == np.uint8 and self.scaling == (1.0, 0.0)):
            return 0.0, 255.0
        sample = self._sample()
        sample = sample[np.isfinite(sample)]
        if not sample.size:
            raise BadFileError("holds no number")
        low, high = (float(value) for value in np.percentile(sample, (0.5, 99.5)))
        return (low, high) if high > low else (float(sample.min()), float(sample.max()))

    def _sample(self) -> NDArray[np.float64]:
        """Return a regular sample of the values, slice by slice."""
        step = max(1, math.ceil((self.slices * self.height * self.width / _SAMPLE) ** (1 / 3)))
        slope, intercept = self.scaling
        parts = [self.plane(n)[::step, ::step].astype(np.float64).ravel() for n in range(0, self.slices, step)]
        return np.concatenate(parts) * slope + intercept


@contextmanager
def opened_volume(path: Path, axis: Axis, *, max_pixels: int) -> Iterator[NiftiVolume]:
    """Open a volume after checking its header against the bounds; nothing is decoded.

    Raises:
        BadFileError: The file is not a readable volume within the bounds, or nibabel is missing.
    """
    nibabel = nibabel_library()
    check_head(path)
    with _reading():
        image = nibabel.load(path)
        if not isinstance(image, nibabel.Nifti1Image):
            raise BadFileError("is not a NIfTI file")
        volume = _checked(image, axis, path, max_pixels)
    yield volume


@contextmanager
def _reading() -> Iterator[None]:
    with damage_is("is not a NIfTI file, or is damaged or truncated"):
        try:
            yield
        except EOFError as error:
            raise BadFileError("is truncated") from error


def _checked(image: Any, axis: Axis, path: Path, max_pixels: int) -> NiftiVolume:
    """Return a volume after checking its header against the bounds."""
    shape = tuple(int(n) for n in image.shape)
    if len(shape) < 2 or any(n <= 0 for n in shape):
        raise BadFileError("is a NIfTI file without an image")
    if any(n > 1 for n in shape[3:]):
        raise BadFileError(f"has {len(shape)} axes ({'×'.join(map(str, shape))}); give one volume a file")
    count = math.prod(shape) * int(image.get_data_dtype().itemsize)
    if count > MOST_BYTES:
        raise BadFileError(f"is {count / 1e9:.1f} GB unpacked; the bound for a volume is {MOST_BYTES / 1e9:.1f} GB")
    kind = image.get_data_dtype()
    if kind.kind == "c" or (kind.fields is not None and not {"R", "G", "B"} <= set(kind.fields)):
        raise BadFileError("holds values of a kind that is not read")
    volume = NiftiVolume(image, axis)
    if volume.height * volume.width > max_pixels:
        size = f"{volume.width}×{volume.height}, {volume.height * volume.width / 1e6:.1f} Mpixel"
        raise BadFileError(f"has slices of {size}; the bound is {max_pixels / 1e6:g} Mpixel")
    if path.suffix.lower() == ".nii" and path.stat().st_size < count + 348:
        raise BadFileError("is truncated")
    return volume
