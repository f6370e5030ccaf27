from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image as Pillow

from medtest.core.cases import Classes
from medtest.core.errors import MedtestError
from medtest.phantoms.classes import CAPSULE
from medtest.systems.base import LabelAnswer
from medtest.systems.checkpoints.checkpoint import looks_like
from medtest.systems.checkpoints.fuse import fuse_norms
from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.classification.networks.synergy import (
    CategoryGuidance,
    GlobalPrototypes,
    LesionMining,
    gumbel_gate,
)
from medtest.systems.classification.networks.xception import SeparableConv, XceptionBlock
from medtest.systems.pytorch import networks

sys.path.insert(0, str(Path(__file__).parent))
from classifier_parts import (
    ask,
    assert_answers_as_recorded,
    noise,
    small_weights,
    system_of,
)
from parity_parts import golden_state


def test_it_has_the_published_size() -> None:
    with torch.device("meta"):
        network = networks.published("dsinet")
    assert sum(p.numel() for p in network.parameters()) == 63_487_440
    assert len(network.state_dict()) == 949
    assert looks_like(network.state_dict()) == "dsinet"
    assert sum(p.numel() for p in networks.make(networks.COMPACT["dsinet"]).parameters()) <= 4_000_000


@pytest.mark.slow
def test_it_answers_as_recorded(tmp_path: Path) -> None:
    """Coarse and fine segmentation and classes, under the names that DataParallel gives in the published training."""
    torch.save({f"module.{key}": value for key, value in golden_state("dsinet").items()}, tmp_path / "d.pth")
    assert_answers_as_recorded("dsinet", tmp_path / "d.pth", 256)


def test_a_middle_block_adds_what_its_first_relu_made_of_the_input() -> None:
    torch.manual_seed(1)
    block = XceptionBlock(4, 4, dilation=2, skip=False).eval()
    torch.nn.init.zeros_(block.sepconv3.pointwise.weight)  # so that the shortcut alone is left
    x = torch.randn(2, 4, 6, 6)
    with torch.inference_mode():
        assert torch.equal(block(x)[0], x.clamp(min=0))


def test_a_block_is_its_three_convolutions_and_leaves_its_input_unchanged() -> None:
    torch.manual_seed(2)
    block = XceptionBlock(4, 6, stride=2, grows=1).eval()
    x = torch.randn(1, 4, 8, 8)
    before = x.clone()
    with torch.inference_mode():
        got, tap = block(x)
        expected_tap = block.sepconv2(block.sepconv1(x))
        expected = block.sepconv3(expected_tap) + block.skipbn(block.skip(x))
    assert torch.equal(x, before)
    assert torch.allclose(tap, expected_tap, atol=1e-6)
    assert (expected_tap < 0).any(), "the tap is before the ReLU"
    assert torch.allclose(got, expected, atol=1e-6)


def test_a_separable_convolution_at_the_end_rectifies_after_both() -> None:
    torch.manual_seed(3)
    convolution = SeparableConv(3, 5, dilation=2, rectified="after").eval()
    x = torch.randn(1, 3, 7, 7)
    with torch.inference_mode():
        inner = convolution.depthwise(x).clamp(min=0) / np.sqrt(1 + 1e-5)
        expected = convolution.pointwise(inner).clamp(min=0) / np.sqrt(1 + 1e-5)
        assert torch.allclose(convolution(x), expected, atol=1e-6)


# ------------------------------------------------------------------------------------------------- against plain NumPy


