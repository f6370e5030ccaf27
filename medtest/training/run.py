"""Training in a folder, from the first step or a saved state to the final weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.pytorch import networks
from medtest.training.engine.log import TrainingLog
from medtest.training.engine.trainer import Progress, Reached, Trainer, Training, Writer
from medtest.training.settings.options import TrainingOptions


@dataclass(kw_only=True)
class Trained(Reached):
    """Result of a training; a best step of 0 means that nothing was better than the start.

    Attributes:
        weights: File of the selected weights.
        run_id: The MLflow run, or None.
    """

    weights: Path
    run_id: str | None = None


def left_by(trainer: Trainer, weights: Path, run_id: str | None = None) -> Trained:
    """Return the result of a training, with its weights file and MLflow run."""
    return Trained(**vars(trainer.reached), weights=weights, run_id=run_id)


def train_compact(
    options: TrainingOptions,
    config: Any,
    out: Path,
    make: Callable[[Writer], Training],
    *,
    size: int,
    classes: tuple[str, ...] = (),
    params: Mapping[str, Any],
    resume: bool = True,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Trained:
    """Train a compact network in a folder, with its own run in MLflow.

    Args:
        options: The user's options.
        config: Description of the network, see :mod:`medtest.systems.pytorch.networks`.
        out: Its folder; the weights are written to ``<network>.safetensors``.
        make: Creates the training from the writer of weights.
        size: Input side of the trained network in pixels.
        classes: Names of its classes, if not the family's own.
        params: Parameters of the run in addition to the options.
        resume: Whether to continue from the folder's state if there is one; otherwise start again.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call continues.
        MedtestError: The state belongs to another training, or the loss is not finite.
        NotTracked: MLflow failed; the state is written.
    """
    weights = out / f"{options.network}.safetensors"

    def write(state: Mapping[str, Tensor], note: str) -> None:
        info = WeightsInfo(network=networks.describe(config), size=size, note=note, classes=classes)
        save_weights(weights, state, info)

    name = f"{options.network}-compact"
    return train_in_folder(
        options, make(write), weights, name=name, params=params, resume=resume, progress=progress, stop=stop
    )


def train_in_folder(
    options: TrainingOptions,
    training: Training,
    weights: Path,
    *,
    name: str,
    params: Mapping[str, Any],
    resume: bool = True,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Trained:
    """Run a training in a folder, or its remaining steps, with its own run in MLflow.

    Args:
        options: The user's options.
        training: The training.
        weights: The weights file to write, in the training's folder.
        name: Name of the run.
        params: Parameters of the run in addition to the options.
        resume: Whether to continue from the folder's state if there is one; otherwise start again.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call continues.
        MedtestError: The state belongs to another training, or the loss is not finite.
        NotTracked: MLflow failed; the state is written.
    """
    out = weights.parent
    trainer = Trainer(training, out)
    resumed = resume and trainer.resume()
    log = TrainingLog(out, name, resume=resumed) if options.mlflow else None
    try:
        if log is not None:
            log.params({**options.identity(), **params, "steps": trainer.training.steps})
        trainer.fit(log=log, progress=progress, stop=stop)
    except BaseException:
        if log is not None:
            log.close(failed=True)
        raise
    if log is not None:
        log.attach([weights])
        log.close()
    return left_by(trainer, weights, None if log is None else log.run_id)
