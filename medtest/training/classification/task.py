"""Classifier training for the trainer: batches, the family's loss, and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from medtest.training.defences.step import DefendedLoss, attacked_images, check_labels, floor_of
from medtest.training.engine.precision import autocast, in_float32
from medtest.training.engine.trainer import Evaluation, Loss, Training, Writer

if TYPE_CHECKING:
    from torch import nn

MOST_WATCHED = 600
"""Maximum number of held-out cases in an evaluation; of more, a random subset is used."""
BATCH = 16
"""Batch size of an evaluation."""


def some_of(watched: NDArray[np.int64], *, seed: int, most: int = MOST_WATCHED) -> NDArray[np.int64]:
    """Return a random subset of at most ``most`` cases for evaluation."""
    order = np.random.Generator(np.random.PCG64([seed, 12])).permutation(len(watched))
    return np.sort(watched[order[: min(most, MOST_WATCHED)]])


def classifier_training(
    family: str,
    network: nn.Module,
    cases: LabelledSet,
    trained: NDArray[np.int64],
    watched: NDArray[np.int64],
    recipe: ClassifierRecipe,
    *,
    side: int,
    shown: float,
    seed: int,
    device: str,
    identity: Mapping[str, Any],
    write: Writer,
    perturbed: NDArray[np.bool_] | None = None,
    from_start: bool = False,
) -> Training:
    """Return the training of a classifier, for the trainer.

    Args:
        family: The network's family.
        network: The network to train, on the CPU.
        cases: All cases.
        trained: Indices of the training cases.
        watched: Indices of the held-out cases, from :func:`some_of`.
        recipe: The recipe.
        side: Input side of the network in pixels.
        shown: That side relative to the stored side.
        seed: Determines order, changes and dropout.
        device: "cpu" or "cuda:N".
        identity: What a resumed training must share besides cases and recipe; JSON values.
        write: Writes the selected weights.
        perturbed: bool N, whether a case is perturbed, for separate accuracies; None if none are.
        from_start: Whether to evaluate the network before the first step, so that the start may be selected.
    """
    check_labels(recipe.defence, multi=cases.classes.multi, family=family)
    steps_per_epoch = max(1, len(trained) // recipe.batch) * recipe.passes
    steps = recipe.steps_of(steps_per_epoch)
    return Training(
        network=network,
        recipe=recipe,
        validation=recipe.watching,
        batches=LabelledBatches(cases, trained, recipe, side=side, shown=shown, steps=steps, seed=seed),
        loss=_loss(family, network, cases, trained, recipe, device),
        evaluate=_evaluation(
            family, cases, watched, recipe, side=side, shown=shown, seed=seed, device=device, apart=perturbed
        ),
        may_keep=_any if recipe.defence is None else floor_of(recipe.defence),
        write=write,
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        seed=seed,
        device=device,
        identity={**identity, "cases": cases.digest, "recipe": recipe.identity()},
        from_start=from_start,
        curves=("loss", "factor"),
    )


def _any(facts: Mapping[str, float], first: Mapping[str, float]) -> bool:
    """Allow any weights to be selected."""
    return True


def _loss(
    family: str,
    network: nn.Module,
    cases: LabelledSet,
    trained: NDArray[np.int64],
    recipe: ClassifierRecipe,
    device: str,
) -> Loss:
    """Return the loss of a batch: the family's, for the network's answer."""
    shares = positive_shares(torch.from_numpy(cases.truth[trained])).to(device)
    compare = loss_of(family, recipe.loss, network, shares=shares)
    kind, multi = INPUTS[family], cases.classes.multi
    if recipe.defence is not None:
        extra = norm_of(recipe.loss, network)
        defence, precision = recipe.defence, recipe.precision
        return DefendedLoss(family, defence, compare, extra=extra, multi=multi, precision=precision, device=device)

    def loss(network: nn.Module, batch: LabelledBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        images = torch.from_numpy(kind.tensor(batch.images)).to(device, memory_format=torch.channels_last)
        truth = torch.from_numpy(batch.truth if multi else batch.truth.argmax(axis=1)).to(device)
        masks = has_mask = None
        if batch.known.any():
            masks = torch.from_numpy(batch.masks).to(device).float().div(255)[:, None]
            has_mask = torch.from_numpy(batch.known).to(device)
        with autocast(recipe.precision, device):
            outputs, _ = logits_of(family, network, images)
        return compare(in_float32(outputs), truth, masks, has_mask), {}

    return loss


def _evaluation(
    family: str,
    cases: LabelledSet,
    watched: NDArray[np.int64],
    recipe: ClassifierRecipe,
    *,
    side: int,
    shown: float,
    seed: int,
    device: str,
    apart: NDArray[np.bool_] | None,
) -> Callable[[nn.Module], Evaluation]:
    """Return the evaluation: accuracy, area under the ROC curve and cross-entropy on the held-out cases.

    With a defence, also on the attacked cases, which then determine the selected weights and a plateau schedule.
    """
    images, truth = shown_cases(cases, watched, side=side, shown=shown)
    multi = cases.classes.multi
    kinds = {} if apart is None else {"clean": ~apart[watched], "perturbed": apart[watched]}

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
        chooses, ending = "auroc" if multi else recipe.watching.score, ""
        if recipe.defence is not None:
            ending = "_attacked"
            attacked = attacked_images(
                family, network, images, truth, recipe.defence, multi=multi, seed=seed, device=device
            )
            attacked_logits = answers(family, network, attacked, device=device)
            facts["accuracy_attacked"] = accuracy(attacked_logits, truth, multi=multi)
            facts["auroc_attacked"] = mean_area(attacked_logits, truth, multi=multi)
            facts["loss_attacked"] = cross_entropy(attacked_logits, truth, multi=multi)
        return Evaluation(score=facts[chooses + ending], loss=facts["loss" + ending], facts=facts)

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
