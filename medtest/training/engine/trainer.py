"""Training engine: optimizer steps, schedule, averaged weights, evaluations, and a resumable state.

It is independent of the task. Batches, loss, evaluation and the format of weights come with a :class:`Training`. No
random state persists between steps: batches and dropout depend on the seed and the step's number, so that an
interrupted training gives the same weights on a CPU as an uninterrupted one.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from medtest.core.errors import Interrupted, MedtestError
from medtest.core.files import json_sha256
from medtest.training.engine.averaging import AveragedWeights
from medtest.training.engine.optimizer import make_optimizer, make_scheduler
from medtest.training.engine.precision import precision_of
from medtest.training.engine.state import load_state, write_state
from medtest.training.engine.stopping import stopping
from medtest.training.settings.recipe import Recipe, Validation

if TYPE_CHECKING:
    from medtest.training.engine.log import TrainingLog

STATE, HISTORY = "state.pt", "history.json"
SAVE_EVERY = 25
"""Optimizer steps between states, unless a slow disk would take more time than :data:`SAVING`."""
SAVING = 0.03
"""Maximum share of a training's time spent on states between evaluations."""
LOG_EVERY = 20

Loss: TypeAlias = "Callable[[nn.Module, Any], tuple[Tensor, Mapping[str, Tensor]]]"
"""Maps the network and a batch to the loss and its parts by name, which are logged too."""
Writer: TypeAlias = "Callable[[Mapping[str, Tensor], str], None]"
"""Writes selected weights, with a note."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Result of a network on held-out cases.

    Attributes:
        score: Higher is better; selects the weights.
        loss: Lower is better; a plateau schedule follows it.
        facts: Numbers for history and log.
    """

    score: float
    loss: float
    facts: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Training:
    """Training task, with everything that differs between trainings.

    Attributes:
        network: Its weights are changed in place.
        recipe: The recipe.
        validation: Validation settings.
        batch: Returns the batch of an optimizer step, from 0; it depends on the step only.
        loss: The loss of a batch.
        evaluate: Evaluates a network with the weights that count, in evaluation mode, on held-out cases.
        write: Writes the selected weights.
        steps: Total number of optimizer steps.
        steps_per_epoch: Optimizer steps of an epoch of the schedule, and between evaluations unless the recipe sets
            another number.
        seed: Determines dropout.
        device: "cpu" or "cuda:N".
        identity: What must be the same for a state to be resumed; JSON values.
        may_keep: Whether weights may be selected, given their evaluation and the first one.
        from_start: Whether the initial weights are evaluated too, and may be selected.
        ramp: Whether the averaged weights follow faster over the first steps.
        curves: Reported numbers of a step: ``loss``, ``rate`` and ``factor`` (the rate over the highest one).
        prefix: Prefix of the names of logged evaluations.
    """

    network: nn.Module
    recipe: Recipe
    validation: Validation
    batch: Callable[[int], Any]
    loss: Loss
    evaluate: Callable[[nn.Module], Evaluation]
    write: Writer
    steps: int
    steps_per_epoch: int
    seed: int
    device: str
    identity: Mapping[str, Any]
    may_keep: Callable[[Mapping[str, float], Mapping[str, float]], bool] = lambda facts, first: True
    from_start: bool = False
    ramp: bool = True
    curves: Sequence[str] = ("loss", "rate")
    prefix: str = "val_"


def above_floor(name: str, floor: float | None) -> Callable[[Mapping[str, float], Mapping[str, float]], bool]:
    """Return the check that weights may be selected: a number is at most ``floor`` below that of the first evaluation.

    Args:
        name: The number in an evaluation's facts.
        floor: The largest drop; None allows any weights.
    """
    return lambda facts, first: floor is None or facts.get(name, 0.0) >= first.get(name, 0.0) - floor - 1e-9


