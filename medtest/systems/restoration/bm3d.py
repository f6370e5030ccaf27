"""BM3D, by its authors' package (extra ``bm3d``; mind its licence, which is for non-commercial use)."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field as Setting

from medtest.errors import Mistake
from medtest.systems.base import SystemSettings
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field


def block_matching(image: Field, *, noise: float = 15.0) -> Field:
    """Filter by block matching and collaborative filtering in three dimensions.

    Dabov, Foi, Katkovnik, Egiazarian: Image denoising by sparse 3-D transform-domain collaborative filtering. IEEE
    Trans. Image Processing 16 (2007); both stages.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        noise: Standard deviation of the noise that is reckoned with, grey levels; the same at every scale.

    Returns:
        Same shape, float32.
    """
    bm3d = importlib.import_module("bm3d")

    method = bm3d.bm3d_rgb if image.ndim == 3 else bm3d.bm3d
    found = method(np.asarray(image, dtype=np.float64) / 255, sigma_psd=noise / 255)
    return np.asarray(found * 255, dtype=np.float32).reshape(image.shape)


class BlockMatchingSettings(SystemSettings):
    """Settings; see :func:`block_matching`."""

    noise: float = Setting(default=15.0, gt=0.0, le=255.0)


class BlockMatching(ImageFilter):
    """Dabov and others' BM3D."""

    digest_name: ClassVar[str] = "medtest.systems.restoration.bm3d:BlockMatching"
    Settings: ClassVar[type[SystemSettings]] = BlockMatchingSettings

    def check(self) -> Sequence[Mistake]:
        """Say when the package is missing."""
        if importlib.util.find_spec("bm3d"):
            return super().check()
        return [
            Mistake(
                where=self.name,
                found="bm3d is not installed",
                fix="pip install 'medtest[bm3d]' (its licence allows non-commercial use)",
            )
        ]

    def filter(self, pixels: Field) -> Field:
        """Filter one image."""
        return block_matching(pixels, noise=self.settings.noise)
