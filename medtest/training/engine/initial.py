"""Initial weights for training from scratch."""

from __future__ import annotations

import torch
from torch import nn


def initialise(network: nn.Module, seed: int) -> None:
    """Draw initial weights: He for convolutions, truncated normal for linear layers, zero for blocks' last norms."""
    torch.manual_seed(seed)
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d) and name.endswith("bn3"):
            # A residual block that starts as its shortcut trains more stably from scratch.
            nn.init.zeros_(module.weight)
    words = dict(network.named_buffers()).get("words")
    if words is not None:
        # TGANet needs five distinct constant vectors; drawn separately, they do not depend on the order above.
        words.copy_(torch.randn(words.shape, generator=torch.Generator().manual_seed(seed)).half().float())
