"""Non-local means, scikit-image's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field as Setting

from medtest.systems.base import SystemSettings
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field


def non_local_means(
    image: Field, *, noise: float = 15.0, strength: float = 0.8, patch: int = 5, distance: int = 6
) -> Field:
    """Filter by a mean over pixels whose surroundings look alike.

    Buades, Coll, Morel: A non-local algorithm for image denoising. CVPR 2005; patches compared with equal weights
    through integral images, the noise's own share taken off their distance, as scikit-image's fast mode does.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        noise: Standard deviation of the noise that is reckoned with, grey levels; the same at every scale.
        strength: The filter's h, in units of ``noise``.
        patch: Side of a patch, pixels.
        distance: How far patches are looked for, pixels.

    Returns:
        Same shape, float32.
    """
    from skimage.restoration import denoise_nl_means

    found = denoise_nl_means(
        image,
        patch_size=patch,
        patch_distance=distance,
        h=strength * noise,
        sigma=noise,
        fast_mode=True,
        preserve_range=True,
        channel_axis=2 if image.ndim == 3 else None,
    )
    return np.asarray(found, dtype=np.float32)


class NonLocalMeansSettings(SystemSettings):
    """Settings; see :func:`non_local_means`."""

    noise: float = Setting(default=15.0, gt=0.0, le=255.0)
    strength: float = Setting(default=0.8, gt=0.0, le=10.0)
    patch: int = Setting(default=5, ge=1, le=21)
    distance: int = Setting(default=6, ge=1, le=30)


class NonLocalMeans(ImageFilter):
    """Buades, Coll and Morel's non-local means."""

    digest_name: ClassVar[str] = "medtest.systems.restoration.non_local_means:NonLocalMeans"
    Settings: ClassVar[type[SystemSettings]] = NonLocalMeansSettings

    def filter(self, pixels: Field) -> Field:
        """Filter one image."""
        one = self.settings
        return non_local_means(pixels, noise=one.noise, strength=one.strength, patch=one.patch, distance=one.distance)
