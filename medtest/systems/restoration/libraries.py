"""Filters from libraries: OpenCV, scikit-image, and BM3D by its authors' package.

Wavelets need PyWavelets (extra ``wavelet``). BM3D (extra ``bm3d``) is licensed for non-commercial use only.
"""

from __future__ import annotations

import importlib
from typing import Annotated, Any, Literal

import cv2
import numpy as np
from pydantic import Field as Setting

from medtest.systems.restoration.base import image_filter
from medtest.systems.restoration.grid import Field


def median(image: Field, *, size: Literal[3, 5] = 3) -> Field:
    """Filter by the median of a square window.

    Huang, Yang, Tang: A fast two-dimensional median filtering algorithm. IEEE Trans. ASSP 27 (1979).

    Args:
        image: Float H×W or H×W×C in grey levels; channels are filtered one by one.
        size: Side of the window, pixels.

    Returns:
        Same shape, float32.
    """
    return np.asarray(cv2.medianBlur(np.ascontiguousarray(image, dtype=np.float32), size))


Median = image_filter(median)
"""Median of a square window."""


def bilateral(
    image: Field,
    *,
    size: Annotated[int, Setting(ge=3, le=51)] = 9,
    tonal: Annotated[float, Setting(gt=0.0, le=1000.0)] = 50.0,
    sigma: Annotated[float, Setting(gt=0.0, le=50.0)] = 2.0,
) -> Field:
    """Filter by a mean weighted by distance and similarity.

    Tomasi, Manduchi: Bilateral filtering for gray and color images. ICCV 1998; both weights Gaussian. OpenCV measures
    the similarity of colours by the sum of the absolute channel differences.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        size: Diameter of the window, pixels.
        tonal: Standard deviation of similarity, grey levels.
        sigma: Standard deviation of distance, pixels.

    Returns:
        Same shape, float32.
    """
    source = np.ascontiguousarray(image, dtype=np.float32)
    return np.asarray(cv2.bilateralFilter(source, size, tonal, sigma, borderType=cv2.BORDER_REPLICATE))


Bilateral = image_filter(bilateral)
"""Bilateral filter by Tomasi and Manduchi."""


def total_variation(
    image: Field,
    *,
    weight: Annotated[float, Setting(gt=0.0, le=1000.0)] = 15.0,
    iterations: Annotated[int, Setting(ge=1, le=1000)] = 50,
) -> Field:
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


TotalVariation = image_filter(total_variation)
"""Total variation model by Rudin, Osher and Fatemi."""


def non_local_means(
    image: Field,
    *,
    noise: Annotated[float, Setting(gt=0.0, le=255.0)] = 15.0,
    strength: Annotated[float, Setting(gt=0.0, le=10.0)] = 0.8,
    patch: Annotated[int, Setting(ge=1, le=21)] = 5,
    distance: Annotated[int, Setting(ge=1, le=30)] = 6,
) -> Field:
    """Filter by a mean over pixels with similar neighbourhoods.

    Buades, Coll, Morel: A non-local algorithm for image denoising. CVPR 2005; patches compared with equal weights
    through integral images, with the noise variance subtracted from their distance, as in scikit-image's fast mode.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        noise: Assumed standard deviation of the noise, grey levels; the same at every noise level.
        strength: The filter's h, in units of ``noise``.
        patch: Side of a patch, pixels.
        distance: Search radius for patches, pixels.

    Returns:
        Same shape, float32.
    """
    from skimage.restoration import denoise_nl_means

    filtered = denoise_nl_means(
        image,
        patch_size=patch,
        patch_distance=distance,
        h=strength * noise,
        sigma=noise,
        fast_mode=True,
        preserve_range=True,
        channel_axis=2 if image.ndim == 3 else None,
    )
    return np.asarray(filtered, dtype=np.float32)


NonLocalMeans = image_filter(non_local_means)
"""Non-local means by Buades, Coll and Morel."""


def wavelet(
    image: Field,
    *,
    noise: Annotated[float, Setting(gt=0.0, le=255.0)] = 15.0,
    family: Annotated[str, Setting(pattern=r"(haar|db[1-9][0-9]?|sym[2-9]|coif[1-9]|bior[1-6]\.[1-9])")] = "db2",
) -> Field:
    """Filter by soft-thresholding wavelet coefficients, with a threshold per band from its variance (BayesShrink).

    Chang, Yu, Vetterli: Adaptive wavelet thresholding for image denoising and compression. IEEE Trans. Image Processing
    9 (2000); channels one by one.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        noise: Assumed standard deviation of the noise, grey levels; the same at every noise level.
        family: PyWavelets' name of the wavelet.

    Returns:
        Same shape, float32.
    """
    from skimage.restoration import denoise_wavelet

    # Scaled to [0, 1] and back, because scikit-image clips floats outside its expected range.
    low, high = float(image.min()), float(image.max())
    if low == high:
        return np.asarray(image, dtype=np.float32)
    span = high - low
    filtered = denoise_wavelet(
        (image - low) / span,
        sigma=noise / span,
        wavelet=family,
        method="BayesShrink",
        mode="soft",
        channel_axis=2 if image.ndim == 3 else None,
    )
    return np.asarray(filtered * span + low, dtype=np.float32)


Wavelet = image_filter(wavelet, package=("pywt", "PyWavelets is not installed", "pip install 'medtest[wavelet]'"))
"""Wavelet shrinkage by Chang, Yu and Vetterli."""


def block_matching(image: Field, *, noise: Annotated[float, Setting(gt=0.0, le=255.0)] = 15.0) -> Field:
    """Filter by block matching and collaborative filtering in three dimensions.

    Dabov, Foi, Katkovnik, Egiazarian: Image denoising by sparse 3-D transform-domain collaborative filtering. IEEE
    Trans. Image Processing 16 (2007); both stages.

    Args:
        image: Float H×W or H×W×3 in grey levels.
        noise: Assumed standard deviation of the noise, grey levels; the same at every noise level.

    Returns:
        Same shape, float32.
    """
    bm3d = importlib.import_module("bm3d")

    method = bm3d.bm3d_rgb if image.ndim == 3 else bm3d.bm3d
    filtered = method(np.asarray(image, dtype=np.float64) / 255, sigma_psd=noise / 255)
    return np.asarray(filtered * 255, dtype=np.float32).reshape(image.shape)


_BM3D = "pip install 'medtest[bm3d]' (its licence allows non-commercial use)"
BlockMatching = image_filter(block_matching, package=("bm3d", "bm3d is not installed", _BM3D))
"""BM3D by Dabov et al."""
