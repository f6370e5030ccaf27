from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg

from medtest.classes import CAPSULE
from medtest.errors import MedtestError
from medtest.systems import build_network, networks
from medtest.systems.checkpoints import tensorflow
from medtest.systems.checkpoints.checkpoint import CheckpointMismatch, looks_like, read_state
from medtest.systems.checkpoints.fuse import fuse_norms
from medtest.systems.classification.networks import agdn as network_of
from medtest.systems.classification.networks import deformation
from medtest.systems.classification.networks.aggregation import Aggregation, DeformableConv, SpectralConv

sys.path.insert(0, str(Path(__file__).parent))
import agdn_numpy  # noqa: E402
from classifier_parts import asked, noise, small_weights, system_of  # noqa: E402

PUBLISHED = (4, 8, 12, 8)
Arrays = dict[str, NDArray[np.float32]]


def _shapes(layers: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the published graph's variables: name and shape, kernels height × width × inputs × outputs."""  # noqa: RUF002
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
    """From the arrays of a TensorFlow checkpoint, with its optimizer's slots, to three times three probabilities."""
    arrays = _arrays()
    slots = {f"{name}/Momentum": value for name, value in arrays.items() if not name.endswith(("/u", "moving_mean"))}
    np.savez(tmp_path / "agdn.npz", **arrays, **slots)
    network = build_network("agdn", tmp_path / "agdn.npz")
    image = _smooth()
    with torch.inference_mode():
        outputs = network(*network_of.inputs_of(_tensor(image)))
    wanted = agdn_numpy.agdn(image / 255, arrays, PUBLISHED)
    assert np.std([one[2] for one in wanted]) > 0.01, "the three answers differ"
    for got, one in zip(outputs, wanted, strict=True):
        assert got.shape == (1, 3)
        assert np.abs(got[0].numpy() - one).max() < 1e-4


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
    with pytest.raises(MedtestError, match="which are not there"):
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


# -------------------------------------------------------------------------------------------------------- the formulas


def test_resizing_is_tensorflows_of_old() -> None:
    """Twice as many places: every second one lies between two, and the last repeats."""
    ramp = torch.arange(4.0).view(1, 1, 1, 4)
    assert deformation.legacy_resize(ramp, 1, 8).flatten().tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]
    assert deformation.legacy_resize(ramp, 1, 2).flatten().tolist() == [0, 2]


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 20), st.integers(1, 20))
@settings(deadline=None, max_examples=30)
def test_resizing_is_that_of_numpy(height: int, width: int, to_height: int, to_width: int) -> None:
    image = np.random.default_rng(height * width).standard_normal((height, width, 2))
    given = torch.from_numpy(image).permute(2, 0, 1)[None]
    got = deformation.legacy_resize(given, to_height, to_width)[0].permute(1, 2, 0).numpy()
    assert np.abs(got - agdn_numpy.resize(image, to_height, to_width)).max() < 1e-12


