"""One further training from its options to its weights; :func:`train_further` is what the command calls."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.errors import Interrupted, MedtestError
from medtest.training.further.recipe import Recipe

if TYPE_CHECKING:
    from medtest.training.further.engine import Engine, Progressed
    from medtest.training.further.log import FurtherLog
    from medtest.training.further.material import TrainingMaterial
    from medtest.training.further.networks import Start

STATE = "state.pt"
HISTORY = "history.json"
FACTS = "training.json"
SAVE_EVERY = 25
"""Optimizer steps between states: a killed training does at most so many again."""
LOG_EVERY = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherStep:
    """Where a training stands; told after every step.

    Attributes:
        step: Optimizer steps done.
        steps: Optimizer steps in all.
        loss: Of the last step; NaN before the first.
        rate: Learning rate of the last step.
        validation: What a validation found, else empty.
        best_step: Step of the best validation.
        best_score: Its score.
    """

    step: int
    steps: int
    loss: float
    rate: float
    validation: Mapping[str, float]
    best_step: int
    best_score: float


@dataclass(frozen=True, kw_only=True)
class FurtherTrained:
    """What a training left.

    Attributes:
        weights: The weights that were kept.
        step: The step they are of; 0 means that nothing was better than the start.
        steps: Steps done.
        history: One entry for each validation.
        stopped_early: Whether early stopping ended it.
    """

    weights: Path
    step: int
    steps: int
    history: list[dict[str, float]] = field(default_factory=list)
    stopped_early: bool = False


def identity_of(start: Start, material: TrainingMaterial, recipe: Recipe) -> dict[str, Any]:
    """Return what must be the same for a training to be resumed; JSON values."""
    return {
        "recipe": recipe.model_dump(mode="json", exclude={"notes", "summary", "source"}),
        "start": start.sha256,
        "network": start.name,
        "data": material.digest,
        "size": recipe.size or start.size,
    }


def check_state(start: Start, material: TrainingMaterial, recipe: Recipe, out: Path) -> None:
    """Refuse a folder that holds another training, before that one's runs in MLflow are touched.

    Raises:
        MedtestError: Its state belongs to another training, or cannot be read.
    """
    from medtest.training.further.engine import read_state

    if (out / STATE).is_file():
        read_state(out / STATE, identity_of(start, material, recipe), device="cpu", mapped=True)


def train_further(
    start: Start,
    material: TrainingMaterial,
    recipe: Recipe,
    out: Path,
    *,
    device: str = "cpu",
    threads: int | None = None,
    log: FurtherLog | None = None,
    progress: Callable[[FurtherStep], None] | None = None,
    save_every: int = SAVE_EVERY,
) -> FurtherTrained:
    """Train a network further, or go on with a training that was interrupted.

    The folder then holds ``<network>.safetensors`` (the weights kept so far, in the form they came in), ``state.pt``
    (from which the training resumes to the step), ``history.json`` and ``training.json``.

    Args:
        start: The network; its weights are changed.
        material: The data.
        recipe: The recipe.
        out: Folder of this training.
        device: "cpu" or "cuda:N".
        threads: Threads of torch; None leaves its choice.
        log: MLflow, or None.
        progress: Called after every step.
        save_every: Steps between states.

    Returns:
        The weights that were kept.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call goes on.
        MedtestError: The state in the folder belongs to another training, or the loss is no number any more.
        NotTracked: MLflow failed; the state is written.
    """
    import copy

    import torch

    from medtest.training.further.batches import RecipeBatches
    from medtest.training.further.engine import Engine

    if threads:
        torch.set_num_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    size = recipe.size or start.size
    batches = RecipeBatches(material.originals, material.perturbed, recipe, size=size)
    steps = recipe.steps or max(1, round((recipe.epochs or 0) * batches.steps_per_epoch))
    every = recipe.validation.every_steps or batches.steps_per_epoch
    identity = identity_of(start, material, recipe)
    probe = copy.deepcopy(start.network).to(device)
    engine = Engine(start, batches, recipe, steps=steps, device=device, identity=identity)
    run = _Run(engine, start, material, recipe, out, probe=probe, steps=steps, log=log, progress=progress)
    if (out / STATE).is_file():
        engine.resume(out / STATE)
    else:
        run.validate(float("nan"), 0.0)
        engine.save(out / STATE)
    with stopping() as stop:
        while engine.reached.step < steps and not engine.reached.stopped:
            numbers = engine.advance()
            step = engine.reached.step
            if step % every == 0 or step == steps:
                run.validate(numbers["loss"], numbers["rate"])
                engine.save(out / STATE)
            else:
                run.tell(numbers["loss"], numbers["rate"], {})
                if step % save_every == 0 or stop.is_set():
                    engine.save(out / STATE)
            if log is not None and step % LOG_EVERY == 0:
                log.metrics(numbers, step)
            if stop.is_set() and step < steps:
                raise Interrupted(f"Stopped at step {step} of {steps}; the same command goes on from there.")
    return run.finish()


class _Run:
    """What happens around the steps: validation, weights, history, MLflow."""

    def __init__(
        self,
        engine: Engine,
        start: Start,
        material: TrainingMaterial,
        recipe: Recipe,
        out: Path,
        *,
        probe: Any,
        steps: int,
        log: FurtherLog | None,
        progress: Callable[[FurtherStep], None] | None,
    ) -> None:
        self._engine = engine
        self._start = start
        self._material = material
        self._recipe = recipe
        self._out = out
        self._probe = probe
        self._steps = steps
        self._log = log
        self._progress = progress
        self.weights = out / f"{start.family}.safetensors"

    @property
    def _reached(self) -> Progressed:
        return self._engine.reached

    def validate(self, loss: float, rate: float) -> None:
        """Score the weights on held-out pairs, and keep them if they are to be kept."""
        from medtest.training.further.networks import write_weights

        found = self._engine.validate(self._material.held_out, self._probe)
        if self._engine.judge(found):
            note = f"further training, recipe {self._recipe.name}, step {self._reached.step}"
            write_weights(self.weights, self._start, self._engine.weights, note=note)
        text = json.dumps(self._reached.history, indent=1)
        (self._out / HISTORY).write_text(text + "\n", encoding="utf-8")
        if self._log is not None:
            self._log.metrics({f"val_{key}": value for key, value in found.items()}, self._reached.step)
        self.tell(loss, rate, found)

    def tell(self, loss: float, rate: float, validation: Mapping[str, float]) -> None:
        """Report where training stands."""
        if self._progress is None:
            return
        reached = self._reached
        self._progress(
            FurtherStep(
                step=reached.step,
                steps=self._steps,
                loss=loss,
                rate=rate,
                validation=validation,
                best_step=reached.best_step,
                best_score=reached.best_score,
            )
        )

    def finish(self) -> FurtherTrained:
        """Write the facts of the training and hand the weights over."""
        from medtest.systems.files import cached_sha256

        reached = self._reached
        last = self._recipe.validation.keep == "last"
        if not self.weights.is_file():
            raise MedtestError(f"{self.weights.name} is gone although training is done: begin anew with fresh=true")
        kept = reached.step if last else reached.best_step
        facts = {
            "network": self._start.name,
            "from_sha256": self._start.sha256,
            "weights_sha256": cached_sha256(self.weights),
            "recipe": self._recipe.model_dump(mode="json"),
            "pairs": dict(self._material.counts),
            "data": self._material.digest,
            "steps": reached.step,
            "kept_step": kept,
            "stopped_early": reached.stopped,
            "history": reached.history,
        }
        (self._out / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        return FurtherTrained(
            weights=self.weights,
            step=kept,
            steps=reached.step,
            history=list(reached.history),
            stopped_early=reached.stopped,
        )


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into a flag that is looked at between steps; only in the main thread."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    for kind in before:
        signal.signal(kind, lambda *_: asked.set())
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
