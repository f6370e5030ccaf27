"""Wavelet shrinkage, scikit-image's with PyWavelets (extra ``wavelet``)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field as Setting

from medtest.errors import Mistake
from medtest.systems.base import SystemSettings
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field


def wavelet(image: Field, *, noise: float = 15.0, family: str = "db2") -> Field:
    """Filter by soft thresholds on wavelet coefficients, each band's from its own spread (BayesShrink).

    Chang, Yu, Vetterli: Adaptive wavelet thresholding for image denoising and compression. IEEE Trans. Image
    Processing 9 (2000); channels one by one.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        noise: Standard deviation of the noise that is reckoned with, grey levels; the same at every scale.
        family: PyWavelets' name of the wavelet.

    Returns:
        Same shape, float32.
    """
    from skimage.restoration import denoise_wavelet

    # Scaled to 1 and back: scikit-image clips floats it thinks outside their range.
    low, high = float(image.min()), float(image.max())
    if low == high:
        return np.asarray(image, dtype=np.float32)
    span = high - low
    found = denoise_wavelet(
        (image - low) / span,
        sigma=noise / span,
        wavelet=family,
        method="BayesShrink",
        mode="soft",
        channel_axis=2 if image.ndim == 3 else None,
    )
    return np.asarray(found * span + low, dtype=np.float32)


class WaveletSettings(SystemSettings):
    """Settings; see :func:`wavelet`."""

    noise: float = Setting(default=15.0, gt=0.0, le=255.0)
    family: str = Setting(default="db2", pattern=r"(haar|db[1-9][0-9]?|sym[2-9]|coif[1-9]|bior[1-6]\.[1-9])")


class Wavelet(ImageFilter):
    """Chang, Yu and Vetterli's wavelet shrinkage."""

    digest_name: ClassVar[str] = "medtest.systems.restoration.wavelet:Wavelet"
    Settings: ClassVar[type[SystemSettings]] = WaveletSettings

    def check(self) -> Sequence[Mistake]:
        """Say when PyWavelets is missing."""
        if importlib.util.find_spec("pywt"):
            return super().check()
        return [Mistake(where=self.name, found="PyWavelets is not installed", fix="pip install 'medtest[wavelet]'")]

    def filter(self, pixels: Field) -> Field:
        """Filter one image."""
        return wavelet(pixels, noise=self.settings.noise, family=self.settings.family)
