"""Mix Transformer (MiT), the hierarchical encoder of SegFormer and of SSFormer.

Xie et al., "SegFormer: Simple and Efficient Design for Semantic Segmentation with Transformers", NeurIPS 2021 (arXiv
2105.15203), section 3.1: overlapped patch merging, self-attention whose keys and values are reduced by a strided
convolution (eq. 2), and a feed-forward part with a depthwise convolution instead of position codes (eq. 3). Parameter
names are those of the published checkpoints. Beyond the paper, the first patch embedding may be a small convolutional
stem (Xiao et al., "Early Convolutions Help Transformers See Better", 2021), which trains better from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

BLOCK_EPS = 1e-6
"""Epsilon of the layer norms around blocks; patch embeddings and attention use torch's default 1e-5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MitConfig:
    """Widths and depths of a Mix Transformer; the defaults are MiT-B2.

    Attributes:
        widths: Channels of the four stages.
        depths: Blocks of the four stages.
        heads: Attention heads of the four stages.
        reductions: Factor by which each stage's keys and values are reduced per side; 1 for none.
        mlp_ratio: Hidden width of the feed-forward part over the stage's.
        drop_path: Maximum probability of dropping a block in training; grows linearly with depth.
        stem: Channels of a convolutional stem's intermediate maps; empty for the published 7×7 patch embedding.
    """

    widths: tuple[int, int, int, int] = (64, 128, 320, 512)
    depths: tuple[int, int, int, int] = (3, 4, 6, 3)
    heads: tuple[int, int, int, int] = (1, 2, 5, 8)
    reductions: tuple[int, int, int, int] = (8, 4, 2, 1)
    mlp_ratio: int = 4
    drop_path: float = 0.1
    stem: tuple[int, ...] = ()


class PatchEmbed(nn.Module):
    """Overlapped patch merging: a strided convolution and a layer norm over channels.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        kernel: Kernel side of the convolution.
        stride: Stride of the convolution.
        stem: Channels of additional convolutions before it, see :class:`MitConfig`; they halve the size once.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, stem: tuple[int, ...] = ()) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for index, width in enumerate(stem):
            layers += [
                nn.Conv2d(inputs, width, 3, stride=2 if index == 0 else 1, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            inputs = width
        if stem:
            self.stem = nn.Sequential(*layers)
            kernel, stride = 3, stride // 2
        self.has_stem = bool(stem)
        self.proj = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2)
        self.norm = nn.LayerNorm(outputs)

    def forward(self, x: Tensor) -> tuple[Tensor, int, int]:
        """Map [B, inputs, H, W] to tokens [B, h·w, outputs], and return h and w."""
        if self.has_stem:
            x = self.stem(x)
        x = self.proj(x)
        height, width = x.shape[-2:]
        return self.norm(x.flatten(2).transpose(1, 2)), height, width


class Attention(nn.Module):
    """Multi-head self-attention with reduced keys and values (SegFormer, eq. 2).

    Args:
        width: Channels of a token.
        heads: Number of heads; divides ``width``.
        reduction: Side of the strided convolution that reduces keys and values; 1 for none.
    """

    def __init__(self, width: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads = heads
        self.reduction = reduction
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.proj = nn.Linear(width, width)
        if reduction > 1:
            self.sr = nn.Conv2d(width, width, reduction, stride=reduction)
            self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """Map tokens [B, height·width, C] to tokens of the same shape."""
        batch, count, channels = x.shape
        memory = x
        if self.reduction > 1:
            grid = x.transpose(1, 2).reshape(batch, channels, height, width)
            memory = self.norm(self.sr(grid).flatten(2).transpose(1, 2))
        q = self.q(x).reshape(batch, count, self.heads, -1).transpose(1, 2)
        kv = self.kv(memory).reshape(batch, memory.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, kv[0], kv[1])
        return self.proj(mixed.transpose(1, 2).reshape(batch, count, channels))


class DepthwiseConv(nn.Module):
    """The 3×3 depthwise convolution of the feed-forward part, on tokens.

    Args:
        width: Channels of a token.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """Map tokens [B, height·width, C] to tokens of the same shape."""
        batch, _, channels = x.shape
        grid = x.transpose(1, 2).reshape(batch, channels, height, width)
        return self.dwconv(grid).flatten(2).transpose(1, 2)


class MixFeedForward(nn.Module):
    """Feed-forward part with a depthwise convolution (SegFormer, eq. 3).

    Args:
        width: Channels of a token.
        hidden: Hidden channels.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.dwconv = DepthwiseConv(hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """Map tokens [B, height·width, C] to tokens of the same shape."""
        return self.fc2(functional.gelu(self.dwconv(self.fc1(x), height, width)))


class DropPath(nn.Module):
    """Drops a residual branch per sample in training (stochastic depth, Huang et al., ECCV 2016).

    Args:
        probability: Probability of dropping it.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` in evaluation; in training, ``x`` with some samples zeroed and the rest scaled up."""
        if not self.training or self.probability == 0.0:
            return x
        keep = 1.0 - self.probability
        drawn = torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype, device=x.device) < keep
        return x * drawn.to(x.dtype) / keep


class TransformerBlock(nn.Module):
    """Transformer block: attention and feed-forward part, each with a norm before and a shortcut around.

    Args:
        width: Channels of a token.
        heads: Attention heads.
        reduction: Reduction of keys and values.
        mlp_ratio: Hidden width over ``width``.
        drop_path: Probability of dropping a branch in training.
    """

    def __init__(self, width: int, heads: int, reduction: int, mlp_ratio: int, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=BLOCK_EPS)
        self.attn = Attention(width, heads, reduction)
        self.norm2 = nn.LayerNorm(width, eps=BLOCK_EPS)
        self.mlp = MixFeedForward(width, width * mlp_ratio)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor, height: int, width: int) -> Tensor:
        """Map tokens [B, height·width, C] to tokens of the same shape."""
        x = x + self.drop_path(self.attn(self.norm1(x), height, width))
        return x + self.drop_path(self.mlp(self.norm2(x), height, width))


class MixTransformer(nn.Module):
    """Encoder that returns four stages at 1/4, 1/8, 1/16 and 1/32 of the input.

    Args:
        config: Widths and depths.
    """

    def __init__(self, config: MitConfig) -> None:
        super().__init__()
        blocks_in_all = sum(config.depths)
        rates = [config.drop_path * index / max(1, blocks_in_all - 1) for index in range(blocks_in_all)]
        inputs, done = 3, 0
        for index, (width, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
            first = index == 0
            embed = PatchEmbed(inputs, width, 7 if first else 3, 4 if first else 2, config.stem if first else ())
            blocks = nn.ModuleList(
                TransformerBlock(width, config.heads[index], config.reductions[index], config.mlp_ratio, rate)
                for rate in rates[done : done + depth]
            )
            self.add_module(f"patch_embed{index + 1}", embed)
            self.add_module(f"block{index + 1}", blocks)
            self.add_module(f"norm{index + 1}", nn.LayerNorm(width, eps=BLOCK_EPS))
            inputs, done = width, done + depth

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Map an image [B, 3, H, W] to the features [B, C, h, w] of the four stages, finest first."""
        stages: list[Tensor] = []
        for index in range(1, 5):
            x, height, width = getattr(self, f"patch_embed{index}")(x)
            for block in getattr(self, f"block{index}"):
                x = block(x, height, width)
            x = getattr(self, f"norm{index}")(x)
            x = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], height, width)
            stages.append(x)
        return stages[0], stages[1], stages[2], stages[3]
