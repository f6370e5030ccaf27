"""Noise relations: statistics of the unclipped field, clipping, and the contract over all images."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtest.core.cases import CONTROLS, Address, ImageSpec, PreparedSeed, Seed, SeedRef, image_sha256
from medtest.core.errors import NotApplicable
from medtest.core.plugins import parts
from medtest.preparation import prepare
from medtest.relations.base import Relation
from medtest.relations.noise.base import finished
from medtest.relations.noise.imaging import smooth_field
from medtest.relations.series import follow_up

NAMES = sorted(name for name, info in parts("relations").items() if ".noise." in info.target)
GREY = ImageSpec(dtype="float32", axes="yx")


def relation_of(name: str, **settings_: object) -> Relation:
    info = parts("relations")[name]
    relation_class = info.load()
    relation: Relation = relation_class(relation_class.Settings(**{**info.defaults, **settings_}))
    return relation


def seed_of(image: np.ndarray, spec: ImageSpec, seed_id: str = "one") -> PreparedSeed:
    return prepare(Seed(ref=SeedRef(dataset="d", seed_id=seed_id), image=image, kind="image", spec=spec), size=None)


def flat(value: float, shape: tuple[int, ...] = (256, 256), spec: ImageSpec = GREY) -> PreparedSeed:
    return seed_of(np.full(shape, value, spec.dtype), spec)


def noisy_image(relation: Relation, seed: PreparedSeed, severity: int, repeat: int = 0) -> np.ndarray:
    address = Address(dataset="d", seed_id=seed.ref.seed_id, relation="noise", severity=severity, repeat=repeat)
    return np.asarray(relation.follow_up(seed, severity, address.generator(7)).image, np.float64)


def test_the_eight_are_there() -> None:
    assert NAMES == [
        "bias_field",
        "gaussian_blur",
        "gaussian_noise",
        "jpeg",
        "poisson_noise",
        "rician_noise",
        "salt_pepper_noise",
        "speckle_noise",
    ]


# --- statistics of the unclipped field ------------------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "sigma"), [(1, 5.0), (5, 25.0)])
def test_gaussian_noise_is_normal(severity: int, sigma: float) -> None:
    noise = noisy_image(relation_of("gaussian_noise"), flat(3.0), severity) - 3.0
    n = noise.size
    assert abs(noise.mean()) < 4 * sigma / np.sqrt(n)
    assert noise.std() == pytest.approx(sigma, rel=4 / np.sqrt(2 * n))
    assert abs(stats.skew(noise.ravel())) < 4 * np.sqrt(6 / n)
    assert abs(stats.kurtosis(noise.ravel())) < 4 * np.sqrt(24 / n)
    assert stats.kstest(noise.ravel() / sigma, "norm").statistic <= 0.02
    assert noise.min() < -3  # values below the range are kept
    correlation = np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]
    assert abs(correlation) < 4 / np.sqrt(n)


def test_colours_have_independent_noise() -> None:
    spec = ImageSpec(dtype="float32", axes="yxc")
    noise = noisy_image(relation_of("gaussian_noise"), flat(128, (128, 128, 3), spec), 3) - 128
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 4 / 128


@pytest.mark.parametrize("signal", [0.0, 10.0, 80.0])
def test_rician_noise_follows_its_distribution(signal: float) -> None:
    noisy = noisy_image(relation_of("rician_noise"), flat(signal), 2)
    sigma = 10.0
    assert stats.kstest(noisy.ravel() / sigma, stats.rice(signal / sigma).cdf).statistic <= 0.02
    if signal == 0:
        assert noisy.mean() == pytest.approx(sigma * np.sqrt(np.pi / 2), rel=0.01)
    assert noisy.min() >= 0


@pytest.mark.parametrize(("severity", "gain"), [(1, 1.0), (4, 8.0)])
def test_poisson_noise_counts_photons(severity: int, gain: float) -> None:
    counts = noisy_image(relation_of("poisson_noise"), flat(40.0), severity).ravel() / gain
    mean = 40.0 / gain
    assert np.allclose(counts, np.rint(counts))
    inside = np.arange(stats.poisson.ppf(0.005, mean), stats.poisson.ppf(0.995, mean) + 1)
    observed = np.array([np.count_nonzero(counts == value) for value in inside])
    tails = [np.count_nonzero(counts < inside[0]), np.count_nonzero(counts > inside[-1])]
    expected = stats.poisson.pmf(inside, mean) * counts.size
    below, above = stats.poisson.cdf(inside[0] - 1, mean), stats.poisson.sf(inside[-1], mean)
    whole_observed = np.array([*observed, *tails], float)
    whole_expected = np.array([*expected, below * counts.size, above * counts.size])
    is_large = whole_expected > 5
    chi, p = stats.chisquare(
        whole_observed[is_large],
        whole_expected[is_large] * whole_observed[is_large].sum() / whole_expected[is_large].sum(),
    )
    assert p > 1e-3, (chi, p)
    assert counts.var() * gain**2 == pytest.approx(gain * 40.0, rel=0.03)


def test_speckle_is_a_share_of_the_signal() -> None:
    noise = (noisy_image(relation_of("speckle_noise"), flat(100.0), 4) - 100.0) / 100.0
    assert noise.std() == pytest.approx(0.2, rel=0.02)
    assert stats.kstest(noise.ravel() / 0.2, "norm").statistic <= 0.02
    assert (noisy_image(relation_of("speckle_noise"), flat(0.0), 4) == 0).all()


def test_salt_and_pepper_replace_their_share() -> None:
    spec = ImageSpec(dtype="float32", axes="yxc")
    noisy = noisy_image(relation_of("salt_pepper_noise"), flat(100.0, (256, 256, 3), spec), 4)
    salt, pepper = (noisy == 255).all(-1), (noisy == 0).all(-1)
    n = 256 * 256
    for share in (salt.mean(), pepper.mean()):
        assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n)
    assert ((noisy == 100) | (noisy == 255) | (noisy == 0)).all()


def test_blur_has_the_variance_of_its_gaussian() -> None:
    point = np.zeros((65, 65), np.float32)
    point[32, 32] = 1.0
    blurred = noisy_image(relation_of("gaussian_blur"), seed_of(point, GREY), 4)
    rows = np.arange(65) - 32
    assert blurred.sum() == pytest.approx(1, abs=1e-5)
    assert (blurred.sum(1) * rows**2).sum() == pytest.approx(2.0**2, rel=0.02)


def test_jpeg_loses_more_at_lower_quality_and_keeps_flat_images() -> None:
    rng = np.random.default_rng(0)
    seed = seed_of(np.cumsum(rng.normal(size=(96, 96)), axis=1).astype(np.float32) * 4 + 120, GREY)
    clean = np.clip(np.rint(seed.image), 0, 255)
    errors = [np.abs(noisy_image(relation_of("jpeg"), seed, level) - clean).mean() for level in range(1, 6)]
    assert all(a < b for a, b in zip(errors, errors[1:], strict=False))
    assert np.abs(noisy_image(relation_of("jpeg"), flat(77.0), 1) - 77).max() <= 1


def test_bias_field_is_smooth_and_has_its_largest_deviation() -> None:
    factor = noisy_image(relation_of("bias_field"), flat(100.0), 3) / 100.0
    assert np.abs(factor - 1).max() == pytest.approx(0.3, rel=1e-4)
    assert factor.mean() == pytest.approx(1, abs=1e-3)
    assert np.abs(np.diff(factor, axis=0)).max() < 0.02
    field = smooth_field((20, 30, 40), 2, np.random.default_rng(1))
    assert field.shape == (20, 30, 40)
    assert np.abs(field).max() == pytest.approx(1)


# --- dtype, range, dimension ----------------------------------------------------------------------------------------

SPECS = [
    (ImageSpec(dtype="uint8", axes="yx"), (32, 40)),
    (ImageSpec(dtype="uint8", axes="yxc"), (32, 40, 3)),
    (ImageSpec(dtype="uint16", low=0, high=65535, axes="yx"), (32, 40)),
    (ImageSpec(dtype="uint16", low=0, high=65535, axes="yxc"), (32, 40, 3)),
    (ImageSpec(dtype="float32", low=0, high=1, axes="yx"), (32, 40)),
    (ImageSpec(dtype="float64", low=-1, high=1, axes="yxc"), (32, 40, 3)),
    (ImageSpec(dtype="int16", low=-1000, high=1000, axes="zyx"), (12, 32, 40)),
    (ImageSpec(dtype="float32", low=-200, high=300, axes="zyx"), (12, 32, 40)),
    (ImageSpec(dtype="uint8", axes="tyxc"), (5, 32, 40, 3)),
]


def any_seed(spec: ImageSpec, shape: tuple[int, ...], random: int = 0) -> PreparedSeed:
    rng = np.random.default_rng(random)
    values = rng.uniform(spec.low + 0.2 * spec.span, spec.high - 0.2 * spec.span, shape)
    return seed_of(values.astype(spec.dtype), spec)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("spec", "shape"), SPECS, ids=[f"{s.dtype}-{s.axes}" for s, _ in SPECS])
def test_every_image_is_accepted(name: str, spec: ImageSpec, shape: tuple[int, ...]) -> None:
    seed = any_seed(spec, shape)
    before = seed.image.copy()
    relation = relation_of(name, units="of_255", clip="range")
    rng = Address(dataset="d", seed_id="one", relation=name, severity=3).generator(1)
    follow = relation.follow_up(seed, 3, rng)
    assert follow.image.shape == shape
    assert follow.image.dtype == np.dtype(spec.dtype)
    assert follow.image.min() >= spec.low
    assert follow.image.max() <= spec.high
    assert not np.array_equal(follow.image, before)
    assert np.array_equal(seed.image, before)
    assert not np.shares_memory(follow.image, seed.image)
    again = relation.apply(seed, json.loads(json.dumps(follow.params)))
    assert again.image.tobytes() == follow.image.tobytes()
    assert again.scale == follow.scale > 0


@pytest.mark.parametrize("name", NAMES)
def test_scales_grow_and_so_does_the_damage(name: str) -> None:
    rng = np.random.default_rng(0)
    smooth = np.cumsum(np.cumsum(rng.normal(size=(96, 96)), 0), 1)
    image = ((smooth - smooth.min()) / np.ptp(smooth) * 200 + 20 + 20 * rng.random((96, 96))).astype(np.float32)
    seed = seed_of(image, GREY)
    relation = relation_of(name)
    errors = []
    for severity in relation.severities():
        errors.append(np.mean([np.abs(noisy_image(relation, seed, severity, r) - image).mean() for r in range(4)]))
    assert all(a < b for a, b in zip(errors, errors[1:], strict=False)), errors
    scales = [relation.follow_up(seed, s, np.random.default_rng(0)).scale for s in relation.severities()]
    assert all(0 < a < b for a, b in zip(scales, scales[1:], strict=False))


def test_units_of_255_follow_the_range() -> None:
    spec = ImageSpec(dtype="float32", low=0, high=1, axes="yx")
    own = noisy_image(relation_of("gaussian_noise", units="of_255"), flat(0.5, spec=spec), 2) - 0.5
    assert own.std() == pytest.approx(10 / 255, rel=0.02)


@given(st.lists(st.floats(-1e4, 1e5), min_size=1, max_size=20), st.sampled_from(["uint8", "uint16", "int16"]))
def test_integers_are_rounded_and_kept_within_the_dtype(values: list[float], dtype: str) -> None:
    result = finished(np.array(values), np.dtype(dtype), ImageSpec(dtype=dtype), clip="none")
    limits = np.iinfo(dtype)
    assert result.dtype == np.dtype(dtype)
    assert np.array_equal(result, np.clip(np.rint(values), limits.min, limits.max))


def test_clipping_follows_its_setting() -> None:
    seed = flat(250.0)
    free, cut = (
        noisy_image(relation_of("gaussian_noise"), seed, 5),
        noisy_image(relation_of("gaussian_noise", clip="range"), seed, 5),
    )
    assert free.max() > 300
    assert np.array_equal(cut, np.clip(free, 0, 255))


# --- other relations as scales of uncertainty -----------------------------------------------------------------------


def test_relations_for_pictures_work_on_grey_and_colour_and_skip_the_rest() -> None:
    blur = relation_of("blur")
    for spec, shape in SPECS:
        seed = any_seed(spec, shape)
        address = Address(dataset="d", seed_id="x", relation="blur", severity=3)
        if spec.dtype == "uint8" and spec.axes in ("yx", "yxc"):
            result = follow_up(blur, seed, address, 0)
            assert result.image.shape == shape
            assert result.image.dtype == np.uint8
        else:
            with pytest.raises(NotApplicable, match="8-bit"):
                follow_up(blur, seed, address, 0)


def test_measured_changes_nothing_and_skips_what_was_not_measured() -> None:
    info = parts("relations")["measured"]
    cls = info.load()
    relation = cls(cls.Settings(**{**info.defaults, "property": "liver_variability"}))
    image = np.zeros((20, 20), np.float32)
    ref = SeedRef(dataset="d", seed_id="x")
    measured = prepare(
        Seed(ref=ref, image=image, kind="image", spec=GREY, properties={"liver_variability": 3.74}), size=None
    )
    result = relation.follow_up(measured, 0, np.random.default_rng(0))
    assert result.scale == 3.74
    assert result.image is measured.image
    assert result.params == {"property": "liver_variability", "value": 3.74}
    assert relation.severities() == (0,)
    with pytest.raises(NotApplicable, match="liver_variability was not measured"):
        relation.follow_up(seed_of(image, GREY), 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="property"):
        cls.Settings(**info.defaults)


GOLDEN: dict[str, tuple[int, str]] = {
    "bias_field": (1, "3b3a1cf63d10b955"),
    "gaussian_blur": (1, "8d7a03fd9a4588ba"),
    "gaussian_noise": (1, "5596b892467f61a6"),
    "jpeg": (1, "1da9b468d3ce09cf"),
    "poisson_noise": (1, "2452eb63b9481be8"),
    "rician_noise": (1, "5a18c4cccf1224f7"),
    "salt_pepper_noise": (1, "36615eda071d1da7"),
    "speckle_noise": (1, "1b92b0579897d9d3"),
}


def fingerprint(name: str) -> tuple[int, str]:
    relation = relation_of(name, units="of_255")
    digest = hashlib.sha256()
    for spec, shape in SPECS:
        seed = any_seed(spec, shape, 3)
        for severity in relation.severities():
            address = Address(dataset="golden", seed_id="one", relation=name, severity=severity)
            result = relation.follow_up(seed, severity, address.generator(11))
            digest.update(image_sha256(result.image).encode())
            digest.update(json.dumps(result.params, sort_keys=True).encode())
    return relation.revision, digest.hexdigest()[:16]


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="bytes are promised per CPU architecture")
@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_bytes_are_those_of_the_revision(name: str) -> None:
    assert fingerprint(name) == GOLDEN[name], f"{name} gives other bytes: raise its revision and mend the table"


def test_every_noise_relation_is_guarded() -> None:
    assert sorted(GOLDEN) == NAMES


def test_every_relation_has_a_card_and_a_picture() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "relations.md").read_text()
    cards = re.findall(r"^##+ (\w+)$", page, re.MULTILINE)
    names = [name for name, info in parts("relations").items() if info.target.startswith("medtest.")]
    perturbations = [name for name in names if name.startswith("corruption_")]  # together, on separate sheets
    assert all(f"`{name}`" in page for name in perturbations)
    assert all((docs / "images" / f"corruption_{form}.jpg").is_file() for form in ("levels", "sequences"))
    attacks = [name for name in names if ".adversarial." in parts("relations")[name].target]
    pages = "".join((docs / name).read_text() for name in ("generated-perturbations.md", "attacks.md"))
    assert all(f"`{name}`" in pages for name in attacks)
    operators = [name for name in names if ".prompts." in parts("relations")[name].target]
    assert all(f"`{name}`" in (docs / "operators.md").read_text() for name in operators)
    controls = {name for name in names if parts("relations")[name].load().group == CONTROLS}
    assert all(f"`{name}`" in (docs / "controls.md").read_text() for name in controls)
    single = set(names) - set(perturbations) - set(attacks) - set(operators)
    assert single - controls <= set(cards)
    without_picture = {"measured", "perturb", "false_premise", "prompt_emptied"}
    for name in single:
        assert name in without_picture or (docs / "images" / "relations" / f"{name}.jpg").is_file()
