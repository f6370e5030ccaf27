"""Classifier training for the trainer: batches, the family's loss, and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medtest.systems.checkpoints.inputs import INPUTS
from medtest.training.classification.batches import LabelledBatch, LabelledBatches, shown_cases
from medtest.training.classification.cases import LabelledSet
from medtest.training.classification.families import logits_of, loss_of, norm_of
from medtest.training.classification.losses.chexnet import positive_shares
from medtest.training.classification.recipe import ClassifierRecipe
from medtest.training.classification.scores import accuracy, cross_entropy, mean_area
from medtest.training.defences.step import attacked_images, check_labels, defended_loss
from medtest.training.engine.precision import autocast, in_float32
from medtest.training.engine.trainer import Evaluation, Loss, Training, Writer, above_floor

if TYPE_CHECKING:
    from torch import nn

BATCH = 16
"""Batch size of an evaluation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierData:
    """Data and surroundings of a classifier's training.

    Attributes:
        family: The network's family.
        cases: All cases.
        trained: Indices of the training cases.
        watched: Indices of the held-out cases, from :func:`medtest.training.classification.cases.some_of`.
        recipe: The recipe.
        side: Input side of the network in pixels.
        shown: That side relative to the stored side.
        seed: Determines order, changes and dropout.
        device: "cpu" or "cuda:N".
        perturbed: bool N, whether a case is perturbed, for separate accuracies; None if none are.
    """

    family: str
    cases: LabelledSet
    trained: NDArray[np.int64]
    watched: NDArray[np.int64]
    recipe: ClassifierRecipe
    side: int
    shown: float
    seed: int
    device: str
    perturbed: NDArray[np.bool_] | None = None


def classifier_training(
    network: nn.Module, data: ClassifierData, *, identity: Mapping[str, Any], write: Writer, from_start: bool = False
) -> Training:
    """Return the training of a classifier, for the trainer.

    Args:
        network: The network to train, on the CPU.
        data: Its data.
        identity: What a resumed training must share besides cases and recipe; JSON values.
        write: Writes the selected weights.
        from_start: Whether to evaluate the network before the first step, so that the start may be selected.
    """
    recipe, defence = data.recipe, data.recipe.defence
    check_labels(defence, multi=data.cases.classes.multi, family=data.family)
    steps_per_epoch = max(1, len(data.trained) // recipe.batch) * recipe.passes
    steps = recipe.steps_of(steps_per_epoch)
    return Training(
        network=network,
        recipe=recipe,
        validation=recipe.watching,
        batch=LabelledBatches(
            data.cases, data.trained, recipe, side=data.side, shown=data.shown, steps=steps, seed=data.seed
        ).batch,
        loss=_loss(network, data),
        evaluate=_evaluation(data),
        may_keep=above_floor("accuracy", None if defence is None else defence.watch.clean_floor),
        write=write,
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        seed=data.seed,
        device=data.device,
        identity={**identity, "cases": data.cases.digest, "recipe": recipe.identity()},
        from_start=from_start,
        curves=("loss", "factor"),
    )


def _loss(network: nn.Module, data: ClassifierData) -> Loss:
    """Return the loss of a batch: the family's, for the network's answer."""
    family, recipe, device, multi = data.family, data.recipe, data.device, data.cases.classes.multi
    shares = positive_shares(torch.from_numpy(data.cases.truth[data.trained])).to(device)
    compare = loss_of(family, recipe.loss, network, shares=shares)
    if recipe.defence is not None:
        extra, precision = norm_of(recipe.loss, network), recipe.precision
        return defended_loss(
            family, recipe.defence, compare, extra=extra, multi=multi, precision=precision, device=device
        )

    def loss(network: nn.Module, batch: LabelledBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        pixels = torch.from_numpy(INPUTS[family].tensor(batch.images))
        images = pixels.to(device, memory_format=torch.channels_last)
        truth = torch.from_numpy(batch.truth if multi else batch.truth.argmax(axis=1)).to(device)
        with autocast(recipe.precision, device):
            outputs, _ = logits_of(family, network, images)
        return compare(in_float32(outputs), truth, *batch.mask_tensors(device)), {}

    return loss


def _evaluation(data: ClassifierData) -> Callable[[nn.Module], Evaluation]:
    """Return the evaluation: accuracy, area under the ROC curve and cross-entropy on the held-out cases.

    With a defence, also on the attacked cases, which then determine the selected weights and a plateau schedule.
    """
    recipe, multi, family, device = data.recipe, data.cases.classes.multi, data.family, data.device
    images, truth = shown_cases(data.cases, data.watched, side=data.side, shown=data.shown)
    apart = None if data.perturbed is None else data.perturbed[data.watched]
    kinds = {} if apart is None else {"clean": ~apart, "perturbed": apart}

    def evaluate(network: nn.Module) -> Evaluation:
        logits = answers(family, network, images, device=device)
        facts = {
            "accuracy": accuracy(logits, truth, multi=multi),
            "auroc": mean_area(logits, truth, multi=multi),
        }
        for name, where in kinds.items():
            if where.any():
                facts[f"accuracy_{name}"] = accuracy(logits[where], truth[where], multi=multi)
        facts["loss"] = cross_entropy(logits, truth, multi=multi)
        score, ending = "auroc" if multi else recipe.watching.score, ""
        if recipe.defence is not None:
            ending = "_attacked"
            attacked = attacked_images(
                family, network, images, truth, recipe.defence, multi=multi, seed=data.seed, device=device
            )
            attacked_logits = answers(family, network, attacked, device=device)
            facts["accuracy_attacked"] = accuracy(attacked_logits, truth, multi=multi)
            facts["auroc_attacked"] = mean_area(attacked_logits, truth, multi=multi)
            facts["loss_attacked"] = cross_entropy(attacked_logits, truth, multi=multi)
        return Evaluation(score=facts[score + ending], loss=facts["loss" + ending], facts=facts)

    return evaluate


def answers(family: str, network: nn.Module, images: NDArray[np.uint8], *, device: str = "cpu") -> NDArray[np.float32]:
    """Return a network's logits, float32 B×C, for images in its input size (uint8 B×S×S×3)."""
    batches: list[NDArray[np.float32]] = []
    with torch.inference_mode():
        for start in range(0, len(images), BATCH):
            inputs = torch.from_numpy(INPUTS[family].tensor(images[start : start + BATCH])).to(device)
            inputs = inputs.to(memory_format=torch.channels_last)
            batches.append(np.asarray(logits_of(family, network, inputs)[1].float().cpu().numpy(), np.float32))
    return np.concatenate(batches)
