"""One training of a classifier from its cases on: steps, validations, and the weights that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.systems import networks
from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.classification.networks.inputs import INPUTS
from medtest.training.classification.batches import LabelledBatches, shown_cases
from medtest.training.classification.cases import LabelledSet
from medtest.training.classification.engine import ClassifierEngine, answers
from medtest.training.classification.families import loss_of
from medtest.training.classification.recipe import ClassifierRecipe
from medtest.training.classification.scores import accuracy, mean_area

if TYPE_CHECKING:
    from torch import nn

    from medtest.training.runlog import Logs

MOST_WATCHED = 600
"""Held-out cases that a validation looks at; of more, some drawn by chance."""
HISTORY = "history.json"
SAVE_EVERY = 25
"""Optimizer steps between states: a killed training does at most so many again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierStep:
    """Where a training stands; reported after every step.

    Attributes:
        step: Steps done.
        steps: Steps in all.
        loss: Loss of the last step.
        validation: ``accuracy`` and ``auroc`` on the cases held out, after a validation; else empty.
        best: Best score so far, -1 before the first.
    """

    step: int
    steps: int
    loss: float
    validation: dict[str, float]
    best: float


Progress = Callable[[ClassifierStep], None]
Writer = Callable[[Mapping[str, Any], str], None]
"""Writes weights with a note."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingWork:
    """What a training does.

    Attributes:
        family: The network's family.
        network: The network that is moved, on the CPU.
        cases: All cases.
        trained: Indices of those that are trained on.
        watched: Indices of those that are held out.
        recipe: How.
        side: Side that the network takes, in pixels.
        shown: That side as a share of the stored side.
        seed: Decides order, changes and dropout.
        device: "cpu" or "cuda:N".
        identity: What a resumed training must share beside cases and recipe; JSON values.
        write: Writes the weights that are kept.
        perturbed: bool N, the perturbed ones among the cases, whose accuracy is told apart; None where there are none.
        first: Whether the network is validated before the first step, so that the start may be what is kept.
    """

    family: str
    network: nn.Module
    cases: LabelledSet
    trained: NDArray[np.int64]
    watched: NDArray[np.int64]
    recipe: ClassifierRecipe
    side: int
    shown: float
    seed: int
    device: str
    identity: Mapping[str, Any]
    write: Writer
    perturbed: NDArray[np.bool_] | None = None
    first: bool = False


class ClassifierJob:
    """Does the work.

    Args:
        work: What to do.
        out: Folder of the training.
    """

    def __init__(self, work: TrainingWork, out: Path) -> None:
        import copy

        import torch

        from medtest.training.classification.losses_chexnet import positive_shares

        self._work, self._out = work, out
        recipe, cases = work.recipe, work.cases
        order = np.random.Generator(np.random.PCG64([work.seed, 12])).permutation(len(work.watched))
        self.watched = np.sort(work.watched[order[:MOST_WATCHED]])
        passes = max(1, len(work.trained) // recipe.batch)
        self.steps = recipe.steps or max(1, round((recipe.epochs or 1) * recipe.passes * passes))
        batches = LabelledBatches(
            cases, work.trained, recipe, side=work.side, shown=work.shown, steps=self.steps, seed=work.seed
        )
        self._every = recipe.watching.every_steps or batches.steps_per_pass * recipe.passes
        self._images, self._truth = shown_cases(cases, self.watched, side=work.side, shown=work.shown)
        self._input = INPUTS[work.family]
        self._probe = copy.deepcopy(work.network).to(work.device)
        shares = positive_shares(torch.from_numpy(cases.truth[work.trained])).to(work.device)
        identity = {**work.identity, "cases": cases.digest, "recipe": recipe.model_dump(mode="json")}
        self.engine = ClassifierEngine(
            work.family,
            work.network,
            batches,
            recipe,
            loss=loss_of(work.family, recipe.loss, work.network, shares=shares),
            kind=self._input,
            multi=cases.classes.multi,
            steps=self.steps,
            seed=work.seed,
            device=work.device,
            identity=identity,
        )

    def run(
        self,
        log: Logs,
        state: Path,
        *,
        progress: Progress | None = None,
        stop: Callable[[int], bool] | None = None,
    ) -> None:
        """Do the steps that are left.

        Args:
            log: Where numbers go.
            state: The file from which the training goes on.
            progress: Called after every step.
            stop: Called with the number of steps done; True writes the state and ends early.
        """
        engine = self.engine
        if self._work.first and not engine.reached.history:
            self._validated(log, float("nan"), progress)
        while engine.reached.step < self.steps and not engine.reached.stopped:
            numbers = engine.advance()
            step = engine.reached.step
            ended = stop is not None and stop(step)
            due = step % self._every == 0 or step == self.steps
            if due:
                self._validated(log, numbers["loss"], progress)
            if due or ended or step % SAVE_EVERY == 0:
                engine.save(state)
            if step % 20 == 0 or due:
                log.metrics(numbers, step)
            if progress is not None and not due:
                best = engine.reached.best_score
                progress(ClassifierStep(step=step, steps=self.steps, loss=numbers["loss"], validation={}, best=best))
            if ended:
                break

    def _validated(self, log: Logs, loss: float, progress: Progress | None) -> None:
        found = self._validate()
        reached = self.engine.reached
        (self._out / HISTORY).write_text(json.dumps(reached.history, indent=1), encoding="utf-8")
        log.metrics({f"val_{name}": value for name, value in found.items()}, reached.step)
        if progress is not None:
            progress(
                ClassifierStep(
                    step=reached.step, steps=self.steps, loss=loss, validation=found, best=reached.best_score
                )
            )

    def _validate(self) -> dict[str, float]:
        weights = self.engine.weights()
        self._probe.load_state_dict(weights)
        logits = answers(self._work.family, self._probe, self._images, kind=self._input, device=self._work.device)
        multi = self._work.cases.classes.multi
        facts = {
            "accuracy": accuracy(logits, self._truth, multi=multi),
            "auroc": mean_area(logits, self._truth, multi=multi),
        }
        loss = cross_entropy(logits, self._truth, multi=multi)
        facts = {**facts, **self._by_kind(logits, multi=multi), "loss": loss}
        score = facts["auroc" if multi else self._work.recipe.watching.score]
        if self.engine.validated(score, loss, facts):
            self._work.write(weights, f"step {self.engine.reached.step}")
        return facts

    def _by_kind(self, logits: NDArray[np.float32], *, multi: bool) -> dict[str, float]:
        """Return the accuracy on clean and on perturbed cases, where there are both."""
        if self._work.perturbed is None:
            return {}
        apart = self._work.perturbed[self.watched]
        return {
            f"accuracy_{name}": accuracy(logits[where], self._truth[where], multi=multi)
            for name, where in (("clean", ~apart), ("perturbed", apart))
            if where.any()
        }


def compact_writer(path: Path, config: Any, *, side: int, classes: tuple[str, ...]) -> Writer:
    """Return what writes a compact network's weights.

    Args:
        path: Where.
        config: The network's configuration.
        side: Side that it takes.
        classes: Names of its classes where they are not the family's own, else empty.
    """

    def write(weights: Mapping[str, Any], note: str) -> None:
        info = WeightsInfo(network=networks.describe(config), size=side, note=note, classes=classes)
        save_weights(path, weights, info)

    return write


def cross_entropy(logits: NDArray[np.float32], truth: NDArray[np.float32], *, multi: bool) -> float:
    """Return the mean cross-entropy of logits, float B×C, with truth of the same shape."""  # noqa: RUF002
    scores = np.asarray(logits, np.float64)
    if multi:
        return float((np.logaddexp(0, scores) - truth * scores).mean())
    top = scores.max(axis=1)
    whole = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float((whole - (scores * truth).sum(axis=1)).mean())
