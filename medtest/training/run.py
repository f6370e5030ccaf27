"""Training from scratch in a folder, from the first step or a saved state to the final weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch

from medtest.training.classification.options import ClassificationOptions
from medtest.training.engine.log import TrainingLog
from medtest.training.engine.prepared import PreparedTraining
from medtest.training.engine.trainer import Progress, Reached, Trainer
from medtest.training.scenes.options import SceneOptions
from medtest.training.settings.options import SegmentationOptions, TrainingOptions


@dataclass(kw_only=True)
class Trained(Reached):
    """Result of a training; a best step of 0 means that nothing was better than the start.

    Attributes:
        weights: File of the selected weights.
        run_id: The MLflow run, or None.
    """

    weights: Path
    run_id: str | None = None


def result_of(trainer: Trainer, weights: Path, log: TrainingLog | None = None) -> Trained:
    """Return the result of a training, with its weights file and MLflow run."""
    return Trained(**vars(trainer.reached), weights=weights, run_id=None if log is None else log.run_id)


def train(
    options: TrainingOptions,
    out: Path,
    *,
    resume: bool = True,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Trained:
    """Train a compact network, or continue an interrupted training, with its own run in MLflow.

    The folder then holds the weights (the best averaged ones so far, half precision), ``state.pt`` (from which the
    training resumes at the exact step), ``history.json``, and stored training cases.

    Args:
        options: The user's options; their class selects the kind of network.
        out: Folder of this training.
        resume: Whether to continue from ``state.pt`` if it exists; otherwise start again.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call continues.
        UserMistakes: Options, recipe or files cannot be used.
        MedtestError: Options and data do not fit, the state belongs to another training, or the loss is not finite.
        NotTracked: MLflow failed; the state is written.
    """
    if options.threads:
        torch.set_num_threads(options.threads)
    out.mkdir(parents=True, exist_ok=True)
    prepared = _prepare(options, out)
    log = None
    try:
        trainer = Trainer(prepared.training, out)
        resumed = resume and trainer.resume()
        if options.mlflow:
            log = TrainingLog(out, prepared.name, resume=resumed)
            log.params({**options.identity(), **prepared.params, "steps": prepared.training.steps})
        trainer.fit(log=log, progress=progress, stop=stop)
    except BaseException:
        if log is not None:
            log.close(failed=True)
        raise
    finally:
        prepared.close()
    if log is not None:
        log.attach([prepared.weights])
        log.close()
    return result_of(trainer, prepared.weights, log)


def _prepare(options: TrainingOptions, out: Path) -> PreparedTraining:
    if isinstance(options, SceneOptions):
        from medtest.training.scenes.train import prepare_scenes

        return prepare_scenes(options, out)
    if isinstance(options, ClassificationOptions):
        from medtest.training.classification.train import prepare_classification

        return prepare_classification(options, out)
    from medtest.training.segmentation.train import prepare_segmentation

    return prepare_segmentation(cast(SegmentationOptions, options), out)
