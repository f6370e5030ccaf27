"""Training steps that differ between families: losses, colour exchange, and a start from another network's backbone."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.errors import MedtestError
from medtest.systems.checkpoints.inputs import INPUTS
from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.pytorch import networks
from medtest.systems.segmentation.networks.answers import answer_of
from medtest.training.engine.initial import initialise
from medtest.training.engine.start import backbone_from
from medtest.training.segmentation.augment import Augmentation
from medtest.training.segmentation.colour import colours_of, exchange_colours
from medtest.training.segmentation.data import PairBatches, Pairs
from medtest.training.segmentation.steps import loss_of, number_and_size, sanet_loss, tganet_loss


def _boxes(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    mask = np.zeros((100, 100), np.bool_)
    for top, first_column, height, width in boxes:
        mask[top : top + height, first_column : first_column + width] = True
    return mask


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (_boxes((10, 10, 20, 20)), (0, 0)),  # 4 % of the image
        (_boxes((10, 10, 40, 40)), (0, 1)),  # 16 %
        (_boxes((10, 10, 60, 60)), (0, 2)),  # 36 %
        (_boxes((10, 10, 25, 40)), (0, 1)),  # exactly 10 % is medium
        (_boxes((0, 0, 30, 100)), (0, 2)),  # exactly 30 % is large
        (_boxes((5, 5, 10, 10), (40, 40, 50, 50)), (1, 0)),  # the last outline is the topmost
        (_boxes(), (1, 0)),
    ],
)
def test_number_and_size_are_computed_from_the_boxes(mask: np.ndarray, expected: tuple[int, int]) -> None:
    assert number_and_size(mask) == expected


def test_losses_equal_the_papers_formulas() -> None:
    rng = np.random.default_rng(1)
    z, m = rng.standard_normal((2, 1, 6, 6)), (rng.random((2, 1, 6, 6)) < 0.4).astype(np.float64)
    p = 1 / (1 + np.exp(-z))
    entropy = -(m * np.log(p) + (1 - m) * np.log(1 - p)).mean()
    per_image = [1 - 2 * (p[i] * m[i]).sum() / ((p[i] + m[i]).sum() + 1) for i in range(2)]
    tensors = torch.tensor(z), torch.tensor(m)
    assert sanet_loss(*tensors).item() == pytest.approx(entropy + np.mean(per_image), rel=1e-9)
    whole = 1 - (2 * (p * m).sum() + 1) / (p.sum() + m.sum() + 1)
    number, size = rng.standard_normal((2, 2)), rng.standard_normal((2, 3))
    outputs = (tensors[0], torch.tensor(number), torch.tensor(size))
    targets = [number_and_size(mask_[0] > 0) for mask_ in m]

    def crossed(logits: np.ndarray, which: int, *, twice: bool) -> float:
        soft = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        again = np.exp(soft) / np.exp(soft).sum(axis=1, keepdims=True)
        chosen = again if twice else soft
        return float(np.mean([-np.log(chosen[i, targets[i][which]]) for i in range(2)]))

    for twice in (True, False):
        expected = entropy + whole + crossed(number, 0, twice=twice) + crossed(size, 1, twice=twice)
        assert tganet_loss(outputs, tensors[1], double_softmax=twice).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("family", networks.SEGMENTATION)
def test_every_family_has_a_loss_that_reaches_all_its_parameters(family: str) -> None:
    torch.manual_seed(0)
    network = networks.make(networks.COMPACT[family]).train()
    outputs = network(torch.randn(2, 3, 64, 64))
    truth = torch.zeros(2, 1, 64, 64)
    truth[:, :, 10:30, 10:30] = 1
    loss_of(family)(outputs, truth, torch.ones_like(truth)).backward()
    without = [name for name, value in network.named_parameters() if value.grad is None]
    assert without == []
    assert answer_of(family, outputs, (64, 64)).shape == (2, 1, 64, 64)
    with pytest.raises(MedtestError, match="no training step"):
        loss_of("unet")


def test_the_answer_of_sanet_is_resized_with_corners_aligned() -> None:
    logits = torch.tensor([[[[0.0, 3.0], [6.0, 9.0]]]])
    got = answer_of("sanet", logits, (4, 4))[0, 0]
    assert torch.allclose(got[0], torch.tensor([0.0, 1.0, 2.0, 3.0]))
    assert torch.allclose(got[:, 0], torch.tensor([0.0, 2.0, 4.0, 6.0]))


@settings(max_examples=25)
@given(seed=st.integers(0, 2**31))
def test_exchanged_colours_equal_the_donors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = rng.integers(60, 110, 3), rng.integers(120, 170, 3)
    image, donor = (
        cv2.GaussianBlur(rng.integers(low, high, (40, 50, 3)).astype(np.uint8), (0, 0), 2.0) for _ in range(2)
    )
    donor_colours = colours_of(donor)
    moved = colours_of(exchange_colours(image, donor_colours))
    assert np.abs(np.subtract(moved[0], donor_colours[0])).max() < 3.0
    assert np.abs(np.subtract(moved[1], donor_colours[1])).max() < 3.0


def test_an_image_keeps_its_own_colours_under_exchange_with_itself_and_wraps_only_by_option() -> None:
    rng = np.random.default_rng(2)
    image = cv2.GaussianBlur(rng.integers(0, 255, (40, 50, 3)).astype(np.uint8), (0, 0), 2.0)
    assert np.abs(exchange_colours(image, colours_of(image)).astype(int) - image).mean() < 3.0
    bright = np.full((40, 50, 3), 250, np.uint8)
    bright[:4] = 255
    dark = colours_of(rng.integers(0, 255, (40, 50, 3)).astype(np.uint8))
    light = (np.array([245.0, 128.0, 128.0]), np.array([60.0, 5.0, 5.0]))
    stretched, wrapped = (exchange_colours(image, light, wrap=wrap) for wrap in (False, True))
    assert stretched.min() > 30
    assert wrapped.min() < stretched.min()
    flat = exchange_colours(np.full((8, 8, 3), 90, np.uint8), dark)
    assert np.ptp(flat.reshape(-1, 3), axis=0).max() == 0


def test_batches_have_the_networks_input_and_colours_exchange_within_the_sets() -> None:
    rng = np.random.default_rng(3)
    images = np.stack([np.full((64, 64, 3), value, np.uint8) for value in ((200, 90, 60), (60, 90, 200))])
    images = np.clip(images + rng.integers(-9, 10, images.shape), 0, 255).astype(np.uint8)
    masks = np.zeros((2, 64, 64), np.uint8)
    pairs = Pairs(images=images, masks=masks, names=("a", "b"))
    still = Augmentation(zoom=(1.0, 1.0), shift=0.0, tilt=0.0, colour=0.0, blur=0.0, noise=0.0)

    def reds(exchange: float) -> set[bool]:
        batches = PairBatches([(pairs, 1)], sizes=[64], seed=1, changes=still, kind=INPUTS["tganet"], exchange=exchange)
        first_images = [batches.batch(step)[0][0] for step in range(0, 12, 2)]  # each pass begins with the same pair
        assert all(image.min() >= 0 and image.max() <= 1 for image in first_images)
        return {bool(image[2].mean() > image[0].mean()) for image in first_images}

    first = PairBatches([(pairs, 1)], sizes=[64], seed=1, changes=still)
    again = PairBatches([(pairs, 1)], sizes=[64], seed=1, changes=still, exchange=0.0)
    assert np.array_equal(first.batch(0)[0], again.batch(0)[0])
    assert reds(1.0) == {True, False}


@pytest.mark.parametrize("family", ["sanet", "tganet"])
def test_a_copied_backbone_answers_the_same_to_its_own_kind_of_input(family: str, tmp_path: Path) -> None:
    torch.manual_seed(5)
    config = networks.COMPACT["pranet"]
    source = networks.make(config)
    for module in source.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, std=0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
    path = tmp_path / "pranet.safetensors"
    save_weights(path, source.state_dict(), WeightsInfo(network=networks.describe(config), size=64))
    target = networks.make(networks.COMPACT[family])
    initialise(target, 1)
    count = backbone_from(target, family, path)
    expected = sum(name.startswith(("bkbone.", "layer")) for name in target.state_dict())
    assert count == expected
    source.load_state_dict(
        {k: v.half().float() if v.is_floating_point() else v for k, v in source.state_dict().items()}
    )
    image = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 255, (1, 64, 64, 3)).astype(np.uint8)[0], (0, 0), 3.0)
    with torch.inference_mode():
        stem = source.resnet
        before = stem.relu(stem.bn1(stem.conv1(torch.from_numpy(INPUTS["pranet"].tensor(image[None])))))
        inputs = torch.from_numpy(INPUTS[family].tensor(image[None]))
        if family == "sanet":
            after = target.bkbone.relu(target.bkbone.bn1(target.bkbone.conv1(inputs)))
        else:
            after = target.layer0(inputs)
    # At the border zeros stand for black in one kind of input and for grey in the other.
    assert torch.allclose(before[..., 3:-3, 3:-3], after[..., 3:-3, 3:-3], atol=1e-3)


def test_a_mismatching_backbone_is_refused(tmp_path: Path) -> None:
    config = networks.COMPACT["ssformer"]
    network = networks.make(config)
    path = tmp_path / "w.safetensors"
    save_weights(path, network.state_dict(), WeightsInfo(network=networks.describe(config), size=64))
    with pytest.raises(MedtestError, match="ssformer has no backbone"):
        backbone_from(networks.make(networks.COMPACT["sanet"]), "sanet", path)
    config = networks.COMPACT["pranet"]
    save_weights(path, networks.make(config).state_dict(), WeightsInfo(network=networks.describe(config), size=64))
    with pytest.raises(MedtestError, match="its backbone is not that of this tganet"):
        backbone_from(networks.published("tganet"), "tganet", path)


def test_tganets_own_words_differ_and_depend_on_the_seed() -> None:
    first, same, other = (networks.make(networks.COMPACT["tganet"]) for _ in range(3))
    for network, seed in ((first, 1), (same, 1), (other, 2)):
        initialise(network, seed)
    assert torch.equal(first.words, same.words)
    assert not torch.equal(first.words, other.words)
    assert torch.linalg.matrix_rank(first.words) == 5
    assert torch.equal(first.words, first.words.half().float())
