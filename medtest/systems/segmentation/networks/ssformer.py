"""SSFormer: a transformer encoder with a progressive locality decoder for polyp segmentation.

Wang et al., "Stepwise Feature Fusion: Local Guides Global", MICCAI 2022 (arXiv 2203.03635), section 2: each stage of a
Mix Transformer passes a local emphasis module (two 3×3 convolutions) and the stages are fused step by step from deep to
shallow. S is based on MiT-B2, L on MiT-B4. Parameter names and details follow the published networks, checked against
recorded outputs in the tests.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.systems.segmentation.networks.mit import MitConfig, MixTransformer


@dataclass(frozen=True, slots=True, kw_only=True)
class SSFormerConfig:
    """Widths and depths of an SSFormer; the defaults are SSFormer-S.

    Attributes:
        backbone: Configuration of the Mix Transformer backbone.
        embed: Width of the decoder.
        unused_fuse: Whether the state includes ``linear_fuse``, which published checkpoints contain but never use.
        dropout: Probability of dropping a channel before the last layer in training.
    """

    backbone: MitConfig = field(default_factory=MitConfig)
    embed: int = 256
    unused_fuse: bool = True
    dropout: float = 0.1


SSFORMER_S = SSFormerConfig()
SSFORMER_L = SSFormerConfig(backbone=MitConfig(depths=(3, 8, 27, 3)))


def _local_emphasis(inputs: int, outputs: int) -> nn.Sequential:
    """Return two 3×3 convolutions with ReLU that restore local detail in a stage; keys ``proj.0`` and ``proj.2``."""
    layers: list[nn.Module] = []
    for width in (inputs, outputs):
        layers += [nn.Conv2d(width, outputs, 3, padding=1, bias=False), nn.ReLU()]
    return nn.Sequential(OrderedDict(proj=nn.Sequential(*layers)))


def _fuse(inputs: int, outputs: int) -> nn.Sequential:
    """Return a 1×1 convolution with batch norm and ReLU; keys ``conv`` and ``bn``."""
    convolution = nn.Conv2d(inputs, outputs, 1, bias=False)
    return nn.Sequential(OrderedDict(conv=convolution, bn=nn.BatchNorm2d(outputs), relu=nn.ReLU(inplace=True)))


class ProgressiveDecoder(nn.Module):
    """Progressive locality decoder (paper, section 2.2).

    Args:
        widths: Channels of the four stages.
        config: Width of the decoder, dropout and the unused layer.
    """

    def __init__(self, widths: tuple[int, int, int, int], config: SSFormerConfig) -> None:
        super().__init__()
        embed = config.embed
        self.linear_c4 = _local_emphasis(widths[3], embed)
        self.linear_c3 = _local_emphasis(widths[2], embed)
        self.linear_c2 = _local_emphasis(widths[1], embed)
        self.linear_c1 = _local_emphasis(widths[0], embed)
        if config.unused_fuse:
            self.linear_fuse = _fuse(4 * embed, embed)
        self.linear_fuse34 = _fuse(2 * embed, embed)
        self.linear_fuse2 = _fuse(2 * embed, embed)
        self.linear_fuse1 = _fuse(2 * embed, embed)
        self.dropout = nn.Dropout2d(config.dropout)
        self.linear_pred = nn.Conv2d(embed, 1, 1)

    def forward(self, stages: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
        """Map the four stages to a logit map [B, 1, H/4, W/4]."""
        c1, c2, c3, c4 = stages
        size = c1.shape[-2:]
        fused = self.linear_fuse34(torch.cat([_to(self.linear_c4(c4), size), _to(self.linear_c3(c3), size)], dim=1))
        fused = self.linear_fuse2(torch.cat([fused, _to(self.linear_c2(c2), size)], dim=1))
        fused = self.linear_fuse1(torch.cat([fused, self.linear_c1(c1)], dim=1))
        return self.linear_pred(self.dropout(fused))


def _to(x: Tensor, size: torch.Size) -> Tensor:
    return functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


class SSFormer(nn.Module):
    """SSFormer.

    Args:
        config: Widths and depths; SSFormer-S by default.
    """

    def __init__(self, config: SSFormerConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or SSFormerConfig()
        self.backbone = MixTransformer(config.backbone)
        self.decode_head = ProgressiveDecoder(config.backbone.widths, config)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to a logit map.

        Args:
            x: float [B, 3, H, W], RGB, ImageNet mean and standard deviation; sides are multiples of 32.

        Returns:
            Logits [B, 1, H, W].
        """
        coarse = self.decode_head(self.backbone(x))
        return functional.interpolate(coarse, scale_factor=4, mode="bilinear", align_corners=True)
