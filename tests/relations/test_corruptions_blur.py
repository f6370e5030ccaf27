"""Blurs against SciPy and scikit-image, and the taps of ImageMagick's motion blur against its formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from corruption_parts import built, frame_of, frame_params, level_of, seed_of, sequence_of, smooth_picture
from scipy import ndimage
from skimage.filters import gaussian

from medtest.relations.corruptions.line_filter import line_taps, motion_blur

SIGMAS = [1, 2, 3, 4, 6]
MOTION = [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)]
ZOOMS = [np.arange(1, 1.11, 0.01), np.arange(1, 1.16, 0.01), np.arange(1, 1.21, 0.02), np.arange(1, 1.26, 0.02)]
ZOOMS += [np.arange(1, 1.31, 0.03)]


def noisy(height: int, width: int, random: int = 0) -> np.ndarray:
    return np.random.default_rng(random).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("severity", range(1, 6))
def test_gaussian_blur_is_scikit_images(severity: int) -> None:
    image = noisy(90, 110)
    blurred = level_of(built("gaussian_blur", raw=True), seed_of(image), severity).image
    sigma = SIGMAS[severity - 1]
    assert np.abs(blurred - 255 * gaussian(image / 255, sigma=sigma, channel_axis=-1)).max() <= 0.51


@pytest.mark.parametrize("variant", ["released", "imagenet_p"])
@pytest.mark.parametrize("difficulty", [1, 4])
def test_gaussian_blur_of_published_frames(variant: str, difficulty: int) -> None:
    image = noisy(224, 230)
    relation = sequence_of("gaussian_blur", variant)
    for frame in (0, 3, 9):
        sigma = 0.25 + 0.035 * frame * difficulty
        follow = frame_of(relation, seed_of(image), frame, difficulty)
        assert follow.params["sigma"] == pytest.approx(sigma)
        expected = ndimage.gaussian_filter(image.astype(float), (sigma, sigma, 0), mode="nearest", truncate=6.0)
        assert np.abs(follow.image - expected).max() <= 0.51


def test_gaussian_blur_of_the_paper_begins_where_nothing_changes() -> None:
    image = noisy(224, 224)
    relation = sequence_of("gaussian_blur")
    seed = seed_of(image)
    blurred = relation.apply(seed, {"sigma": 0.25, "truncate": 6.0, "scale": 0.0}).image
    assert np.array_equal(blurred, image)
    assert frame_params(relation, seed, 6, 2)["sigma"] == pytest.approx(0.25 + 0.035 * 12)
    large = seed_of(noisy(448, 460))
    assert frame_params(relation, large, 6, 2)["sigma"] == pytest.approx(0.25 + 2 * 0.035 * 12)
    assert frame_params(relation, large, 6, 2)["scale"] == pytest.approx(0.035 * 12)


def test_frames_of_difficulty_1_that_are_the_clean_image_are_those_the_docs_count() -> None:
    seed = seed_of(smooth_picture(224, 224))
    same = {
        name: [n for n in range(1, 10) if np.array_equal(frame_of(sequence_of(name), seed, n).image, seed.image)]
        for name in ("gaussian_blur", "motion_blur", "zoom_blur")
    }
    assert same["motion_blur"] == [1] and same["zoom_blur"] == []
    assert same["gaussian_blur"] == [1, 2, 3]  # of a smooth picture; of a textured one fewer


def taps_by_hand(radius: float, sigma: float, degrees: float) -> dict[tuple[int, int], float]:
    """Return weights by (row, column) offset, from ImageMagick's formulas."""
    width = 2 * math.ceil(radius) + 1
    weights = [math.exp(-(i**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma) for i in range(width)]
    taps: dict[tuple[int, int], float] = {}
    dx, dy = width * math.cos(math.radians(degrees)), width * math.sin(math.radians(degrees))
    for i, weight in enumerate(weights):
        place = (math.ceil(i * dy / math.hypot(dx, dy) - 0.5), math.ceil(i * dx / math.hypot(dx, dy) - 0.5))
        taps[place] = taps.get(place, 0.0) + weight / sum(weights)
    return taps


@pytest.mark.parametrize(("radius", "sigma"), MOTION)
@pytest.mark.parametrize("degrees", [-121.3, -84.1, -45.0, -10.2, 0.0, 37.7, 90.0, 133.0])
def test_motion_blur_sums_what_imagemagick_sums(radius: int, sigma: int, degrees: float) -> None:
    image = noisy(70, 83)
    padded = np.pad(image.astype(float), ((60, 60), (60, 60), (0, 0)), mode="edge")
    expected = np.zeros(image.shape)
    for (row, column), weight in taps_by_hand(radius, sigma, degrees).items():
        expected += weight * padded[60 + row : 130 + row, 60 + column : 143 + column]
    blurred = motion_blur(image, radius=radius, sigma=sigma, degrees=degrees)
    assert blurred.dtype == np.float32
    assert np.abs(blurred - expected).max() <= 0.1
    seed = seed_of(image)
    picture = built("motion_blur").apply(
        seed, {"radius": float(radius), "sigma": float(sigma), "angle": degrees, "scale": 1.0}
    )
    assert np.abs(picture.image - expected).max() <= 0.61


def test_taps_of_a_line() -> None:
    offsets, weights = line_taps(1.0, 3.0, 0.0)
    assert offsets.tolist() == [[0, 0], [0, 1], [0, 2]]
    assert weights.sum() == pytest.approx(1)
    assert weights[1] / weights[0] == pytest.approx(math.exp(-1 / 18))
    assert line_taps(1.0, 3.0, 90.0)[0].tolist() == [[0, 0], [1, 0], [2, 0]]
    assert line_taps(1.0, 3.0, 180.0)[0].tolist() == [[0, 0], [0, -1], [0, -2]]
    assert len(line_taps(9.2, 3.0, 10.0)[1]) == 21


@pytest.mark.parametrize("severity", range(1, 6))
def test_motion_blur_has_the_published_constants(severity: int) -> None:
    seed, (radius, sigma) = seed_of(smooth_picture(448, 470)), MOTION[severity - 1]
    for raw, factor in ((True, 1), (False, 2)):
        follow_ups = [level_of(built("motion_blur", raw=raw), seed, severity, repeat) for repeat in range(6)]
        assert {(f.params["radius"], f.params["sigma"]) for f in follow_ups} == {(radius * factor, sigma * factor)}
        angles = [float(f.params["angle"]) for f in follow_ups]
        assert min(angles) >= -45
        assert max(angles) <= 45
        assert len(set(angles)) == 6
        assert {f.scale for f in follow_ups} == {float(sigma)}


def test_motion_blur_of_sequences() -> None:
    seed = seed_of(smooth_picture(224, 224))
    for variant in ("released", "imagenet_p"):
        relation = sequence_of("motion_blur", variant)
        for frame in (0, 1, 9):
            for difficulty in (1, 3):
                params = frame_params(relation, seed, frame, difficulty)
                assert params["angle"] == -120 + 4 * frame * difficulty
                assert (params["radius"], params["sigma"]) == (10, 3)
    assert frame_params(sequence_of("motion_blur", "imagenet_p"), seed, 30)["angle"] == 0
    relation = sequence_of("motion_blur")
    params_of_frames = [frame_params(relation, seed, frame, 2) for frame in range(1, 10)]
    assert [p["sigma"] for p in params_of_frames] == pytest.approx([0.6 * i for i in range(1, 10)])
    assert [p["radius"] for p in params_of_frames] == pytest.approx([2.0 * i for i in range(1, 10)])
    assert len({p["angle"] for p in params_of_frames}) == 1


def enlarged(image: np.ndarray, factor: float) -> np.ndarray:
    rows, columns = np.mgrid[0 : image.shape[0], 0 : image.shape[1]].astype(float)
    cy, cx = (image.shape[0] - 1) / 2, (image.shape[1] - 1) / 2
    places = [cy + (rows - cy) / factor, cx + (columns - cx) / factor]
    return np.stack([ndimage.map_coordinates(image[..., k].astype(float), places, order=1) for k in range(3)], axis=-1)


@pytest.mark.parametrize("severity", range(1, 6))
def test_zoom_blur_is_the_mean_of_enlargements(severity: int) -> None:
    image = smooth_picture(80, 101)
    zooms = ZOOMS[severity - 1]
    expected = (image + sum(enlarged(image, factor) for factor in zooms)) / (len(zooms) + 1)
    follow = level_of(built("zoom_blur"), seed_of(image), severity)
    assert np.abs(follow.image - expected).max() <= 1.01
    assert np.abs(follow.image - expected).mean() < 0.3
    assert follow.scale == pytest.approx(zooms[-1] - 1)


@pytest.mark.parametrize("variant", ["paper", "released", "imagenet_p"])
def test_zoom_blur_of_sequences_averages_all_before(variant: str) -> None:
    image = smooth_picture(70, 66)
    relation, seed = sequence_of("zoom_blur", variant), seed_of(image)
    for difficulty in (1, 5):
        for frame in (9, 3, 4):  # out of order: cached frames must not matter
            expected = np.mean([enlarged(image, 1 + 0.004 * difficulty * j) for j in range(frame + 1)], axis=0)
            blurred = frame_of(relation, seed, frame, difficulty).image
            assert np.abs(blurred - expected).max() <= 1.01
            assert np.array_equal(blurred, frame_of(relation, seed_of(image), frame, difficulty).image)
    assert frame_of(relation, seed, 0).image is seed.image
