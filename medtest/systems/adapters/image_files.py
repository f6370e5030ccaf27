"""Image files of series, for command-line tools and folders of results.

- ``.png``: 8 and 16 bit, grey and RGB, two-dimensional. Floating-point images are rounded and clipped to 8 bits over
  their range, which loses values outside; choose ``npy`` or ``nii`` if that matters.
- ``.npy``: any array, unchanged.
- ``.nii``, ``.nii.gz``: NIfTI (nibabel), axes reversed to x, y, z, with the spacing. Volumes are read in any
  orientation.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from medtest.core.cases import Image, ImageSpec
from medtest.core.errors import BadOutput
from medtest.core.files.tiffheader import declared_rgb
from medtest.volumes import read_volume, volume_info

SUFFIXES: Mapping[str, str] = {"png": ".png", "npy": ".npy", "nii": ".nii.gz"}
"""File suffixes by format."""
READABLE: tuple[str, ...] = (".npy", ".nii.gz", ".nii", ".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
"""Suffixes supported by :func:`read_image`, in the order in which a folder is searched."""
_PICTURES = ("PNG", "TIFF", "BMP", "DIB", "JPEG")


def write_image(path: Path, image: Image, spec: ImageSpec) -> None:
    """Write one image in the format of the file's suffix.

    Raises:
        BadOutput: A volume or film cannot be a PNG.
        ImportError: nibabel is not installed.
    """
    if path.suffix == ".npy":
        np.save(path, image, allow_pickle=False)
    elif path.suffix == ".png":
        path.write_bytes(_png(image, spec))
    else:
        _write_nifti(path, image, spec)


def read_image(path: Path, spec: ImageSpec, *, max_bytes: int, max_values: int, region: bool = False) -> NDArray[Any]:
    """Read one image; sizes are checked before decoding.

    Args:
        path: The file, one of :data:`READABLE`.
        spec: Specification of the input image: an 8- or 16-bit answer to an image of another dtype is mapped back to
            its range.
        max_bytes: Largest file.
        max_values: Maximum number of pixels or voxels, times colours.
        region: Whether it holds labels (0 is outside), to which no range applies.

    Raises:
        BadOutput: It is not a readable image within the limits.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise BadOutput(f"{path.name} cannot be read: {error.strerror}") from error
    if size > max_bytes:
        raise BadOutput(f"{path.name} has {size / 1e6:.1f} MB; the bound is {max_bytes / 1e6:g}")
    name = path.name.lower()
    try:
        if name.endswith(".npy"):
            return _read_npy(path, max_values)
        if name.endswith((".nii", ".nii.gz")):
            values = _read_volume(path, max_values) if spec.axes == "zyx" else _read_nifti(path, spec, max_values)
            return np.asarray(values != 0) if region else values
        return _read_picture(path, spec, max_values, region=region)
    except BadOutput:
        raise
    except ImportError:
        raise
    except Exception as error:
        raise BadOutput(f"{path.name} cannot be read: {str(error)[:120]}") from error


def to_png_range(image: Image, spec: ImageSpec) -> Image:
    """Return an image as 8 or 16 bit: floats are mapped from their range to 0 to 255, rounded and clipped."""
    if image.dtype in (np.uint8, np.uint16):
        return image
    levels = (image.astype(np.float64) - spec.low) * (255.0 / spec.span)
    return np.asarray(np.clip(np.rint(levels), 0, 255), np.uint8)


def _png(image: Image, spec: ImageSpec) -> bytes:
    if spec.axes not in ("yx", "yxc"):
        raise BadOutput(f"an image with the axes {spec.axes} cannot be a PNG; choose format: npy or nii")
    pixels = to_png_range(image, spec)
    if spec.coloured:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    good, data = cv2.imencode(".png", pixels)
    if not good:
        raise BadOutput("the image could not be encoded as PNG")
    return data.tobytes()


def _write_nifti(path: Path, image: Image, spec: ImageSpec) -> None:
    import nibabel

    spacing = tuple(reversed(spec.spacing)) or (1.0,) * len(spec.spatial(image.shape))
    sizes = [*spacing, 1.0, 1.0, 1.0][:3]
    # our volumes run from right to left and from front to back, NIfTI's axes in the opposite directions
    signs = (-1.0, -1.0, 1.0) if spec.axes == "zyx" else (1.0, 1.0, 1.0)
    affine = np.diag([*(size * sign for size, sign in zip(sizes, signs, strict=True)), 1.0])
    colours = (image.ndim - 1,) if spec.coloured else ()
    axes = (*reversed(range(len(spec.spatial(image.shape)))), *colours)
    nifti = nibabel.Nifti1Image(np.transpose(image, axes), affine)  # type: ignore[no-untyped-call]
    nibabel.save(nifti, path)


def _read_volume(path: Path, max_values: int) -> NDArray[Any]:
    """Read a volume of any orientation and reorient it like the seeds' volumes."""
    count = int(np.prod(volume_info(path).shape, dtype=np.int64))
    if count > max_values:
        raise BadOutput(f"{path.name} holds {count:,} values; the bound is {max_values:,}")
    return read_volume(path)[0]


def _read_nifti(path: Path, spec: ImageSpec, max_values: int) -> NDArray[Any]:
    import nibabel

    opened: Any = nibabel.load(path)
    count = int(np.prod(opened.shape, dtype=np.int64))
    if count > max_values:
        raise BadOutput(f"{path.name} holds {count:,} values; the bound is {max_values:,}")
    values = np.asarray(opened.dataobj)
    colours = (values.ndim - 1,) if spec.coloured and values.ndim == len(spec.axes) else ()
    spatial = values.ndim - len(colours)
    return np.ascontiguousarray(np.transpose(values, (*reversed(range(spatial)), *colours)))


def _read_npy(path: Path, max_values: int) -> NDArray[Any]:
    mapped = np.load(path, allow_pickle=False, mmap_mode="r")
    if mapped.size > max_values:
        raise BadOutput(f"{path.name} holds {mapped.size:,} values; the bound is {max_values:,}")
    return np.array(mapped)


def _read_picture(path: Path, spec: ImageSpec, max_values: int, *, region: bool) -> NDArray[Any]:
    content = declared_rgb(path.read_bytes())
    with Pillow.open(io.BytesIO(content), formats=_PICTURES) as picture:
        if picture.width * picture.height > max_values:
            raise BadOutput(f"{path.name} is {picture.width} by {picture.height}; the bound is {max_values:,} values")
    # Pillow does not support 16-bit colours, so it only checks the size
    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise BadOutput(f"{path.name} is not a picture that can be read")
    if pixels.ndim == 3:
        pixels = pixels[..., :3]
        if region:
            return np.asarray(pixels.any(axis=-1))
        pixels = pixels[..., ::-1] if spec.coloured else _grey(pixels)
    if region or np.issubdtype(pixels.dtype, np.floating) or pixels.dtype == np.dtype(spec.dtype):
        return np.ascontiguousarray(pixels)
    if spec.dtype in ("uint8", "uint16"):
        raise BadOutput(f"{path.name} holds {pixels.dtype} where {spec.dtype} is expected")
    white = 255.0 if pixels.dtype.itemsize == 1 else 65535.0
    return np.asarray(pixels.astype(np.float64) * (spec.span / white) + spec.low)


def _grey(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a colour picture of equal colours as grey, because many tools write grey pictures that way."""
    if (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all():
        return pixels[..., 0]
    return pixels
