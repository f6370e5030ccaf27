"""Further training on original and perturbed images, with tests before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from medtest.cli.training.reporter import TrainingReporter
from medtest.cli.training.tokens import FURTHER_KEYS, SHORT, FurtherRequest, command_of
from medtest.core.deferred import torch
from medtest.core.errors import ExitCode, MedtestError, NotTracked
from medtest.core.files.written import claim

if TYPE_CHECKING:
    from medtest.runner.units.parts import Parts
    from medtest.suite.compose import Loaded
    from medtest.suite.model import Invocation, Suite
    from medtest.training.engine.trainer import Training
    from medtest.training.further.kinds import FurtherKind
    from medtest.training.further.leak import Print
    from medtest.training.further.log import FurtherLog
    from medtest.training.further.networks import StartingPoint
    from medtest.training.further.train import TrainingMaterial
    from medtest.training.run import Trained
    from medtest.training.settings.recipe import Recipe

FOLDER = "further-training"


def train_further_of(
    request: FurtherRequest, *, config_dirs: Sequence[Path], threads: int | None, console: Console
) -> ExitCode:
    """Train and compare.

    Args:
        request: The typed request.
        config_dirs: Further folders like ``conf/``.
        threads: Threads of torch in training; None for the run's ``threads=``.
        console: Console for progress.

    Raises:
        UserMistakes: Something cannot be used; nothing was trained.
        MedtestError: Training failed; finished parts are kept.
    """
    from medtest.runner.replaying.crafted_runs import crafted_runs
    from medtest.runner.units.parts import Parts
    from medtest.session.runs import invocation_of
    from medtest.training.engine.precision import precision_of
    from medtest.training.further.kinds import kind_of_model
    from medtest.training.further.networks import open_start

    kind = kind_of_model(request.model)
    recipe = kind.recipe(request.recipe, request.changes)
    loaded = load_suite_of(request, config_dirs)
    suite = kind.suite(loaded.suite, request.phantoms)
    start = open_start(request.model, request.start, settings=request.settings)
    invocation = invocation_of(loaded, command_of(request))
    device = device_of(invocation.device)
    precision_of(recipe.precision, device)  # reports an unsupported precision before follow-ups are made
    job = _Job(
        request=request,
        kind=kind,
        loaded=loaded,
        recipe=recipe,
        start=start,
        invocation=invocation,
        device=device,
        out=request.out or invocation.home / "outputs" / FOLDER / f"{start.name}-{recipe.name}",
        threads=threads or invocation.threads,
        console=console,
        reporter=TrainingReporter(console, *kind.reported),
    )
    parts = Parts(suite, request.data, invocation.batch_size)
    if getattr(recipe, "defence", None) is None:  # a defence attacks in its steps, and mixes in none of these
        parts.crafted = crafted_runs(suite, invocation, parts, by_source=True)
    return job.run(parts)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Job:
    request: FurtherRequest
    kind: FurtherKind
    loaded: Loaded
    recipe: Recipe
    start: StartingPoint
    invocation: Invocation
    device: str
    out: Path
    threads: int | None
    console: Console
    reporter: TrainingReporter

    def run(self, parts: Parts) -> ExitCode:
        """Check, train, compare."""
        from medtest.training.further.train import check_state, writer

        prints = {} if self.request.phantoms else self._apart(parts)
        with locked_folder(self.out, fresh=self.invocation.fresh, console=self.console):
            material = self._material(parts, prints)
            write = writer(self.out, self.start, self.recipe)
            training = self.kind.training(self.start, material, self.recipe, device=self.device, write=write)
            check_state(training, self.out)
            suite, network, recipe = self.loaded.suite, self.start.name, self.recipe.name
            with tracked(suite, self.invocation, self.out, network=network, recipe=recipe, console=self.console) as log:
                trained = self._train(training, material, log)
                return self._compare(trained, log)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def _testable(self) -> bool:
        """Return True if there are test images: the suite's own seeds, or the folder of ``test=``."""
        from medtest.suite.compose import needs_data

        return self.request.test is not None or not needs_data(self.loaded.suite)

    def _apart(self, parts: Parts) -> dict[str, Print]:
        """Return the fingerprints of training pictures; refuse those that are test seeds."""
        from medtest.training.further.leak import prints_of, refuse_shared, shared_images
        from medtest.training.further.material import training_prints

        preparation = self.loaded.suite.prepare
        prints = training_prints(parts)
        note = "no test seeds were named (test=FOLDER), so nothing is tested before and after"
        if self._testable():
            sources = self.loaded.suite.build_seeds(self.invocation.data)
            tested = list(prints_of(sources, size=preparation.size, resize=preparation.resize))
            refuse_shared(shared_images(prints, tested))
            note = f"none of them is among the {len(tested)} test seeds."
        self._say(f"{len(prints)} training pictures; {note}")
        return prints

    def _material(self, parts: Parts, prints: Mapping[str, Print]) -> TrainingMaterial:
        """Make the cases, or read existing ones."""
        from medtest.runner.followups import default_folder

        typed_store = self.request.store
        store = default_folder() if typed_store is None else Path(typed_store).expanduser() if typed_store else None
        if self.loaded.suite.privacy.seed_ids == "hashed":
            store = None  # The cases have plain ids, which such a suite keeps out of shared folders.
        material = self.kind.material(
            parts,
            prints,
            self.recipe,
            start=self.start,
            folder=self.out,
            store=store,
            progress=self.reporter.drawing,
        )
        counts = material.counts
        store_counts = ""
        if "made" in counts:
            store_counts = (
                f" ({counts['made']} follow-ups made, {counts['reused']} from the store, {counts['replaced']} draws "
                "without room replaced)"
            )
        self._say(
            f"{counts['originals']} originals and {counts['perturbed']} perturbed images train, "
            f"{counts['held_clean']} and {counts['held_perturbed']} watch{store_counts}."
        )
        return material

    def _train(self, training: Training, material: TrainingMaterial, log: FurtherLog | None) -> Trained:
        from medtest.training.further.train import train_further

        if log is not None:
            unlogged: dict[str, Any] = {"notes": True, "summary": True, "source": True, "defence": {"whose"}}
            options = self.recipe.model_dump(mode="json", exclude=unlogged)
            counts = {f"{self.kind.counted}{name}": count for name, count in material.counts.items()}
            log.params({**flat(options), **counts, "from": self.start.sha256})
        trained = train_further(
            training, self.start, material, self.out, threads=self.threads, log=log, progress=self.reporter
        )
        stopping = "stopped early, " if trained.stopped else ""
        kept_weights = f"the weights of step {trained.kept_step} are kept: {trained.weights.name}"
        self._say(f"{stopping}{trained.step} steps; {kept_weights}")
        if trained.kept_step == 0:
            self._say("No step improved on the initial weights on held-out cases, so these are kept.")
        return trained

    def _compare(self, trained: Trained, log: FurtherLog | None) -> ExitCode:
        if not self.request.compare:
            return ExitCode.OK
        if not self._testable():
            self._say("To test before and after, add test=FOLDER to this command.")
            return ExitCode.OK
        from medtest.cli.training.compare import compare

        settings: dict[str, Any] = dict(self.request.settings)
        return compare(
            self.loaded.suite,
            self.invocation,
            model=self.request.model,
            network=self.start.name,
            before=self.start.checkpoint,
            after=trained.weights,
            settings=settings,
            out=self.out,
            log=log,
            console=self.console,
            transfer=getattr(self.recipe, "defence", None) is not None,
        )


