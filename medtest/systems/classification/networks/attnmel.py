"""AttnMel: a VGG-16 with attention-weighted intermediate features, for melanoma in dermoscopy.

Yan, Kawahara and Hamarneh, "Melanoma Recognition via Visual Attention", IPMI 2019: five blocks of VGG-16 with batch
norms, two attention modules in which the deepest features weight those after the third and the fourth pool (section 2),
and one linear layer on the three pooled vectors. Parameter names and the list of outputs follow the published network,
checked against recorded outputs in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

Attention: TypeAlias = Literal["sigmoid", "softmax"]
CONVOLUTIONS = (2, 2, 3, 3, 3)
"""Convolutions in each block of VGG-16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttnMelConfig:
    """Widths of an AttnMel; the defaults are the published network.

    Attributes:
        widths: Channels of the five blocks.
        attention_width: Channels in which an attention module compares local and global features.
        classes: Number of classes.
        attention: Conversion of local scores to weights. ``sigmoid``: independent, and the weighted features are
            averaged; ``softmax``: summing to one, and the weighted features are summed. No parameter distinguishes
            them.
    """

    widths: tuple[int, int, int, int, int] = (64, 128, 256, 512, 512)
    attention_width: int = 256
    classes: int = 2
    attention: Attention = "sigmoid"


class AttentionModule(nn.Module):
    """Local features weighted by their agreement with the global ones.

    Args:
        local: Channels of the local features.
        whole: Channels of the global features.
        width: Channels in which they are compared.
        attention: See :class:`AttnMelConfig`.
    """

    def __init__(self, local: int, whole: int, width: int, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.W_l = nn.Conv2d(local, width, 1, bias=False)
        self.W_g = nn.Conv2d(whole, width, 1, bias=False)
        self.phi = nn.Conv2d(width, 1, 1)

    def forward(self, local: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
        """Return the map of weights [B, 1, h, w] and the weighted features as one vector [B, C].

        Args:
            local: [B, C, h, w].
            whole: [B, C', h', w'], resized to h×w (bilinear, corners not aligned) after its convolution.
        """
        size = (int(local.shape[2]), int(local.shape[3]))
        judged = functional.interpolate(self.W_g(whole), size=size, mode="bilinear", align_corners=False)
        scores: Tensor = self.phi(functional.relu(self.W_l(local) + judged))
        if self.attention == "softmax":
            weights = scores.flatten(1).softmax(dim=1).view_as(scores)
            return weights, (weights * local).sum(dim=(2, 3))
        weights = scores.sigmoid()
        return weights, (weights * local).mean(dim=(2, 3))


def _block(inputs: int, outputs: int, convolutions: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for index in range(convolutions):
        before = inputs if index == 0 else outputs
        layers += [nn.Conv2d(before, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class AttnMel(nn.Module):
    """AttnMel.

    Args:
        config: Widths; the published network by default.

    Raises:
        ValueError: Unknown kind of attention.
    """

    def __init__(self, config: AttnMelConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or AttnMelConfig()
        first, second, third, fourth, fifth = config.widths
        self.conv_block1 = _block(3, first, CONVOLUTIONS[0])
        self.conv_block2 = _block(first, second, CONVOLUTIONS[1])
        self.conv_block3 = _block(second, third, CONVOLUTIONS[2])
        self.conv_block4 = _block(third, fourth, CONVOLUTIONS[3])
        self.conv_block5 = _block(fourth, fifth, CONVOLUTIONS[4])
        self.cls = nn.Linear(fifth + third + fourth, config.classes)
        self.attn1 = AttentionModule(third, fifth, config.attention_width, config.attention)
        self.attn2 = AttentionModule(fourth, fifth, config.attention_width, config.attention)
        self.attend(config.attention)

    def attend(self, attention: Attention) -> None:
        """Set the conversion of local scores to weights, which a checkpoint does not record.

        Raises:
            ValueError: Unknown kind of attention.
        """
        if attention not in ("sigmoid", "softmax"):
            raise ValueError(f"attention {attention!r}; sigmoid and softmax are possible")
        self.attn1.attention = self.attn2.attention = attention

    def forward(self, x: Tensor) -> list[Tensor]:
        """Classify images.

        Args:
            x: float [B, 3, H, W], RGB, normalised; 224×224 in the published network.

        Returns:
            Logits [B, classes], and the weights of the two attention modules, [B, 1, H/8, W/8] and [B, 1, H/16, W/16].
        """
        x = functional.max_pool2d(self.conv_block1(x), 2)
        x = functional.max_pool2d(self.conv_block2(x), 2)
        third = functional.max_pool2d(self.conv_block3(x), 2)
        fourth = functional.max_pool2d(self.conv_block4(third), 2)
        deepest = functional.max_pool2d(self.conv_block5(fourth), 2)
        # Equals the published 7×7 pool at 224×224; at other sizes that pool would omit positions.
        whole = deepest.mean(dim=(2, 3))
        first_map, first_vector = self.attn1(third, deepest)
        second_map, second_vector = self.attn2(fourth, deepest)
        logits: Tensor = self.cls(torch.cat([whole, first_vector, second_vector], dim=1))
        return [logits, first_map, second_map]
