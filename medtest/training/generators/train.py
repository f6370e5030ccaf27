"""Training of a generator from cases to weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from medtest.relations.adversarial.generators.files import FILE, GeneratorInfo, save_generator
from medtest.training.classification.cases import LabelledSet, held_out
from medtest.training.engine.trainer import HISTORY, SAVE_EVERY, Progress, Trainer
from medtest.training.generators.task import GeneratorObjective, fooled, generator_training
from medtest.training.run import Trained, result_of

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.training.engine.log import TrainingLog


def train_generator(
    attack: GeneratorObjective,
    cases: LabelledSet,
    out: Path,
    *,
    system: str,
    device: str = "cpu",
    threads: int | None = None,
    log: TrainingLog | None = None,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Trained:
    """Train a generator against a system, or continue an interrupted training.

    The folder then holds ``generator.safetensors`` (the weights selected so far), ``state.pt`` (from which the training
    resumes at the exact step) and ``history.json``.

    Args:
        attack: The system, and the generator's settings.
        cases: Training cases; whole patients or videos of them are held out.
        out: Folder of this training.
        system: Digest of the system.
        device: "cpu" or "cuda:N".
        threads: Threads of torch; None for its default.
        log: MLflow, or None.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the state is written, the same call continues.
        MedtestError: The state in the folder belongs to another training, or the loss is not finite.
        NotTracked: MLflow failed; the state is written.
    """
    if threads:
        torch.set_num_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    trained, watched = held_out(cases, share=attack.recipe.watching.held_out, seed=attack.recipe.seed)

    def write(state: Mapping[str, Tensor], note: str) -> None:
        save_generator(out / FILE, state, _noted(attack.info, f"recipe {attack.recipe.name}, {note}", cases))

    training = generator_training(attack, cases, trained, watched, system=system, device=device, write=write)
    trainer = Trainer(training, out, save_every=SAVE_EVERY)
    trainer.resume()
    with attack.probe.attached():
        trainer.fit(log=log, progress=progress, stop=stop)
    done = result_of(trainer, out / FILE, log)
    if log is not None:
        log.attach([path for path in (out / FILE, out / HISTORY) if path.is_file()])
    return done


def _noted(info: GeneratorInfo, note: str, cases: LabelledSet) -> GeneratorInfo:
    from dataclasses import replace

    return replace(info, note=note, data=cases.digest)


def noise_floor(attack: GeneratorObjective, cases: LabelledSet) -> float:
    """Return the mean success of uniform noise of the same bound on the held-out cases."""
    _, watched = held_out(cases, share=attack.recipe.watching.held_out, seed=attack.recipe.seed)
    with attack.probe.attached():
        return float(fooled(attack, None, cases, watched)[0].mean())
