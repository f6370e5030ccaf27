"""Further training of a segmentation network for the trainer: batches, the recipe's loss, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from medtest.systems.checkpoints.inputs import INPUTS
from medtest.systems.segmentation.networks.answers import answer_of
from medtest.training.engine.precision import autocast
from medtest.training.engine.trainer import Evaluation, Training, Writer, above_floor
from medtest.training.further.batches import Pixels, RecipeBatches
from medtest.training.further.losses import answers_of, recipe_loss
from medtest.training.further.material import PairMaterial
from medtest.training.further.networks import StartingPoint
from medtest.training.further.recipe import SegmentationRecipe
from medtest.training.scores import dice_of
from medtest.training.segmentation.data import Pairs

if TYPE_CHECKING:
    from torch import nn


def further_training(
    start: StartingPoint, material: PairMaterial, recipe: SegmentationRecipe, *, device: str, write: Writer
) -> Training:
    """Return the training task, for the trainer.

    Args:
        start: The network; its weights are changed.
        material: The data.
        recipe: The recipe.
        device: "cpu" or "cuda:N".
        write: Writes the selected weights.
    """
    size = recipe.size or start.size
    batches = RecipeBatches(material.originals, material.perturbed, recipe, size=size)
    return Training(
        network=start.network,
        recipe=recipe,
        validation=recipe.validation,
        batch=batches.batch,
        loss=PairLoss(start, recipe, device),
        evaluate=evaluation(start, material.held_out, recipe, device),
        may_keep=above_floor("dice_clean", recipe.validation.clean_floor),
        write=write,
        steps=recipe.steps_of(batches.steps_per_epoch),
        steps_per_epoch=batches.steps_per_epoch,
        seed=recipe.seed,
        device=device,
        identity={
            "recipe": recipe.model_dump(mode="json", exclude={"notes", "summary", "source"}),
            "start": start.sha256,
            "network": start.name,
            "data": material.digest,
            "size": size,
        },
        from_start=True,
        ramp=False,
    )


class PairLoss:
    """Recipe's loss of a network's answers.

    Args:
        start: Its family, and its word vectors if needed.
        recipe: The recipe.
        device: "cpu" or "cuda:N".
    """

    def __init__(self, start: StartingPoint, recipe: SegmentationRecipe, device: str) -> None:
        self._family = start.family
        self._labels = None if start.labels is None else start.labels.to(device)
        self._kind = INPUTS[start.family]
        self._recipe = recipe
        self._device = device

    def __call__(self, network: nn.Module, batch: tuple[Pixels, Pixels, int]) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the loss of a batch."""
        images, truth = self._tensors(*batch)
        with autocast(self._recipe.precision, self._device):
            outputs = self.outputs(network, images)
        return self.compare(outputs, truth), {}

    def outputs(self, network: nn.Module, images: Tensor) -> Any:
        """Return a network's output for images, which are moved to its device."""
        images = images.to(self._device, memory_format=torch.channels_last)
        return network(images) if self._labels is None else network(images, self._labels.expand(len(images), -1, -1))

    def compare(self, outputs: Any, truth: Tensor) -> Tensor:
        """Return the loss of outputs."""
        maps, judgements = answers_of(self._family, outputs)
        how, truth = self._recipe, truth.to(self._device)
        return recipe_loss(maps, truth, how.loss, how.quirks, family=self._family, judgements=judgements)

    def _tensors(self, pixels: Pixels, masks: Pixels, side: int) -> tuple[Tensor, Tensor]:
        """Normalise a batch and resize it to its side."""
        images = torch.from_numpy(self._kind.tensor(pixels))
        truth = torch.from_numpy(masks.astype(np.float32) / 255)[:, None]
        if side != images.shape[2]:
            scales, size = self._recipe.scales, (side, side)
            images = functional.interpolate(images, size=size, mode="bilinear", align_corners=scales.corners)
            if scales.mask == "nearest":
                truth = functional.interpolate(truth, size=size, mode="nearest")
            else:
                truth = functional.interpolate(truth, size=size, mode="bilinear", align_corners=scales.corners)
        if not self._recipe.quirks.soft_masks:
            truth = (truth > 0.5).float()
        return images, truth


def evaluation(
    start: StartingPoint, held_out: Mapping[str, Pairs], recipe: SegmentationRecipe, device: str
) -> Callable[[nn.Module], Evaluation]:
    """Return the evaluation: Dice and loss on held-out pairs of each kind (``clean``, ``perturbed``)."""
    loss = PairLoss(start, recipe, device)

    def evaluate(network: nn.Module) -> Evaluation:
        def forward(images: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
            outputs = loss.outputs(network, images)
            size = (int(truth.shape[2]), int(truth.shape[3]))
            return answer_of(start.family, outputs, size).float(), loss.compare(outputs, truth)

        facts: dict[str, float] = {}
        for kind, pairs in held_out.items():
            scores, facts[f"loss_{kind}"] = dice_of(
                forward,
                pairs,
                kind=INPUTS[start.family],
                threshold=start.threshold,
                batch=max(2, min(8, recipe.batch)),
            )
            facts[f"dice_{kind}"] = float(scores.mean())
        for name, part in (("score", "dice_"), ("loss", "loss_")):
            facts[name] = float(np.mean([facts[part + kind] for kind in held_out])) if held_out else 0.0
        return Evaluation(score=facts["score"], loss=facts["loss"], facts=facts)

    return evaluate