def load_suite_of(request: FurtherRequest, config_dirs: Sequence[Path]) -> Loaded:
    """Return the suite that tests the network, with the overrides typed for its run.

    Raises:
        UserMistakes: It cannot be used.
    """
    from medtest.cli.typed import own_keys
    from medtest.suite.compose import load

    overrides = [*request.overrides, f"model={request.model}", *([f"data={request.test}"] if request.test else [])]
    with own_keys(*FURTHER_KEYS, *SHORT):
        return load(request.suite, overrides, config_dirs=config_dirs)


@contextmanager
def locked_folder(out: Path, *, fresh: bool, console: Console) -> Iterator[None]:
    """Lock a training's folder; with ``fresh`` an earlier training is moved aside as a whole and never deleted.

    Raises:
        UserMistakes: It is a file, or a folder with other content.
        FolderInUse: Another process holds it.
        OutputProblem: It cannot be created.
    """
    from medtest.runner.folder import FolderLock, output_problems

    with output_problems(out):
        claim(out, "out")
    lock = FolderLock(out)
    lock.acquire()
    try:
        moved = lock.move_aside() if fresh else None
        if moved is not None:
            console.print(f"The earlier training was moved to {moved.name}.", markup=False, soft_wrap=True)
        with output_problems(out):
            claim(out, "out")
        yield
    finally:
        lock.release()


@contextmanager
def tracked(
    suite: Suite, invocation: Invocation, out: Path, *, network: str, recipe: str, console: Console
) -> Iterator[FurtherLog | None]:
    """Yield the training's MLflow runs, or None without tracking, and close them at the end.

    A store that fails at the end is reported but causes no error.

    Raises:
        NotTracked: The store cannot be created or reached.
    """
    if not invocation.track:
        yield None
        return
    from medtest.training.further.log import FurtherLog

    tags = {
        "suite": suite.name,
        "suite_version": suite.version,
        "network": network,
        "recipe": recipe,
        "command": invocation.command,
    }
    log = FurtherLog(out, network, home=invocation.home, uri=invocation.tracking_uri, experiment=suite.name, tags=tags)
    failed = True
    try:
        yield log
        failed = False
    finally:
        try:
            if failed:
                log.end_training(failed=True)
            log.close(failed=failed)
        except NotTracked as problem:
            console.print(str(problem), markup=False, soft_wrap=True)


def device_of(wanted: str) -> str:
    """Return the device selected by ``device=``.

    Raises:
        MedtestError: It is not available.
    """
    if wanted == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise MedtestError(f"device={wanted}: torch sees no CUDA device here; device=cpu trains too")
    return wanted


def flat(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested options by dotted keys."""
    flattened: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping):
            flattened |= flat(value, f"{above}{key}.")
        else:
            flattened[above + key] = value
    return flattened