def _mine_locations(
    module: LesionMining, features: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Lesion location mining of one image, pixel by pixel."""
    channels, height, width = features.shape
    pixels = features.reshape(channels, -1).T
    background, lesion = share.reshape(2, -1)

    def gated(which: str, certainty: NDArray[np.float64]) -> NDArray[np.float64]:
        gate = {k: v.detach().double().numpy() for k, v in module.get_submodule(which).state_dict().items()}
        points = pixels[np.argsort(-certainty)[: module.points]]
        strength = np.maximum(points @ gate["conv.0.weight"].reshape(-1), 0)
        logits = gate["fc2.weight"] @ (gate["fc1.weight"] @ strength + gate["fc1.bias"]) + gate["fc2.bias"]
        return points[logits >= 0]

    def alike(points: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        similarity = np.zeros(len(pixels))
        for i in np.flatnonzero(chosen):
            for point in points:
                cosine = pixels[i] @ point / (np.linalg.norm(pixels[i]) * np.linalg.norm(point))
                similarity[i] = max(similarity[i], cosine)
        return similarity

    is_lesion = lesion > background
    weight = lesion + alike(gated("BGU_fore", lesion), ~is_lesion) - alike(gated("BGU_back", background), is_lesion)
    return np.asarray((pixels + pixels * weight[:, None]).T.reshape(channels, height, width))


def test_lesion_mining_matches_numpy() -> None:
    torch.manual_seed(4)
    module = LesionMining(6, points=9, hidden=5).double().eval()
    features = torch.randn(2, 6, 5, 7, dtype=torch.float64)
    share = torch.softmax(torch.randn(2, 2, 5, 7, dtype=torch.float64), dim=1)
    with torch.inference_mode():
        got = module(features, share).numpy()
    for i in range(2):
        expected = _mine_locations(module, features[i].numpy(), share[i].numpy())
        assert np.abs(got[i] - expected).max() < 1e-9
        assert np.abs(got[i] - features[i].numpy() * (1 + share[i, 1].numpy())).max() > 1e-3, "the maps matter"


def _normalise_columns(prototypes: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.sqrt((prototypes**2).sum(axis=0, keepdims=True))
    return np.asarray(np.divide(prototypes, norms, out=np.zeros_like(prototypes), where=norms > 0))


def _attention(prototypes: NDArray[np.float64], features: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = prototypes @ features / np.sqrt(features.shape[0])
    exponents = np.exp(scores - scores.max(axis=0))
    return np.asarray(exponents / exponents.sum(axis=0))


def test_the_guided_features_match_numpy() -> None:
    torch.manual_seed(5)
    module = CategoryGuidance(8, 4).double().eval()
    features = torch.randn(1, 8, 3, 5, dtype=torch.float64)
    share = torch.softmax(torch.randn(1, 2, 3, 5, dtype=torch.float64), dim=1)
    prototypes = torch.randn(1, 3, 4, dtype=torch.float64)
    with torch.inference_mode():
        got = module(features, share, prototypes)[0].numpy()
        first, second = (part(features)[0].flatten(1).numpy() for part in (module.conv0, module.conv1))
    belongs = share[0].flatten(1).numpy()
    for _ in range(3):
        local = _normalise_columns(belongs @ first.T)
        belongs = _attention(local, first)
    everywhere = _normalise_columns(prototypes[0].numpy())
    for _ in range(3):
        shared = _attention(everywhere, second)
        everywhere = _normalise_columns(shared @ second.T)
    rebuilt = np.concatenate([local.T @ belongs, everywhere.T @ shared])
    weight, bias = (value.detach().numpy() for value in (module.conv2[0].weight, module.conv2[0].bias))
    expected = np.maximum((weight[:, :, 0, 0] @ rebuilt + bias[:, None]) / np.sqrt(1 + 1e-5), 0)
    assert np.abs(got.reshape(4, -1) - expected).max() < 1e-5  # the published divisor has a millionth added to it


def test_prototypes_are_the_classifiers_weights_weighed_by_the_lesions_probability() -> None:
    torch.manual_seed(6)
    module = GlobalPrototypes(10, 4).eval()
    weights = torch.randn(3, 10, requires_grad=True)
    logits = torch.randn(2, 3, requires_grad=True)
    got = module(weights, logits)
    plain = module.conv1(weights.detach()[:, :, None, None])[:, :, 0, 0].detach().numpy()
    probability = np.exp(logits.detach().numpy())
    probability /= probability.sum(axis=1, keepdims=True)
    for i in range(2):
        expected = plain * np.array([1, probability[i, 1], probability[i, 2]])[:, None]
        assert np.abs(got[i].detach().numpy() - expected).max() < 1e-5
    got.sum().backward()
    assert weights.grad is None and logits.grad is None


def test_gates_in_training_are_hard_and_pass_the_gradient_of_a_sigmoid() -> None:
    """With one-sided Gumbel noise a gate of logit l is open with probability 1 - exp(-exp(l))."""
    torch.manual_seed(7)
    logits = torch.full((200_000,), -0.7, requires_grad=True)
    gate = gumbel_gate(logits)
    assert set(gate.detach().round(decimals=6).unique().tolist()) <= {0.0, 1.0}
    assert abs(gate.mean().item() - (1 - np.exp(-np.exp(-0.7)))) < 0.005
    gate.sum().backward()
    assert logits.grad is not None
    assert (logits.grad > 0).all() and (logits.grad <= 0.25 + 1e-6).all()


# --------------------------------------------------------------------------------------------------------- as a system


def _tensor(image: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1)[None]


def test_the_official_input_is_torchvisions_resize(tmp_path: Path) -> None:
    from torchvision import transforms

    network = small_weights("dsinet", tmp_path / "w.safetensors", size=256)
    image = noise(320, 320)
    steps = transforms.Compose([transforms.Resize(256), transforms.ToTensor()])
    with torch.inference_mode():
        expected_input = steps(Pillow.fromarray(image))[None]
        _, fine, logits = network(expected_input)
    system = system_of("dsinet", checkpoint=str(tmp_path / "w.safetensors"))
    (got,), inputs = ask(system, image)
    assert torch.allclose(inputs, expected_input, atol=1e-6)
    assert isinstance(got, LabelAnswer)
    assert np.abs(got.scores - logits[0].numpy()).max() < 1e-4
    assert got.mask.shape == (256, 256)
    assert np.abs(got.mask - torch.sigmoid(fine[0, 1] - fine[0, 0]).numpy()).max() < 1e-4
    assert system.classes == CAPSULE
    assert system.answer_form == "logits"


def test_as_is_takes_sides_that_are_multiples_of_eight(tmp_path: Path) -> None:
    network = small_weights("dsinet", tmp_path / "w.safetensors", size=256)
    images = [noise(224, 240), noise(225, 240)]
    got, _ = ask(system_of("dsinet", checkpoint=str(tmp_path / "w.safetensors"), input="as_is"), *images)
    with torch.inference_mode():
        expected = network(_tensor(images[0]))[2][0].numpy()
    assert np.abs(got[0].scores - expected).max() < 1e-4
    assert [answer.mask.shape for answer in got] == [(224, 240), (256, 256)]


def test_images_of_unfit_sizes_are_refused() -> None:
    network = networks.make(networks.COMPACT["dsinet"])
    with pytest.raises(MedtestError, match="multiples of 8"):
        network(torch.zeros(1, 3, 48, 48))
    for height, width in ((256, 260), (260, 256)):
        with pytest.raises(MedtestError, match=f"{width}×{height}"):
            network(torch.zeros(1, 3, height, width))
    with pytest.raises(MedtestError, match="100×100"):
        network(torch.zeros(1, 3, 100, 100))


def test_folding_its_norms_keeps_the_answers() -> None:
    torch.manual_seed(8)
    network = networks.make(networks.COMPACT["dsinet"])
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    x = torch.rand(1, 3, 128, 128)
    norms = sum(isinstance(m, torch.nn.BatchNorm2d) for m in network.modules())
    with torch.inference_mode():
        before = network(x)
        assert fuse_norms(network, x) == norms
        after = network(x)
    for before_fusing, after_fusing in zip(before, after, strict=True):
        assert torch.allclose(before_fusing, after_fusing, atol=1e-4)


def test_weights_of_other_classes_name_them(tmp_path: Path) -> None:
    config = networks.COMPACT["dsinet"]
    names = ("clean", "ulcer", "bleeding")
    info = WeightsInfo(network=networks.describe(config), size=256, classes=names)
    save_weights(tmp_path / "w.safetensors", networks.make(config).state_dict(), info)
    assert system_of("dsinet", checkpoint=str(tmp_path / "w.safetensors")).classes == Classes(names=names)
