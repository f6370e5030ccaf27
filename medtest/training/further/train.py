"""Further training from data to weights, for networks of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError
from medtest.training.engine.trainer import HISTORY, SAVE_EVERY, STATE, Progress, Trainer, Training
from medtest.training.run import Trained, result_of

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.training.classification.material import LabelledMaterial
    from medtest.training.engine.trainer import Writer
    from medtest.training.further.log import FurtherLog
    from medtest.training.further.material import PairMaterial
    from medtest.training.further.networks import StartingPoint
    from medtest.training.settings.recipe import Recipe

FACTS = "training.json"


TrainingMaterial: TypeAlias = "PairMaterial | LabelledMaterial"


def weights_file(out: Path, start: StartingPoint) -> Path:
    """Return the weights file of a training."""
    return out / f"{start.family}.safetensors"


def writer(out: Path, start: StartingPoint, recipe: Recipe) -> Writer:
    """Return the writer of selected weights, in their original format."""
    from medtest.training.further.networks import trained_as, write_weights

    description = f"further training, recipe {recipe.name}"
    trained = trained_as(start, recipe)

    def write(state: Mapping[str, Tensor], note: str) -> None:
        write_weights(weights_file(out, start), trained, state, note=f"{description}, {note}")

    return write


def check_state(training: Training, out: Path) -> None:
    """Reject a folder that holds another training, before that one's MLflow runs are touched.

    Raises:
        MedtestError: Its state belongs to another training, or cannot be read.
    """
    from medtest.training.engine.state import load_state

    if (out / STATE).is_file():
        load_state(out / STATE, device="cpu", identity=training.identity, mapped=True)


def train_further(
    training: Training,
    start: StartingPoint,
    material: TrainingMaterial,
    out: Path,
    *,
    threads: int | None = None,
    log: FurtherLog | None = None,
    progress: Progress | None = None,
    save_every: int = SAVE_EVERY,
) -> Trained:
    """Train a network further, or continue an interrupted training.

    The folder then holds ``<network>.safetensors`` (the weights selected so far, in their original format),
    ``state.pt``
    (from which the training resumes at the exact step), ``history.json`` and ``training.json``.

    Args:
        training: The training task.
        start: The initial network.
        material: The data.
        out: Folder of this training.
        threads: Threads of torch; None for its default.
        log: MLflow, or None.
        progress: Called after every step.
        save_every: Steps between states.

    Returns:
        The selected weights.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call continues.
        MedtestError: The state in the folder belongs to another training, or the loss is not finite.
        NotTracked: MLflow failed; the state is written.
    """
    from medtest.systems.files import cached_sha256

    if threads:
        torch.set_num_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    weights = weights_file(out, start)
    trainer = Trainer(training, out, save_every=save_every)
    trainer.resume()
    trainer.fit(log=log, progress=progress)
    if not weights.is_file():
        raise MedtestError(f"{weights.name} is missing although training is done: train again with fresh=true")
    trained = result_of(trainer, weights)
    facts = {
        "network": start.name,
        "family": start.family,
        "from_sha256": start.sha256,
        "weights_sha256": cached_sha256(weights),
        "recipe": training.recipe.model_dump(mode="json"),
        "pairs": dict(material.counts),
        "data": material.digest,
        "steps": trained.step,
        "kept_step": trained.kept_step,
        "stopped_early": trained.stopped,
        "history": trained.history,
    }
    (out / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    if log is not None:
        log.attach([weights, out / FACTS, out / HISTORY])
        log.end_training()
    return trained
