"""Exposure against torchvision's own functions, casts against plain multiplication, and that lesions stay visible."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PillowImage

from medtest.core.cases import Address, Image
from medtest.core.errors import NotApplicable
from medtest.core.files.paths import conf_folder
from medtest.relations.clinical.lighting import (
    JITTER,
    Contrast,
    ExposureLevel,
    Saturation,
    WhiteBalance,
)
from medtest.testing import SUITE_SEED, synthetic_seed

BLENDS = ("brightness", "contrast", "saturation")


def torchvisions(blend: str) -> Callable[[Any, float], Any]:
    """Return torchvision's blend of a picture by a factor."""
    from torchvision.transforms import functional  # imports torch's compiler, which takes seconds

    return getattr(functional, f"adjust_{blend}")


def defaults(name: str) -> dict[str, object]:
    content = yaml.safe_load((conf_folder() / "relations" / f"{name}.yaml").read_text(encoding="utf-8"))
    return {key: value for key, value in content.items() if key not in ("class", "summary")}


def blended(image: Image, **factors: float) -> Image:
    seed = synthetic_seed(0, height=image.shape[0], width=image.shape[1], framed=False)
    object.__setattr__(seed, "image", image)
    all_factors = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, **factors}
    return Saturation(Saturation.Settings(**defaults("saturation"))).render(seed, all_factors)


@given(
    number=st.integers(0, 10**6),
    blend=st.sampled_from(BLENDS),
    factor=st.floats(0.35, 1.65),
    random_pixels=st.booleans(),
)
def test_each_blend_is_within_one_grey_level_of_torchvision(
    number: int, blend: str, factor: float, random_pixels: bool
) -> None:
    rng = np.random.default_rng(number)
    if random_pixels:
        image = rng.integers(0, 256, (64, 80, 3), dtype=np.uint8)
    else:
        image = np.clip(rng.normal(rng.uniform(20, 235, 3), 30, (64, 80, 3)), 0, 255).astype(np.uint8)
    changed = blended(image, **{blend: factor}).astype(float)
    tensor = torch.from_numpy(image).permute(2, 0, 1)
    on_bytes = torchvisions(blend)(tensor, factor).permute(1, 2, 0).numpy().astype(float)
    on_floats = torchvisions(blend)(tensor.double() / 255.0, factor).permute(1, 2, 0).numpy() * 255.0
    on_pictures = np.asarray(torchvisions(blend)(PillowImage.fromarray(image), factor)).astype(float)
    assert np.abs(changed - on_bytes).max() <= 1.0
    assert np.abs(changed - on_floats).max() <= 1.0
    assert np.abs(changed - on_pictures).max() <= 1.0


@given(number=st.integers(0, 10**6), b=st.floats(0.4, 1.0), c=st.floats(0.5, 1.0), s=st.floats(0.6, 1.0))
def test_the_composed_map_is_the_three_blends_in_a_row(number: int, b: float, c: float, s: float) -> None:
    rng = np.random.default_rng(number)
    image = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    # Downward nothing clips, so one step must equal torchvision's three steps in floating point.
    step = torch.from_numpy(image).permute(2, 0, 1).double() / 255.0
    for blend, factor in (("brightness", b), ("contrast", c), ("saturation", s)):
        step = torchvisions(blend)(step, factor)
    expected = step.permute(1, 2, 0).numpy() * 255.0
    changed = blended(image, brightness=b, contrast=c, saturation=s)
    # Half a level of rounding, a quarter of ROUNDING, and OpenCV's coefficients of ten bits.
    assert np.abs(changed - expected).max() <= 1.2
    assert np.abs(changed - expected).mean() <= 0.5


def test_nothing_is_clipped_between_the_steps() -> None:
    image = np.full((16, 16, 3), 40, np.uint8)
    image[0] = 160
    image[1] = 200
    changed = blended(image, brightness=1.8, contrast=0.4)
    # Clipped after brightness, 160 and 200 would both be 255 and end up equal.
    assert changed[1, 0, 0] > changed[0, 0, 0]


def test_factors_of_one_change_nothing() -> None:
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert np.array_equal(blended(image), image)
    seed = synthetic_seed(0)
    balance = WhiteBalance(WhiteBalance.Settings(**defaults("white_balance")))
    assert np.array_equal(balance.render(seed, {"tint": "purple", "cut": 0.0}), seed.image)


@pytest.mark.parametrize(("name", "relation_class"), [("saturation", Saturation), ("contrast", Contrast)])
def test_published_factors_are_one_for_all_and_lean_to_their_side(name: str, relation_class: type) -> None:
    given_range = defaults(name)["published"]
    assert isinstance(given_range, dict)
    relation = relation_class(relation_class.Settings(**{**defaults(name), "mode": "published"}))
    seed = synthetic_seed(0)
    factors = []
    for repeat in range(600):
        address = Address(dataset="d", seed_id="s", relation=name, repeat=repeat)
        params = relation.sample(seed, 0, address.generator(SUITE_SEED))
        assert params["brightness"] == params["contrast"] == params["saturation"]
        assert params["scale"] == pytest.approx(abs(params["brightness"] - 1.0))
        factors.append(params["brightness"])
    values = np.array(factors)
    assert values.min() >= given_range["low"]
    assert values.max() <= given_range["high"]
    wanted_side = (values > 1.0).mean() if name == "saturation" else (values < 1.0).mean()
    assert wanted_side == pytest.approx(0.9, abs=0.04)
    assert relation.published_status == "assumed"


