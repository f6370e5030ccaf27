"""Structural similarity over a field, compared with scikit-image's map."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from medtest.core.cases import ImageSpec
from medtest.preparation.similarity import FieldSimilarity, ssim

SPECS = [
    (ImageSpec(axes="yxc"), (60, 72, 3)),
    (ImageSpec(axes="yx"), (60, 72)),
    (ImageSpec(dtype="uint16", high=65535, axes="yx"), (60, 72)),
    (ImageSpec(dtype="float32", low=-200, high=300, axes="zyx"), (3, 60, 72)),
]


@pytest.mark.parametrize(("spec", "shape"), SPECS)
def test_similarity_over_a_field_is_the_mean_of_scikit_images_map(spec: ImageSpec, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    clean = rng.uniform(spec.low, spec.high, shape).astype(spec.dtype)
    clean[..., :30, :] = spec.low + spec.span / 4  # flat and dark, so that rounding would show
    noisy = np.clip(clean + rng.normal(0, 0.1 * spec.span, shape), spec.low, spec.high).astype(spec.dtype)
    field = rng.random(spec.spatial(shape)) < 0.3
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": spec.span}
    flat = spec.axes == "zyx"
    pairs = zip(noisy, clean, strict=True) if flat else [(noisy, clean)]
    channel = -1 if spec.coloured else None
    maps = [
        structural_similarity(a.astype(float), b.astype(float), channel_axis=channel, full=True, **options)[1]
        for a, b in pairs
    ]
    inner = (..., slice(5, -5), slice(5, -5))
    counted = np.stack(maps) if flat else maps[0]
    places = np.zeros(field.shape, bool)
    places[inner] = field[inner]
    similarity = FieldSimilarity(clean, spec, field)
    assert similarity.of(noisy) == pytest.approx(counted[places].mean(), abs=1e-5)
    assert similarity.of(clean) == pytest.approx(1.0, abs=1e-6)
    assert FieldSimilarity(clean, spec, np.ones_like(field)).of(noisy) == pytest.approx(
        ssim(noisy, clean, spec), abs=1e-5
    )


def test_a_field_within_the_margin_has_no_similarity() -> None:
    field = np.zeros((40, 40), bool)
    field[:5] = True
    for image, places in (
        (np.zeros((40, 40), np.uint8), field),
        (np.zeros((10, 40), np.uint8), np.ones((10, 40), bool)),
    ):
        with pytest.raises(ValueError, match="window of 11 by 11"):
            FieldSimilarity(image, ImageSpec(axes="yx"), places)
