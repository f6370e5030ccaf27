"""Noise: statistics of the unclipped field, and the picture as the rounded and clipped field."""

from __future__ import annotations

import numpy as np
import pytest
from corruption_parts import built, frame_of, frame_params, level_of, seed_of, sequence_of, smooth_picture
from scipy import stats

from medtest.core.cases import Params
from medtest.relations.corruptions.noise import CorruptionSpeckleNoise, NoiseCorruption, ShotNoise
from medtest.relations.corruptions.random_fields import normal_quantiles, photon_counts, random_words
from medtest.relations.levels import number

SIGMAS = {"gaussian_noise": [0.08, 0.12, 0.18, 0.26, 0.38], "speckle_noise": [0.15, 0.2, 0.35, 0.45, 0.6]}
PHOTONS = [60, 25, 12, 5, 3]


def flat(value: int, side: int = 256) -> np.ndarray:
    return np.full((side, side, 3), value, np.uint8)


def field_of(relation: NoiseCorruption, image: np.ndarray, params: Params) -> np.ndarray:
    """Return the noisy picture in grey levels by the formulas, neither clipped nor rounded."""
    if isinstance(relation, ShotNoise):
        return relation.counts(image, params).astype(np.float64) * (255 / number(params, "photons"))
    normal = normal_quantiles()[random_words(int(number(params, "noise_seed")), image.size).reshape(image.shape)]
    noise = number(params, "sigma") * normal
    return image * (1.0 + noise) if isinstance(relation, CorruptionSpeckleNoise) else image + 255.0 * noise


def unit_noise(name: str, severity: int, value: int = 128) -> np.ndarray:
    relation = built(name)
    assert isinstance(relation, NoiseCorruption)
    seed = seed_of(flat(value))
    params = level_of(relation, seed, severity).params
    sigma = SIGMAS[name][severity - 1]
    assert params["sigma"] == sigma
    signal = 255.0 if name == "gaussian_noise" else float(value)
    return (field_of(relation, seed.image, params) - value) / (sigma * signal)


@pytest.mark.parametrize("name", sorted(SIGMAS))
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_the_unclipped_field_is_normal(name: str, severity: int) -> None:
    noise = unit_noise(name, severity)
    n = noise.size
    assert abs(noise.mean()) < 4 / np.sqrt(n)
    assert noise.std() == pytest.approx(1, abs=4 / np.sqrt(2 * n))
    assert abs(stats.skew(noise.ravel())) < 4 * np.sqrt(6 / n)
    assert abs(stats.kurtosis(noise.ravel())) < 4 * np.sqrt(24 / n)
    assert stats.kstest(noise.ravel()[:10_000], "norm").statistic <= 0.02
    assert stats.kstest(noise.ravel()[-10_000:], "norm").statistic <= 0.02
    assert noise.min() < -4
    assert noise.max() > 4


@pytest.mark.parametrize("name", sorted(SIGMAS))
def test_neighbours_colours_and_frames_are_independent(name: str) -> None:
    noise = unit_noise(name, 2)
    limit = 4 / np.sqrt(noise[..., 0].size)
    for first, second in (
        (noise[:, :-1], noise[:, 1:]),
        (noise[:-1], noise[1:]),
        (noise[..., 0], noise[..., 1]),
        (noise[:, :-4], noise[:, 4:]),
    ):
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < limit
    relation, seed = sequence_of(name), seed_of(flat(128))
    frames = [frame_of(relation, seed, index).image.astype(float).ravel() - 128 for index in (1, 2, 3)]
    for first in range(3):
        for second in range(first):
            assert abs(np.corrcoef(frames[first], frames[second])[0, 1]) < limit


@pytest.mark.parametrize("name", [*sorted(SIGMAS), "shot_noise"])
@pytest.mark.parametrize("severity", [1, 5])
def test_the_picture_is_the_field_rounded_and_clipped(name: str, severity: int) -> None:
    relation, seed = built(name), seed_of(smooth_picture(120, 150))
    assert isinstance(relation, NoiseCorruption)
    follow = level_of(relation, seed, severity)
    field = field_of(relation, seed.image, follow.params)
    expected = np.clip(np.rint(field), 0, 255)
    wrong = np.abs(follow.image - expected)
    # Single precision may decide a half the other way.
    assert wrong.max() <= 1
    assert np.count_nonzero(wrong) <= 2 + 0.0005 * wrong.size
    assert np.abs(field - follow.image)[(field > 0) & (field < 255)].max() <= 0.501


