"""Moves a classifier's weights: steps, schedule, averaged weights, and a state that a training goes on from.

Nothing random is kept between steps: batches, dropout and gates are drawn from the seed and the step's number, so that
a training that was killed gives the weights of one that was not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from medtest.errors import MedtestError
from medtest.systems.checkpoints.inputs import InputKind
from medtest.training.classification.batches import LabelledBatches
from medtest.training.classification.families import StepLoss, logits_of
from medtest.training.classification.recipe import ClassifierRecipe
from medtest.training.further.schedule import RateFactors, make_optimizer
from medtest.training.state import load_state, write_state


@dataclass(kw_only=True)
class Reached:
    """What a training has reached.

    Attributes:
        step: Optimizer steps done.
        best_step: Step of the best validation.
        best_score: Its score, -1 before the first.
        waited: Validations since the best.
        stopped: Whether it ended before its last step.
        history: One entry for each validation.
    """

    step: int = 0
    best_step: int = 0
    best_score: float = -1.0
    waited: int = 0
    stopped: bool = False
    history: list[dict[str, float]] = field(default_factory=list)


class ClassifierEngine:
    """Trains one network.

    Args:
        family: Its family.
        network: Its weights are changed in place.
        batches: Where the batches come from.
        recipe: The recipe.
        loss: The family's.
        kind: How it wants its pixels.
        multi: Several classes may hold.
        steps: Optimizer steps in all.
        seed: Decides dropout; batches have their own.
        device: "cpu" or "cuda:N".
        identity: What must be the same for a state to be resumed; JSON values.
    """

    def __init__(
        self,
        family: str,
        network: nn.Module,
        batches: LabelledBatches,
        recipe: ClassifierRecipe,
        *,
        loss: StepLoss,
        kind: InputKind,
        multi: bool,
        steps: int,
        seed: int,
        device: str,
        identity: Mapping[str, Any],
    ) -> None:
        if recipe.precision == "amp" and not device.startswith("cuda"):
            raise MedtestError("precision amp needs a CUDA device; bf16 runs on a CPU too")
        self.network = network.to(device).to(memory_format=torch.channels_last)
        self.reached = Reached()
        self._family = family
        self._batches = batches
        self._recipe = recipe
        self._loss = loss
        self._kind = kind
        self._multi = multi
        self._seed = seed
        self._device = device
        self._identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._epoch = batches.steps_per_pass * recipe.passes
        self._optimizer = make_optimizer(network, recipe.optimizer)
        self._rates = RateFactors(recipe, steps=steps, steps_per_epoch=self._epoch)
        self._scaler = torch.amp.GradScaler("cuda", enabled=recipe.precision == "amp")
        self._average = {name: value.clone() for name, value in network.state_dict().items()} if recipe.average else {}

    def weights(self) -> dict[str, Tensor]:
        """Return what is validated and kept: the averaged weights, or the network's where nothing is averaged."""
        return self._average or self.network.state_dict()

    def advance(self) -> dict[str, float]:
        """Do one step and return its loss and the factor of its rate.

        Raises:
            MedtestError: The loss is not a number any more.
        """
        step = self.reached.step
        if self._recipe.fresh_every_epoch and step and step % self._epoch == 0:
            self._optimizer = make_optimizer(self.network, self._recipe.optimizer)
        factor = self._rates.factor(step)
        for group in self._optimizer.param_groups:
            group["lr"] = group["top"] * factor
        torch.manual_seed(self._seed * 1_000_003 + step)
        loss = self._forward(step)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise MedtestError(f"the loss is {value} at step {step}: a lower optimizer.rate may help")
        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        if self._recipe.clip_norm is not None:
            self._scaler.unscale_(self._optimizer)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._recipe.clip_norm)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._follow()
        self.reached.step += 1
        return {"loss": value, "factor": factor}

    def _forward(self, step: int) -> Tensor:
        batch = self._batches.batch(step)
        images = torch.from_numpy(self._kind.tensor(batch.images)).to(self._device, memory_format=torch.channels_last)
        truth = torch.from_numpy(batch.truth if self._multi else batch.truth.argmax(axis=1)).to(self._device)
        masks = known = None
        if batch.known.any():
            masks = torch.from_numpy(batch.masks).to(self._device).float().div(255)[:, None]
            known = torch.from_numpy(batch.known).to(self._device)
        self.network.train()
        kind = torch.bfloat16 if self._recipe.precision == "bf16" else torch.float16
        with torch.autocast(self._device.partition(":")[0], kind, enabled=self._recipe.precision != "fp32"):
            outputs, _ = logits_of(self._family, self.network, images)
        return self._loss(_as_float(outputs), truth, masks, known)

    @torch.no_grad()
    def _follow(self) -> None:
        """Let the averaged weights follow the current ones."""
        if not self._average:
            return
        decay = min(self._recipe.average, (1 + self.reached.step) / (10 + self.reached.step))
        for name, value in self.network.state_dict().items():
            if value.is_floating_point():
                self._average[name].lerp_(value, 1.0 - decay)
            else:
                self._average[name].copy_(value)

    def validated(self, score: float, loss: float, facts: Mapping[str, float]) -> bool:
        """Take notice of a validation; return whether its weights are to be kept.

        Args:
            score: The recipe's score, higher is better.
            loss: Cross-entropy on the cases held out, for a plateau schedule.
            facts: What the history keeps.
        """
        how, reached = self._recipe.watching, self.reached
        self._rates.validated(loss)
        better = score > reached.best_score
        kept = better or how.keep == "last"
        if better:
            reached.waited = 0
        else:
            reached.waited += 1
            reached.stopped = how.patience is not None and reached.waited >= how.patience
        if kept:
            reached.best_score, reached.best_step = score, reached.step
        reached.history.append({"step": reached.step, **facts})
        return kept

    def save(self, path: Path) -> None:
        """Write the state: beside its file, flushed, then renamed into place."""
        state = {
            "identity": self._identity,
            "reached": asdict(self.reached),
            "network": self.network.state_dict(),
            "average": self._average,
            "optimizer": self._optimizer.state_dict(),
            "rates": self._rates.state(),
            "scaler": self._scaler.state_dict(),
        }
        write_state(state, path)

    def resume(self, path: Path) -> None:
        """Go on from :meth:`save`.

        Raises:
            MedtestError: The state belongs to a training with other options or cases, or cannot be read.
        """
        state = load_state(path, device=self._device)
        if state["identity"] != self._identity:
            raise MedtestError(
                f"{path.name} belongs to a training with other options or other cases; choose another --out, or "
                "--no-resume to begin anew"
            )
        self.network.load_state_dict(state["network"])
        for name, value in state["average"].items():
            self._average[name].copy_(value)
        self._optimizer.load_state_dict(state["optimizer"])
        self._rates.resume(state["rates"])
        self._scaler.load_state_dict(state["scaler"])
        self.reached = Reached(**state["reached"])


def answers(
    family: str,
    network: nn.Module,
    images: NDArray[np.uint8],
    *,
    kind: InputKind,
    device: str = "cpu",
    batch: int = 16,
) -> NDArray[np.float32]:
    """Return a network's logits, float32 B×C, of images as it takes them (uint8 B×S×S×3)."""  # noqa: RUF002
    network.eval()
    found: list[NDArray[np.float32]] = []
    with torch.inference_mode():
        for start in range(0, len(images), batch):
            given = torch.from_numpy(kind.tensor(images[start : start + batch])).to(device)
            given = given.to(memory_format=torch.channels_last)
            found.append(np.asarray(logits_of(family, network, given)[1].float().cpu().numpy(), np.float32))
    return np.concatenate(found)


def _as_float(outputs: Any) -> Any:
    if isinstance(outputs, Tensor):
        return outputs.float()
    if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        return type(outputs)(*(_as_float(one) for one in outputs))
    if isinstance(outputs, tuple | list):
        return type(outputs)(_as_float(one) for one in outputs)
    return outputs
