"""AGDN's formulas: resizing, deformable convolution, spectral norm, aggregation, sampling grids."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg

from medtest.systems.classification.networks import agdn as network_of
from medtest.systems.classification.networks import deformation
from medtest.systems.classification.networks.aggregation import Aggregation, DeformableConv, SpectralConv

sys.path.insert(0, str(Path(__file__).parent))
import agdn_numpy


def test_resizing_equals_tensorflow_1() -> None:
    """Twice as many places: every second one lies between two, and the last repeats."""
    ramp = torch.arange(4.0).view(1, 1, 1, 4)
    assert deformation.legacy_resize(ramp, 1, 8).flatten().tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]
    assert deformation.legacy_resize(ramp, 1, 2).flatten().tolist() == [0, 2]


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 20), st.integers(1, 20))
def test_resizing_matches_numpy(height: int, width: int, to_height: int, to_width: int) -> None:
    image = np.random.default_rng(height * width).standard_normal((height, width, 2))
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None]
    got = deformation.legacy_resize(tensor, to_height, to_width)[0].permute(1, 2, 0).numpy()
    assert np.abs(got - agdn_numpy.resize(image, to_height, to_width)).max() < 1e-12


@pytest.mark.parametrize("size", [6, 7])
def test_pooling_pads_as_tensorflow_does(size: int) -> None:
    """SAME: an even side lacks one place after its end, an odd one a place at both ends."""
    x = torch.randn(1, 2, size, size)
    before, after = (0, 1) if size == 6 else (1, 1)
    padded = np.pad(x[0].numpy(), ((0, 0), (before, after), (before, after)), constant_values=-np.inf)
    count = -(-size // 2)
    expected = [
        [padded[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max(axis=(1, 2)) for j in range(count)] for i in range(count)
    ]
    assert np.array_equal(network_of.pool_same(x)[0].permute(1, 2, 0).numpy(), np.array(expected))


def test_a_deformable_convolution_matches_scipy() -> None:
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
    expected = agdn_numpy.deformable(x[0].permute(1, 2, 0).double().numpy(), normalised, bias, np.clip(offsets, -2, 2))
    assert np.abs(got - expected).max() < 1e-4


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
    expected = agdn_numpy.spectral(module.weight.detach().permute(2, 3, 1, 0).double().numpy(), before.double().numpy())
    assert np.abs(first.detach().permute(2, 3, 1, 0).numpy() - expected).max() < 1e-6


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
    expected = weights.flatten(1).numpy() / sigma - inner / sigma**2 * (u.T @ v)
    assert np.abs(module.weight.grad.flatten(1).numpy() - expected).max() < 1e-9


def test_an_aggregation_begins_as_identity_and_matches_numpy() -> None:
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
    expected = agdn_numpy.aggregate(x[0].permute(1, 2, 0).double().numpy(), arrays, "TLFA1")
    assert np.abs(got - expected).max() < 1e-5


def _guide(size: int = 31) -> NDArray[np.float64]:
    y, x = np.mgrid[0:size, 0:size]
    blob = np.exp(-((x - 22) ** 2 + (y - 8) ** 2) / 30) + 0.3 * np.exp(-((x - 5) ** 2 + (y - 25) ** 2) / 10)
    return np.asarray(blob + 1e-8)


def test_the_sampling_grids_match_scipy() -> None:
    guide = _guide()
    tensor = torch.from_numpy(guide)[None, None]
    structured, pixelwise = agdn_numpy.grids(guide)
    got = deformation.structured_grid(tensor)[0].permute(1, 2, 0).numpy()
    assert np.abs(got - structured).max() < 1e-12
    got = deformation.pixel_grid(tensor)[0].permute(1, 2, 0).numpy()
    assert np.abs(got - pixelwise).max() < 1e-6  # fftconvolve's rounding, over sums as small as 1e-8


def test_an_even_map_leaves_the_image_as_it_is_resized() -> None:
    """Nothing is drawn anywhere: place i of 31 looks at i / 30."""
    flat = torch.ones(1, 1, 31, 31, dtype=torch.float64)
    straight = torch.linspace(0, 1, 31, dtype=torch.float64)
    for grid in (deformation.structured_grid(flat), deformation.pixel_grid(flat)):
        assert torch.allclose(grid[0, 0], straight[None, :].expand(31, 31), atol=1e-12)
        assert torch.allclose(grid[0, 1], straight[:, None].expand(31, 31), atol=1e-12)


def test_regions_with_attention_become_larger() -> None:
    guide = _guide()
    square = np.zeros((320, 320, 1))
    square[60:110, 205:255] = 1  # about the blob: row 8 and column 22 of 31
    image = torch.from_numpy(square).permute(2, 0, 1)[None].float()
    deformed = deformation.deform(image, torch.from_numpy(guide)[None, None], side=128)
    assert deformed.mean() > 1.5 * square.mean()
    expected = agdn_numpy.deform(square, guide, 128)
    assert np.abs(deformed[0].permute(1, 2, 0).numpy() - expected).max() < 2e-3  # float32 places at a sharp edge


def test_attention_is_between_zero_and_one() -> None:
    torch.manual_seed(5)
    features = torch.randn(2, 7, 8, 8, dtype=torch.float64)
    got = deformation.attention_of(features)
    for i in range(2):
        expected = agdn_numpy.attention(features[i].permute(1, 2, 0).numpy())
        assert np.abs(got[i, 0].numpy() - expected).max() < 1e-12
        assert expected.max() == 1 and 0 < expected.min() < 1e-6
    assert (deformation.attention_of(torch.zeros(1, 3, 4, 4)) == 1).all()


def test_training_samples_taps_as_torchvision_convolves():
    from torchvision.ops import deform_conv2d

    from medtest.systems.classification.networks.aggregation import sampled_convolution

    torch.manual_seed(3)
    x = torch.randn(2, 7, 13, 19, requires_grad=True)
    offsets = (torch.randn(2, 18, 13, 19) * 4).requires_grad_()
    weight, bias = torch.randn(5, 7, 3, 3, requires_grad=True), torch.randn(5)
    own = sampled_convolution(x, offsets, weight, bias)
    reference = deform_conv2d(x, offsets, weight, bias, padding=1)
    torch.testing.assert_close(own, reference, atol=1e-4, rtol=1e-4)
    towards = torch.randn_like(reference)
    for own_gradient, reference_gradient in zip(
        torch.autograd.grad(own, (x, offsets, weight), towards),
        torch.autograd.grad(reference, (x, offsets, weight), towards),
        strict=True,
    ):
        torch.testing.assert_close(own_gradient, reference_gradient, atol=2e-3, rtol=1e-3)
