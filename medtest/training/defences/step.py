"""Loss of a defended training step, and selection of weights on held-out cases under attack.

Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack", Medical Image Analysis
2021, section 4.5: standard adversarial training (eq. 6, after Madry et al. 2018), MPAdvT (algorithm 1) and MAAdvT
(eq. 7 to 10, algorithm 2, after Wang et al., "Improving adversarial robustness requires revisiting misclassified
examples", ICLR 2020). The batch is attacked in evaluation mode; the loss is computed in training mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from medtest.core.errors import typed_error
from medtest.training.classification.families import StepLoss, logits_of
from medtest.training.defences.attack import attacked, draw, network_inputs, start_noise, truth_loss
from medtest.training.defences.defence import Defence
from medtest.training.engine.precision import autocast, in_float32

if TYPE_CHECKING:
    from torch import nn

    from medtest.training.classification.batches import LabelledBatch

BOOST = 1.0001
"""MART's code has the logarithm of 1.0001 - p, which is finite at p = 1."""
_START = 31
BATCH = 16


def check_labels(defence: Defence | None, *, multi: bool, family: str) -> None:
    """Reject a defence that needs a single true class if several may apply.

    Raises:
        UserMistakes: The defence is rejected.
    """
    if defence is not None and multi and defence.single_label:
        raise typed_error(
            "defence",
            f"{defence.name} for {family}, of whose labels several may hold",
            "standard, mpadvt",
            "its regularisation is of one true class (eq. 7 and 8 of the paper, whose table 5 has none of CheXNet)",
        )


def defended_loss(
    family: str,
    defence: Defence,
    compare: StepLoss,
    *,
    extra: Callable[[], Tensor] | None,
    multi: bool,
    precision: str,
    device: str,
) -> Callable[[nn.Module, LabelledBatch], tuple[Tensor, Mapping[str, Tensor]]]:
    """Return the loss of a batch that is attacked first, with its ε and steps (0 if not attacked) as parts.

    Args:
        family: The network's family.
        defence: The defence.
        compare: The family's own loss.
        extra: Added to the defence's own loss (an L1 norm of the parameters), or None.
        multi: Whether several classes may apply.
        precision: The recipe's precision of the loss; attacks are in float32.
        device: "cpu" or "cuda:N".
    """

    def answers(network: nn.Module, pixels: Tensor) -> tuple[Any, Tensor]:
        with autocast(precision, device):
            outputs, logits = logits_of(family, network, network_inputs(family, pixels))
        return in_float32(outputs), logits.float()

    def loss_of(network: nn.Module, batch: LabelledBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        pixels = torch.from_numpy(np.ascontiguousarray(batch.images.transpose(0, 3, 1, 2)))
        pixels = pixels.to(device).float().div(255.0)
        truth = torch.from_numpy(batch.truth if multi else batch.truth.argmax(axis=1)).to(device)
        is_attacked, epsilon, steps = draw(defence)
        shown = pixels
        if is_attacked:
            start = start_noise(defence, pixels.shape, epsilon)
            raised = truth_loss(truth, multi=multi)
            shown = attacked(
                family, network, pixels, raised, epsilon=epsilon, steps=steps, step=defence.step, start=start
            )
        parts = {
            "epsilon": torch.tensor(epsilon if is_attacked else 0.0),
            "steps": torch.tensor(float(steps if is_attacked else 0)),
        }
        outputs, logits = answers(network, shown)
        if defence.loss == "family":
            loss = compare(outputs, truth, *batch.mask_tensors(device))
        else:
            loss = single_loss(logits, truth, boosted=defence.loss == "boosted")
            if extra is not None:
                loss = loss + extra()
        if defence.regularisation > 0:
            clean = answers(network, pixels)[1]
            parts["misclassification"] = misclassification(clean, logits, truth)
            loss = loss + defence.regularisation * parts["misclassification"]
        return loss, parts

    return loss_of


def single_loss(logits: Tensor, truth: Tensor, *, boosted: bool = False) -> Tensor:
    """Return the cross-entropy of attacked images, plus MART's margin to the most likely wrong class if boosted.

    Args:
        logits: B×C of attacked images.
        truth: int64 B.
        boosted: Whether to add -log(1.0001 - p of the most likely wrong class) (Wang et al. 2020, eq. 7).
    """
    loss = functional.cross_entropy(logits, truth)
    if not boosted:
        return loss
    wrong = torch.softmax(logits, dim=1).scatter(1, truth[:, None], -1.0).amax(dim=1)
    return loss - torch.log(BOOST - wrong).mean()


def misclassification(clean: Tensor, attacked: Tensor, truth: Tensor) -> Tensor:
    """Return the mean of KL(C(x)‖C(x'))·(1 - C_y(x)) (eq. 7 and 8), with gradients through both.

    Args:
        clean: Logits of the clean images, B×C.
        attacked: Logits of the attacked ones, B×C.
        truth: int64 B.
    """
    log_clean, log_attacked = functional.log_softmax(clean, dim=1), functional.log_softmax(attacked, dim=1)
    shares = log_clean.exp()
    divergence = (shares * (log_clean - log_attacked)).sum(dim=1)
    right = shares.gather(1, truth[:, None])[:, 0]
    return (divergence * (1.0 - right)).mean()


def attacked_images(
    family: str,
    network: nn.Module,
    images: NDArray[np.uint8],
    truth: NDArray[np.float32],
    defence: Defence,
    *,
    multi: bool,
    seed: int,
    device: str,
) -> NDArray[np.uint8]:
    """Return images under the validation attack, rounded to 8 bits as if they were saved.

    Args:
        family: The network's family.
        network: The network, which is not changed.
        images: uint8 N×S×S×3.
        truth: float32 N×C.
        defence: The defence.
        multi: Whether several classes may apply.
        seed: Determines the start noise, the same at every evaluation.
        device: "cpu" or "cuda:N".
    """
    watch, result = defence.watch, np.empty_like(images)
    noise = torch.Generator().manual_seed(seed * 1_000_003 + _START)
    expected = torch.from_numpy(truth if multi else truth.argmax(axis=1))
    for first in range(0, len(images), BATCH):
        part = slice(first, first + BATCH)
        pixels = torch.from_numpy(images[part].transpose(0, 3, 1, 2).copy()).to(device).float().div(255.0)
        start = (torch.rand(pixels.shape, generator=noise) * 2.0 - 1.0) * (watch.epsilon / 255.0)
        adversarial = attacked(
            family,
            network,
            pixels,
            truth_loss(expected[part].to(device), multi=multi),
            epsilon=watch.epsilon,
            steps=watch.steps,
            step=watch.step,
            start=start,
        )
        levels = (adversarial * 255.0).round().clamp(0, 255).to(torch.uint8).cpu()
        result[part] = levels.permute(0, 2, 3, 1).numpy()
    return result
