"""Training of the compact segmentation networks that ship with medtest, and of others of the same classes.

What differs between the families lies in :mod:`medtest.training.steps` (``loss_of`` makes a family's loss,
``answer_of`` picks the answer's logits), in ``networks.inputs`` (how each wants its pixels) and in
:mod:`medtest.training.colour` (SANet's colour exchange, a setting of ``data.Batches``); further training builds on the
same three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from medtest.errors import MedtestError
from medtest.training.data import Pairs, pairs_from_folder
from medtest.training.made import phantom_pairs
from medtest.training.options import SegmentationOptions

CACHE_SCALE = 1.25
"""Pairs are kept in memory this much larger than the network takes them, so that a crop loses little sharpness."""
VALIDATION_PHANTOMS = 48
EXCHANGE = {"sanet": 0.8}
"""Share of images whose colours are exchanged, by family, where the options do not say."""
VALIDATION_SEED = 7
"""Validation phantoms come from a suite seed of their own and are never trained on."""

Progress = Callable[["SegmentationStep"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationStep:
    """Where a training stands; reported after every step.

    Attributes:
        step: Steps done.
        steps: Steps in all.
        loss: Loss of the last step.
        rate: Its learning rate.
        validation: Mean Dice by kind of pair ("real", "phantoms"), after a validation; else empty.
        best: Best validation score so far, -1 before the first.
    """

    step: int
    steps: int
    loss: float
    rate: float
    validation: dict[str, float]
    best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What a training leaves.

    Attributes:
        weights: The best weights, half precision safetensors.
        best_step: Step of the best validation.
        best_score: Its score: mean Dice on the real pairs held out and on phantoms, averaged where there are both.
        run_id: The MLflow run, or None.
    """

    weights: Path
    best_step: int
    best_score: float
    run_id: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """Training sets with their names, and validation pairs by kind."""

    training: list[tuple[str, Pairs]]
    validation: dict[str, Pairs]

    def digests(self) -> list[str]:
        return [pairs.digest() for _, pairs in self.training] + [p.digest() for p in self.validation.values()]


def _load(options: SegmentationOptions, out: Path) -> _Data:
    """Load and split the real pairs and make the phantoms."""
    from medtest.training.data import shrink_pairs

    large = int(options.size * CACHE_SCALE)
    training: list[tuple[str, Pairs]] = []
    validation: dict[str, Pairs] = {}
    if options.data:
        real = Pairs.join([pairs_from_folder(root, size=large) for root in options.data])
        if len(real) <= options.held_out:
            raise MedtestError(f"{len(real)} pairs are too few to hold {options.held_out} of them out")
        order = np.random.Generator(np.random.PCG64([options.seed, 3])).permutation(len(real))
        training.append(("real", real.take(order[options.held_out :])))
        if options.held_out:
            validation["real"] = shrink_pairs(real.take(order[: options.held_out]), options.size)
    if options.phantoms:
        made = phantom_pairs(
            options.phantoms,
            seed=options.phantom_seed,
            size=large,
            cache=out / "phantoms",
            negatives=options.phantom_negatives,
        )
        training.append(("phantoms", made))
        unseen = phantom_pairs(VALIDATION_PHANTOMS, seed=VALIDATION_SEED, size=options.size, cache=out / "phantoms")
        validation["phantoms"] = unseen
    if not training:
        raise MedtestError("nothing to train on: give data= folders, a number of phantoms, or both")
    return _Data(training=training, validation=validation)


def _shares(options: SegmentationOptions, data: _Data) -> list[tuple[Pairs, int]]:
    """Return how many pairs of each set are in a batch."""
    if len(data.training) == 1:
        return [(data.training[0][1], options.batch)]
    made = round(options.batch * options.phantom_share)
    return [(data.training[0][1], options.batch - made), (data.training[1][1], made)]


