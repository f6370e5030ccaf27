"""Training of a classifier from options: cases, network, steps, weights that suites can test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.errors import MedtestError, Mistake, UserMistakes
from medtest.training.classification.batches import LabelledBatches, shown_cases
from medtest.training.classification.cases import LabelledCase, LabelledSet, held_out, keep, phantom_cases, seed_cases
from medtest.training.classification.families import Kind, kind_of
from medtest.training.classification.options import ClassificationOptions
from medtest.training.classification.recipes import load_recipe
from medtest.training.classification.scores import accuracy, mean_area

if TYPE_CHECKING:
    from torch import nn

    from medtest.cases import Classes
    from medtest.training.classification.engine import ClassifierEngine
    from medtest.training.classification.recipe import ClassifierRecipe
    from medtest.training.runlog import RunLog

MOST_WATCHED = 600
"""Held-out cases that a validation looks at; of more, the first ones in an order of chance."""
STATE, HISTORY, RUN = "state.pt", "history.json", "mlflow_run.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training leaves.

    Attributes:
        weights: The weights that are kept, half precision safetensors.
        best_step: Step of the best validation.
        best_score: Its score.
        steps: Steps done.
        run_id: The MLflow run, or None.
    """

    weights: Path
    best_step: int
    best_score: float
    steps: int
    run_id: str | None


Progress = Callable[[Point], None]


