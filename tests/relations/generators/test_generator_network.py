"""The generator of perturbations equals the published one, and its perturbations keep within their budget."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "systems"))
import parity_rule
from parity_parts import assert_as_recorded

from medtest.core.errors import MedtestError
from medtest.relations.adversarial.generators.network import (
    PUBLISHED,
    GeneratorShape,
    PerturbationGenerator,
    encoder_sides,
    initialise,
)
from medtest.relations.adversarial.generators.perturb import bounded, fixed_input, perturbed, released

PARAMETERS = {"gap_unet": 25_573_635, "gap_unet299": 28_083_843}
KERNELS = {"gap_unet": [3, 4, 4, 4, 4, 4], "gap_unet299": [3, 4, 5, 4, 5, 5]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_generators_have_the_published_size_and_kernels(name: str) -> None:
    with torch.device("meta"):
        network = PerturbationGenerator(PUBLISHED[name])
    assert sum(parameter.numel() for parameter in network.parameters()) == PARAMETERS[name]
    assert len(network.state_dict()) == 44
    kernels = [network.get_submodule(f"dconv{number}").kernel_size for number in range(1, 7)]
    assert kernels == [(side, side) for side in KERNELS[name]]


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_generators_answer_as_recorded(name: str) -> None:
    shape = PUBLISHED[name]
    network = PerturbationGenerator(shape).eval()
    rule = {key: np.array(parity_rule.weight(key, tuple(v.shape))) for key, v in network.state_dict().items()}
    network.load_state_dict({key: torch.from_numpy(value) for key, value in rule.items()})
    with torch.inference_mode():
        field = network(torch.from_numpy(parity_rule.image(2, 3, shape.side, shape.side)))
    assert_as_recorded(name, field)


@settings(max_examples=10, deadline=None)
@given(side=st.integers(32, 300))
def test_a_generator_of_any_side_gives_fields_of_that_side(side: int) -> None:
    sides = encoder_sides(side)
    with torch.device("meta"):
        network = PerturbationGenerator(GeneratorShape(width=1, side=side))
        assert network(torch.zeros(2, 3, side, side)).shape == (2, 3, side, side)
    assert sides[0] == side
    assert sides[-1] >= 1


def test_images_of_another_side_are_refused() -> None:
    network = PerturbationGenerator(GeneratorShape(width=1, side=32))
    with pytest.raises(MedtestError, match="3×32×32 was given 3×48×32"):
        network(torch.zeros(1, 3, 48, 32))


def test_drawn_weights_keep_the_spread_of_what_flows_through() -> None:
    network = PerturbationGenerator(GeneratorShape(width=8, side=64, dropout=0.0)).eval()
    images = torch.rand(4, 3, 64, 64) * 2 - 1
    torch.manual_seed(0)
    plain = PerturbationGenerator(network.shape).eval()
    initialise(network, 3)
    with torch.no_grad():
        assert float(network(images).std()) > 3 * float(plain(images).std())
    again = PerturbationGenerator(GeneratorShape(width=8, side=64, dropout=0.0)).eval()
    initialise(again, 3)
    assert torch.equal(network(images), again(images))


def _fields(seed: int, spread: float) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    levels = torch.randint(0, 256, (2, 3, 8, 8), generator=source)
    return levels.float() / 255, torch.tanh(torch.randn((2, 3, 8, 8), generator=source) * spread)


@given(seed=st.integers(0, 10_000), spread=st.floats(0.001, 20), levels=st.integers(1, 64))
def test_rounded_images_are_within_the_budget_as_whole_numbers(seed: int, spread: float, levels: int) -> None:
    images, field = _fields(seed, spread)
    saved = (perturbed(images, field, levels / 255) * 255).round().int()
    assert int((saved - (images * 255).round().int()).abs().max()) <= levels


def test_a_field_within_its_budget_stays_unchanged_and_a_greater_one_is_scaled_whole() -> None:
    field = torch.zeros(2, 3, 4, 4)
    field[0, 0, 0, 0], field[0, 1, 0, 0], field[1, 2, 3, 3] = 0.5, -0.25, 0.02
    result = bounded(field, 0.1)
    assert result[0, 0, 0, 0] == pytest.approx(0.1)
    assert result[0, 1, 0, 0] == pytest.approx(-0.05)  # its share of the largest stays: one factor for all channels
    assert result[1, 2, 3, 3] == pytest.approx(0.02)
    within = torch.zeros(2, 1, 4, 4, dtype=torch.bool)
    within[:, :, 3, 3] = True
    assert bounded(field, 0.1, within)[0].abs().max() == 0
    assert bounded(field, 0.1, within)[1, 2, 3, 3] == pytest.approx(0.02)


def test_a_universal_field_moves_every_image_by_the_same() -> None:
    field = torch.tanh(fixed_input(8, 5))
    assert torch.equal(field, torch.tanh(fixed_input(8, 5)))
    images = torch.full((3, 3, 8, 8), 0.5) + torch.tensor([-0.1, 0.0, 0.1])[:, None, None, None]
    moved = perturbed(images, field, 11 / 255) - images
    assert torch.allclose(moved[0], moved[1], atol=1e-6)
    assert torch.allclose(moved[0], moved[2], atol=1e-6)


def test_the_released_arithmetic_is_that_of_its_code() -> None:
    """Compared with the published steps, channel by channel, written out on the normalised image as there."""
    images, field = _fields(7, 1.0)
    mean, std = torch.tensor([0.7, 0.5, 0.4]), torch.tensor([0.1, 0.2, 0.3])
    epsilon = 11 / 255
    normal = (images - mean[:, None, None]) / std[:, None, None]
    expected = normal.clone()
    for image in range(2):
        for channel in range(3):
            delta = ((field[image, channel] + 1) / 2 - mean[channel]) / std[channel]
            limit = epsilon / std[channel]
            delta = delta * min(1.0, float(limit / delta.abs().max()))
            expected[image, channel] = normal[image, channel] + delta
    for channel in range(3):
        low, high = normal[:, channel].min(), normal[:, channel].max()
        expected[:, channel] = expected[:, channel].clamp(low, high)
    field.requires_grad_(True)
    result = released(images, field, epsilon, mean, std)
    shown = (result - mean[:, None, None]) / std[:, None, None]
    assert torch.allclose(shown, expected, atol=1e-5)
    # the identity from the normalised image back to the field
    weights = torch.rand(images.shape, generator=torch.Generator().manual_seed(1))
    (shown * weights).sum().backward()
    assert field.grad is not None
    assert torch.allclose(field.grad, weights, atol=1e-5)
