"""Structural similarity of two images.

Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality assessment: from error visibility to structural
similarity", IEEE TIP 13(4), 2004, equation 13: Gaussian window of 11 × 11 with σ 1.5, K1 0.01, K2 0.03, covariances of
the population, the mean over the map without the window's margin; the mean over colours. Volumes and films are compared
plane by plane. The paper's program excludes the margin too.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, ImageSpec, Mask
from medtest.core.portable import portable_opencv

SIDE = 11
"""Side in pixels of the window, and so of the smallest image."""
_SIGMA = 1.5
_MARGIN = SIDE // 2
_K1, _K2 = 0.01, 0.03

_Plane: TypeAlias = NDArray[Any]
_Moments: TypeAlias = tuple[_Plane, _Plane, _Plane]


def ssim(image: Image, clean: Image, spec: ImageSpec) -> float:
    """Return the mean structural similarity in [-1, 1].

    Args:
        image: The answer.
        clean: The clean image, of the same shape.
        spec: Range and axes of the images.

    Raises:
        ValueError: A plane is smaller than the window.
    """
    pairs = zip(_planes(image, spec), _planes(clean, spec), strict=True)
    return float(np.mean([float(_map(_moments(_double(a)), _moments(_double(b)), spec.span).mean()) for a, b in pairs]))


class FieldSimilarity:
    """Mean structural similarity of images to one reference over its field; the reference is smoothed only once.

    8-bit images are computed in float32, all colours at once, within 0.00001 of :func:`ssim`.

    Args:
        reference: The reference image.
        spec: Range and axes of the images.
        field: bool, of the reference's spatial shape, True where the map counts.

    Raises:
        ValueError: A plane is smaller than the window, or the field lies within its margin.
    """

    def __init__(self, reference: Image, spec: ImageSpec, field: Mask) -> None:
        self._spec = spec
        self._dtype: type[np.floating[Any]] = np.float32 if reference.dtype == np.uint8 else np.float64
        self._middle = spec.low + spec.span / 2
        fields = field.reshape(-1, *field.shape[-2:])[:, _MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
        if min(field.shape[-2:]) < SIDE or not fields.any():
            raise ValueError(f"no place of the field has SSIM's window of {SIDE} by {SIDE} pixels around it")
        self._fields = list(fields)
        with portable_opencv():
            self._reference = [self._centred(layer) for layer in self._layers(reference)]

    def of(self, image: Image) -> float:
        """Return the similarity of an image of the reference's shape, in [-1, 1]."""
        layers = zip(self._layers(image), self._reference, self._fields, strict=True)
        with portable_opencv():
            counted = [
                _map(self._centred(layer), moments, self._spec.span, self._middle)[field].ravel()
                for layer, moments, field in layers
            ]
        return float(np.concatenate(counted).mean(dtype=np.float64))

    def _layers(self, image: Image) -> NDArray[Any]:
        """Return an image as N × height × width, each with its colours as last axis if there are any."""
        tail = 3 if self._spec.coloured else 2
        return image.reshape(-1, *image.shape[-tail:])

    def _centred(self, layer: NDArray[Any]) -> _Moments:
        """Return the moments of a layer about the middle of the range, where float32 keeps small variances exact."""
        return _moments(layer.astype(self._dtype) - self._dtype(self._middle))


def _planes(image: Image, spec: ImageSpec) -> NDArray[Any]:
    """Return an image as N × height × width, its colours and slices in sequence.

    Raises:
        ValueError: A plane is smaller than the window.
    """
    if spec.coloured:
        image = np.moveaxis(image, -1, 0)
    planes = image.reshape(-1, *image.shape[-2:])
    if min(planes.shape[1:]) < SIDE:
        raise ValueError(f"an image of {planes.shape[1]} by {planes.shape[2]} is smaller than SSIM's window of {SIDE}")
    return planes


def _double(plane: NDArray[Any]) -> _Plane:
    return np.ascontiguousarray(plane, dtype=np.float64)


def _moments(values: _Plane) -> _Moments:
    """Return a plane with its local means and variances."""
    mean = _window(values)
    return values, mean, _window(values * values) - mean * mean


def _map(first: _Moments, second: _Moments, span: float, middle: float = 0.0) -> _Plane:
    """Return the map of similarities; ``middle`` was subtracted from the values before."""
    (x, mean_x, var_x), (y, mean_y, var_y) = first, second
    covariance = _window(x * y) - mean_x * mean_y
    if middle:
        mean_x, mean_y = mean_x + x.dtype.type(middle), mean_y + x.dtype.type(middle)
    c1, c2 = (_K1 * span) ** 2, (_K2 * span) ** 2
    above = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    below = (mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)
    return np.asarray(above / below)


def _window(plane: _Plane) -> _Plane:
    """Return the weighted local means, without the margin where the window exceeds the image."""
    blurred = np.asarray(cv2.GaussianBlur(plane, (SIDE, SIDE), _SIGMA, borderType=cv2.BORDER_REFLECT))
    return blurred[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
