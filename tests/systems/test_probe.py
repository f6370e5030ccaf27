"""Probes: logits equal those of predict, gradients are true, and systems stay unchanged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, logit, logsumexp, softmax

sys.path.insert(0, str(Path(__file__).parent))
from library_parts import NAMES, system_of
from probe_parts import CASES, HERE, REPEATED, Case, official, opened, picture, pixels_of, probed

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError
from medtest.core.probes import Need, Probe
from medtest.phantoms.classes import CHEST
from medtest.systems.pytorch.probe import probe_gap, probe_of

SLOW = {*REPEATED, "chexnet ten crops"}
"""Cases that are left out of the fast set: others open the same networks, and a test below averages ten crops."""


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES], ids=list(CASES)
)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.mark.slow
def test_probabilities_match_predict_where_nothing_is_resized(case: Case, tmp_path: Path) -> None:
    system = opened(case, tmp_path)
    assert system.offers() is Need.GRADIENTS
    probe: Probe = probed(system, case)
    assert probe.gives is Need.GRADIENTS and probe.name == system.record_name
    # On pictures 3 and 4 the map of SANet is nearly flat, and its min-max scaling enlarges the last bits.
    images = [picture(case.side, case.side, seed) for seed in (5, 6)]
    pixels = pixels_of(*images).requires_grad_()
    logits = probe.logits(pixels)
    expected_shape = (2, case.side, case.side) if case.classes is None else (2, len(case.classes.names))
    assert tuple(logits.shape) == expected_shape and logits.dtype == torch.float32
    for image, answer in zip(images, official(system, images, case.classes), strict=True):
        assert probe_gap(probe, image, answer) < 1e-4
    (gradient,) = torch.autograd.grad(logits.sum(), pixels)
    assert torch.isfinite(gradient).all() and gradient.abs().sum() > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, entry in CASES.items() if entry.resized])
def test_resized_images_come_close_to_predict(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert case.resized is not None
    system = opened(case, tmp_path)
    probe = probed(system, case)
    image = picture(*case.resized)
    (answer,) = official(system, [image], case.classes)
    gap = probe_gap(probe, image, answer)
    assert gap < case.gap
    other = probe_gap(probe, picture(*case.resized, 77), answer)
    assert other > 3 * gap, "another image has another answer: closeness says something"


def test_a_map_of_zeros_and_ones_is_compared_by_its_decisions() -> None:
    system = system_of("ssformer", "mask", protocol="official")
    system.open(device="cpu", threads=1)
    image = picture(224, 224)
    (answer,) = official(system, [image], None)
    assert set(np.unique(answer.probability)) <= {0.0, 1.0}  # type: ignore[attr-defined]
    assert probe_gap(probe_of(system), image, answer) < 1e-4


# --- gradients ------------------------------------------------------------------------------------------------------

DOUBLE = ("attnmel", "inceptionv3_dr", "chexnet ten crops", "agdn", "dsinet", "torchvision merged", "vit several")
MAPS = ("pranet", "sanet official", "tganet", "ssformer", "smp softmax", "monai transforms", "torchscript")


HEAVY = {"inceptionv3_dr", "chexnet ten crops", "agdn", "dsinet", "sanet official", "tganet", "ssformer"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in (*DOUBLE, *MAPS)]
)
def test_gradients_match_finite_differences(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    system: Any = opened(case, tmp_path)
    exact = name not in ("agdn", "monai transforms", "vit several")  # in which something is float32 whatever it gets
    if exact:
        system.network.double()
    probe = probed(system, case)
    pixels = pixels_of(picture(case.side, case.side)).to(torch.float64 if exact else torch.float32)
    noise = torch.rand(pixels.shape, generator=torch.Generator().manual_seed(3)).to(pixels)
    pixels = (pixels * 0.9 + 0.05 + 0.01 * noise).requires_grad_()  # flat areas are corners of a max pool
    shape = probe.logits(pixels.detach()).shape
    weights = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(pixels)
    (gradient,) = torch.autograd.grad((probe.logits(pixels) * weights).sum(), pixels)
    torch.manual_seed(2)
    direction = gradient / gradient.norm() + 0.3 * torch.nn.functional.normalize(
        torch.randn_like(pixels).flatten(), dim=0
    ).view_as(pixels)
    step = 1e-7 if exact else 1e-2
    with torch.no_grad():
        high, low = ((probe.logits(pixels + sign * step * direction) * weights).double().sum() for sign in (1, -1))
    measured, predicted = float(high - low) / (2 * step), float((gradient * direction).sum())
    assert measured == pytest.approx(predicted, rel=1e-3 if exact else 5e-2)


# --- classes --------------------------------------------------------------------------------------------------------


def test_merged_classes_have_the_logarithm_of_the_sum_of_powers(tmp_path: Path) -> None:
    plain = opened(CASES["torchvision"], tmp_path)
    pixels = pixels_of(picture(64, 64), picture(64, 64, 4))
    own = probe_of(plain, classes=Classes(names=tuple(NAMES))).logits(pixels).detach().double().numpy()
    turned = probed(plain, CASES["torchvision"]).logits(pixels).detach().double().numpy()
    assert np.allclose(turned, own[:, ::-1]), "the seeds' order"
    merged = probed(opened(CASES["torchvision merged"], tmp_path), CASES["torchvision merged"]).logits(pixels)
    expected = np.stack([logsumexp(own[:, 1:], axis=1), own[:, 0]], axis=1)
    assert np.allclose(merged.detach().numpy(), expected, atol=1e-5)
    shares = softmax(own, axis=1)
    assert np.allclose(softmax(expected, axis=1)[:, 0], shares[:, 1] + shares[:, 2])


def test_mismatching_classes_are_refused() -> None:
    system = system_of("attnmel")
    system.open(device="cpu", threads=1)
    with pytest.raises(MedtestError, match="of the seeds' several may be true"):
        probe_of(system, classes=CHEST)
    with pytest.raises(MedtestError, match="needs the seeds' classes"):
        probe_of(system)


@pytest.mark.parametrize("name", ["chexnet", pytest.param("chexnet ten crops", marks=pytest.mark.slow)])
def test_chexnets_logits_are_true_beyond_its_sigmoid(name: str) -> None:
    case = CASES[name]
    system: Any = case.make(Path())
    system.squared = case.squared
    system.open(device="cpu", threads=1)
    probe = probed(system, case)
    pixels = pixels_of(picture(case.side, case.side))
    (raw,) = system.predict([picture(case.side, case.side)], [HERE])
    exact = np.asarray(raw, np.float64)
    recoverable = (exact > 1e-3) & (exact < 1 - 1e-3)  # where the sigmoid of float32 can be undone
    assert recoverable.sum() >= 10
    assert np.allclose(probe.logits(pixels).detach().numpy()[0][recoverable], logit(exact[recoverable]), atol=1e-4)
    with torch.no_grad():
        system.network.densenet121.classifier[0].weight.mul_(400)
    input_pixels = pixels.clone().requires_grad_()
    logits = probe.logits(input_pixels)
    (raw,) = system.predict([picture(case.side, case.side)], [HERE])
    assert set(np.unique(np.asarray(raw))) <= {0.0, 1.0} or name == "chexnet ten crops"
    assert torch.isfinite(logits).all() and logits.abs().max() > 90, "no sigmoid of float32 tells these apart"
    assert np.allclose(expit(logits.detach().double().numpy()[0]), np.asarray(raw), atol=1e-5)
    (gradient,) = torch.autograd.grad(logits.sum(), input_pixels)
    assert gradient.abs().max() > 0


def test_ten_crops_are_averaged_as_predict_averages_them() -> None:
    """The mean of probabilities is not the sigmoid of the mean of logits."""
    case = CASES["chexnet ten crops"]
    system: Any = case.make(Path())
    system.open(device="cpu", threads=1)
    with torch.no_grad():
        system.network.densenet121.classifier[0].weight.mul_(8)
    image = picture(256, 256, 9)
    (answer,) = official(system, [image], CHEST)
    probe = probed(system, case)
    assert probe_gap(probe, image, answer) < 1e-4
    with torch.no_grad():
        from medtest.systems.pytorch.pixels import ten_crops

        crops = system.network.logits(system.normalised(ten_crops(pixels_of(image), 224)))
    plain = expit(crops.double().numpy().mean(axis=0))
    assert np.abs(plain - answer.probabilities).max() > 1e-3  # type: ignore[attr-defined]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["attnmel", "chexnet ten crops", "pranet", "segformer", "monai transforms"])
def test_on_a_gpu_probes_equal_those_on_a_processor(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    system, on_gpu = case.make(tmp_path), case.make(tmp_path)
    for opened_system, device in ((system, "cpu"), (on_gpu, "cuda:0")):
        opened_system.squared = case.squared
        opened_system.open(device=device, threads=1)
    image = picture(case.side, case.side)
    pixels = pixels_of(image)
    state = torch.cuda.get_rng_state("cuda:0")
    probe = probed(on_gpu, case)
    assert probe.device == "cuda:0"
    gpu_pixels = pixels.to(probe.device).requires_grad_()
    logits = probe.logits(gpu_pixels)
    (gradient,) = torch.autograd.grad(logits.sum(), gpu_pixels)
    assert torch.equal(state, torch.cuda.get_rng_state("cuda:0")) and gradient.abs().sum() > 0
    assert torch.allclose(logits.detach().cpu(), probed(system, case).logits(pixels).detach(), atol=5e-2, rtol=1e-2)
    (answer,) = official(on_gpu, [image], case.classes)
    assert probe_gap(probe, image, answer) < 2e-3