@dataclass(kw_only=True)
class Reached:
    """Progress of a training.

    Attributes:
        step: Optimizer steps done.
        best_step: Step of the best evaluation; 0 is the start.
        best_score: Its score, -1 before the first.
        kept_step: Step of the selected weights.
        waited: Evaluations since the best.
        stopped: Whether early stopping has ended it.
        history: One entry for each evaluation.
    """

    step: int = 0
    best_step: int = 0
    best_score: float = -1.0
    kept_step: int = 0
    waited: int = 0
    stopped: bool = False
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """Progress of a training, reported after every step.

    Attributes:
        step: Optimizer steps done.
        steps: Total number of optimizer steps.
        numbers: Loss and rate of the last step; empty before the first.
        facts: Result of an evaluation, otherwise empty.
        best_step: Step of the best evaluation.
        best_score: Its score, -1 before the first.
    """

    step: int
    steps: int
    numbers: Mapping[str, float]
    facts: Mapping[str, float]
    best_step: int
    best_score: float


Progress: TypeAlias = "Callable[[TrainingStep], None]"


class Trainer:
    """Trains a network.

    Args:
        training: The training task.
        folder: Folder of its state and history.
        save_every: Optimizer steps between states.

    Raises:
        MedtestError: The recipe requires float16 on a CPU.
    """

    def __init__(self, training: Training, folder: Path, *, save_every: int = SAVE_EVERY) -> None:
        recipe = training.recipe
        self.training = training
        self.network = training.network.to(training.device).to(memory_format=torch.channels_last)
        self.reached = Reached()
        self._state, self._history = folder / STATE, folder / HISTORY
        self._log: TrainingLog | None = None
        self._progress: Progress | None = None
        self._save_every = save_every
        self._next_save = 0.0
        self._optimizer = make_optimizer(self.network, recipe.optimizer)
        self._scheduler = make_scheduler(
            self._optimizer, recipe.schedule, steps=training.steps, steps_per_epoch=training.steps_per_epoch
        )
        self._scaler = torch.amp.GradScaler("cuda", enabled=precision_of(recipe.precision, training.device) == "amp")
        average = recipe.average
        self._average = AveragedWeights(self.network, average, ramp=training.ramp) if average else None

    @property
    def counted(self) -> nn.Module:
        """The network whose weights count: the averaged one if the recipe averages."""
        return self.network if self._average is None else self._average.module

    def fit(
        self,
        *,
        log: TrainingLog | None = None,
        progress: Progress | None = None,
        stop: Callable[[int], bool] | None = None,
    ) -> Reached:
        """Run the remaining steps.

        Args:
            log: MLflow, or None.
            progress: Called after every step.
            stop: Called with the number of steps done; True writes the state and ends early.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; the state is written.
            MedtestError: The loss is not finite.
        """
        self._log, self._progress = log, progress
        training, reached = self.training, self.reached
        every = training.validation.every_steps or training.steps_per_epoch
        if training.from_start and not reached.history:
            self._report({}, self.evaluate({}))
            self.save()
        with stopping() as stop_requested, warnings.catch_warnings():
            # A step skipped by the scaler is not an error of the schedule.
            warnings.filterwarnings("ignore", r"Detected call of `lr_scheduler\.step\(\)` before")
            while reached.step < training.steps and not reached.stopped:
                numbers = self.advance()
                due = reached.step % every == 0 or reached.step == training.steps
                if self._log is not None and (due or reached.step % LOG_EVERY == 0):
                    self._log.metrics(numbers, reached.step)
                self._report(numbers, self.evaluate(numbers) if due else {})
                ended = stop is not None and stop(reached.step)
                regular = reached.step % self._save_every == 0 and time.monotonic() >= self._next_save
                if due or ended or stop_requested.is_set() or regular:
                    self.save()
                if ended:
                    break
                if stop_requested.is_set() and reached.step < training.steps:
                    raise Interrupted(
                        f"Stopped at step {reached.step} of {training.steps}; the same command continues from there."
                    )
        return reached

    def advance(self) -> dict[str, float]:
        """Run one optimizer step and return its numbers.

        Raises:
            MedtestError: The loss is not finite.
        """
        training, recipe, step = self.training, self.training.recipe, self.reached.step
        if recipe.fresh_every_epoch and step and step % training.steps_per_epoch == 0:
            self._optimizer.state.clear()
        group = self._optimizer.param_groups[0]
        rates = {"rate": float(group["lr"]), "factor": float(group["lr"] / recipe.optimizer.rate)}
        torch.manual_seed(training.seed * 1_000_003 + step)
        self.network.train()
        if recipe.frozen_norms:
            _freeze_norms(self.network)
        loss, parts = training.loss(self.network, training.batch(step))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise MedtestError(
                f"the loss is {value} at step {step}: a lower rate (recipe.optimizer.rate) or clipping "
                "(recipe.clip_norm=1) may help; the state of the last good step is kept"
            )
        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._clip()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if not isinstance(self._scheduler, ReduceLROnPlateau):
            self._scheduler.step()
        if self._average is not None:
            self._average.follow()
        self.reached.step += 1
        numbers = {name: value for name, value in {"loss": value, **rates}.items() if name in training.curves}
        return numbers | {f"loss_{name}": float(part.detach()) for name, part in parts.items()}

    def _clip(self) -> None:
        recipe = self.training.recipe
        if recipe.clip_value is None and recipe.clip_norm is None:
            return
        self._scaler.unscale_(self._optimizer)
        if recipe.clip_value is not None:
            torch.nn.utils.clip_grad_value_(self.network.parameters(), recipe.clip_value)
        if recipe.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip_norm)

    def evaluate(self, numbers: Mapping[str, float]) -> Mapping[str, float]:
        """Evaluate the weights that count, write them if selected, and return the result."""
        training, reached = self.training, self.reached
        counted = self.counted.eval()
        evaluation = training.evaluate(counted)
        if self.judge(evaluation, numbers):
            reached.kept_step = reached.step
            training.write(counted.state_dict(), f"step {reached.step}")
        self._history.write_text(json.dumps(reached.history, indent=1) + "\n", encoding="utf-8")
        if self._log is not None:
            self._log.metrics(
                {f"{training.prefix}{key}": value for key, value in evaluation.facts.items()}, reached.step
            )
        return evaluation.facts

    def judge(self, evaluation: Evaluation, numbers: Mapping[str, float]) -> bool:
        """Record an evaluation and return True if its weights are selected.

        The start stays selected until something beats it, unless the recipe keeps the last.
        """
        reached, validation = self.reached, self.training.validation
        if reached.step and isinstance(self._scheduler, ReduceLROnPlateau):
            self._scheduler.step(evaluation.loss)
        reached.history.append({"step": reached.step, **numbers, **evaluation.facts})
        better = evaluation.score > reached.best_score and self.training.may_keep(evaluation.facts, reached.history[0])
        if better:
            reached.best_score, reached.best_step, reached.waited = evaluation.score, reached.step, 0
        else:
            reached.waited += 1
            reached.stopped = validation.patience is not None and reached.waited >= validation.patience
        return better if validation.keep == "best" else reached.step > 0

    def _report(self, numbers: Mapping[str, float], facts: Mapping[str, float]) -> None:
        if self._progress is not None:
            reached = self.reached
            self._progress(
                TrainingStep(
                    step=reached.step,
                    steps=self.training.steps,
                    numbers=numbers,
                    facts=facts,
                    best_step=reached.best_step,
                    best_score=reached.best_score,
                )
            )

    def save(self) -> None:
        """Write the state to a temporary file, flush it, and rename it into place."""
        began = time.monotonic()
        state = {
            "identity": json_sha256(self.training.identity),
            "reached": asdict(self.reached),
            "network": self.network.state_dict(),
            "average": {} if self._average is None else self._average.module.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._scheduler.state_dict(),
            "scaler": self._scaler.state_dict(),
        }
        write_state(state, self._state)
        ended = time.monotonic()
        self._next_save = ended + (ended - began) / SAVING

    def resume(self) -> bool:
        """Resume from the state in the folder, and return True if there was one.

        Raises:
            MedtestError: It belongs to another training or another version, or cannot be read.
        """
        if not self._state.is_file():
            return False
        state = load_state(self._state, device=self.training.device, identity=self.training.identity)
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._scheduler.load_state_dict(state["schedule"])
        self._scaler.load_state_dict(state["scaler"])
        self.reached = Reached(**state["reached"])
        if self._average is not None:
            self._average.module.load_state_dict(state["average"])
            self._average.updates = self.reached.step
        return True


def _freeze_norms(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()