@pytest.mark.parametrize("value", [1, 20, 128, 255])
@pytest.mark.parametrize("severity", [1, 2, 5])
def test_shot_noise_counts_photons(value: int, severity: int) -> None:
    relation, seed = built("shot_noise"), seed_of(flat(value, 160))
    assert isinstance(relation, ShotNoise)
    params = level_of(relation, seed, severity).params
    assert params["photons"] == PHOTONS[severity - 1]
    counts = relation.counts(seed.image, params).ravel()
    chi_square(counts, PHOTONS[severity - 1] * value / 255)


@pytest.mark.parametrize("difficulty", [1, 2, 5])
def test_shot_noise_of_sequences_has_fewer_photons_by_the_square(difficulty: int) -> None:
    relation, seed = sequence_of("shot_noise"), seed_of(flat(200, 160))
    assert isinstance(relation, ShotNoise)
    params = frame_params(relation, seed, 4, difficulty)
    assert params["photons"] == 300 / difficulty**2
    counts = relation.counts(seed.image, params).ravel()
    chi_square(counts, 300 / difficulty**2 * 200 / 255)
    field = field_of(relation, seed.image, params) / 255
    assert field.std() == pytest.approx(difficulty * np.sqrt(200 / 255 / 300), rel=0.02)


def chi_square(counts: np.ndarray, mean: float) -> None:
    inside = np.arange(stats.poisson.ppf(0.001, mean), stats.poisson.ppf(0.999, mean) + 1)
    observed = [np.count_nonzero(counts == value) for value in inside]
    observed += [np.count_nonzero(counts < inside[0]), np.count_nonzero(counts > inside[-1])]
    expected = [
        *stats.poisson.pmf(inside, mean),
        stats.poisson.cdf(inside[0] - 1, mean),
        stats.poisson.sf(inside[-1], mean),
    ]
    whole = np.array(expected) * counts.size
    is_large = whole > 5
    observed_counts = np.append(np.array(observed, float)[is_large], np.array(observed, float)[~is_large].sum())
    expected_counts = np.append(whole[is_large], whole[~is_large].sum())
    if expected_counts[-1] < 5:
        observed_counts, expected_counts = (
            np.append(observed_counts[:-2], observed_counts[-2:].sum()),
            np.append(expected_counts[:-2], expected_counts[-2:].sum()),
        )
    if len(expected_counts) > 1:
        assert (
            stats.chisquare(observed_counts, expected_counts * observed_counts.sum() / expected_counts.sum()).pvalue
            > 1e-3
        )
    assert counts.mean() == pytest.approx(mean, abs=4 * np.sqrt(mean / counts.size))
    assert counts.var() == pytest.approx(mean, rel=0.05, abs=0.002)


def test_black_has_no_photons_and_no_speckle() -> None:
    for name in ("shot_noise", "speckle_noise"):
        assert not level_of(built(name), seed_of(flat(0, 64)), 5).image.any()


@pytest.mark.parametrize("photons", [3.0, 300.0])
def test_photon_counts_of_every_grey_level_have_its_mean(photons: float) -> None:
    image = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3000, axis=1)
    counts = photon_counts(image, photons, 9)
    means = np.arange(256) * photons / 255
    assert (np.abs(counts.mean(axis=1) - means) <= 5 * np.sqrt(means / 3000) + 1e-12).all()


def test_tables_of_random_numbers() -> None:
    quantiles = normal_quantiles()
    assert quantiles.std() == pytest.approx(1, abs=1e-12)
    assert np.abs(stats.norm.cdf(quantiles) - (np.arange(65536) + 0.5) / 65536).max() < 1e-5
    words = random_words(3, 500_001)
    assert words.shape == (500_001,)
    share = np.bincount(words >> 8, minlength=256)
    assert stats.chisquare(share).pvalue > 1e-3
    assert np.array_equal(random_words(3, 10), words[:10])


@pytest.mark.parametrize("name", sorted(SIGMAS))
def test_difficulty_multiplies_the_standard_deviation(name: str) -> None:
    base = {"gaussian_noise": 0.03, "speckle_noise": 0.05}[name]
    for variant in ("paper", "released", "imagenet_p"):
        relation, seed = sequence_of(name, variant), seed_of(flat(100, 32))
        for difficulty in range(1, 6):
            for frame in (1, 5, 9):
                follow = frame_of(relation, seed, frame, difficulty)
                assert follow.params["sigma"] == pytest.approx(base * difficulty)
                assert follow.scale == pytest.approx(base * difficulty)
        assert frame_of(relation, seed, 0, 3).image is seed.image
