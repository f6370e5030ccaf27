"""Oracle of processed images: similarity of an answer to the clean image, and to its input.

Scores of a case (``x`` is the answer, ``y`` the clean image, L the meaningful range of the image, high minus low):

- ``ssim``: structural similarity (Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality assessment: from
  error visibility to structural similarity", IEEE TIP 13(4), 2004, equation 13): Gaussian window of 11 × 11 with σ 1.5,
  K1 0.01, K2 0.03, covariances of the population, the mean over the map without the window's margin; the mean over
  colours. Volumes and films are judged plane by plane. The paper's program excludes the margin too.
- ``psnr``: 10 log10(L² / mean squared error) in decibels, at most :data:`PSNR_LIMIT` (equal images have no error).
- ``input_ssim``, ``input_psnr``: the same scores for the system's input.

The usual criterion is ``{score: ssim, threshold: 0, against: input}``: an answer that is worse than its input FAILs.
Answers are not clipped before scoring, so values outside the range reduce the scores.
"""

from __future__ import annotations

from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Effect, Image, ImageOutput, ImageSpec, Output, PreparedSeed
from medtest.core.oracles.base import Oracle
from medtest.core.plugins import PartSettings

PSNR_LIMIT = 100.0
"""Score in decibels of answers (nearly) equal to the clean image; rounding to 8 bits alone gives 58.9 dB."""

_SIDE, _SIGMA = 11, 1.5
_MARGIN = _SIDE // 2
_K1, _K2 = 0.01, 0.03
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


def ssim(image: Image, clean: Image, spec: ImageSpec) -> float:
    """Return the mean structural similarity in [-1, 1].

    Args:
        image: The answer.
        clean: The clean image, of the same shape.
        spec: Range and axes of the images.

    Raises:
        ValueError: A plane is smaller than the window.
    """
    first, second = _planes(image, spec), _planes(clean, spec)
    if min(first.shape[1:]) < _SIDE:
        raise ValueError(f"an image of {first.shape[1]} by {first.shape[2]} is smaller than SSIM's window of {_SIDE}")
    return float(np.mean([_plane_ssim(a, b, spec.span) for a, b in zip(first, second, strict=True)]))


def _planes(image: Image, spec: ImageSpec) -> NDArray[Any]:
    """Return an image as N × height × width, its colours and slices in sequence."""
    if spec.coloured:
        image = np.moveaxis(image, -1, 0)
    return image.reshape(-1, *image.shape[-2:])


def _plane_ssim(image: NDArray[Any], clean: NDArray[Any], span: float) -> float:
    x = np.ascontiguousarray(image, dtype=np.float64)
    y = np.ascontiguousarray(clean, dtype=np.float64)
    mean_x, mean_y = _window(x), _window(y)
    var_x = _window(x * x) - mean_x * mean_x
    var_y = _window(y * y) - mean_y * mean_y
    covariance = _window(x * y) - mean_x * mean_y
    c1, c2 = (_K1 * span) ** 2, (_K2 * span) ** 2
    above = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    below = (mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)
    return float((above / below).mean())


def _window(plane: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted local means, without the margin where the window exceeds the image."""
    blurred = np.asarray(cv2.GaussianBlur(plane, (_SIDE, _SIDE), _SIGMA, borderType=cv2.BORDER_REFLECT), np.float64)
    return blurred[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
