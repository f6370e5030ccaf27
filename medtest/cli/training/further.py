"""Further training: train on originals and perturbed images, then test before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from medtest.cli.training.reporter import TrainingReporter
from medtest.cli.training.tokens import FURTHER_KEYS, SHORT, FurtherRequest, command_of
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
        request: What was typed.
        config_dirs: Further folders like ``conf/``.
        threads: Threads of torch in training; None for the run's ``threads=``.
        console: Where progress goes.

    Raises:
        UserMistakes: Something cannot be used; nothing was trained.
        MedtestError: Training could not be done; what was finished is kept.
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
    precision_of(recipe.precision, device)  # said before follow-ups are made
    job = _Job(
        request=request,
        kind=kind,
        loaded=loaded,
        recipe=recipe,
        start=start,
        invocation=invocation,
        device=device,
        out=folder_of(request, invocation.home, network=start.name, recipe=recipe.name),
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
        """Whether there is something to test on: seeds of the suite's own, or the folder of ``test=``."""
        from medtest.suite.compose import needs_data

        return self.request.test is not None or not needs_data(self.loaded.suite)

    def _apart(self, parts: Parts) -> dict[str, Print]:
        """Return what training pictures are known by; refuse those that are test seeds."""
        from medtest.training.further.leak import prints_of, refuse_shared, shared_images
        from medtest.training.further.material import training_prints

        how = self.loaded.suite.prepare
        prints = training_prints(parts)
        said = "no test seeds were named (test=FOLDER), so nothing is tested before and after"
        if self._testable():
            sources = self.loaded.suite.build_seeds(self.invocation.data)
            tested = list(prints_of(sources, size=how.size, resize=how.resize))
            refuse_shared(shared_images(prints, tested))
            said = f"none of them is among the {len(tested)} test seeds."
        self._say(f"{len(prints)} training pictures; {said}")
        return prints

    def _material(self, parts: Parts, prints: Mapping[str, Print]) -> TrainingMaterial:
        """Make the cases, or take them from where they lie."""
        from medtest.runner.followups import default_folder

        kept = self.request.store
        store = default_folder() if kept is None else Path(kept).expanduser() if kept else None
        if self.loaded.suite.privacy.seed_ids == "hashed":
            store = None  # what is drawn here is known by plain ids, which such a suite keeps out of shared folders
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
        made = ""
        if "made" in counts:
            made = (
                f" ({counts['made']} follow-ups made, {counts['reused']} from the store, {counts['replaced']} draws "
                "without room replaced)"
            )
        self._say(
            f"{counts['originals']} originals and {counts['perturbed']} perturbed images train, "
            f"{counts['held_clean']} and {counts['held_perturbed']} watch{made}."
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
        how = "stopped early, " if trained.stopped else ""
        kept = f"the weights of step {trained.kept_step} are kept: {trained.weights.name}"
        self._say(f"{how}{trained.step} steps; {kept}")
        if trained.kept_step == 0:
            self._say("Nothing was better on held-out cases than the start, which is kept.")
        return trained

    def _compare(self, trained: Trained, log: FurtherLog | None) -> ExitCode:
        if not self.request.compare:
            return ExitCode.OK
        if not self._testable():
            self._say("Add test=FOLDER to this command and it tests before and after.")
            return ExitCode.OK
        from medtest.cli.training.compare import compare

        settings: dict[str, Any] = dict(self.request.settings)
        found = compare(
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
        return found.code


def load_suite_of(request: FurtherRequest, config_dirs: Sequence[Path]) -> Loaded:
    """Return the suite that the network is tested by, with what was typed for its run.

    Raises:
        UserMistakes: It cannot be used.
    """
    from medtest.cli.typed import own_keys
    from medtest.suite.compose import load

    overrides = [*request.overrides, f"model={request.model}", *([f"data={request.test}"] if request.test else [])]
    with own_keys(*FURTHER_KEYS, *SHORT):
        return load(request.suite, overrides, config_dirs=config_dirs)


def folder_of(request: FurtherRequest, home: Path, *, network: str, recipe: str) -> Path:
    """Return the folder of a training: the one that was typed, else that of its network and recipe below ``home``."""
    return request.out or home / "outputs" / FOLDER / f"{network}-{recipe}"


@contextmanager
def locked_folder(out: Path, *, fresh: bool, console: Console) -> Iterator[None]:
    """Hold a training's folder; with ``fresh`` an earlier training is moved aside, whole, and never deleted.

    Raises:
        UserMistakes: It is a file, or a folder that holds something else.
        FolderInUse: Another process holds it.
        OutputProblem: It cannot be made.
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
    """Give the training's runs in MLflow, None where nothing is tracked, and mark them as they end.

    A store that fails at the end is told and fails nothing.

    Raises:
        NotTracked: The store cannot be made or reached.
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
    """Return the device that ``device=`` means.

    Raises:
        MedtestError: It is not there.
    """
    import torch

    if wanted == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise MedtestError(f"device={wanted}: torch sees no CUDA device here; device=cpu trains too")
    return wanted


def flat(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested options by dotted keys."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{key}.")
        else:
            found[above + key] = value
    return found
