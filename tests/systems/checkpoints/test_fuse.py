from __future__ import annotations

import pytest
import torch
from torch import nn

from medtest.systems.checkpoints.fuse import fuse_norms
from medtest.systems.pytorch import networks


def _fill_norms(network: nn.Module) -> nn.Module:
    torch.manual_seed(4)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.normal_(module.weight, 1.0, 0.3)
            nn.init.normal_(module.bias, std=0.3)
    return network.eval()


@pytest.mark.parametrize("family", networks.SEGMENTATION)
def test_fused_networks_answer_the_same(family: str) -> None:
    network = _fill_norms(networks.make(networks.COMPACT[family]))
    norms = sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())
    image = torch.randn(2, 3, 96, 64)
    with torch.inference_mode():
        before = network(image)
        assert fuse_norms(network, torch.zeros(1, 3, 64, 64)) == norms
        after = network(image)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
    for expected, fused in zip(*(o if isinstance(o, tuple) else (o,) for o in (before, after)), strict=True):
        assert torch.allclose(expected, fused, atol=1e-4 * max(1.0, float(expected.abs().max())))


def test_modules_that_run_twice_or_follow_no_convolution_stay() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.twice, self.first = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.BatchNorm2d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.twice(self.twice(self.conv(self.first(x))))  # type: ignore[no-any-return]

    network = _fill_norms(Odd())
    image = torch.randn(1, 3, 8, 8)
    before = network(image)
    assert fuse_norms(network, image) == 0
    assert torch.equal(network(image), before)
