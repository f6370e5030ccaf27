"""A training in its folder, from its first step or from where it stopped to the weights that are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtest.training.log import TrainingLog
from medtest.training.trainer import Progress, Trainer, Training


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training left.

    Attributes:
        weights: The weights that were kept.
        kept_step: The step they are of; 0 means that nothing was better than the start.
        best_step: Step of the best evaluation.
        best_score: Its score.
        steps: Steps done.
        history: One entry for each evaluation.
        stopped_early: Whether early stopping ended it.
        run_id: The MLflow run, or None.
    """

    weights: Path
    kept_step: int
    best_step: int
    best_score: float
    steps: int
    history: list[dict[str, float]] = field(default_factory=list)
    stopped_early: bool = False
    run_id: str | None = None


def left_by(trainer: Trainer, weights: Path, run_id: str | None = None) -> Trained:
    """Return what a training left, given the file of its weights and its run in MLflow."""
    reached = trainer.reached
    return Trained(
        weights=weights,
        kept_step=reached.kept_step,
        best_step=reached.best_step,
        best_score=reached.best_score,
        steps=reached.step,
        history=list(reached.history),
        stopped_early=reached.stopped,
        run_id=run_id,
    )


def train_tracked(
    training: Training,
    out: Path,
    weights: Path,
    *,
    name: str,
    params: Mapping[str, Any],
    track: bool,
    resume: bool = True,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Trained:
    """Train in a folder, with a run of its own in MLflow.

    Args:
        training: What is trained and how.
        out: Its folder.
        weights: Where it writes its weights.
        name: The run's name.
        params: The run's parameters.
        track: Whether there is a run.
        resume: Go on from the folder's state where there is one; else begin anew.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call goes on.
        MedtestError: The state belongs to another training, or the loss is no number any more.
        NotTracked: MLflow failed; the state is written.
    """
    trainer = Trainer(training, out)
    resumed = resume and trainer.resume()
    log = TrainingLog(out, name, resume=resumed) if track else None
    try:
        if log is not None:
            log.params(params)
        trainer.fit(log=log, progress=progress, stop=stop)
    except BaseException:
        if log is not None:
            log.close(failed=True)
        raise
    if log is not None:
        log.attach([weights])
        log.close()
    return left_by(trainer, weights, None if log is None else log.run_id)
