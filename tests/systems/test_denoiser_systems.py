"""The denoisers as systems: presets and classes agree, any dtype and range works, missing extras are reported."""

from __future__ import annotations

import importlib.util
import socket
from typing import Any

import numpy as np
import pytest

from medtest.core.cases import Address, ImageSpec
from medtest.core.plugins import part
from medtest.seeds.volumes.scikit_images import MOST_SIDE, NAMES, load_image

FILTERS = (
    "original_shock",
    "enhanced_shock",
    "complex_shock",
    "smoothed_shock",
    "smoothed_median",
    "coherence_shock",
    "coherence_diffusion",
    "median",
    "bilateral",
    "non_local_means",
    "total_variation",
    "wavelet",
    "bm3d",
)
NEEDS = {"wavelet": "pywt", "bm3d": "bm3d"}
WHERE = Address(dataset="d", seed_id="s")


def make(name: str) -> Any:
    info = part("systems", name)
    kind = info.load()
    return kind(name, kind.Settings(**info.defaults))


@pytest.mark.parametrize("name", [*FILTERS, "shape_prior", "region_growing"])
def test_presets_agree_with_the_defaults_of_classes(name: str) -> None:
    info = part("systems", name)
    kind = info.load()
    assert kind.Settings(**info.defaults) == kind.Settings()
    assert set(info.defaults) | {"trained_on"} == set(kind.Settings.model_fields)
    assert info.summary.endswith(".")


@pytest.mark.parametrize("name", FILTERS)
def test_any_range_is_accepted(name: str) -> None:
    """A 12-bit image is filtered like the same image in 8 bits: parameters are in grey levels of the range."""
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        assert "is not installed" in make(name).check()[0].found
        pytest.skip(f"{NEEDS[name]} is not installed")
    system = make(name)
    assert not system.check()
    system.open(device="cpu", threads=1)
    rng = np.random.default_rng(0)
    grey = rng.uniform(40, 200, (32, 40)).astype(np.float32)
    wide = (grey * (4000 / 255) - 1000).astype(np.float64)
    specs = [ImageSpec(dtype="float32", axes="yx"), ImageSpec(dtype="float64", low=-1000.0, high=3000.0, axes="yx")]
    narrow_result, wide_result = system.process([grey, wide], specs, [WHERE, WHERE])
    assert narrow_result.shape == wide_result.shape == grey.shape
    assert np.abs((wide_result + 1000) * (255 / 4000) - narrow_result).mean() < 0.2
    volume = np.stack([grey, grey[::-1]])
    [slices] = system.process([volume], [ImageSpec(dtype="float32", axes="zyx")], [WHERE])
    assert slices.shape == volume.shape
    assert np.allclose(slices[0], narrow_result, atol=1e-3)


def test_the_default_pictures_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a picture was asked of the network")

    monkeypatch.setattr(socket, "socket", refuse)
    assert len(NAMES) == 13
    for name in NAMES:
        image = load_image(name)
        assert image.dtype == np.uint8
        assert image.ndim == 2 or image.shape[2] == 3
        assert max(image.shape[:2]) <= MOST_SIDE
        assert image.std() > 5
