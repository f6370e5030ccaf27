"""The loop of further training: one optimizer step after the other, and a state from which it goes on exactly.

Batches, changes and dropout follow from the seed and the step's number, so nothing random lives between steps. The
state holds the network, its averaged copy, the optimizer, schedule, gradient scaler, torch's generator, the step, the
history and what was best; a training that was killed gives the same weights on a CPU as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from medtest.errors import MedtestError
from medtest.systems.segmentation.networks.inputs import INPUTS
from medtest.training.data import Pairs
from medtest.training.further.batches import RawBatch, RecipeBatches
from medtest.training.further.losses import answers_of, recipe_loss
from medtest.training.further.networks import Start
from medtest.training.further.recipe import Recipe
from medtest.training.further.schedule import RateFactors, make_optimizer
from medtest.training.scores import dice_and_iou
from medtest.training.state import load_state, write_state


@dataclass(kw_only=True)
class Progressed:
    """What a training has reached.

    Attributes:
        step: Optimizer steps done.
        best_step: Step of the best validation; 0 is the start.
        best_score: Its score, -1 before the first.
        clean_start: Mean Dice on clean held-out pairs before the first step.
        waited: Validations since the best.
        stopped: Whether early stopping has ended it.
        history: One entry for each validation.
    """

    step: int = 0
    best_step: int = 0
    best_score: float = -1.0
    clean_start: float = -1.0
    waited: int = 0
    stopped: bool = False
    history: list[dict[str, float]] = field(default_factory=list)


def precision_of(recipe: Recipe, device: str) -> str:
    """Return ``fp32``, ``bf16`` or ``amp``.

    Raises:
        MedtestError: The recipe wants float16 on a CPU.
    """
    on_cuda = device.startswith("cuda")
    if recipe.precision == "auto":
        return "amp" if on_cuda else "fp32"
    if recipe.precision == "amp" and not on_cuda:
        raise MedtestError("precision=amp (float16 with a gradient scaler) needs a CUDA device; bf16 runs on a CPU too")
    return recipe.precision


class Engine:
    """Moves a network's weights.

    Args:
        start: The network; its weights are changed in place.
        batches: Where the batches come from.
        recipe: The recipe.
        steps: Optimizer steps in all.
        device: "cpu" or "cuda:N".
        identity: What must be the same for a state to be resumed; JSON values.
    """

    def __init__(
        self,
        start: Start,
        batches: RecipeBatches,
        recipe: Recipe,
        *,
        steps: int,
        device: str,
        identity: Mapping[str, Any],
    ) -> None:
        self.network = start.network.to(device).to(memory_format=torch.channels_last)
        self.reached = Progressed()
        self._start = start
        self._batches = batches
        self._recipe = recipe
        self._device = device
        self._precision = precision_of(recipe, device)
        self._kind = INPUTS[start.family]
        self._labels = None if start.labels is None else start.labels.to(device)
        self._identity = identity
        self._optimizer = make_optimizer(self.network, recipe.optimizer)
        self._rates = RateFactors(recipe, steps=steps, steps_per_epoch=batches.steps_per_epoch)
        self._scaler = torch.amp.GradScaler("cuda", enabled=self._precision == "amp")
        self._average: dict[str, Tensor] = (
            {name: value.clone() for name, value in self.network.state_dict().items()} if recipe.average > 0 else {}
        )

    # --- steps ------------------------------------------------------------------------------------------------

    def advance(self) -> dict[str, float]:
        """Do one optimizer step and return its loss and learning rate.

        Raises:
            MedtestError: The loss is not a number any more.
        """
        step = self.reached.step
        factor = self._rates.factor(step)
        for group in self._optimizer.param_groups:
            group["lr"] = group["top"] * factor
        torch.manual_seed(self._recipe.seed * 1_000_003 + step)
        images, truth = self._tensors(self._batches.batch(step))
        self.network.train()
        if self._recipe.frozen_norms:
            _freeze_norms(self.network)
        loss = self._loss(images, truth)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise MedtestError(
                f"the loss is {value} at step {step}: a lower rate (recipe.optimizer.rate=) or clipping "
                "(recipe.clip_norm=1) may help; the state of the last good step is kept"
            )
        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._clip()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._follow(step)
        self.reached.step += 1
        return {"loss": value, "rate": self._optimizer.param_groups[0]["lr"]}

    def _tensors(self, batch: RawBatch) -> tuple[Tensor, Tensor]:
        """Normalise a batch and show it at its side."""
        images = torch.from_numpy(self._kind.tensor(batch.images))
        truth = torch.from_numpy(batch.masks.astype(np.float32) / 255)[:, None]
        if batch.side != images.shape[2]:
            scales, side = self._recipe.scales, (batch.side, batch.side)
            images = functional.interpolate(images, size=side, mode="bilinear", align_corners=scales.corners)
            if scales.mask == "nearest":
                truth = functional.interpolate(truth, size=side, mode="nearest")
            else:
                truth = functional.interpolate(truth, size=side, mode="bilinear", align_corners=scales.corners)
        if not self._recipe.quirks.soft_masks:
            truth = (truth > 0.5).float()
        return images.to(self._device, memory_format=torch.channels_last), truth.to(self._device)

    def _forward(self, network: nn.Module, images: Tensor) -> Any:
        if self._labels is None:
            return network(images)
        return network(images, self._labels.expand(images.shape[0], -1, -1))

    def _loss(self, images: Tensor, truth: Tensor) -> Tensor:
        with self._autocast():
            outputs = self._forward(self.network, images)
        answers = answers_of(self._start.family, outputs)
        return recipe_loss(answers, truth, self._recipe.loss, self._recipe.quirks, family=self._start.family)

    @contextmanager
    def _autocast(self) -> Iterator[None]:
        kind = torch.float16 if self._precision == "amp" else torch.bfloat16
        with torch.autocast(self._device.partition(":")[0], kind, enabled=self._precision != "fp32"):
            yield

    def _clip(self) -> None:
        recipe = self._recipe
        if recipe.clip_value is None and recipe.clip_norm is None:
            return
        self._scaler.unscale_(self._optimizer)
        if recipe.clip_value is not None:
            torch.nn.utils.clip_grad_value_(self.network.parameters(), recipe.clip_value)
        if recipe.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip_norm)

    @torch.no_grad()
    def _follow(self, step: int) -> None:
        """Let the averaged weights follow the current ones; they start as the weights that training started from."""
        decay = self._recipe.average
        for name, value in self.network.state_dict().items() if self._average else ():
            kept = self._average[name]
            if value.is_floating_point():
                kept.lerp_(value, 1.0 - decay)
            else:
                kept.copy_(value)

    # --- validation -------------------------------------------------------------------------------------------

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights that count: the averaged ones where the recipe averages."""
        return self._average or self.network.state_dict()

    def validate(self, held_out: Mapping[str, Pairs], probe: nn.Module) -> dict[str, float]:
        """Score the weights that count on held-out pairs, tell the schedule, and return the scores.

        Args:
            held_out: Pairs by kind (``clean``, ``perturbed``), at the side the network takes.
            probe: A network of the same class, which takes the weights over.

        Returns:
            ``dice_<kind>`` and ``loss_<kind>`` for each kind, ``score`` (the mean of the Dice) and ``loss``.
        """
        probe.load_state_dict(dict(self.weights))
        probe.eval()
        found: dict[str, float] = {}
        for kind, pairs in held_out.items():
            found[f"dice_{kind}"], found[f"loss_{kind}"] = self._scores(probe, pairs)
        kinds = list(held_out)
        found["score"] = float(np.mean([found[f"dice_{kind}"] for kind in kinds])) if kinds else 0.0
        found["loss"] = float(np.mean([found[f"loss_{kind}"] for kind in kinds])) if kinds else 0.0
        return found

    def _scores(self, probe: nn.Module, pairs: Pairs) -> tuple[float, float]:
        dice: list[float] = []
        losses: list[float] = []
        step = max(2, min(8, self._recipe.batch))
        for first in range(0, len(pairs), step):
            masks = np.asarray(pairs.masks[first : first + step])
            images = torch.from_numpy(self._kind.tensor(np.asarray(pairs.images[first : first + step])))
            truth = torch.from_numpy((masks > 127).astype(np.float32))[:, None].to(self._device)
            with torch.inference_mode():
                given = images.to(self._device, memory_format=torch.channels_last)
                answers = answers_of(self._start.family, self._forward(probe, given))
                loss = recipe_loss(answers, truth, self._recipe.loss, self._recipe.quirks, family=self._start.family)
                last = answers.maps[-1]
                if last.shape[2:] != truth.shape[2:]:
                    align = self._start.family == "sanet"
                    last = functional.interpolate(
                        last, size=list(truth.shape[2:]), mode="bilinear", align_corners=align
                    )
                probability = torch.sigmoid(last)[:, 0].cpu().numpy()
            losses += [float(loss)] * len(masks)
            for one, mask in zip(probability, masks, strict=True):
                dice.append(dice_and_iou(one > self._start.threshold, mask > 127)[0])
        return float(np.mean(dice)), float(np.mean(losses))

    def judge(self, found: Mapping[str, float]) -> bool:
        """Note a validation and say whether its weights are the ones to keep.

        Weights whose clean Dice fell below the recipe's floor are never kept; the start is kept until something beats
        it, unless the recipe keeps the last.
        """
        reached, how = self.reached, self._recipe.validation
        if reached.step == 0:
            reached.clean_start = found.get("dice_clean", 0.0)
        else:
            self._rates.validated(found["loss"])
        reached.history.append({"step": float(reached.step), **found})
        floor = how.clean_floor is None or found.get("dice_clean", 0.0) >= reached.clean_start - how.clean_floor
        better = found["score"] > reached.best_score and floor
        if better:
            reached.best_score, reached.best_step, reached.waited = found["score"], reached.step, 0
        else:
            reached.waited += 1
        if how.patience is not None and reached.waited >= how.patience:
            reached.stopped = True
        return better if how.keep == "best" else reached.step > 0

    # --- state ------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the state: beside it, flushed, then renamed into place."""
        reached = self.reached
        state = {
            "identity": _digest(self._identity),
            "network": self.network.state_dict(),
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._rates.state(),
            "scaler": self._scaler.state_dict(),
            "generator": torch.get_rng_state(),
            "reached": {
                "step": reached.step,
                "best_step": reached.best_step,
                "best_score": reached.best_score,
                "clean_start": reached.clean_start,
                "waited": reached.waited,
                "stopped": reached.stopped,
                "history": reached.history,
            },
        }
        write_state(state, path)

    def resume(self, path: Path) -> None:
        """Go on from a state.

        Raises:
            MedtestError: It belongs to a training with other options, weights or data, or cannot be read.
        """
        state = read_state(path, self._identity, device=self._device)
        self.network.load_state_dict(state["network"])
        for name, value in state["average"].items():
            self._average[name].copy_(value)
        self._optimizer.load_state_dict(state["optimizer"])
        self._rates.resume(state["schedule"])
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["generator"].cpu())
        self.reached = Progressed(**state["reached"])


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def read_state(path: Path, identity: Mapping[str, Any], *, device: str, mapped: bool = False) -> dict[str, Any]:
    """Return the state of a training.

    Args:
        path: A file that :meth:`Engine.save` wrote.
        identity: What must be the same; JSON values.
        device: Where its tensors go.
        mapped: Leave the tensors on disk.

    Raises:
        MedtestError: It belongs to a training with other options, weights or data, or cannot be read.
    """
    state = load_state(path, device=device, mapped=mapped)
    if state["identity"] != _digest(identity):
        raise MedtestError(
            f"{path.name} belongs to a training with another recipe, other weights or other data: "
            "choose another out=, or fresh=true to begin anew there"
        )
    return state


def _freeze_norms(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()
