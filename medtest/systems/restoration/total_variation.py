"""Total-variation denoising, scikit-image's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field as Setting

from medtest.systems.base import SystemSettings
from medtest.systems.restoration.base import ImageFilter
from medtest.systems.restoration.grid import Field


def total_variation(image: Field, *, weight: float = 15.0, iterations: int = 50) -> Field:
    """Filter by minimising Σ|∇v| + (1 / 2 weight) Σ(v - u)².

    Rudin, Osher, Fatemi: Nonlinear total variation based noise removal algorithms. Physica D 60 (1992), solved by
    Chambolle: An algorithm for total variation minimization and applications. J. Math. Imaging and Vision 20 (2004).

    Args:
        image: Float H×W or H×W×3 in grey levels.
        weight: Grey levels; more is smoother.
        iterations: At most.

    Returns:
        Same shape, float32.
    """
    from skimage import restoration

    channel = 2 if image.ndim == 3 else None
    method: Any = restoration.denoise_tv_chambolle
    return np.asarray(method(image, weight=weight, max_num_iter=iterations, channel_axis=channel), dtype=np.float32)


class TotalVariationSettings(SystemSettings):
    """Settings; see :func:`total_variation`."""

    weight: float = Setting(default=15.0, gt=0.0, le=1000.0)
    iterations: int = Setting(default=50, ge=1, le=1000)


class TotalVariation(ImageFilter):
    """Rudin, Osher and Fatemi's model."""

    digest_name: ClassVar[str] = "medtest.systems.restoration.total_variation:TotalVariation"
    Settings: ClassVar[type[SystemSettings]] = TotalVariationSettings

    def filter(self, pixels: Field) -> Field:
        """Filter one image."""
        return total_variation(pixels, weight=self.settings.weight, iterations=self.settings.iterations)
