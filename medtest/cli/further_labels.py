"""``medtest train further`` of a classifier: train on originals and perturbed images, then test before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from medtest.cli.further_folder import device_of, flat, folder_of, load_suite_of, locked_folder, tracked
from medtest.cli.further_tokens import FurtherRequest, command_of
from medtest.errors import ExitCode, MedtestError

if TYPE_CHECKING:
    from medtest.suite.compose import Loaded
    from medtest.suite.model import Invocation
    from medtest.training.classification.job import ClassifierStep
    from medtest.training.classification.material import LabelledMaterial
    from medtest.training.classification.recipe import ClassifierRecipe
    from medtest.training.further.log import FurtherLog
    from medtest.training.further.networks import Start

STATE, FACTS = "state.pt", "training.json"


def run_labels(
    request: FurtherRequest, *, config_dirs: Sequence[Path], threads: int | None, console: Console
) -> ExitCode:
    """Train and compare.

    Args:
        request: What was typed.
        config_dirs: Further folders like ``conf/``.
        threads: Threads of torch in training; None for the run's ``threads=``.
        console: Where progress goes.

    Raises:
        UserMistakes: Something cannot be used; nothing was trained.
        MedtestError: Training could not be done; what was finished is kept.
    """
    from medtest.runs import invocation_of
    from medtest.training.classification.recipes import load_recipe
    from medtest.training.further.networks import open_start

    recipe = load_recipe(request.recipe, [f"{_own(key)}={_plain(value)}" for key, value in request.changes.items()])
    loaded = load_suite_of(request, config_dirs)
    if not loaded.suite.task.labels:
        raise MedtestError(f"{loaded.suite.name} has no labels; a suite like wce tests {request.model}")
    start = open_start(request.model, request.start)
    invocation = invocation_of(loaded, command_of(request))
    device = device_of(invocation.device)
    out = folder_of(request, invocation.home, network=start.name, recipe=recipe.name)
    with locked_folder(out, fresh=invocation.fresh, console=console):
        job = _Job(
            request=request,
            loaded=loaded,
            recipe=recipe,
            start=start,
            invocation=invocation,
            device=device,
            out=out,
            threads=threads or invocation.threads,
            console=console,
            options=flat(recipe.model_dump(mode="json", exclude={"notes", "summary", "source"})),
        )
        return job.run()


def _own(key: str) -> str:
    """Return a key as recipes of classifiers have it: ``held_out=`` stands for a key that has another name in them."""
    return f"watching.{key.removeprefix('validation.')}" if key.startswith("validation.") else key


def _plain(value: Any) -> str:
    return json.dumps(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Job:
    request: FurtherRequest
    loaded: Loaded
    recipe: ClassifierRecipe
    start: Start
    invocation: Invocation
    device: str
    out: Path
    threads: int | None
    console: Console
    options: Mapping[str, Any]

    def run(self) -> ExitCode:
        """Make the material, train, compare."""
        from medtest.runner.parts import Parts
        from medtest.training.classification.families import kind_of
        from medtest.training.classification.material import prepare_material, training_suite

        kind = kind_of(self.request.model)
        training = training_suite(self.loaded.suite, phantoms=self.request.phantoms)
        parts = Parts(training, self.request.data, self.invocation.batch_size)
        self._refuse_shared(parts)
        material = prepare_material(
            parts,
            share=self.recipe.perturbed,
            held_out=self.recipe.watching.held_out,
            side=kind.side,
            seed=training.seed,
            folder=self.out / "cases",
        )
        counts = material.counts
        self._say(
            f"{counts['originals']} originals and {counts['perturbed']} perturbed images train, "
            f"{counts['held_clean']} and {counts['held_perturbed']} watch."
        )
        suite, network, recipe = self.loaded.suite, self.start.name, self.recipe.name
        with tracked(suite, self.invocation, self.out, network=network, recipe=recipe, console=self.console) as log:
            weights = self._train(material, log)
            return self._compare(weights, log)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def _refuse_shared(self, parts: Any) -> None:
        """Refuse training pictures that are test seeds, by their pixels; made ones have numbers of their own."""
        from medtest.training.further.leak import prints_of, refuse_shared, shared_images

        if self.request.phantoms or not self.request.compare or not self._testable():
            return
        how = self.loaded.suite.prepare
        prints = prints_of(parts.sources, size=how.size, resize=how.resize)
        trained = {f"{ref.dataset}/{ref.seed_id}": one for ref, one in prints}
        sources = self.loaded.suite.build_seeds(self.invocation.data)
        tested = list(prints_of(sources, size=how.size, resize=how.resize))
        refuse_shared(shared_images(trained, tested))
        self._say(f"{len(trained)} training pictures; none of them is among the {len(tested)} test seeds.")

    def _testable(self) -> bool:
        """Whether there is something to test on: seeds of the suite's own, or the folder of ``test=``."""
        from medtest.suite.compose import needs_data

        return self.request.test is not None or not needs_data(self.loaded.suite)

    def _train(self, material: LabelledMaterial, log: FurtherLog | None) -> Path:
        import torch

        from medtest.systems.files import cached_sha256
        from medtest.training.classification.families import kind_of
        from medtest.training.classification.job import ClassifierJob, TrainingWork
        from medtest.training.further.networks import write_weights
        from medtest.training.further.train import stopping

        if self.threads:
            torch.set_num_threads(self.threads)
        weights = self.out / f"{self.request.model}.safetensors"
        note = f"further training, recipe {self.recipe.name}"
        work = TrainingWork(
            family=self.request.model,
            network=self.start.network,
            cases=material.cases,
            trained=material.trained,
            watched=material.watched,
            recipe=self.recipe,
            side=kind_of(self.request.model).side,
            shown=1.0,
            seed=self.loaded.suite.seed,
            device=self.device,
            identity={"from": self.start.sha256, "further": True},
            write=lambda state, step: write_weights(weights, self.start, state, note=f"{note}, {step}"),
            perturbed=material.perturbed,
            first=True,
        )
        job = ClassifierJob(work, self.out)
        state = self.out / STATE
        if state.is_file():
            job.engine.resume(state)
        if log is not None:
            log.params({**self.options, **{f"cases_{k}": v for k, v in material.counts.items()}})
        with stopping() as asked:
            job.run(log or _Nowhere(), state, progress=self._tell, stop=lambda _: asked.is_set())
        reached = job.engine.reached
        if asked.is_set() and reached.step < job.steps and not reached.stopped:
            from medtest.errors import Interrupted

            raise Interrupted(f"Stopped at step {reached.step} of {job.steps}; the same command goes on from there.")
        facts = {
            "network": self.start.name,
            "from_sha256": self.start.sha256,
            "weights_sha256": cached_sha256(weights),
            "recipe": self.recipe.model_dump(mode="json"),
            "pairs": dict(material.counts),
            "data": material.cases.digest,
            "steps": reached.step,
            "kept_step": reached.best_step,
            "stopped_early": reached.stopped,
            "history": reached.history,
        }
        (self.out / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        if log is not None:
            log.attach([weights, self.out / FACTS])
            log.end_training(failed=False)
        self._say(f"{reached.step} steps; the weights of step {reached.best_step} are kept: {weights.name}")
        return weights

    def _tell(self, point: ClassifierStep) -> None:
        if point.validation:
            scores = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in point.validation.items())
            self._say(f"step {point.step}/{point.steps}  held out: {scores}  best {point.best:.3f}")

    def _compare(self, weights: Path, log: FurtherLog | None) -> ExitCode:
        if not self.request.compare:
            return ExitCode.OK
        if not self._testable():
            self._say("Add test=FOLDER to this command and it tests before and after.")
            return ExitCode.OK
        from medtest.cli.further_compare import compare

        found = compare(
            self.loaded.suite,
            self.invocation,
            model=self.request.model,
            network=self.start.name,
            before=self.start.checkpoint,
            after=weights,
            settings={},
            out=self.out,
            log=log,
            console=self.console,
        )
        return found.code


class _Nowhere:
    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Take nothing down."""
