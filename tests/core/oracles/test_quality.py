"""The oracles of series against scikit-image, against counts by hand, and their verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from medtest.core.cases import (
    Effect,
    ImageOutput,
    ImageSpec,
    MaskOutput,
    PreparedSeed,
    ReasonCode,
    RegionOutput,
    Seed,
    SeedRef,
    Verdict,
)
from medtest.preparation import prepare
from medtest.preparation.similarity import ssim
from medtest.suite.model import Criterion
from medtest.tasks.region.oracle import Regions, overlap
from medtest.tasks.restore.oracle import PSNR_LIMIT, Quality, SeriesSettings, psnr
from medtest.tasks.segment.oracle import Masks

SPECS = [
    (ImageSpec(axes="yx"), (40, 52)),
    (ImageSpec(axes="yxc"), (40, 52, 3)),
    (ImageSpec(dtype="uint16", high=65535, axes="yx"), (40, 52)),
    (ImageSpec(dtype="float32", low=-200, high=300, axes="zyx"), (4, 40, 52)),
]


def pair(spec: ImageSpec, shape: tuple[int, ...], random: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(random)
    clean = rng.uniform(spec.low + 0.2 * spec.span, spec.high - 0.2 * spec.span, shape)
    noisy = clean + rng.normal(0, 0.05 * spec.span, shape)
    return noisy.astype(spec.dtype), clean.astype(spec.dtype)


@pytest.mark.parametrize(("spec", "shape"), SPECS)
def test_ssim_and_psnr_are_scikit_images(spec: ImageSpec, shape: tuple[int, ...]) -> None:
    noisy, clean = (image.astype(np.float64) for image in pair(spec, shape))
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": spec.span}
    if spec.axes == "zyx":
        expected = np.mean([structural_similarity(a, b, **options) for a, b in zip(noisy, clean, strict=True)])
    else:
        channel = -1 if spec.coloured else None
        expected = structural_similarity(noisy, clean, channel_axis=channel, **options)
    assert ssim(noisy, clean, spec) == pytest.approx(expected, abs=1e-9)
    assert psnr(noisy, clean, spec) == pytest.approx(peak_signal_noise_ratio(clean, noisy, data_range=spec.span))


def test_equal_images_are_as_good_as_can_be() -> None:
    _, clean = pair(*SPECS[0])
    assert ssim(clean, clean, SPECS[0][0]) == pytest.approx(1.0)
    assert psnr(clean, clean, SPECS[0][0]) == PSNR_LIMIT


def test_a_picture_smaller_than_the_window_is_refused() -> None:
    small = np.zeros((10, 40), np.uint8)
    with pytest.raises(ValueError, match="window"):
        ssim(small, small, ImageSpec(axes="yx"))


def quality(**criterion: object) -> Quality:
    fields = {"score": "ssim", "threshold": 0.0, "against": "input", **criterion}
    return Quality(SeriesSettings(), primary=Criterion(**fields))


def seed_of(clean: np.ndarray, spec: ImageSpec) -> PreparedSeed:
    return prepare(Seed(ref=SeedRef(dataset="d", seed_id="s"), image=clean, kind="image", spec=spec), size=None)


def test_an_answer_worse_than_its_input_fails() -> None:
    spec, shape = SPECS[0]
    noisy, clean = pair(spec, shape)
    seed, oracle = seed_of(clean, spec), quality()
    before = ImageOutput(image=clean, given=clean)
    for answer, expected in ((noisy, Verdict.PASS), (clean, Verdict.PASS), (255 - noisy, Verdict.FAIL)):
        output = ImageOutput(image=answer, given=noisy)
        columns = oracle.score(answer=output, source=before, seed=seed, effect=Effect())
        assert set(columns) == {*oracle.scores, "self_ssim"}
        assert columns["input_ssim"] == ssim(noisy, clean, spec)
        assert oracle.verdict({**columns, "source_ssim": 1.0})[0] is expected


def test_the_input_is_that_of_the_case_and_not_of_another() -> None:
    spec, shape = SPECS[0]
    _, clean = pair(spec, shape)
    seed, oracle = seed_of(clean, spec), quality()
    rng = np.random.default_rng(0)
    for _ in range(40):  # more than the cache holds
        noisy = np.clip(clean + rng.normal(0, rng.uniform(1, 40), shape), 0, 255).astype(np.uint8)
        output = ImageOutput(image=noisy, given=noisy)
        columns = oracle.score(answer=output, source=output, seed=seed, effect=Effect())
        assert columns["ssim"] == columns["input_ssim"]
        assert columns["psnr"] == columns["input_psnr"]
        assert columns["self_ssim"] == 1.0


def test_without_scores_there_is_no_verdict() -> None:
    oracle = quality()
    empty = dict.fromkeys([*oracle.scores, "self_ssim", "source_ssim"])
    assert oracle.verdict(empty)[0] is Verdict.SKIP
    zero = {**empty, "ssim": 0.1, "input_ssim": 0.0}
    verdict, reason = oracle.verdict(zero)
    assert (verdict, reason.code) == (Verdict.SKIP, ReasonCode.INPUT_SCORE_ZERO)


def test_oracles_refuse_answers_of_another_kind() -> None:
    spec, shape = SPECS[0]
    _, clean = pair(spec, shape)
    seed = seed_of(clean, spec)
    region = RegionOutput(region=np.ones(shape, bool))
    with pytest.raises(TypeError, match="region"):
        quality().score(answer=region, source=None, seed=seed, effect=Effect())
    with pytest.raises(TypeError, match="mask"):
        mask = MaskOutput(mask=np.ones(shape, bool))
        Regions(SeriesSettings(), primary=Criterion()).score(answer=mask, source=None, seed=seed, effect=Effect())
    with pytest.raises(TypeError, match="region"):
        Masks(Masks.Settings(), primary=Criterion()).score(answer=region, source=None, seed=seed, effect=Effect())


def test_regions_by_hand() -> None:
    expected = np.zeros((2, 3, 4), bool)
    expected[0, 0] = True  # 4 voxels
    answered = np.zeros_like(expected)
    answered[0, :2, :2] = True  # 4 voxels, 2 shared
    assert overlap(answered, expected) == {
        "dice": 0.5,
        "iou": 1 / 3,
        "precision": 0.5,
        "recall": 0.5,
        "f_measure": 0.5,
    }
    empty = np.zeros_like(expected)
    assert set(overlap(empty, empty).values()) == {1.0}
    assert set(overlap(empty, expected).values()) == {0.0}
    assert set(overlap(expected, empty).values()) == {0.0}


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**24 - 1))
def test_the_f_measure_is_that_of_precision_and_recall(first: int, second: int) -> None:
    shape = (2, 3, 4)
    answered, expected = (np.array([bool(n >> i & 1) for i in range(24)]).reshape(shape) for n in (first, second))
    scores = overlap(answered, expected)
    p, r = scores["precision"], scores["recall"]
    if p + r > 0:
        assert scores["f_measure"] == pytest.approx(2 * p * r / (p + r))
    assert scores["dice"] == pytest.approx(2 * scores["iou"] / (1 + scores["iou"]))