def train_classification(
    options: ClassificationOptions,
    out: Path,
    *,
    resume: bool = True,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> Trained:
    """Train a classifier, or go on with a training that was interrupted.

    The folder then holds ``<network>.safetensors``, ``state.pt`` (from which it resumes to the step),
    ``history.json`` and ``cases/`` (the training cases as arrays).

    Args:
        options: What to train and how.
        out: Folder of this training.
        resume: Go on from ``state.pt`` where it is there; else begin anew.
        progress: Called after every step.
        stop: Called with the number of steps done; True writes the state and ends early.

    Raises:
        UserMistakes: Options, recipe or files cannot be used.
        MedtestError: The cases do not fit the network, or the state belongs to another training.
    """
    import torch

    from medtest.training.runlog import RunLog

    kind = kind_of(options.network)
    recipe = load_recipe(options.recipe, options.change, steps=options.steps, batch=options.batch)
    if options.threads:
        torch.set_num_threads(options.threads)
    out.mkdir(parents=True, exist_ok=True)
    cases = training_cases(options, kind, out / "cases")
    job = _Job(options, kind, recipe, cases, out)
    state, run_file = out / STATE, out / RUN
    run_id: str | None = None
    if resume and state.is_file():
        job.engine.resume(state)
        run_id = run_file.read_text(encoding="utf-8").strip() if run_file.is_file() else None
    log = RunLog(enabled=options.mlflow, name=f"{options.network}-compact", run_id=run_id)
    if log.run_id:
        run_file.write_text(log.run_id, encoding="utf-8")
    log.params({**options.identity(), "cases": len(cases), "held_out": len(job.watched), "steps": job.steps})
    try:
        job.run(log, state, progress=progress, stop=stop)
    except BaseException:
        log.end(failed=True)
        raise
    if job.weights.is_file():
        log.artifact(job.weights)
    log.end()
    reached = job.engine.reached
    return Trained(
        weights=job.weights,
        best_step=reached.best_step,
        best_score=reached.best_score,
        steps=reached.step,
        run_id=log.run_id,
    )


def training_cases(options: ClassificationOptions, kind: Kind, folder: Path) -> LabelledSet:
    """Make or load the training cases.

    Raises:
        UserMistakes: Nothing to train on was named, or the suite cannot be used.
    """
    if bool(options.phantoms) == bool(options.suite):
        fix = "add --phantoms 2000, or --suite NAME --data FOLDER"
        found = "both phantoms and a suite" if options.phantoms else "nothing to train on"
        raise UserMistakes(
            [Mistake(where="command line", key="--phantoms", found=found, allowed="one of two", fix=fix)]
        )
    if options.phantoms:
        from importlib import import_module

        from medtest.training.classification.cases import PHANTOM_ROOMS

        revision = import_module(f"medtest.phantoms.{PHANTOM_ROOMS[kind.phantoms]}").REVISION
        what = f"{kind.phantoms} phantoms {options.phantoms} seed {options.phantom_seed} revision {revision}"
        made = phantom_cases(kind.phantoms, options.phantoms, seed=options.phantom_seed, size=kind.stored)
        return keep(made, folder, classes=kind.classes, side=kind.stored, what=what)
    return _from_suite(options, kind, folder)


def _from_suite(options: ClassificationOptions, kind: Kind, folder: Path) -> LabelledSet:
    """Keep the labelled seeds of a suite, prepared at the side at which training images are kept."""
    from medtest.preparation.prepare import prepare
    from medtest.suite.compose import load

    overrides = [f"model={kind.name}", *([f"data={options.data}"] if options.data else [])]
    suite = load(options.suite or "", overrides).suite
    if suite.kind != "label":
        allowed = "a suite whose seeds have labels"
        raise UserMistakes([Mistake(where="command line", key="--suite", found=suite.name, allowed=allowed)])
    sources = suite.build_seeds(options.data)
    found: list[Classes] = []
    for source in sources:
        first = next(iter(source.refs()), None)
        classes = None if first is None else source.load(first).classes
        if classes is not None:
            found.append(classes)
    if not found or any(one != found[0] for one in found):
        raise MedtestError(f"the seeds of {suite.name} do not share one list of classes to train on")

    def seeds() -> Iterator[LabelledCase]:
        for source in sources:
            for ref in source.refs():
                yield from seed_cases([prepare(source.load(ref), size=kind.stored, resize=kind.stored)])

    digests = ",".join(source.digest() for source in sources)
    return keep(seeds(), folder, classes=found[0], side=kind.stored, what=f"suite {suite.name} {digests}")


class _Job:
    def __init__(
        self,
        options: ClassificationOptions,
        kind: Kind,
        recipe: ClassifierRecipe,
        cases: LabelledSet,
        out: Path,
    ) -> None:
        self.options, self.kind, self.recipe, self.cases, self.out = options, kind, recipe, cases, out
        self.side = options.side or kind.side
        self.weights = out / f"{options.network}.safetensors"
        trained, watched = held_out(cases, share=recipe.watching.held_out, seed=options.seed)
        order = np.random.Generator(np.random.PCG64([options.seed, 12])).permutation(len(watched))
        self.watched = np.sort(watched[order[:MOST_WATCHED]])
        shown = kind.side / kind.stored
        passes = len(trained) // recipe.batch
        self.steps = recipe.steps or max(1, round((recipe.epochs or 1) * recipe.passes * max(1, passes)))
        batches = LabelledBatches(
            cases, trained, recipe, side=self.side, shown=shown, steps=self.steps, seed=options.seed
        )
        self.every = recipe.watching.every_steps or batches.steps_per_pass * recipe.passes
        self.images, self.truth = shown_cases(cases, self.watched, side=self.side, shown=shown)
        self.engine = self._engine(batches, trained)

    def _engine(self, batches: LabelledBatches, trained: Any) -> ClassifierEngine:
        import torch

        from medtest.systems import networks
        from medtest.systems.classification.networks.inputs import INPUTS
        from medtest.training.classification.engine import ClassifierEngine
        from medtest.training.classification.families import loss_of
        from medtest.training.classification.losses_chexnet import positive_shares
        from medtest.training.loop import initialise
        from medtest.training.start import start_from

        self.network = self._fresh()
        initialise(self.network, self.options.seed)
        if self.options.start_from is not None:
            start_from(self.network, self.options.start_from)
        shares = positive_shares(torch.from_numpy(self.cases.truth[trained]))
        self.input = INPUTS[self.options.network]
        self.probe = self._fresh().to(self.options.device)
        identity = {
            **self.options.identity(),
            "cases": self.cases.digest,
            "recipe": self.recipe.model_dump(mode="json"),
            "network": networks.describe(self.config),
        }
        return ClassifierEngine(
            self.options.network,
            self.network,
            batches,
            self.recipe,
            loss=loss_of(self.options.network, self.recipe.loss, self.network, shares=shares.to(self.options.device)),
            kind=self.input,
            multi=self.cases.classes.multi,
            steps=self.steps,
            seed=self.options.seed,
            device=self.options.device,
            identity=identity,
        )

    @property
    def config(self) -> Any:
        """The compact network's description, with as many classes as the cases have."""
        from dataclasses import replace

        from medtest.systems import networks

        compact = networks.COMPACT[self.options.network]
        count = len(self.cases.classes.names)
        return compact if compact.classes == count else replace(compact, classes=count)

    def _fresh(self) -> nn.Module:
        from medtest.systems import networks

        return networks.make(self.config)

    def run(self, log: RunLog, state: Path, *, progress: Progress | None, stop: Callable[[int], bool] | None) -> None:
        """Do the steps that are left."""
        engine = self.engine
        while engine.reached.step < self.steps and not engine.reached.stopped:
            numbers = engine.advance()
            step = engine.reached.step
            ended = stop is not None and stop(step)
            validation: dict[str, float] = {}
            if step % self.every == 0 or step == self.steps:
                validation = self._validate()
                (self.out / HISTORY).write_text(json.dumps(engine.reached.history, indent=1), encoding="utf-8")
                log.metrics({f"val_{name}": value for name, value in validation.items()}, step)
            if validation or ended:
                engine.save(state)
            if step % 20 == 0 or validation:
                log.metrics(numbers, step)
            if progress is not None:
                best = engine.reached.best_score
                progress(Point(step=step, steps=self.steps, loss=numbers["loss"], validation=validation, best=best))
            if ended:
                break

    def _validate(self) -> dict[str, float]:
        from medtest.systems import networks
        from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
        from medtest.training.classification.engine import answers

        weights = self.engine.weights()
        self.probe.load_state_dict(weights)
        logits = answers(self.options.network, self.probe, self.images, kind=self.input, device=self.options.device)
        multi = self.cases.classes.multi
        facts = {
            "accuracy": accuracy(logits, self.truth, multi=multi),
            "auroc": mean_area(logits, self.truth, multi=multi),
        }
        score = facts["auroc" if multi else self.recipe.watching.score]
        if self.engine.validated(score, _cross_entropy(logits, self.truth, multi=multi), facts):
            own = self.kind.classes == self.cases.classes
            info = WeightsInfo(
                network=networks.describe(self.config),
                size=self.side,
                note=f"step {self.engine.reached.step}",
                classes=() if own else self.cases.classes.names,
            )
            save_weights(self.weights, weights, info)
        return facts


def _cross_entropy(logits: Any, truth: Any, *, multi: bool) -> float:
    """Return the mean cross-entropy of logits, float B×C, with truth of the same shape."""  # noqa: RUF002
    scores = np.asarray(logits, np.float64)
    if multi:
        return float((np.logaddexp(0, scores) - truth * scores).mean())
    top = scores.max(axis=1)
    whole = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float((whole - (scores * truth).sum(axis=1)).mean())
