"""Brightness against scikit-image's HSV; snow and spatter against their formulas and the statistics of their noise."""

from __future__ import annotations

import numpy as np
import pytest
from corruption_parts import built, frame_of, frame_params, level_of, seed_of, sequence_of, smooth_picture
from scipy import stats
from skimage.color import hsv2rgb, rgb2gray, rgb2hsv

from medtest.relations.corruptions.layers import grid_of, normal_layer, zoomed_layer
from medtest.relations.corruptions.snow import moving_flakes
from medtest.relations.corruptions.spatter import fallen_layer, run_down, shine_of

SNOW = [
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
]
SPATTER = [
    (0.65, 0.3, 4, 0.69, 0.6, "water"),
    (0.65, 0.3, 3, 0.68, 0.6, "water"),
    (0.65, 0.3, 2, 0.68, 0.5, "water"),
    (0.65, 0.3, 1, 0.65, 1.5, "mud"),
    (0.67, 0.4, 1, 0.65, 1.5, "mud"),
]


def every_colour() -> np.ndarray:
    steps = np.array([0, 1, 2, 17, 64, 100, 128, 200, 254, 255], np.uint8)
    return np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(20, 50, 3)


def brighter(image: np.ndarray, change: float) -> np.ndarray:
    hsv = rgb2hsv(image / 255.0)
    hsv[..., 2] = np.clip(hsv[..., 2] + change, 0, 1)
    return 255 * hsv2rgb(hsv)


@pytest.mark.parametrize("change", [0.1, 0.2, 0.3, 0.4, 0.5, -0.3, -0.12, 0.02])
def test_brightness_is_scikit_images(change: float) -> None:
    image = every_colour()
    brightened = built("brightness").apply(seed_of(image), {"change": change, "scale": 1.0}).image
    assert np.abs(brightened - brighter(image, change)).max() <= 0.502


def test_brightness_has_the_published_constants() -> None:
    seed = seed_of(every_colour())
    levels = [level_of(built("brightness"), seed, severity).params["change"] for severity in range(1, 6)]
    assert levels == [0.1, 0.2, 0.3, 0.4, 0.5]
    for variant in ("released", "imagenet_p"):
        relation = sequence_of("brightness", variant)
        changes = [frame_params(relation, seed, i)["change"] for i in range(10)]
        assert changes == pytest.approx([(i - 15) * 0.02 for i in range(10)])
        assert frame_params(relation, seed, 4, 3)["change"] == pytest.approx(-0.3 + 0.02 * 12)
        assert frame_params(relation, seed, 4, 3)["scale"] == pytest.approx(0.06)
    paper = sequence_of("brightness")
    assert frame_of(paper, seed, 0, 5).image is seed.image
    assert frame_params(paper, seed, 7, 3)["change"] == pytest.approx(0.02 * 21)


@pytest.mark.parametrize("severity", range(1, 6))
def test_snow_and_spatter_have_the_published_constants(severity: int) -> None:
    seed = seed_of(smooth_picture(224, 260))
    snow = level_of(built("snow"), seed, severity).params
    names = ("mean", "std", "zoom", "threshold", "radius", "sigma", "mix")
    assert tuple(snow[name] for name in names) == SNOW[severity - 1]
    assert -135 <= float(snow["angle"]) <= -45
    spatter = level_of(built("spatter"), seed, severity).params
    names = ("mean", "std", "sigma", "threshold", "strength", "kind")
    assert tuple(spatter[name] for name in names) == SPATTER[severity - 1]


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_snow_is_its_formula_over_its_flakes(variant: str) -> None:
    image = smooth_picture(224, 240)
    relation, seed = sequence_of("snow", variant), seed_of(image)
    for frame in (1, 9):
        follow = frame_of(relation, seed, frame, 2)
        flakes = moving_flakes(seed_of(image), follow.params)[..., None]
        strength = 0.1 * frame * 2 if variant == "paper" else 1.0
        assert follow.params["strength"] == pytest.approx(strength)
        assert follow.params["angle"] == -150 + 8 * frame
        share, pixels = 0.15 * strength, image / 255.0
        luma = (pixels @ [0.299, 0.587, 0.114])[..., None]
        assert np.allclose(luma[..., 0], rgb2gray(image), atol=0.1)
        white = np.maximum(pixels, 1.5 * luma + 0.5)
        expected = 255 * np.clip((1 - share) * pixels + share * white + strength * flakes, 0, 1)
        assert np.abs(follow.image - expected).max() <= 0.52


def test_flakes_are_as_large_and_as_many_as_the_noise_says() -> None:
    seed = seed_of(smooth_picture(672, 672))
    follow = level_of(built("snow", raw=True), seed, 1)
    params = {**follow.params, "radius": 0.0}  # One tap: no motion.
    flakes = moving_flakes(seed, params)
    assert np.allclose(flakes, flakes[::-1, ::-1])
    layer = zoomed_layer((672, 672), params)
    # At the nodes of the enlarged grid the layer is the noise itself; between two nodes it is their mean.
    small = normal_layer((226, 226), params)
    inner = layer[1::3, 1::3]
    assert np.allclose(inner, small[1:-1, 1:-1], atol=1e-4)
    share = (inner >= 0.5).mean()
    expected = 1 - stats.norm.cdf((0.5 - 0.1) / 0.3)
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / inner.size)
    flakes_of_layer = np.where(layer < 0.5, 0, np.minimum(layer, 1))
    assert np.allclose(flakes, flakes_of_layer + flakes_of_layer[::-1, ::-1], atol=1e-6)


