"""Generator of adversarial perturbations: a U-Net from an image to a field in (-1, 1).

Poursaeed et al., "Generative Adversarial Perturbations", CVPR 2018, as Xu et al., "Towards evaluating the robustness of
deep diagnostic models by adversarial attack", Medical Image Analysis 2021, section 4.2.2 and figure 3, use it. Names of
parameters are those of their published code, so that its state dicts load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.core.errors import MedtestError

Activation = Literal["relu", "selu"]
NARROWEST, WIDEST = 1, 256
SMALLEST, LARGEST = 32, 1024
"""Sides in pixels that a generator may have; below, the innermost of six halvings would be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorShape:
    """Architecture of a generator.

    Attributes:
        width: Channels of the outermost convolution (ngf); the innermost have eight times as many.
        side: Side in pixels of its square images, which determines the kernels of the decoder.
        activation: Activation of the decoder: ``relu`` (published at 224) or ``selu`` (published at 299).
        dropout: Dropout rate after the first decoder layer.
    """

    width: int = 64
    side: int = 224
    activation: Activation = "relu"
    dropout: float = 0.5

    def described(self) -> dict[str, Any]:
        """Return the architecture as JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> GeneratorShape:
        """Return the architecture described by :meth:`described`.

        Raises:
            MedtestError: The description is invalid, or the generator cannot be built.
        """
        try:
            width, side = int(description["width"]), int(description["side"])
            activation, dropout = str(description["activation"]), float(description["dropout"])
        except (KeyError, TypeError, ValueError) as error:
            raise MedtestError(f"the weights describe no generator: {error}") from error
        fits = NARROWEST <= width <= WIDEST and SMALLEST <= side <= LARGEST and 0 <= dropout < 1
        if not fits or activation not in get_args(Activation):
            raise MedtestError(f"the weights describe a generator that cannot be built: {dict(description)}")
        return cls(width=width, side=side, activation=cast(Activation, activation), dropout=dropout)


PUBLISHED: Mapping[str, GeneratorShape] = {
    "gap_unet": GeneratorShape(),
    "gap_unet299": GeneratorShape(side=299, activation="selu"),
}
"""The published generators: for dermoscopy and chest films at 224, for fundus photographs at 299."""


def encoder_sides(side: int) -> tuple[int, ...]:
    """Return the sides of an image and of its six halvings; the last convolution is 3×3 and rounds up."""
    sides = [side]
    for _ in range(5):
        sides.append(sides[-1] // 2)
    return (*sides, (sides[-1] + 1) // 2)


def _kernel(inner: int, outer: int) -> int:
    """Return the kernel of a transposed convolution, stride 2, padding 1, that maps side ``inner`` to ``outer``."""
    return outer - 2 * inner + 4


class PerturbationGenerator(nn.Module):
    """U-Net of six halvings and six doublings; batch norms of equal width share one module at several depths.

    Encoder: 4×4 convolutions of stride 2 (the last 3×3), LeakyReLU 0.2 before all but the first, norms after all but
    the outer two. Decoder: transposed convolutions, ``activation`` before each, norms after all but the last, dropout
    after the first; each but the first also gets the encoder's map of its side. The published
    kernels (4 at 224; 5 where a side is odd, at 299) follow from the side, and so do those of other sides.

    Args:
        shape: The architecture.
    """

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        width = shape.width
        sides = encoder_sides(shape.side)
        up = [_kernel(sides[depth], sides[depth - 1]) for depth in range(6, 0, -1)]
        down = nn.Conv2d
        self.shape = shape
        self.conv1 = down(3, width, 4, 2, 1)
        self.conv2 = down(width, 2 * width, 4, 2, 1)
        self.conv3 = down(2 * width, 4 * width, 4, 2, 1)
        self.conv4 = down(4 * width, 8 * width, 4, 2, 1)
        self.conv5 = down(8 * width, 8 * width, 4, 2, 1)
        self.conv6 = down(8 * width, 8 * width, 3, 2, 1)
        self.dconv1 = nn.ConvTranspose2d(8 * width, 8 * width, up[0], 2, 1)
        self.dconv2 = nn.ConvTranspose2d(16 * width, 8 * width, up[1], 2, 1)
        self.dconv3 = nn.ConvTranspose2d(16 * width, 4 * width, up[2], 2, 1)
        self.dconv4 = nn.ConvTranspose2d(8 * width, 2 * width, up[3], 2, 1)
        self.dconv5 = nn.ConvTranspose2d(4 * width, width, up[4], 2, 1)
        self.dconv6 = nn.ConvTranspose2d(2 * width, 3, up[5], 2, 1)
        self.norm = nn.BatchNorm2d(width)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.norm4 = nn.BatchNorm2d(4 * width)
        self.norm8 = nn.BatchNorm2d(8 * width)

    def forward(self, images: Tensor) -> Tensor:
        """Return a field for each image.

        Args:
            images: float32 B×3×S×S, S the side of its shape.

        Returns:
            float32 B×3×S×S in [-1, 1].

        Raises:
            MedtestError: Images have another side.
        """
        side = self.shape.side
        if tuple(images.shape[1:]) != (3, side, side):
            received = "×".join(str(length) for length in images.shape[1:])
            raise MedtestError(f"a generator of images of 3×{side}×{side} was given {received}")
        # The skips carry activated maps, because the published code activates in place.
        e1 = functional.leaky_relu(self.conv1(images), 0.2)
        e2 = functional.leaky_relu(self.norm2(self.conv2(e1)), 0.2)
        e3 = functional.leaky_relu(self.norm4(self.conv3(e2)), 0.2)
        e4 = functional.leaky_relu(self.norm8(self.conv4(e3)), 0.2)
        e5 = functional.leaky_relu(self.norm8(self.conv5(e4)), 0.2)
        e6 = self.conv6(e5)
        dropped = functional.dropout(self.norm8(self.dconv1(self._active(e6))), self.shape.dropout, self.training)
        d2 = self.norm8(self.dconv2(self._concatenate(dropped, e5)))
        d3 = self.norm4(self.dconv3(self._concatenate(d2, e4)))
        d4 = self.norm2(self.dconv4(self._concatenate(d3, e3)))
        d5 = self.norm(self.dconv5(self._concatenate(d4, e2)))
        return torch.tanh(self.dconv6(self._concatenate(d5, e1)))

    def _active(self, field: Tensor) -> Tensor:
        return functional.relu(field) if self.shape.activation == "relu" else functional.selu(field)

    def _concatenate(self, below: Tensor, skipped: Tensor) -> Tensor:
        return self._active(torch.cat((below, skipped), dim=1))


def initialise(generator: PerturbationGenerator, seed: int) -> None:
    """Initialise weights to preserve the spread of activations (He et al., ICCV 2015); torch's defaults shrink it.

    The published code intends to do so too, but affects only the root module, so torch's defaults were used.

    Args:
        generator: Changed in place.
        seed: Seed of the weights.
    """
    source = torch.Generator().manual_seed(seed)
    for module in generator.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            kernel = module.kernel_size[0] * module.kernel_size[1]
            # A transposed convolution of stride 2 applies only a quarter of its kernel to each input.
            reached = kernel / 4 if isinstance(module, nn.ConvTranspose2d) else kernel
            spread = (2.0 / (module.in_channels * reached)) ** 0.5
            with torch.no_grad():
                module.weight.copy_(torch.randn(module.weight.shape, generator=source) * spread)
                if module.bias is not None:
                    module.bias.zero_()
