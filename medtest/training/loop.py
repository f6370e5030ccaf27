"""One training run: steps, schedule, averaged weights, and a state file from which it goes on exactly where it stopped.

Nothing random is kept in memory between steps: batches, dropout and dropped paths are drawn from the seed and the
step's number. The state file therefore holds the network, its averaged copy, the optimizer's moments, the step and the
best result, and a training that was killed gives the same weights as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from medtest.errors import MedtestError
from medtest.training.data import Batches
from medtest.training.losses import deep_loss
from medtest.training.state import load_state, write_state
from medtest.training.steps import Outputs, StepLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """How the weights are moved.

    Attributes:
        steps: Number of optimizer steps.
        warmup: Steps in which the learning rate rises linearly from 0.
        rate: Highest learning rate.
        last_rate: Share of it that is left at the end of the cosine.
        decay: Weight decay; only matrices and kernels decay, not norms and biases.
        clip: Largest norm of the gradient.
        auxiliary: Weight of the auxiliary maps in the loss.
        average: Decay of the averaged weights per step; it rises to this value over the first steps.
        bf16: Whether the forward pass runs under bfloat16 autocast.
    """

    steps: int
    warmup: int
    rate: float
    last_rate: float
    decay: float
    clip: float
    auxiliary: float
    average: float
    bf16: bool


def learning_rate(recipe: Optimization, step: int) -> float:
    """Return the learning rate of a step: a linear warm-up, then half a cosine."""
    if step < recipe.warmup:
        return recipe.rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return recipe.rate * (recipe.last_rate + (1 - recipe.last_rate) * 0.5 * (1 + math.cos(math.pi * done)))


def initialise(network: nn.Module, seed: int) -> None:
    """Draw fresh weights: He for convolutions, truncated normal for linear layers, zero for blocks' last norms."""
    torch.manual_seed(seed)
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d) and name.endswith("bn3"):
            # A residual block that starts as its shortcut trains more stably from scratch.
            nn.init.zeros_(module.weight)
    words = dict(network.named_buffers()).get("words")
    if words is not None:
        # TGANet needs five constant vectors that differ; drawn apart, they do not depend on the order above.
        words.copy_(torch.randn(words.shape, generator=torch.Generator().manual_seed(seed)).half().float())


class Trainer:
    """Moves a network's weights step by step.

    Args:
        network: The network; its weights are changed in place.
        batches: Where the batches come from.
        recipe: Schedule and regularisation.
        seed: Determines dropout; batches have their own.
        device: "cpu" or "cuda:N".
        identity: What must be the same for a state file to be resumed (options, data); JSON values.
        loss: What the outputs are compared by, see :mod:`medtest.training.steps`; the structure loss on every map
            where None.
    """

    def __init__(
        self,
        network: nn.Module,
        batches: Batches,
        recipe: Optimization,
        *,
        seed: int,
        device: str,
        identity: Mapping[str, Any],
        loss: StepLoss | None = None,
    ) -> None:
        self.network = network.to(device).to(memory_format=torch.channels_last)
        self.recipe = recipe
        self.step = 0
        self.best: dict[str, Any] = {"score": -1.0, "step": 0, "weights": {}}
        self.history: list[dict[str, float]] = []
        self._batches = batches
        self._seed = seed
        self._device = device
        self._loss = loss or self._structure
        self._identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        decaying = [p for p in network.parameters() if p.ndim > 1]
        others = [p for p in network.parameters() if p.ndim <= 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": decaying, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}],
            lr=recipe.rate,
        )
        self.average: dict[str, Tensor] = {name: value.clone() for name, value in network.state_dict().items()}

    def advance(self) -> dict[str, float]:
        """Do one step and return its loss and learning rate.

        Raises:
            MedtestError: The loss is not a number any more.
        """
        rate = learning_rate(self.recipe, self.step)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(self._seed * 1_000_003 + self.step)
        batch = self._batches.batch(self.step)
        images = torch.from_numpy(batch.images).to(self._device, memory_format=torch.channels_last)
        truth = torch.from_numpy(batch.truth).to(self._device)
        weights = torch.from_numpy(batch.weights).to(self._device)
        self.network.train()
        with torch.autocast(self._device.partition(":")[0], torch.bfloat16, enabled=self.recipe.bf16):
            outputs = self.network(images)
        outputs = [o.float() for o in outputs] if isinstance(outputs, tuple | list) else outputs.float()
        loss = self._loss(outputs, truth, weights)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise MedtestError(f"the loss is {value} at step {self.step}: a lower rate= or a smaller clip= may help")
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self._optimizer.step()
        self._follow()
        self.step += 1
        return {"loss": value, "rate": rate}

    def _structure(self, outputs: Outputs, truth: Tensor, weights: Tensor) -> Tensor:
        return deep_loss(outputs, truth, weights, auxiliary=self.recipe.auxiliary)

    @torch.no_grad()
    def _follow(self) -> None:
        """Let the averaged weights follow the current ones."""
        decay = min(self.recipe.average, (1 + self.step) / (10 + self.step))
        for name, value in self.network.state_dict().items():
            kept = self.average[name]
            if value.is_floating_point():
                kept.lerp_(value, 1.0 - decay)
            else:
                kept.copy_(value)

    def keep_if_best(self, score: float) -> bool:
        """Keep a copy of the averaged weights if this score is the best so far, and say whether it was."""
        if score <= self.best["score"]:
            return False
        weights = {name: value.detach().cpu().clone() for name, value in self.average.items()}
        self.best = {"score": score, "step": self.step, "weights": weights}
        return True

    def save(self, path: Path) -> None:
        """Write the state file: beside it, flushed, then renamed into place."""
        state = {
            "identity": self._identity,
            "step": self.step,
            "network": self.network.state_dict(),
            "average": self.average,
            "optimizer": self._optimizer.state_dict(),
            "best": self.best,
            "history": self.history,
        }
        write_state(state, path)

    def resume(self, path: Path) -> None:
        """Go on from a state file.

        Raises:
            MedtestError: It belongs to a training with other options or data, or cannot be read.
        """
        state = load_state(path, device=self._device)
        if state["identity"] != self._identity:
            raise MedtestError(
                f"{path.name} belongs to a training with other options or other data; choose another out= or fresh"
            )
        self.step = int(state["step"])
        self.network.load_state_dict(state["network"])
        for name, value in state["average"].items():
            self.average[name].copy_(value)
        self._optimizer.load_state_dict(state["optimizer"])
        self.best = state["best"]
        self.history = state["history"]
