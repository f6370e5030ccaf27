"""Third-order long-range feature aggregation: AGDN's attention over all pairs of positions, on deformed features.

Xing, Yuan and Meng, IEEE Transactions on Medical Imaging 39(12), 2020, section III-A: features are sampled by a
deformable convolution (Dai et al., "Deformable Convolutional Networks", ICCV 2017), positions are compared by the
covariance of their channels, and each position adds the features of similar ones. Convolutions are spectrally
normalised (Miyato et al., ICLR 2018).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LITTLE = 1e-12
REACH = 0.25
"""Maximum offset of a tap of the deformable convolution, relative to the features' height."""
TAPS = 9


def _unit(x: Tensor) -> Tensor:
    return x / (x.norm() + LITTLE)


class SpectralConv(nn.Conv2d):
    """Convolution whose weights are divided by their largest singular value, as a matrix of output channels.

    That value is estimated by power iteration from a stored vector ``u``, one step per call. The updated vector is
    stored in training only, so that in evaluation an answer does not depend on the number of previous calls. The
    published network stores it in evaluation too: its answers drift until the iteration has converged, and ours equal
    its first answer.

    Attributes:
        u: Left singular vector, float [1, outputs].
    """

    u: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2)
        self.register_buffer("u", functional.normalize(torch.randn(1, outputs), dim=1))

    def normalised(self) -> Tensor:
        """Return the weights divided by their largest singular value."""
        matrix = self.weight.flatten(1)  # outputs × everything else
        with torch.no_grad():
            right = _unit(self.u @ matrix)
            left = _unit(right @ matrix.t())
            if self.training:
                self.u.copy_(left)
        return self.weight / (right @ matrix.t() @ left.t()).squeeze()

    def forward(self, x: Tensor) -> Tensor:
        """Convolve [B, inputs, h, w]."""
        return self._conv_forward(x, self.normalised(), self.bias)


class DeformableConv(nn.Module):
    """Spectrally normalised 3×3 convolution whose taps are shifted by offsets from a plain convolution.

    Args:
        inputs: Input channels.
        outputs: Output channels.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv2d = nn.Conv2d(inputs, 2 * TAPS, 3, padding=1)
        self.feature = SpectralConv(inputs, outputs, 3)
        # An untrained network shifts nothing.
        nn.init.zeros_(self.conv2d.weight)
        nn.init.zeros_(self.conv2d.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs, h, w] to [B, outputs, h, w], with zero padding."""
        from torchvision.ops import deform_conv2d

        reach = REACH * int(x.shape[2])
        offsets = self.conv2d(x).clamp(-reach, reach)
        # The published offsets are nine rows, then nine columns; torchvision expects a row and a column per tap.
        paired = offsets.unflatten(1, (2, TAPS)).transpose(1, 2).flatten(1, 2)
        plain, moved, weight = (value.float() for value in (x, paired, self.feature.normalised()))
        bias = None if self.feature.bias is None else self.feature.bias.float()
        if self.training and not x.is_cuda:
            return sampled_convolution(plain, moved, weight, bias).to(x.dtype)
        mapped: Tensor = deform_conv2d(plain, moved, weight, bias=bias, padding=1)
        return mapped.to(x.dtype)


def sampled_convolution(x: Tensor, offsets: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute ``torchvision.ops.deform_conv2d`` for a 3×3 kernel with padding 1.

    Every tap is sampled separately, which differentiates several times as fast on a CPU and uses the memory of nine
    feature maps.

    Args:
        x: float [B, C, h, w].
        offsets: float [B, 18, h, w], a row and a column per tap.
        weight: float [O, C, 3, 3].
        bias: float [O], or None.
    """
    batch, _, height, width = x.shape
    rows = torch.arange(height, device=x.device, dtype=x.dtype)[:, None]
    columns = torch.arange(width, device=x.device, dtype=x.dtype)[None, :]
    flat = weight.flatten(2)
    total = x.new_zeros(batch, weight.shape[0], height, width) if bias is None else bias[None, :, None, None]
    for tap in range(TAPS):
        down = rows + (tap // 3 - 1) + offsets[:, 2 * tap]
        right = columns + (tap % 3 - 1) + offsets[:, 2 * tap + 1]
        grid = torch.stack((2 * right / max(1, width - 1) - 1, 2 * down / max(1, height - 1) - 1), dim=-1)
        sampled = functional.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
        total = total + functional.conv2d(sampled, flat[:, :, tap, None, None])
    return total


class Aggregation(nn.Module):
    """Aggregation module.

    Args:
        channels: Channels of the features.
        name: Published name, which is part of its parameters' names.
    """

    gamma: nn.Parameter

    def __init__(self, channels: int, name: str) -> None:
        super().__init__()
        self._deformed = f"{name}f_conv"
        self.add_module(self._deformed, DeformableConv(channels, max(1, channels // 4)))
        self.h_conv = SpectralConv(channels, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """Add the features of similar positions to the features [B, C, h, w]."""
        f = torch.relu(self.get_submodule(self._deformed)(x)).flatten(2).transpose(1, 2)
        # f · (I / c - 1 / c²) · fᵀ is the covariance of the channels of two positions, so this is attention with f
        # minus its mean as queries and keys. Zero padding changes nothing, and a fused kernel, which never stores all
        # pairs, needs queries as wide as the values.
        centred = functional.pad(f - f.mean(dim=2, keepdim=True), (0, x.shape[1] - f.shape[2]))
        held = self.h_conv(x).flatten(2).transpose(1, 2)
        gathered = functional.scaled_dot_product_attention(
            centred[:, None], centred[:, None], held[:, None], scale=1 / f.shape[2]
        )[:, 0]
        return self.gamma * gathered.transpose(1, 2).reshape(x.shape) + x
