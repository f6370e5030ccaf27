"""Attack of a defended training step: on pixels, through a network that is restored afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from medtest.relations.adversarial.projected_gradient import projected_gradient
from medtest.systems.checkpoints.inputs import INPUTS
from medtest.training.classification.families import logits_of

if TYPE_CHECKING:
    from torch import nn

    from medtest.training.defences.defence import Defence

Raised: TypeAlias = Callable[[Tensor], Tensor]
"""Maps logits, B×C, to one loss per image."""
LEVELS = 255.0


def draw(defence: Defence) -> tuple[bool, float, int]:
    """Draw whether a batch is attacked, ε in levels and the number of steps, from torch's own generator.

    The trainer seeds it from the training's seed and the step's number, so that a resumed training draws the same.
    """
    chance, width, count = torch.rand(3, dtype=torch.float64).tolist()
    (low, high), (fewest, most) = defence.epsilon, defence.steps
    steps = min(most, fewest + int(count * (most - fewest + 1)))
    return chance >= 1.0 - defence.share, low + (high - low) * width, steps


def start_noise(defence: Defence, shape: torch.Size, epsilon: float) -> Tensor:
    """Return the initial offset of an attack, in [-ε, ε] of images in [0, 1], from torch's own generator."""
    reach = epsilon / LEVELS
    if defence.start == "uniform":
        return (torch.rand(shape) * 2.0 - 1.0) * reach
    return (torch.randn(shape) * (defence.spread / LEVELS)).clamp(-reach, reach)


def network_inputs(family: str, pixels: Tensor) -> Tensor:
    """Convert pixels, float32 B×3×S×S in [0, 1], to a family's network input; differentiable."""
    return INPUTS[family].normalised(pixels).contiguous(memory_format=torch.channels_last)


def truth_loss(truth: Tensor, *, multi: bool) -> Raised:
    """Return the loss that an attack maximises: cross-entropy with the true class, or the mean over binary labels.

    Args:
        truth: int64 B, or float B×C if several classes may apply.
        multi: Whether several classes may apply.
    """
    if multi:
        return lambda logits: functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(dim=1)
    return lambda logits: functional.cross_entropy(logits, truth, reduction="none")


@contextmanager
def as_tested(network: nn.Module) -> Iterator[None]:
    """Hold a network in evaluation mode without gradients of its parameters, and restore each module afterwards.

    An attack thus changes no batch norm statistics, draws no dropout and leaves no parameter gradients.
    """
    modes = [(module, module.training) for module in network.modules()]
    moved = [parameter for parameter in network.parameters() if parameter.requires_grad]
    network.eval()
    for parameter in moved:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moved:
            parameter.requires_grad_(True)
        for module, mode in modes:
            module.training = mode


def attacked(
    family: str,
    network: nn.Module,
    pixels: Tensor,
    raised: Raised,
    *,
    epsilon: float,
    steps: int,
    step: float,
    start: Tensor,
) -> Tensor:
    """Return images attacked by PGD (L∞, last iterate), with the network in test mode; not rounded.

    Args:
        family: The network's family.
        network: The network; it is not changed.
        pixels: float32 B×3×S×S in [0, 1].
        raised: The loss to maximise.
        epsilon: ε in levels of 255.
        steps: Steps.
        step: α in levels of 255.
        start: Initial offset.
    """

    def logits(images: Tensor) -> Tensor:
        return logits_of(family, network, network_inputs(family, images))[1].float()

    with as_tested(network), torch.enable_grad():
        result = projected_gradient(
            logits,
            pixels,
            lambda answers, _rows: raised(answers),
            epsilon=epsilon / LEVELS,
            step=step / LEVELS,
            steps=steps,
            start=start.to(pixels),
        )
    images: Tensor = result.images.detach()
    return images