@pytest.mark.parametrize("name", ["snow", "spatter"])
def test_layers_are_made_on_a_grid_of_224(name: str) -> None:
    small, large = seed_of(np.full((224, 280, 3), 90, np.uint8)), seed_of(np.full((448, 560, 3), 90, np.uint8))
    relation = sequence_of(name, "released")
    first, second = frame_params(relation, small, 2), frame_params(relation, large, 2)
    assert grid_of(small, first) == grid_of(large, second) == (224, 280)
    near, far = relation.apply(small, first).image.astype(float), relation.apply(large, second).image.astype(float)
    halved = far.reshape(224, 2, 280, 2, 3).mean(axis=(1, 3))
    assert np.corrcoef(near.ravel(), halved.ravel())[0, 1] > 0.97
    assert near.mean() == pytest.approx(far.mean(), rel=0.01)
    raw = sequence_of(name, "released", raw=True)
    assert grid_of(large, frame_params(raw, large, 2)) == (448, 560)


@pytest.mark.parametrize("severity", [4, 5])
def test_mud_covers_with_its_own_colour(severity: int) -> None:
    follow = level_of(built("spatter"), seed_of(np.full((224, 224, 3), 200, np.uint8)), severity)
    pixels = follow.image.reshape(-1, 3)
    clean = (pixels == 200).all(axis=1)
    mixed = pixels[~clean].astype(float)
    share = (200 - mixed) / (200 - np.array([63.0, 42.0, 20.0]))
    assert 0.02 < (~clean).mean() < 0.6
    assert share.min() >= 0.79
    assert share.max() <= 1.01
    assert np.ptp(share, axis=1).max() < 0.01


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_water_adds_its_colour(severity: int) -> None:
    image = np.full((224, 224, 3), 20, np.uint8)
    follow = level_of(built("spatter"), seed_of(image), severity)
    added = follow.image.astype(float) - 20
    strength = SPATTER[severity - 1][4]
    assert added[..., 1].max() == pytest.approx(min(235, 238 * strength), abs=1)
    assert added.min() >= 0
    assert np.abs(added[..., 0] / 175 - added[..., 1] / 238).max() < 0.01
    assert np.array_equal(follow.image[..., 1], follow.image[..., 2])


def test_drops_cover_what_their_noise_says() -> None:
    seed = seed_of(np.zeros((1000, 1000, 3), np.uint8))
    follow = level_of(built("spatter", raw=True), seed, 3)
    layer = fallen_layer(seed, follow.params)
    spread = 0.3 / (2 * np.sqrt(np.pi) * 2)
    expected = 1 - stats.norm.cdf((0.68 - 0.65) / spread)
    assert (layer > 0).mean() == pytest.approx(expected, rel=0.05)
    assert follow.scale == pytest.approx(0.5 * expected, rel=1e-6)
    assert layer[layer > 0].min() >= 0.68
    edge = np.concatenate([layer[:3].ravel(), layer[-3:].ravel(), layer[:, :3].ravel(), layer[:, -3:].ravel()])
    assert (edge > 0).mean() == pytest.approx(expected, rel=0.25), "no more drops at the edges than elsewhere"


def test_water_runs_down() -> None:
    layer = np.zeros((12, 5), np.float32)
    layer[4, 2] = 1.0
    moved = run_down(layer)
    assert moved[:, 2] == pytest.approx(np.convolve(layer[:, 2], [0.05, 0.1, 0.15, 0.7], mode="same"))
    assert moved[3:7, 2] == pytest.approx([0.05, 0.1, 0.15, 0.7])
    assert not moved[:, [0, 1, 3, 4]].any()
    image = np.full((224, 224, 3), 60, np.uint8)
    relation = sequence_of("spatter", "released")
    seed = seed_of(image)
    layers = [fallen_layer(seed, frame_params(relation, seed, frame, 2)).copy() for frame in (0, 1, 5, 2)]
    assert np.array_equal(layers[1], run_down(run_down(layers[0])))
    again = layers[1]
    for _ in range(2):
        again = run_down(again)
    assert np.array_equal(layers[3], again), "an earlier frame after a later one"


def test_shine_is_between_nothing_and_one() -> None:
    assert not shine_of(np.zeros((40, 40), np.float32)).any()
    drop = np.zeros((60, 60), np.float32)
    drop[20:40, 20:40] = 0.8
    shine = shine_of(drop)
    assert shine.max() == 1
    assert shine.min() == 0
    assert not shine[drop == 0].any()


@pytest.mark.parametrize("name", ["snow", "spatter"])
def test_one_layer_for_a_sequence_and_another_for_each_image(name: str) -> None:
    relation = sequence_of(name)
    seed = seed_of(smooth_picture(224, 224))
    seeds = {frame_params(relation, seed, frame, 1)["layer_seed"] for frame in range(1, 10)}
    assert len(seeds) == 1
    assert frame_params(relation, seed, 1, 2)["layer_seed"] not in seeds
    strengths = [frame_params(relation, seed, frame, 1)["strength"] for frame in range(1, 10)]
    step = {"snow": 0.1, "spatter": 0.06}[name]
    assert strengths == pytest.approx([step * i for i in range(1, 10)])
