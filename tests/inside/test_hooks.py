"""Hooks capture outputs of layers, even if the next layer overwrites them, and are removed afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from medtest.core.errors import UserMistakes
from medtest.inside.hooks import captured, pooled, token_grid
from medtest.inside.layers import chosen_layers, translated
from medtest.systems.checkpoints.fuse import fuse_norms
from medtest.systems.classification.networks.attnmel import AttnMel, AttnMelConfig
from medtest.systems.pytorch.networks import COMPACT, SEGMENTATION


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3))
    for norm in (module for module in network.modules() if isinstance(module, nn.BatchNorm2d)):
        norm.running_mean.uniform_(-0.5, 0.5)
        norm.running_var.uniform_(0.5, 2.0)
    return network.eval()


def _hooks(network: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in network.modules())


def test_outputs_are_captured_before_an_activation_overwrites_them():
    network, x = _network(), torch.randn(2, 3, 8, 8)
    with torch.no_grad(), captured(network, ["0", "1", "2"]) as capture:
        network(x)
        by_hand = network[1](network[0](x))
    assert float(by_hand.min()) < 0
    assert torch.equal(capture["1"], by_hand)
    assert torch.equal(capture["2"], by_hand.clamp(min=0))


def test_a_fused_norm_is_found_by_its_name_with_its_output():
    network, x = _network(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        expected = network[1](network[0](x))
        assert fuse_norms(network, x) == 1
        with captured(network, ["1"]) as capture:
            network(x)
    torch.testing.assert_close(capture["1"], expected, rtol=1e-4, atol=1e-5)


def test_no_hook_stays_after_an_error():
    network = _network()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with captured(network, ["0", "2"]):
        assert _hooks(network) == 2
    assert _hooks(network) == 0
    with pytest.raises(RuntimeError), captured(network, ["0", "2"]):
        network(torch.randn(1, 5, 8, 8))
    with pytest.raises(KeyError), captured(network, ["0"]):
        raise KeyError
    assert _hooks(network) == 0
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_an_unknown_layer_is_one_mistake_with_the_nearest_name():
    network = AttnMel(AttnMelConfig(widths=(4, 4, 4, 4, 4), attention_width=4))
    with pytest.raises(UserMistakes) as caught, captured(network, ["conv_blok5"]):
        pass
    assert len(caught.value.mistakes) == 1
    assert caught.value.mistakes[0].nearest == "conv_block5"
    assert "conv_block1" in caught.value.mistakes[0].allowed
    assert _hooks(network) == 0


def test_places_in_vgg_are_attnmels_layers():
    network = AttnMel(AttnMelConfig(widths=(4, 4, 4, 4, 4), attention_width=4))
    # as torchvision numbers VGG-16 with batch norms: pools at 6, 13, 23, 33 and 43
    for published, own in {
        "feature(13) relu": "conv_block2",
        "feature(33) relu": "conv_block4",
        "features.43": "conv_block5",
        "features.0": "conv_block1.0",
        "features.9": "conv_block2.2",
        "features.24": "conv_block4.0",
        "features.42": "conv_block5.8",
        "attn1": "attn1",
        "features.44": "features.44",
    }.items():
        assert translated(published, network) == own
    with pytest.raises(UserMistakes):
        chosen_layers(network, ["features.44"], lambda: None)


def test_any_networks_last_layer_of_each_size_is_chosen():
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, padding=1), nn.Flatten()
    )
    assert chosen_layers(network, (), lambda: network(torch.zeros(1, 3, 8, 8))) == ["1", "3"]
    assert _hooks(network) == 0


def test_pooling_is_the_mean_over_places_tokens_and_crops():
    maps = torch.randn(6, 5, 3, 4)
    torch.testing.assert_close(pooled(maps, 6), maps.mean(dim=(2, 3)))
    torch.testing.assert_close(pooled(maps, 2), maps.mean(dim=(2, 3)).reshape(2, 3, 5).mean(dim=1))
    tokens = torch.randn(2, 7, 5)
    torch.testing.assert_close(pooled(tokens, 2), tokens.mean(dim=1))


@pytest.mark.parametrize(
    ("tokens", "shape", "grid"),
    [
        (197, (224, 224), (14, 14)),
        (196, (224, 224), (14, 14)),
        (201, (224, 224), (14, 14)),
        (50, (224, 224), (7, 7)),
        (129, (128, 256), (8, 16)),
        (1, (224, 224), None),
    ],
)
def test_tokens_are_placed_on_the_images_grid(tokens, shape, grid):
    assert token_grid(tokens, shape) == grid


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("pranet", ["resnet", "ra2_conv4", "ra3_conv4", "ra4_conv5"]),
        ("sanet", ["bkbone", "predict", "linear4", "linear5"]),
        ("tganet", ["a2", "a1", "s4", "y1"]),
        ("ssformer", ["backbone.block1.1", "backbone.block2.1", "backbone.block3.2", "backbone.block4.1"]),
    ],
)
def test_inspected_layers_of_segmenters_are_whole_maps_or_tokens(name: str, layers: list[str]):
    # A gate with one pixel, or a container that never runs, would leave nothing to compare.
    network = SEGMENTATION[name].network(COMPACT[name]).eval()
    assert chosen_layers(network, (), lambda: network(torch.zeros(1, 3, 128, 128))) == layers
