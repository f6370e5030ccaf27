"""AGDN: its checkpoint, and the network as a system."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from medtest.core.errors import MedtestError
from medtest.phantoms.classes import CAPSULE
from medtest.systems import build_network
from medtest.systems.checkpoints import tensorflow
from medtest.systems.checkpoints.checkpoint import CheckpointMismatch, looks_like, read_state
from medtest.systems.checkpoints.fuse import fuse_norms
from medtest.systems.classification.networks import agdn as network_of
from medtest.systems.classification.networks.aggregation import SpectralConv
from medtest.systems.pytorch import networks

sys.path.insert(0, str(Path(__file__).parent))
import agdn_numpy
from classifier_parts import ask, noise, small_weights, system_of

PUBLISHED = (4, 8, 12, 8)
Arrays = dict[str, NDArray[np.float32]]


def _shapes(layers: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the published graph's variables: name and shape, kernels height × width × inputs × outputs."""
    shapes: dict[str, tuple[int, ...]] = {}

    def norm(scope: str, channels: int) -> None:
        for name in ("beta", "gamma", "moving_mean", "moving_variance"):
            shapes[f"{scope}/BatchNorm/{name}"] = (channels,)

    for net in ("net1", "net2"):
        shapes[f"{net}/Initial_convolution/kernel"] = (3, 3, 3, 24)
        width = 24
        for block, count in enumerate(layers):
            for layer in range(count):
                scope = f"{net}/Block_{block}/layer_{layer}"
                norm(f"{scope}/bottleneck", width)
                shapes[f"{scope}/bottleneck/kernel"] = (1, 1, width, 48)
                norm(f"{scope}/composite_function", 48)
                shapes[f"{scope}/composite_function/kernel"] = (3, 3, 48, 12)
                width += 12
            if block == 3:
                break
            scope = f"{net}/Transition_after_block_{block}/composite_function"
            norm(scope, width)
            shapes[f"{scope}/kernel"] = (1, 1, width, width // 2)
            width //= 2
            name = f"TLFA{block + 1}"
            scope = f"{net}/{name}/{name}f_conv"
            shapes[f"{scope}/conv2d/kernel"], shapes[f"{scope}/conv2d/bias"] = (3, 3, width, 18), (18,)
            few = width // 4
            shapes[f"{scope}/feature/kernel"], shapes[f"{scope}/feature/bias"] = (3, 3, width, few), (few,)
            shapes[f"{scope}/feature/u"] = (1, few)
            scope = f"{net}/{name}"
            shapes[f"{scope}/h_conv/kernel"], shapes[f"{scope}/h_conv/bias"] = (1, 1, width, width), (width,)
            shapes[f"{scope}/h_conv/u"], shapes[f"{scope}/gamma"] = (1, width), (1,)
        norm(f"{net}/Transition_to_classes", width)
        shapes[f"{net}/Transition_to_classes/final_layer/kernel"] = (1, 1, width, 3)
    norm("Sum_branch", 2 * width)
    shapes["Sum_branch/final_layer/kernel"] = (1, 1, 2 * width, 3)
    return shapes


def _arrays(layers: tuple[int, ...] = PUBLISHED) -> Arrays:
    """Draw weights of a checkpoint, such that every part of the network matters to the answer."""
    rng = np.random.default_rng(11)
    arrays: Arrays = {}
    for name, shape in _shapes(layers).items():
        value = 0.1 * rng.standard_normal(shape)
        if name.endswith("conv2d/kernel"):  # offsets of a few places, some beyond what is allowed
            value = rng.standard_normal(shape) * 3 / np.sqrt(np.prod(shape[:-1]))
        elif name.endswith("kernel"):
            value = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:-1]))
        elif name.endswith("moving_variance"):
            value = rng.uniform(0.5, 1.5, shape)
        elif name.endswith("BatchNorm/gamma"):
            value = 1 + 0.1 * rng.standard_normal(shape)
        elif name.endswith("gamma"):
            value = np.array([0.8])
        elif name.endswith("/u"):
            value = rng.standard_normal(shape)
        arrays[name] = value.astype(np.float32)
    return arrays


def _smooth(side: int = 320) -> NDArray[np.uint8]:
    rng = np.random.default_rng(4)
    y, x = np.mgrid[0:side, 0:side] / side
    waves = [sum(np.sin(2 * np.pi * (a * y + b * x) + c) for a, b, c in rng.uniform(0.5, 6, (5, 3))) for _ in range(3)]
    return np.stack([np.clip(128 + 40 * wave, 0, 255) for wave in waves], axis=-1).astype(np.uint8)


def _tensor(image: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1)[None]


# ------------------------------------------------------------------------------------------------------ the checkpoint


def test_it_has_the_published_size() -> None:
    """The graph has 741 variables, whose trained ones hold 941,832 numbers."""
    with torch.device("meta"):
        network = networks.published("agdn")
    assert sum(p.numel() for p in network.parameters()) == 941_832
    names = [name for name in network.state_dict() if not name.endswith("num_batches_tracked")]
    assert len(names) == len(_shapes(PUBLISHED)) == 741
    assert {tensorflow.name_of(name) for name in _shapes(PUBLISHED)} == set(names)
    assert sum(p.numel() for p in networks.make(networks.COMPACT["agdn"]).parameters()) <= 4_000_000


