"""Generator training for the trainer: batches, a loss through the attacked system, an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medtest.core.cases import Classes
from medtest.relations.adversarial.generators.files import GeneratorInfo
from medtest.relations.adversarial.generators.goals import in_levels, losses, reached
from medtest.relations.adversarial.generators.network import GeneratorShape, PerturbationGenerator, initialise
from medtest.relations.adversarial.generators.perturb import fixed_input, perturbed, released, seen
from medtest.training.classification.cases import LabelledSet, some_of
from medtest.training.engine.precision import autocast
from medtest.training.engine.trainer import Evaluation, Training, Writer
from medtest.training.generators.material import FieldBatch, FieldBatches, taken
from medtest.training.generators.recipe import GeneratorRecipe

if TYPE_CHECKING:
    from torch import nn

    from medtest.core.probes import Probe

BATCH = 16
"""Batch size of an evaluation."""
MOST_WATCHED = 128
"""Maximum number of held-out cases in an evaluation; of more, a random subset is used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorObjective:
    """Objective of a generator against one system.

    Attributes:
        probe: Probe of the system.
        classes: The seeds' classes.
        info: Requested settings of the generator.
        recipe: The recipe.
    """

    probe: Probe
    classes: Classes
    info: GeneratorInfo
    recipe: GeneratorRecipe

    def images(self, batch: FieldBatch) -> tuple[Tensor, Tensor]:
        """Return a batch's images, float32 B×3×S×S in [0, 1], and its fields of view, bool B×1×S×S."""
        pixels, fields = (torch.from_numpy(array).to(self.probe.device) for array in batch)
        return pixels.permute(0, 3, 1, 2).float().div(255), fields[:, None]

    def shown(self, network: nn.Module, images: Tensor, within: Tensor) -> Tensor:
        """Return a generator's output for images, not rounded."""
        settings = self.info.settings
        inputs = fixed_input(self.info.side, self.info.pattern).to(images) if settings.universal else seen(images)
        with autocast(self.recipe.precision, self.probe.device):
            field: Tensor = network(inputs).float()
        epsilon = settings.linf / 255.0
        if settings.variant == "released":
            mean, std = images.new_tensor(self.info.mean), images.new_tensor(self.info.std)
            return released(images, field.expand_as(images), epsilon, mean, std)
        return perturbed(images, field, epsilon, within)

    def loss(self, network: nn.Module, batch: FieldBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the mean of :func:`medtest.relations.adversarial.generators.goals.losses` over a batch."""
        images, within = self.images(batch)
        with torch.no_grad():
            clean = self.probe.logits(images)
        logits = self.probe.logits(self.shown(network, images, within))
        values = losses(logits, clean, self.classes, self.info.settings.target, self.recipe.goal)
        return values.mean(), {}


def generator_training(
    attack: GeneratorObjective,
    cases: LabelledSet,
    trained: NDArray[np.int64],
    watched: NDArray[np.int64],
    *,
    system: str,
    device: str,
    write: Writer,
) -> Training:
    """Return the training task, for the trainer.

    Args:
        attack: The system, and the generator's settings.
        cases: All cases.
        trained: Indices of the training cases.
        watched: Indices of the held-out cases.
        system: Digest of the system.
        device: "cpu" or "cuda:N".
        write: Writes the selected weights.
    """
    recipe, shape = attack.recipe, GeneratorShape.of(attack.info.shape)
    torch.manual_seed(recipe.seed)
    network = PerturbationGenerator(shape)
    if recipe.start == "spread":
        initialise(network, recipe.seed)
    batches = FieldBatches(cases, trained, batch=recipe.batch, seed=recipe.seed, most=recipe.most_batches)
    return Training(
        network=network,
        recipe=recipe,
        validation=recipe.watching,
        batch=batches.batch,
        loss=attack.loss,
        evaluate=_evaluation(attack, cases, some_of(watched, seed=recipe.seed, most=MOST_WATCHED)),
        write=write,
        steps=recipe.steps_of(batches.steps_per_epoch),
        steps_per_epoch=batches.steps_per_epoch,
        seed=recipe.seed,
        device=device,
        identity={
            "recipe": recipe.model_dump(mode="json", exclude={"notes", "summary", "source"}),
            "settings": attack.info.settings.described(),
            "shape": dict(attack.info.shape),
            "system": system,
            "cases": cases.digest,
        },
    )


def _evaluation(
    attack: GeneratorObjective, cases: LabelledSet, watched: NDArray[np.int64]
) -> Callable[[nn.Module], Evaluation]:
    """Return the evaluation of a generator on held-out cases, as it attacks: in evaluation mode, saved in 8 bits."""

    def evaluate(network: nn.Module) -> Evaluation:
        success, loss = fooled(attack, network, cases, watched)
        facts = {"fooled": float(success.mean()), "loss": float(loss.mean())}
        return Evaluation(score=facts["fooled"], loss=facts["loss"], facts=facts)

    return evaluate


def fooled(
    attack: GeneratorObjective,
    network: nn.Module | None,
    cases: LabelledSet,
    indices: NDArray[np.int64],
    *,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the success of a generator for each case (see :func:`reached`), and the losses.

    Args:
        attack: The system, and the generator's settings.
        network: The generator, in evaluation mode; None for uniform noise of the same bound.
        cases: All cases.
        indices: Indices of the cases to attack.
        seed: Seed of the noise.
    """
    target, goal = attack.info.settings.target, attack.recipe.goal
    came: list[Any] = []
    lost: list[Any] = []
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for start in range(0, len(indices), BATCH):
            images, within = attack.images(taken(cases, [int(i) for i in indices[start : start + BATCH]]))
            clean = attack.probe.logits(images)
            if network is None:
                noise = torch.rand(images.shape, generator=source).to(images) * 2.0 - 1.0
                shown = (images + noise * within * (attack.info.settings.linf / 255.0)).clamp(0.0, 1.0)
            else:
                shown = attack.shown(network, images, within)
            logits = attack.probe.logits(in_levels(shown))
            came.append(reached(logits, clean, attack.classes, target).cpu().numpy())
            lost.append(losses(logits, clean, attack.classes, target, goal).cpu().numpy())
    return np.concatenate(came).astype(np.float64), np.concatenate(lost).astype(np.float64)
