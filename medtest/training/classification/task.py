"""What a classifier's training gives to the trainer: batches, the family's loss, and an evaluation of its answers."""

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
"""Held-out cases that an evaluation looks at; of more, some drawn by chance."""
BATCH = 16
"""Cases of a batch of an evaluation."""


def some_of(watched: NDArray[np.int64], *, seed: int, most: int = MOST_WATCHED) -> NDArray[np.int64]:
    """Return the cases that an evaluation looks at, at most so many."""
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
    """Return what is trained, for the trainer.

    Args:
        family: The network's family.
        network: The network that is moved, on the CPU.
        cases: All cases.
        trained: Indices of those that are trained on.
        watched: Indices of those that are held out, of :func:`some_of`.
        recipe: How.
        side: Side that the network takes, in pixels.
        shown: That side as a share of the stored side.
        seed: Decides order, changes and dropout.
        device: "cpu" or "cuda:N".
        identity: What a resumed training must share beside cases and recipe; JSON values.
        write: Writes the weights that are kept.
        perturbed: bool N, the perturbed ones among the cases, whose accuracy is told apart; None where there are none.
        from_start: Whether the network is evaluated before the first step, so that the start may be what is kept.
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


def _any(found: Mapping[str, float], first: Mapping[str, float]) -> bool:
    """Say that weights may be kept, whatever was found of them."""
    return True


def _loss(
    family: str,
    network: nn.Module,
    cases: LabelledSet,
    trained: NDArray[np.int64],
    recipe: ClassifierRecipe,
    device: str,
) -> Loss:
    """Return the loss of a batch: the family's, of what the network answers."""
    shares = positive_shares(torch.from_numpy(cases.truth[trained])).to(device)
    compare = loss_of(family, recipe.loss, network, shares=shares)
    kind, multi = INPUTS[family], cases.classes.multi
    if recipe.defence is not None:
        extra = norm_of(recipe.loss, network)
        how, precision = recipe.defence, recipe.precision
        return DefendedLoss(family, how, compare, extra=extra, multi=multi, precision=precision, device=device)

    def loss(network: nn.Module, batch: LabelledBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        images = torch.from_numpy(kind.tensor(batch.images)).to(device, memory_format=torch.channels_last)
        truth = torch.from_numpy(batch.truth if multi else batch.truth.argmax(axis=1)).to(device)
        masks = known = None
        if batch.known.any():
            masks = torch.from_numpy(batch.masks).to(device).float().div(255)[:, None]
            known = torch.from_numpy(batch.known).to(device)
        with autocast(recipe.precision, device):
            outputs, _ = logits_of(family, network, images)
        return compare(in_float32(outputs), truth, masks, known), {}

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
    """Return what evaluates a network: accuracy, area under the ROC curve and cross-entropy on the cases watched.

    Under a defence the same of the cases attacked, which then choose the weights and the schedule of a plateau.
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
            made = attacked_images(
                family, network, images, truth, recipe.defence, multi=multi, seed=seed, device=device
            )
            found = answers(family, network, made, device=device)
            facts["accuracy_attacked"] = accuracy(found, truth, multi=multi)
            facts["auroc_attacked"] = mean_area(found, truth, multi=multi)
            facts["loss_attacked"] = cross_entropy(found, truth, multi=multi)
        return Evaluation(score=facts[chooses + ending], loss=facts["loss" + ending], facts=facts)

    return evaluate


def answers(family: str, network: nn.Module, images: NDArray[np.uint8], *, device: str = "cpu") -> NDArray[np.float32]:
    """Return a network's logits, float32 B×C, of images as it takes them (uint8 B×S×S×3)."""
    found: list[NDArray[np.float32]] = []
    with torch.inference_mode():
        for start in range(0, len(images), BATCH):
            given = torch.from_numpy(INPUTS[family].tensor(images[start : start + BATCH])).to(device)
            given = given.to(memory_format=torch.channels_last)
            found.append(np.asarray(logits_of(family, network, given)[1].float().cpu().numpy(), np.float32))
    return np.concatenate(found)
