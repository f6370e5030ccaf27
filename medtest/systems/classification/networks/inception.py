"""Inception-v3 for diabetic retinopathy.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016, as Xu et al. attacked and tested
it ("Towards evaluating the robustness of deep diagnostic models by adversarial attack", Medical Image Analysis 2021,
arXiv 2103.03438): torchvision's modules in an attribute ``model``, with heads for the grades of retinopathy. The
published network was created by the constructor that loads ImageNet's weights, which enables ``transform_input``: the
first step of ``forward`` converts ImageNet's normalisation to Inception's own. No parameter records this, but every
output depends on it. Checked against recorded outputs in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

SIXTEENTHS = 16
"""Every width of Inception-v3 is a multiple of 16, so that sixteenths are integers."""
LAST, AUXILIARY = 2048, 768
"""Channels before the two heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InceptionConfig:
    """Width of an Inception-v3; the defaults are the published network.

    Attributes:
        sixteenths: Width of every layer in sixteenths of the published one.
        classes: Number of classes.
        auxiliary: Whether there is an auxiliary head for training. It needs inputs of 299×299.
        transform_input: Whether ``forward`` first converts ImageNet's normalisation to Inception's.
        dropout: Per cent of the last features dropped in training.
    """

    sixteenths: int = SIXTEENTHS
    classes: int = 4
    auxiliary: bool = True
    transform_input: bool = True
    dropout: int = 50


class InceptionDR(nn.Module):
    """Inception-v3.

    Args:
        config: Width; the published network by default.

    Raises:
        ValueError: The width is not between one sixteenth and the published one.
    """

    def __init__(self, config: InceptionConfig | None = None) -> None:
        super().__init__()
        from torchvision.models.inception import Inception3

        self.config = config = config or InceptionConfig()
        if not 1 <= config.sixteenths <= SIXTEENTHS:
            raise ValueError(f"sixteenths {config.sixteenths}; 1 to {SIXTEENTHS} are possible")
        self.model = Inception3(
            num_classes=config.classes,
            aux_logits=config.auxiliary,
            transform_input=config.transform_input,
            inception_blocks=_blocks(config.sixteenths),
            init_weights=False,
            dropout=config.dropout / 100,
        )
        self.model.fc = nn.Linear(_scaled(LAST, config.sixteenths), config.classes)
        if config.auxiliary:
            self.model.AuxLogits.fc = nn.Linear(_scaled(AUXILIARY, config.sixteenths), config.classes)

    def forward(self, x: Tensor) -> Any:
        """Classify images.

        Args:
            x: float [B, 3, H, W], RGB, normalised; 299×299 in the published network, 75×75 at least.

        Returns:
            Logits [B, classes]; in training with the auxiliary head, a named tuple of these and its logits (``logits``,
            ``aux_logits``).
        """
        return self.model(x)


def _scaled(width: int, sixteenths: int) -> int:
    """Return a width scaled by sixteenths; the three colours stay three."""
    return width if width == 3 else width * sixteenths // SIXTEENTHS


def _blocks(sixteenths: int) -> list[Any]:
    """Return the seven block types of torchvision's network, at a width."""
    from torchvision.models import inception

    def convolution(inputs: int, outputs: int, **options: Any) -> nn.Module:
        return inception.BasicConv2d(_scaled(inputs, sixteenths), _scaled(outputs, sixteenths), **options)

    kinds = (
        inception.InceptionA,
        inception.InceptionB,
        inception.InceptionC,
        inception.InceptionD,
        inception.InceptionE,
        inception.InceptionAux,
    )
    return [convolution, *(partial(kind, conv_block=convolution) for kind in kinds)]