@pytest.mark.parametrize(("name", "relation_class"), [("saturation", Saturation), ("contrast", Contrast)])
def test_levels_lie_within_the_jitter(name: str, relation_class: type) -> None:
    relation = relation_class(relation_class.Settings(**defaults(name)))
    for severity in relation.severities():
        level: ExposureLevel = relation.settings.levels[severity]
        params = relation.sample(synthetic_seed(0), severity, np.random.default_rng(severity))
        for key, factor in (("brightness", level.brightness), ("contrast", level.contrast)):
            assert abs(params[key] - factor) <= JITTER * abs(factor - 1.0) + 1e-12


def test_exposure_refuses_the_other_direction() -> None:
    wrong = {1: {"brightness": 0.8, "contrast": 1.1, "saturation": 1.1}}
    with pytest.raises(ValueError, match="over-exposure needs factors of 1 or more"):
        Saturation.Settings(**{**defaults("saturation"), "levels": wrong, "severities": [1]})
    wrong = {1: {"brightness": 0.8, "contrast": 1.1, "saturation": 0.9}}
    with pytest.raises(ValueError, match="under-exposure needs factors of 1 or less"):
        Contrast.Settings(**{**defaults("contrast"), "levels": wrong, "severities": [1]})


@pytest.mark.parametrize(
    ("tint", "factors"),
    [("green", (0.5, 1.0, 0.5)), ("purple", (1.0, 0.5, 1.0)), ("purple_report", (0.5, 0.5, 1.0))],
)
def test_casts_multiply_the_cut_channels(tint: str, factors: tuple[float, float, float]) -> None:
    relation = WhiteBalance(WhiteBalance.Settings(**defaults("white_balance")))
    seed = synthetic_seed(0)
    tinted = relation.apply(seed, {"tint": tint, "cut": 0.5, "scale": 0.5}).image
    field = ~seed.frame
    assert np.abs(tinted[field] - seed.image[field] * np.array(factors)).max() <= 0.76
    assert np.array_equal(tinted[seed.frame], seed.image[seed.frame])


@pytest.mark.parametrize(
    ("variant", "mode", "expected"),
    [
        ("both", "levels", {"green", "purple"}),
        ("both", "published", {"green", "purple_report"}),
        ("green", "levels", {"green"}),
        ("purple", "published", {"purple"}),
        ("purple_report", "levels", {"purple_report"}),
    ],
)
def test_variants_draw_their_tints(variant: str, mode: str, expected: set[str]) -> None:
    chosen = WhiteBalance.Settings(**{**defaults("white_balance"), "variant": variant, "mode": mode})
    relation = WhiteBalance(chosen)
    severity = 0 if mode == "published" else 5
    rng = np.random.default_rng(1)
    drawn = [relation.sample(synthetic_seed(0, seed_id=f"s{k}"), severity, rng) for k in range(60)]
    assert {params["tint"] for params in drawn} == expected
    assert relation.published_status == "report"
    if mode == "published":
        assert all(0.45 <= params["cut"] <= 0.55 for params in drawn)
        assert all(params["scale"] == params["cut"] for params in drawn)
    else:
        assert {params["scale"] for params in drawn} == {0.5}
    assert json.loads(json.dumps(drawn)) == drawn


def test_a_seed_keeps_its_tint_over_severities_and_half_are_green() -> None:
    relation = WhiteBalance(WhiteBalance.Settings(**defaults("white_balance")))
    green = 0
    for k in range(60):
        seed = synthetic_seed(0, seed_id=f"s{k}")
        tints = {relation.sample(seed, level, np.random.default_rng(level))["tint"] for level in relation.severities()}
        assert len(tints) == 1
        green += tints == {"green"}
    assert 18 <= green <= 42


def test_an_exposure_that_would_wipe_the_lesion_out_is_skipped() -> None:
    seed = synthetic_seed(0)
    assert seed.mask is not None
    image = seed.image.copy()
    image[~seed.frame] = (243, 236, 230)
    image[seed.mask] = (250, 238, 234)
    image.setflags(write=False)
    object.__setattr__(seed, "image", image)
    saturation = Saturation(Saturation.Settings(**defaults("saturation")))
    contrast = Contrast(Contrast.Settings(**defaults("contrast")))
    with pytest.raises(NotApplicable, match="lesion"):
        saturation.follow_up(seed, 5, np.random.default_rng(0))
    assert contrast.follow_up(seed, 1, np.random.default_rng(0)).image.any()
    unlabelled = synthetic_seed(0, labelled=False)
    object.__setattr__(unlabelled, "image", image)
    assert saturation.follow_up(unlabelled, 5, np.random.default_rng(0)).image.max() == 255
