"""Attention maps: AttnMel's equal those of its forward, rollout equals the product of weights by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from medtest.inside.attention import AttentionReader, rollout
from medtest.systems.classification.networks.attnmel import AttnMel, AttnMelConfig


def test_attnmels_two_maps_equal_those_of_forward():
    torch.manual_seed(0)
    network = AttnMel(AttnMelConfig(widths=(4, 4, 6, 6, 8), attention_width=5)).eval()
    reader = AttentionReader(network)
    with torch.no_grad(), reader.attached():
        _, first, second = network(torch.rand(2, 3, 64, 64))
        maps = reader.take(2, (64, 64))
    assert list(maps) == ["attn1", "attn2"]
    assert maps["attn1"].shape == (2, 8, 8)
    assert torch.equal(maps["attn1"], first[:, 0])
    assert torch.equal(maps["attn2"], second[:, 0])


class _Block(nn.Module):
    """Attention written out, or by torch's fused function."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__()
        self.qkv, self.drop, self.fused = nn.Linear(width, 3 * width), nn.Dropout(0.0), fused

    def weights(self, x):
        query, key, value = self.qkv(x).reshape(len(x), x.shape[1], 3, 2, -1).permute(2, 0, 3, 1, 4)
        return query, key, value, (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)

    def forward(self, x):
        query, key, value, weights = self.weights(x)
        mixed = functional.scaled_dot_product_attention(query, key, value) if self.fused else self.drop(weights) @ value
        return x + mixed.transpose(1, 2).reshape(x.shape)


class _Transformer(nn.Module):
    def __init__(self, fused: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.patch = nn.Conv2d(3, 8, 8, 8)
        self.first = nn.Parameter(torch.randn(1, 1, 8))
        self.blocks = nn.Sequential(_Block(8, fused), _Block(8, fused))

    def tokens(self, x):
        return torch.cat([self.first.expand(len(x), -1, -1), self.patch(x).flatten(2).transpose(1, 2)], dim=1)

    def forward(self, x):
        return self.blocks(self.tokens(x))[:, 0]


@pytest.mark.parametrize("fused", [True, False])
def test_rollout_of_a_transformer_is_the_product_by_hand(fused):
    network, plain = _Transformer(fused).eval(), functional.scaled_dot_product_attention
    x = torch.randn(2, 3, 32, 32)
    reader = AttentionReader(network)
    with torch.no_grad(), reader.attached():
        network(x)
        map_ = reader.take(2, (32, 32))["attention rollout"]
    assert functional.scaled_dot_product_attention is plain
    assert not any(module._forward_hooks for module in network.modules())
    with torch.no_grad():
        tokens, flow = network.tokens(x), torch.eye(17)
        for block in network.blocks:
            flow = (0.5 * block.weights(tokens)[3].mean(dim=1) + 0.5 * torch.eye(17)) @ flow
            tokens = block(tokens)
    torch.testing.assert_close(map_, flow[:, 0, 1:].reshape(2, 4, 4))


def test_multihead_attention_of_torch_is_read_where_it_has_a_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    reader = AttentionReader(layer)
    with torch.no_grad(), reader.attached():
        layer(torch.randn(2, 16, 8))
        maps = reader.take(2, (32, 32))
    assert maps["attention rollout"].shape == (2, 4, 4)
    assert torch.backends.mha.get_fastpath_enabled()


def test_everything_is_put_back_after_an_error():
    plain = functional.scaled_dot_product_attention
    network = _Transformer(True)
    with pytest.raises(ValueError, match="here"), AttentionReader(network).attached():
        raise ValueError("here")
    assert functional.scaled_dot_product_attention is plain
    assert not any(module._forward_hooks for module in network.modules())


def test_a_network_without_attention_gives_no_map():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Dropout())
    reader = AttentionReader(network)
    with reader.attached():
        network(torch.randn(2, 3, 8, 8))
        assert reader.take(2, (8, 8)) == {}


def test_rollout_without_a_class_token_is_the_mean_over_tokens():
    weights = torch.rand(1, 4, 4).softmax(-1)
    expected = ((weights + torch.eye(4)) / 2).mean(dim=1).reshape(1, 2, 2)
    torch.testing.assert_close(rollout([weights], (8, 8)), expected)
