"""Oracle of processed images: similarity of an answer to the clean image, and to its input.

Scores of a case (``x`` is the answer, ``y`` the clean image, L the meaningful range of the image, high minus low):

- ``ssim``: structural similarity (:mod:`medtest.preparation.similarity`), the mean over the whole image.
- ``psnr``: 10 log10(L² / mean squared error) in decibels, at most :data:`PSNR_LIMIT` (equal images have no error).
- ``input_ssim``, ``input_psnr``: the same scores for the system's input.

The usual criterion is ``{score: ssim, threshold: 0, against: input}``: an answer that is worse than its input FAILs.
Answers are not clipped before scoring, so values outside the range reduce the scores.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Effect, Image, ImageOutput, ImageSpec, Output, PreparedSeed
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings
from medtest.preparation.similarity import ssim

PSNR_LIMIT = 100.0
"""Score in decibels of answers (nearly) equal to the clean image; rounding to 8 bits alone gives 58.9 dB."""

_MEMO = "medtest.tasks.restore.oracle:"
_KEPT = 16
"""Number of inputs with cached scores: more than a batch, since systems are called batch by batch."""


class SeriesSettings(PartSettings):
    """Settings for tables of a series; changing them runs no system again.

    Attributes:
        include_source: If True, the source case, at scale 0, is the first point of a curve of quality over scales.
        min_step: Neighbouring scales closer than this are merged to their mean (measured properties, whose scales are
            irregular).
    """

    include_source: bool = False
    min_step: float = Field(default=0.0, ge=0.0)


class Quality(Oracle):
    """Oracle of processed images; the module's docstring defines the scores."""

    Settings: ClassVar[type[PartSettings]] = SeriesSettings
    task: ClassVar[str] = "image"
    scores: ClassVar[tuple[str, ...]] = ("ssim", "psnr", "input_ssim", "input_psnr")
    self_scores: ClassVar[tuple[str, ...]] = ("ssim",)
    references: ClassVar[tuple[str, ...]] = ("input", "truth", "source")
    criteria: ClassVar[tuple[str, ...]] = ("ssim", "psnr")
    revision: ClassVar[int] = 1

    def score(
        self, *, answer: Output, source: Output | None, seed: PreparedSeed, effect: Effect
    ) -> dict[str, float | None]:
        """Return the score columns of one case; ``self_ssim`` compares with the answer to the source."""
        if not isinstance(answer, ImageOutput) or not isinstance(source, ImageOutput | None):
            raise TypeError(f"quality judges images, not an answer of kind {answer.kind}")
        columns: dict[str, float | None] = dict.fromkeys(self.scores)
        columns["self_ssim"] = None
        spec = seed.spec
        if source is not None:
            columns["self_ssim"] = 1.0 if source is answer else ssim(answer.image, source.image, spec)
        if seed.clean is not None:
            columns["ssim"] = ssim(answer.image, seed.clean, spec)
            columns["psnr"] = psnr(answer.image, seed.clean, spec)
            columns["input_ssim"], columns["input_psnr"] = _of_input(answer.given, seed.clean, seed)
        return columns


def _of_input(image: Image, clean: Image, seed: PreparedSeed) -> tuple[float, float]:
    """Return SSIM and PSNR of a system's input, cached because all systems get the same input."""
    cache: dict[int, tuple[Image, float, float]] = seed.memo(f"{_MEMO}inputs", dict)
    scores = cache.get(id(image))
    if scores is None:
        scores = (image, ssim(image, clean, seed.spec), psnr(image, clean, seed.spec))
        while len(cache) >= _KEPT:
            del cache[next(iter(cache))]
        cache[id(image)] = scores  # holds the image, so that its id is not reused
    return scores[1], scores[2]


def psnr(image: Image, clean: Image, spec: ImageSpec) -> float:
    """Return the peak signal-to-noise ratio in decibels, at most :data:`PSNR_LIMIT`.

    Args:
        image: The answer, of any dimension.
        clean: The clean image, of the same shape.
        spec: Range of the images.
    """
    error = float(np.mean((image.astype(np.float64) - clean.astype(np.float64)) ** 2))
    if error <= 0:
        return PSNR_LIMIT
    return min(PSNR_LIMIT, 10.0 * float(np.log10(spec.span**2 / error)))