def train_segmentation(
    options: SegmentationOptions,
    out: Path,
    *,
    resume: bool = True,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> TrainingResult:
    """Train a compact network, or go on with a training that was interrupted.

    The folder then holds ``<network>.safetensors`` (the best averaged weights so far, half precision),
    ``state.pt`` (from which the training resumes to the step), ``phantoms/`` (a cache) and ``history.json``.

    Args:
        options: What to train and how.
        out: Folder of this training.
        resume: Go on from ``state.pt`` when it is there; else begin anew.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Returns:
        The best weights and their score.

    Raises:
        UserMistakes: Files of the data cannot be used.
        MedtestError: Options or data do not fit, or the state belongs to another training.
    """
    import json

    import torch

    from medtest.systems import networks
    from medtest.systems.segmentation.networks import registry
    from medtest.systems.segmentation.networks.inputs import INPUTS
    from medtest.training.augment import Augmentation
    from medtest.training.data import Batches
    from medtest.training.loop import Optimization, Trainer, initialise
    from medtest.training.probe import Probe
    from medtest.training.runlog import RunLog
    from medtest.training.start import backbone_from, start_from
    from medtest.training.steps import loss_of

    if options.network not in registry.COMPACT:
        raise MedtestError(f"no compact network is called {options.network!r}; there are {', '.join(registry.COMPACT)}")
    if options.threads:
        torch.set_num_threads(options.threads)
    out.mkdir(parents=True, exist_ok=True)
    data = _load(options, out)
    config = registry.COMPACT[options.network]
    network = networks.make(config)
    initialise(network, options.seed)
    if options.start_from is not None:
        start_from(network, options.start_from)
    if options.backbone_from is not None:
        backbone_from(network, options.network, options.backbone_from)
    exchange = EXCHANGE.get(options.network, 0.0) if options.exchange is None else options.exchange
    batches = Batches(
        _shares(options, data),
        sizes=options.sizes or [options.size],
        seed=options.seed,
        how=Augmentation(),
        kind=INPUTS[options.network],
        exchange=exchange,
    )
    recipe = Optimization(
        steps=options.steps,
        warmup=options.warmup,
        rate=options.rate,
        last_rate=options.last_rate,
        decay=options.decay,
        clip=options.clip,
        auxiliary=options.auxiliary,
        average=options.average,
        bf16=options.bf16,
    )
    identity = {**options.identity(), "data": data.digests(), "network": networks.describe(config)}
    trainer = Trainer(
        network,
        batches,
        recipe,
        seed=options.seed,
        device=options.device,
        identity=identity,
        loss=loss_of(options.network, auxiliary=options.auxiliary),
    )
    state, run_file = out / "state.pt", out / "mlflow_run.txt"
    run_id: str | None = None
    if resume and state.is_file():
        trainer.resume(state)
        run_id = run_file.read_text(encoding="utf-8").strip() if run_file.is_file() else None
    log = RunLog(enabled=options.mlflow, name=f"{options.network}-compact", run_id=run_id)
    if log.run_id:
        run_file.write_text(log.run_id, encoding="utf-8")
    sizes = {name: len(pairs) for name, pairs in data.training}
    log.params({**options.identity(), **{f"pairs_{name}": count for name, count in sizes.items()}})
    weights = out / f"{options.network}.safetensors"
    probe = Probe(
        networks.make(config),
        config,
        data.validation,
        weights,
        size=options.size,
        steps=options.steps,
        device=options.device,
    )
    try:
        while trainer.step < options.steps:
            numbers = trainer.advance()
            ended = stop is not None and stop(trainer.step)
            validation: dict[str, float] = {}
            if trainer.step % options.validate_every == 0 or trainer.step == options.steps:
                validation = probe.validate(trainer)
                trainer.history.append({"step": trainer.step, **numbers, **validation})
                (out / "history.json").write_text(json.dumps(trainer.history, indent=1), encoding="utf-8")
                log.metrics({f"val_dice_{kind}": score for kind, score in validation.items()}, trainer.step)
            if validation or ended:
                trainer.save(state)
            if trainer.step % 20 == 0 or validation:
                log.metrics(numbers, trainer.step)
            if progress is not None:
                progress(
                    SegmentationStep(
                        step=trainer.step,
                        steps=options.steps,
                        loss=numbers["loss"],
                        rate=numbers["rate"],
                        validation=validation,
                        best=float(trainer.best["score"]),
                    )
                )
            if ended:
                break
    except BaseException:
        log.end(failed=True)
        raise
    if weights.is_file():
        log.artifact(weights)
    log.end()
    return TrainingResult(
        weights=weights,
        best_step=int(trainer.best["step"]),
        best_score=float(trainer.best["score"]),
        run_id=log.run_id,
    )
