from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from scipy.special import expit, softmax

from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.phantoms.classes import DERMOSCOPY
from medtest.systems import build_network
from medtest.systems.checkpoints.weights import load_network
from medtest.systems.classification.networks.attnmel import AttentionModule, AttnMel, AttnMelConfig
from medtest.systems.pytorch import networks

sys.path.insert(0, str(Path(__file__).parent))
from classifier_parts import (
    ask,
    assert_answers_as_recorded,
    noise,
    normalised,
    small_weights,
    system_of,
)
from parity_parts import assert_compact, assert_published_size, golden_state

ISIC = {
    "isic2016": {"mean": (0.7012, 0.5517, 0.4875), "std": (0.0942, 0.1331, 0.1521)},
    "isic2017": {"mean": (0.6820, 0.5312, 0.4736), "std": (0.0840, 0.1140, 0.1282)},
}


def test_it_has_the_published_size() -> None:
    assert_published_size("attnmel", parameters=15_184_964, tensors=101)
    assert_compact("attnmel")


def test_it_answers_as_recorded(tmp_path: Path) -> None:
    """The file in its authors' format: weights together with the optimiser's state."""
    state = golden_state("attnmel")
    torch.save(
        {"state_dict": state, "opt_state_dict": {"state": {}, "param_groups": [{"lr": 0.01}]}}, tmp_path / "c.pth"
    )
    assert_answers_as_recorded("attnmel", tmp_path / "c.pth", 224)


def _resized_by_hand(grid: np.ndarray, factor: int) -> np.ndarray:
    """Bilinear, corners not aligned: a cell's centre lies at (i + 0.5) / factor - 0.5, clamped at the border."""
    side = grid.shape[-1]
    places = np.clip((np.arange(side * factor) + 0.5) / factor - 0.5, 0, None)
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, side - 1)
    share = places - low
    rows = grid[..., low, :] * (1 - share)[:, None] + grid[..., high, :] * share[:, None]
    return rows[..., low] * (1 - share) + rows[..., high] * share


@pytest.mark.parametrize("attention", ["sigmoid", "softmax"])
def test_attention_is_the_papers_formula(attention: str) -> None:
    """Section 2 of the paper in NumPy and SciPy: weights of places, and the weighted features."""
    torch.manual_seed(4)
    module = AttentionModule(5, 7, 6, attention).eval()  # type: ignore[arg-type]
    local, whole = torch.randn(2, 5, 8, 8), torch.randn(2, 7, 2, 2)
    with torch.inference_mode():
        weights, vector = module(local, whole)
    kernels = {name: value.double().numpy() for name, value in module.state_dict().items()}
    features = local.double().numpy()
    of_local = np.einsum("oc,bchw->bohw", kernels["W_l.weight"][..., 0, 0], features)
    of_whole = np.einsum("oc,bchw->bohw", kernels["W_g.weight"][..., 0, 0], whole.double().numpy())
    judged = np.maximum(of_local + _resized_by_hand(of_whole, 4), 0)
    scores = np.einsum("oc,bchw->bohw", kernels["phi.weight"][..., 0, 0], judged) + kernels["phi.bias"][0]
    if attention == "softmax":
        expected = softmax(scores.reshape(2, -1), axis=1).reshape(scores.shape)
        pooled = (expected * features).sum(axis=(2, 3))
        assert np.allclose(weights.sum(dim=(1, 2, 3)).numpy(), 1, atol=1e-6)
    else:
        expected = expit(scores)
        pooled = (expected * features).mean(axis=(2, 3))
    assert np.abs(weights.numpy() - expected).max() < 1e-6
    assert np.abs(vector.numpy() - pooled).max() < 1e-6


def test_one_checkpoint_gives_other_answers_in_the_other_attention(tmp_path: Path) -> None:
    network = AttnMel(AttnMelConfig(widths=(4, 4, 6, 8, 8), attention_width=4)).eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        sigmoid_answer = network(x)[0]
        network.attend("softmax")
        softmax_answer = network(x)[0]
    assert network.attn1.attention == network.attn2.attention == "softmax"
    assert (sigmoid_answer - softmax_answer).abs().max() > 1e-4
    with pytest.raises(ValueError, match="sigmoid and softmax are possible"):
        network.attend("hard")  # type: ignore[arg-type]


def test_a_description_with_another_attention_is_refused(tmp_path: Path) -> None:
    small_weights("attnmel", tmp_path / "w.safetensors")
    config = networks.COMPACT["attnmel"]
    from medtest.systems.checkpoints.weights import WeightsInfo, save_weights

    described = {**networks.describe(config), "attention": "hard"}
    state = networks.make(config).state_dict()
    save_weights(tmp_path / "w.safetensors", state, WeightsInfo(network=described, size=224))
    with pytest.raises(MedtestError, match="cannot be built"):
        load_network(tmp_path / "w.safetensors")


@pytest.mark.parametrize("attention", [None, "softmax"])
@pytest.mark.parametrize("statistics", ISIC)
def test_official_input_is_what_torchvision_makes(attention: str | None, statistics: str, tmp_path: Path) -> None:
    from torchvision import transforms

    network = small_weights("attnmel", tmp_path / "w.safetensors")
    system = system_of(
        "attnmel", checkpoint=str(tmp_path / "w.safetensors"), attention=attention, statistics=statistics
    )
    image = noise(301, 437)
    steps = transforms.Compose(
        [transforms.CenterCrop(int(0.8 * 301)), transforms.Resize((256, 256)), transforms.CenterCrop(224)]
    )
    expected_input = normalised(steps(Pillow.fromarray(image)), ISIC[statistics])
    network.attend(attention or "sigmoid")
    with torch.inference_mode():
        expected = network(expected_input)[0][0].numpy()
    (got,), inputs = ask(system, image)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(got - expected).max() < 1e-4
    assert system.answer_form == "logits"
    assert system.classes == DERMOSCOPY


def test_as_is_neither_crops_nor_resizes(tmp_path: Path) -> None:
    network = small_weights("attnmel", tmp_path / "w.safetensors")
    image = noise(224, 224)
    expected_input = normalised(Pillow.fromarray(image), ISIC["isic2016"])
    with torch.inference_mode():
        expected = network(expected_input)[0][0].numpy()
    system = system_of("attnmel", checkpoint=str(tmp_path / "w.safetensors"), input="as_is")
    (got,), inputs = ask(system, image)
    assert torch.allclose(inputs, expected_input, atol=1e-5)
    assert np.abs(got - expected).max() < 1e-4


def test_the_published_network_is_built_by_name() -> None:
    with torch.inference_mode():
        outputs = build_network("attnmel")(torch.zeros(1, 3, 64, 64))
    assert [tuple(output.shape) for output in outputs] == [(1, 2), (1, 1, 8, 8), (1, 1, 4, 4)]


@pytest.mark.parametrize("name", ["agdn", "dsinet", "attnmel", "inceptionv3_dr", "chexnet"])
def test_compact_networks_claim_only_data_sets_of_their_training(name):
    assert part("systems", name).defaults["trained_on"] == []
