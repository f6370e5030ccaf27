"""One further training from its material to its weights, of networks of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from medtest.core.errors import MedtestError
from medtest.training.engine.trainer import HISTORY, SAVE_EVERY, STATE, Progress, Trainer, Training
from medtest.training.run import Trained, left_by

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.training.engine.trainer import Writer
    from medtest.training.further.log import FurtherLog
    from medtest.training.further.networks import StartingPoint
    from medtest.training.settings.recipe import Recipe

FACTS = "training.json"


class TrainingMaterial(Protocol):
    """What a further training reads; it knows how its kind of cases is trained on."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of cases of each kind."""

    @property
    def digest(self) -> str:
        """SHA-256 over all cases."""


def weights_file(out: Path, start: StartingPoint) -> Path:
    """Return the file that a training writes its weights to."""
    return out / f"{start.family}.safetensors"


def writer(out: Path, start: StartingPoint, recipe: Recipe) -> Writer:
    """Return what writes the weights that are kept, in the form they came in."""
    from medtest.training.further.networks import trained_as, write_weights

    said = f"further training, recipe {recipe.name}"
    trained = trained_as(start, recipe)

    def write(state: Mapping[str, Tensor], note: str) -> None:
        write_weights(weights_file(out, start), trained, state, note=f"{said}, {note}")

    return write


def check_state(training: Training, out: Path) -> None:
    """Refuse a folder that holds another training, before that one's runs in MLflow are touched.

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
    """Train a network further, or go on with a training that was interrupted.

    The folder then holds ``<network>.safetensors`` (the weights kept so far, in the form they came in), ``state.pt``
    (from which the training resumes to the step), ``history.json`` and ``training.json``.

    Args:
        training: What is trained and how.
        start: The network that it starts from.
        material: What it reads.
        out: Folder of this training.
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
    import torch

    from medtest.systems.files import cached_sha256

    if threads:
        torch.set_num_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    weights = weights_file(out, start)
    trainer = Trainer(training, out, save_every=save_every)
    trainer.resume()
    trainer.fit(log=log, progress=progress)
    if not weights.is_file():
        raise MedtestError(f"{weights.name} is gone although training is done: begin anew with fresh=true")
    trained = left_by(trainer, weights)
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