@pytest.mark.slow
def test_the_published_network_answers_as_numpy_does(tmp_path: Path) -> None:
    """The arrays of a TensorFlow checkpoint, with its optimizer's slots, give three times three probabilities."""
    arrays = _arrays()
    slots = {f"{name}/Momentum": value for name, value in arrays.items() if not name.endswith(("/u", "moving_mean"))}
    np.savez(tmp_path / "agdn.npz", **arrays, **slots)
    network = build_network("agdn", tmp_path / "agdn.npz")
    image = _smooth()
    with torch.inference_mode():
        outputs = network(*network_of.inputs_of(_tensor(image)))
    expected_outputs = agdn_numpy.agdn(image / 255, arrays, PUBLISHED)
    assert np.std([values[2] for values in expected_outputs]) > 0.01, "the three answers differ"
    for got, expected in zip(outputs, expected_outputs, strict=True):
        assert got.shape == (1, 3)
        assert np.abs(got[0].numpy() - expected).max() < 1e-4


def test_an_npz_file_is_loaded_strictly(tmp_path: Path) -> None:
    arrays = _arrays()
    name = "net2/TLFA3/h_conv/u"
    np.savez(tmp_path / "a.npz", **{key: value for key, value in arrays.items() if key != name}, step=np.zeros(1))
    with pytest.raises(CheckpointMismatch, match=r"missing \(1\): net2\.TLFA3\.h_conv\.u\n.*unexpected \(1\): step"):
        build_network("agdn", tmp_path / "a.npz")
    with pytest.raises(CheckpointMismatch, match="this looks like agdn"):
        build_network("attnmel", tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", **{f"{key}:0": value for key, value in arrays.items()})
    assert looks_like(read_state(tmp_path / "b.npz")) == "agdn"


def test_an_npz_file_runs_no_code_and_takes_no_more_memory_than_it_has(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", a=np.array([Path], dtype=object))
    with pytest.raises(MedtestError, match="no plain array of numbers"):
        read_state(tmp_path / "objects.npz")
    with zipfile.ZipFile(tmp_path / "claims.npz", "w") as archive, archive.open("a.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})
    with pytest.raises(MedtestError, match="claims"):
        read_state(tmp_path / "claims.npz")
    (tmp_path / "text.npz").write_text("no archive", encoding="utf-8")
    with pytest.raises(MedtestError, match="not an .npz file that can be read"):
        read_state(tmp_path / "text.npz")
    zipfile.ZipFile(tmp_path / "empty.npz", "w").close()
    with pytest.raises(MedtestError, match="no weights"):
        read_state(tmp_path / "empty.npz")


def test_arrays_of_any_order_of_axes_and_bytes_are_read(tmp_path: Path) -> None:
    kernel = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    np.savez(tmp_path / "a.npz", **{"a/kernel": np.asfortranarray(kernel), "b/kernel": kernel.astype(">f4")})
    state = read_state(tmp_path / "a.npz")
    for value in state.values():
        assert np.array_equal(value.numpy(), kernel.transpose(3, 2, 0, 1))


# --------------------------------------------------------------------------------------------------------- the network


def test_a_step_of_training_keeps_the_three_parts_apart() -> None:
    torch.manual_seed(6)
    network = networks.make(networks.COMPACT["agdn"]).train()
    outputs = network(*network_of.inputs_of(torch.rand(2, 3, 160, 160)))
    assert isinstance(outputs, network_of.AGDNOutputs)
    assert outputs.warped.shape == outputs.attention.shape == (2, 1, 8, 8)
    for logits, own in ((outputs.first, "net1"), (outputs.second, "net2"), (outputs.both, "Sum_branch")):
        network.zero_grad()
        logits.square().sum().backward(retain_graph=True)
        reached = {n.split(".")[0] for n, p in network.named_parameters() if p.grad is not None and p.grad.abs().sum()}
        assert reached == {own}


def test_the_answer_is_the_same_in_logits_and_in_probabilities() -> None:
    torch.manual_seed(7)
    network = networks.make(networks.COMPACT["agdn"])
    inputs = network_of.inputs_of(torch.rand(2, 3, 128, 160))
    with torch.inference_mode():
        evaluated = network(*inputs)
        for module in network.modules():  # evaluation's statistics, training's outputs
            module.training = not isinstance(module, torch.nn.BatchNorm2d | SpectralConv)
        trained = network(*inputs)
    got = torch.softmax(network_of.answer_of(trained), dim=1)
    assert torch.allclose(got, evaluated[2], atol=1e-6)
    assert torch.allclose(torch.exp(network_of.answer_of(evaluated)), evaluated[2], atol=1e-6)


def test_folding_its_norms_keeps_the_answers() -> None:
    torch.manual_seed(8)
    network = networks.make(networks.COMPACT["agdn"])
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    inputs = network_of.inputs_of(torch.rand(1, 3, 128, 128))
    with torch.inference_mode():
        before = network(*inputs)
        assert fuse_norms(network, *inputs) == 2 * sum(networks.COMPACT["agdn"].layers)
        after = network(*inputs)
    for before_fusing, after_fusing in zip(before, after, strict=True):
        assert torch.allclose(before_fusing, after_fusing, atol=1e-5)


def test_as_a_system_it_takes_images_at_320_or_unresized(tmp_path: Path) -> None:
    from torchvision import transforms

    network = small_weights("agdn", tmp_path / "w.safetensors", size=320)
    image = noise(200, 260)
    resized = transforms.functional.to_tensor(transforms.Resize((320, 320))(transforms.functional.to_pil_image(image)))
    for way, image_input in (("official", resized[None]), ("as_is", _tensor(image))):
        system = system_of("agdn", checkpoint=str(tmp_path / "w.safetensors"), input=way)
        (got,), inputs = ask(system, image)
        with torch.inference_mode():
            small, _ = network_of.inputs_of(image_input)
            expected = network(small, image_input)[2][0].numpy()
        assert torch.allclose(inputs, small, atol=1e-6)
        assert np.abs(got - expected).max() < 1e-4
        assert system.answer_form == "probabilities"
        assert system.classes == CAPSULE
        assert abs(got.sum() - 1) < 1e-5