@pytest.mark.parametrize("size", [6, 7])
def test_pooling_pads_as_tensorflow_does(size: int) -> None:
    """SAME: an even side lacks one place after its end, an odd one a place at both ends."""
    x = torch.randn(1, 2, size, size)
    before, after = (0, 1) if size == 6 else (1, 1)
    padded = np.pad(x[0].numpy(), ((0, 0), (before, after), (before, after)), constant_values=-np.inf)
    count = -(-size // 2)
    wanted = [
        [padded[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max(axis=(1, 2)) for j in range(count)] for i in range(count)
    ]
    assert np.array_equal(network_of.pool_same(x)[0].permute(1, 2, 0).numpy(), np.array(wanted))


def test_a_deformable_convolution_is_that_of_scipy() -> None:
    torch.manual_seed(1)
    module = DeformableConv(5, 4).eval()
    torch.nn.init.normal_(module.conv2d.weight, std=0.6)
    torch.nn.init.normal_(module.conv2d.bias, std=0.6)  # type: ignore[arg-type]
    x = torch.randn(1, 5, 8, 8)
    with torch.inference_mode():
        got = module(x)[0].permute(1, 2, 0).numpy()
        offsets = module.conv2d(x)[0].permute(1, 2, 0).double().numpy()
    assert (np.abs(offsets) > 2).any(), "some reach beyond a quarter of the height"
    kernel, bias, u = (
        value.detach().double().numpy() for value in (module.feature.weight, module.feature.bias, module.feature.u)
    )
    normalised = agdn_numpy.spectral(kernel.transpose(2, 3, 1, 0), u)
    wanted = agdn_numpy.deformable(x[0].permute(1, 2, 0).double().numpy(), normalised, bias, np.clip(offsets, -2, 2))
    assert np.abs(got - wanted).max() < 1e-4


def test_a_fresh_deformable_convolution_is_a_plain_one() -> None:
    module = DeformableConv(3, 4).eval()
    x = torch.randn(2, 3, 6, 7)
    with torch.inference_mode():
        assert torch.allclose(module(x), module.feature(x), atol=1e-5)


def test_spectral_norm_converges_to_the_largest_singular_value_in_training_alone() -> None:
    torch.manual_seed(2)
    module = SpectralConv(6, 5, 3)
    largest = linalg.svdvals(module.weight.detach().numpy().reshape(5, -1))[0]
    module.eval()
    before, first = module.u.clone(), module.normalised()
    assert torch.equal(module.normalised(), first) and torch.equal(module.u, before), "an answer changes nothing"
    module.train()
    for _ in range(100):
        module.normalised()
    module.eval()
    assert not torch.equal(module.u, before)
    assert torch.allclose(module.normalised(), module.weight / largest, rtol=1e-4)
    wanted = agdn_numpy.spectral(module.weight.detach().permute(2, 3, 1, 0).double().numpy(), before.double().numpy())
    assert np.abs(first.detach().permute(2, 3, 1, 0).numpy() - wanted).max() < 1e-6


def test_the_gradient_goes_through_the_singular_value_not_through_its_vectors() -> None:
    """Miyato et al., eq. 11: with u and v held, dσ/dW = u vᵀ."""
    torch.manual_seed(3)
    module = SpectralConv(3, 2, 1).double().eval()
    weight = module.weight.detach().flatten(1).numpy()
    v = module.u.numpy() @ weight
    v /= np.linalg.norm(v)
    u = v @ weight.T
    u /= np.linalg.norm(u)
    sigma = (u @ weight @ v.T).item()
    weights = torch.randn_like(module.weight)
    (module.normalised() * weights).sum().backward()
    assert module.weight.grad is not None
    inner = (weights.flatten(1).numpy() * weight).sum()
    wanted = weights.flatten(1).numpy() / sigma - inner / sigma**2 * (u.T @ v)
    assert np.abs(module.weight.grad.flatten(1).numpy() - wanted).max() < 1e-9


def test_an_aggregation_begins_as_identity_and_is_that_of_numpy() -> None:
    torch.manual_seed(4)
    module = Aggregation(9, "TLFA1").eval()
    x = torch.randn(1, 9, 8, 8)
    with torch.inference_mode():
        assert torch.equal(module(x), x)
        module.gamma.fill_(0.7)
        torch.nn.init.normal_(module.get_submodule("TLFA1f_conv.conv2d").weight, std=0.2)  # type: ignore[arg-type]
        got = module(x)[0].permute(1, 2, 0).numpy()
    arrays = {
        f"TLFA1/{key.replace('.', '/').replace('weight', 'kernel')}": (
            value.permute(2, 3, 1, 0) if value.ndim == 4 else value
        )
        .double()
        .numpy()
        for key, value in module.state_dict().items()
    }
    wanted = agdn_numpy.aggregate(x[0].permute(1, 2, 0).double().numpy(), arrays, "TLFA1")
    assert np.abs(got - wanted).max() < 1e-5


def _guide(size: int = 31) -> NDArray[np.float64]:
    y, x = np.mgrid[0:size, 0:size]
    blob = np.exp(-((x - 22) ** 2 + (y - 8) ** 2) / 30) + 0.3 * np.exp(-((x - 5) ** 2 + (y - 25) ** 2) / 10)
    return np.asarray(blob + 1e-8)


def test_the_sampling_grids_are_those_of_scipy() -> None:
    guide = _guide()
    given = torch.from_numpy(guide)[None, None]
    structured, pixelwise = agdn_numpy.grids(guide)
    got = deformation.structured_grid(given)[0].permute(1, 2, 0).numpy()
    assert np.abs(got - structured).max() < 1e-12
    got = deformation.pixel_grid(given)[0].permute(1, 2, 0).numpy()
    assert np.abs(got - pixelwise).max() < 1e-6  # fftconvolve's rounding, over sums as small as 1e-8


def test_an_even_map_leaves_the_image_as_it_is_resized() -> None:
    """Nothing is drawn anywhere: place i of 31 looks at i / 30."""
    flat = torch.ones(1, 1, 31, 31, dtype=torch.float64)
    straight = torch.linspace(0, 1, 31, dtype=torch.float64)
    for grid in (deformation.structured_grid(flat), deformation.pixel_grid(flat)):
        assert torch.allclose(grid[0, 0], straight[None, :].expand(31, 31), atol=1e-12)
        assert torch.allclose(grid[0, 1], straight[:, None].expand(31, 31), atol=1e-12)


def test_what_has_attention_becomes_larger() -> None:
    guide = _guide()
    square = np.zeros((320, 320, 1))
    square[60:110, 205:255] = 1  # about the blob: row 8 and column 22 of 31
    image = torch.from_numpy(square).permute(2, 0, 1)[None].float()
    deformed = deformation.deform(image, torch.from_numpy(guide)[None, None], side=128)
    assert deformed.mean() > 1.5 * square.mean()
    wanted = agdn_numpy.deform(square, guide, 128)
    assert np.abs(deformed[0].permute(1, 2, 0).numpy() - wanted).max() < 2e-3  # float32 places at a sharp edge


def test_attention_lies_between_nothing_and_one() -> None:
    torch.manual_seed(5)
    features = torch.randn(2, 7, 8, 8, dtype=torch.float64)
    got = deformation.attention_of(features)
    for i in range(2):
        wanted = agdn_numpy.attention(features[i].permute(1, 2, 0).numpy())
        assert np.abs(got[i, 0].numpy() - wanted).max() < 1e-12
        assert wanted.max() == 1 and 0 < wanted.min() < 1e-6
    assert (deformation.attention_of(torch.zeros(1, 3, 4, 4)) == 1).all()


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
    given = network_of.inputs_of(torch.rand(2, 3, 128, 160))
    with torch.inference_mode():
        evaluated = network(*given)
        for module in network.modules():  # evaluation's statistics, training's outputs
            module.training = not isinstance(module, torch.nn.BatchNorm2d | SpectralConv)
        trained = network(*given)
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
    given = network_of.inputs_of(torch.rand(1, 3, 128, 128))
    with torch.inference_mode():
        before = network(*given)
        assert fuse_norms(network, *given) == 2 * sum(networks.COMPACT["agdn"].layers)
        after = network(*given)
    for one, other in zip(before, after, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_as_a_system_it_takes_images_at_320_or_as_they_are(tmp_path: Path) -> None:
    from torchvision import transforms

    network = small_weights("agdn", tmp_path / "w.safetensors", size=320)
    image = noise(200, 260)
    resized = transforms.functional.to_tensor(transforms.Resize((320, 320))(transforms.functional.to_pil_image(image)))
    for way, taken in (("official", resized[None]), ("as_is", _tensor(image))):
        system = system_of("agdn", checkpoint=str(tmp_path / "w.safetensors"), input=way)
        (got,), seen = asked(system, image)
        with torch.inference_mode():
            small, _ = network_of.inputs_of(taken)
            wanted = network(small, taken)[2][0].numpy()
        assert torch.allclose(seen, small, atol=1e-6)
        assert np.abs(got - wanted).max() < 1e-4
        assert system.answer_form == "probabilities"
        assert system.classes == CAPSULE
        assert abs(got.sum() - 1) < 1e-5


def test_training_samples_taps_as_torchvision_convolves():
    from torchvision.ops import deform_conv2d

    from medtest.systems.classification.networks.aggregation import sampled_convolution

    torch.manual_seed(3)
    x = torch.randn(2, 7, 13, 19, requires_grad=True)
    offsets = (torch.randn(2, 18, 13, 19) * 4).requires_grad_()
    weight, bias = torch.randn(5, 7, 3, 3, requires_grad=True), torch.randn(5)
    ours = sampled_convolution(x, offsets, weight, bias)
    theirs = deform_conv2d(x, offsets, weight, bias, padding=1)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    towards = torch.randn_like(theirs)
    for mine, other in zip(
        torch.autograd.grad(ours, (x, offsets, weight), towards),
        torch.autograd.grad(theirs, (x, offsets, weight), towards),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, atol=2e-3, rtol=1e-3)
