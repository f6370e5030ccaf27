"""Effects of optics, files and coils: Gaussian blur, JPEG compression, a bias field."""

from __future__ import annotations

from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, ImageSpec, Params
from medtest.core.errors import BadOutput
from medtest.core.portable import exp, power
from medtest.relations.levels import Level, number
from medtest.relations.noise.base import WHITE, Floats, Noise, NoiseSettings, as_float


class GaussianBlurLevel(Level):
    """One severity.

    Attributes:
        sigma: Standard deviation of the Gaussian in pixels.
    """

    sigma: float = Field(gt=0.0, le=100.0)


GaussianBlurSettings = NoiseSettings[GaussianBlurLevel]
"""``units`` and ``clip`` have no effect."""


class GaussianBlur(Noise):
    """Gaussian blur over all spatial axes, with mirrored borders; films are blurred frame by frame."""

    Settings = GaussianBlurSettings
    scale_unit: ClassVar[str] = "standard deviation of the Gaussian in pixels"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Blur the image; nothing is drawn."""
        from scipy.ndimage import correlate1d

        blurred = as_float(image)
        weights = gaussian_weights(number(params, "sigma"))
        for axis, name in enumerate(spec.axes):
            if name not in "tc":
                blurred = correlate1d(blurred, weights, axis, mode="reflect")
        return blurred


def gaussian_weights(sigma: float) -> NDArray[np.float64]:
    """Return the weights of a Gaussian of standard deviation ``sigma`` > 0 at whole pixels up to 4 σ, sum 1.

    SciPy's filter has the same weights except for the last bit, which depends on the processor.
    """
    places = np.arange(-int(4.0 * sigma + 0.5), int(4.0 * sigma + 0.5) + 1)
    weights = exp(-0.5 / (sigma * sigma) * places**2)
    weights /= weights.sum()
    return weights


class JpegLevel(Level):
    """One severity.

    Attributes:
        quality: Quality factor of the JPEG file, 1 to 99.
    """

    quality: int = Field(ge=1, le=99)

    @property
    def scale(self) -> float:
        """100 minus the quality factor."""
        return 100.0 - self.quality


JpegSettings = NoiseSettings[JpegLevel]
"""``units`` and ``clip`` have no effect, as a JPEG file holds 8 bits of the range."""


class Jpeg(Noise):
    """JPEG compression (libjpeg's quality factor, colours at full resolution), slice by slice and frame by frame.

    Other dtypes than 8 bit are converted to 8 bits of their range and back, as in any JPEG file.
    """

    Settings = JpegSettings
    scale_unit: ClassVar[str] = "100 minus JPEG quality"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Compress the image; nothing is drawn."""
        levels = image
        if image.dtype != np.uint8 or (spec.low, spec.high) != (0.0, WHITE):
            levels = np.clip(np.rint((as_float(image) - spec.low) * (WHITE / spec.span)), 0, 255).astype(np.uint8)
        inner = 3 if spec.coloured else 2
        stack = levels.reshape(-1, *levels.shape[-inner:])
        quality = int(number(params, "quality"))
        coded = np.stack([_through_jpeg(picture, quality) for picture in stack]).reshape(levels.shape)
        return coded.astype(np.float32) * np.float32(spec.span / WHITE) + np.float32(spec.low)


def _through_jpeg(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    ]
    good, data = cv2.imencode(".jpg", picture[..., ::-1] if picture.ndim == 3 else picture, options)
    if not good:
        raise BadOutput("the image could not be encoded as JPEG")
    decoded: Any = cv2.imdecode(data, cv2.IMREAD_COLOR if picture.ndim == 3 else cv2.IMREAD_GRAYSCALE)
    return np.asarray(decoded[..., ::-1] if picture.ndim == 3 else decoded, np.uint8)


class BiasFieldLevel(Level):
    """One severity.

    Attributes:
        percent: Largest deviation of the field from 1, in per cent.
    """

    percent: float = Field(gt=0.0, lt=100.0)


class BiasFieldSettings(NoiseSettings[BiasFieldLevel]):
    """Settings of ``bias_field``.

    Attributes:
        order: Highest total order of the field's polynomial.
    """

    order: int = Field(default=3, ge=1, le=6)


class BiasField(Noise):
    """Uneven sensitivity of a coil or lamp: y = x · (1 + a f), f a smooth polynomial field of mean 0 and max |f| = 1.

    The field is a polynomial over the spatial axes with standard normal coefficients (polynomials of low order are a
    usual model of intensity inhomogeneity in MRI: K. Van Leemput et al., IEEE TMI 18(10), 1999). Films have one field
    for all frames. x is measured from the low end of the range.
    """

    Settings = BiasFieldSettings
    effects: ClassVar[frozenset[str]] = frozenset({"relight"})
    scale_unit: ClassVar[str] = "largest deviation from 1 in per cent"

    def disturbed(self, image: Image, spec: ImageSpec, params: Params, rng: np.random.Generator) -> Floats:
        """Multiply the signal by a drawn field."""
        shape = spec.spatial(image.shape)
        film = spec.axes.startswith("t")
        field = smooth_field(shape[1:] if film else shape, self.settings.order, rng)
        factor = 1 + np.float32(number(params, "percent") / 100.0) * field
        if spec.coloured:
            factor = factor[..., None]
        return (as_float(image) - spec.low) * factor + spec.low


def smooth_field(shape: tuple[int, ...], order: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a polynomial field with mean 0 and a largest absolute value of 1.

    Args:
        shape: Shape of the field.
        order: Highest total order; every monomial of order 1 up to it has a standard normal coefficient.
        rng: Generator of the coefficients.
    """
    axes = np.ix_(*(np.linspace(-1.0, 1.0, side) if side > 1 else np.zeros(1) for side in shape))
    field = np.zeros(shape, np.float32)
    for exponents in np.ndindex(*[order + 1] * len(shape)):
        if 1 <= sum(exponents) <= order:
            term: NDArray[np.float32] = np.asarray(rng.standard_normal(), np.float32)
            for axis, exponent in zip(axes, exponents, strict=True):
                term = term * power(axis, exponent).astype(np.float32)
            field += term
    field -= field.mean(dtype=np.float64).astype(np.float32)
    largest = float(np.abs(field).max())
    return field / np.float32(largest) if largest > 0 else field
