"""``medtest train further``: train on originals and perturbed images, then test before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from medtest.cli.further_folder import device_of, flat, folder_of, load_suite_of, locked_folder, tracked
from medtest.cli.further_tokens import FurtherRequest, command_of, parse
from medtest.cli.help_groups import GroupedCommands
from medtest.errors import ExitCode, Mistake, UserMistakes

if TYPE_CHECKING:
    from medtest.cli.further_compare import ComparedSystems
    from medtest.suite.compose import Loaded
    from medtest.suite.model import Invocation
    from medtest.training.further.leak import Print
    from medtest.training.further.log import FurtherLog
    from medtest.training.further.material import TrainingMaterial
    from medtest.training.further.networks import Start
    from medtest.training.further.recipe import Recipe
    from medtest.training.further.train import FurtherStep, FurtherTrained

app = typer.Typer(cls=GroupedCommands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command("further")
def further(
    tokens: Annotated[
        list[str],
        typer.Argument(help="model=NAME suite=NAME data=TRAINING [test=FOLDER] [from=CHECKPOINT] [recipe=NAME] …"),
    ],
    config_dir: Annotated[
        list[Path] | None, typer.Option("--config-dir", help="A folder like conf/ of your own.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of torch in training.")] = None,
) -> None:
    """Train a network further on its images and as many perturbed ones, then test it before and after.

    data= is the folder of training images and masks (or one that holds train/ and test/); test= is what the suite
    tests on. Further keys: from=compact or weights, recipe=compact, pranet, sanet, tganet, ssformer or a YAML file,
    recipe.KEY=VALUE, steps=, epochs=, batch=, rate=, precision=, held_out=, out=FOLDER, store=FOLDER (store=none keeps
    no follow-ups), compare=false, and anything a run of the suite takes.
    """
    console = Console(highlight=False)
    request = parse(tokens)
    if request.model in label_families():
        from medtest.cli.further_labels import run_labels

        raise typer.Exit(int(run_labels(request, config_dirs=config_dir or [], threads=threads, console=console)))
    if request.data is None:
        found = [Mistake(where="command line", key="phantoms", found=request.model, allowed="a classifier")]
        raise UserMistakes(found)
    raise typer.Exit(int(run(request, config_dirs=config_dir or [], threads=threads, console=console)))


@app.command("table")
def table(
    folder: Annotated[Path, typer.Argument(help="Folder of a further training (out=), or any folder above some.")],
) -> None:
    """Make the before/after tables and pages again from records, without training or testing."""
    from medtest.cli.further_compare import remake_tables

    remake_tables(folder, console=Console(highlight=False))


def run(request: FurtherRequest, *, config_dirs: Sequence[Path], threads: int | None, console: Console) -> ExitCode:
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
    from medtest.suite.compose import needs_data
    from medtest.training.further.engine import precision_of
    from medtest.training.further.networks import check_family, open_start
    from medtest.training.further.recipe import load_recipe

    check_family(request.model)
    recipe = load_recipe(request.recipe, request.changes)
    loaded = load_suite_of(request, config_dirs)
    settings = {"label_vectors": request.label_vectors} if request.label_vectors else {}
    start = open_start(request.model, request.start, settings=settings)
    invocation = invocation_of(loaded, command_of(request))
    device = device_of(invocation.device)
    precision_of(recipe, device)  # said before follow-ups are made
    out = folder_of(request, invocation.home, network=start.name, recipe=recipe.name)
    testable = request.test is not None or not needs_data(loaded.suite)
    job = _Job(
        request=request,
        loaded=loaded,
        recipe=recipe,
        start=start,
        invocation=invocation,
        device=device,
        out=out,
        threads=threads or invocation.threads,
        testable=testable,
        console=console,
    )
    return job.run()


def label_families() -> tuple[str, ...]:
    """Return the names of the classifiers that can be trained."""
    from medtest.training.classification.families import KINDS

    return tuple(KINDS)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Job:
    request: FurtherRequest
    loaded: Loaded
    recipe: Recipe
    start: Start
    invocation: Invocation
    device: str
    out: Path
    threads: int | None
    testable: bool
    console: Console

    def run(self) -> ExitCode:
        """Check, train, compare."""
        from medtest.runner.parts import Parts
        from medtest.training.further.material import training_prints, training_suite

        say = self.console.print
        parts = Parts(training_suite(self.loaded.suite), self.request.data, self.invocation.batch_size)
        prints = training_prints(parts)
        say(f"{len(prints)} training pictures; {self._apart(prints)}", markup=False, soft_wrap=True)
        with locked_folder(self.out, fresh=self.invocation.fresh, console=self.console):
            return self._locked(parts, prints)

    def _locked(self, parts: Any, prints: Mapping[str, Print]) -> ExitCode:
        from medtest.training.further.train import check_state

        material = self._material(parts, prints)
        check_state(self.start, material, self.recipe, self.out)
        suite, network, recipe = self.loaded.suite, self.start.name, self.recipe.name
        with tracked(suite, self.invocation, self.out, network=network, recipe=recipe, console=self.console) as log:
            trained = self._train(material, log)
            compared = self._compare(trained, log)
        return ExitCode.OK if compared is None else compared.code

    def _apart(self, prints: Mapping[str, Print]) -> str:
        """Refuse training pictures that are test seeds."""
        from medtest.training.further.leak import prints_of, refuse_shared, shared_images

        if not self.testable:
            return "no test seeds were named (test=FOLDER), so nothing is tested before and after"
        sources = self.loaded.suite.build_seeds(self.invocation.data)
        how = self.loaded.suite.prepare
        tested = list(prints_of(sources, size=how.size, resize=how.resize))
        refuse_shared(shared_images(prints, tested))
        return f"none of them is among the {len(tested)} test seeds."

    def _material(self, parts: Any, prints: Mapping[str, Print]) -> TrainingMaterial:
        """Draw the perturbed images, or take them from where they lie."""
        import cv2

        from medtest.followups import default_folder
        from medtest.training.further.material import prepare_material

        cv2.setNumThreads(1)
        kept = self.request.store
        store = default_folder() if kept is None else Path(kept).expanduser() if kept else None
        if self.loaded.suite.privacy.seed_ids == "hashed":
            store = None  # what is drawn here is known by plain ids, which such a suite keeps out of shared folders
        material = prepare_material(
            parts,
            prints,
            self.recipe,
            size=self.recipe.size or self.start.size,
            folder=self.out,
            store=store,
            progress=_Reporter(self.console).drawing,
        )
        counts = material.counts
        self.console.print(
            f"{counts['originals']} originals and {counts['perturbed']} perturbed images train, "
            f"{counts['held_clean']} and {counts['held_perturbed']} watch "
            f"({counts['made']} follow-ups made, {counts['reused']} from the store, {counts['replaced']} draws without "
            "room replaced).",
            markup=False,
            soft_wrap=True,
        )
        return material

    def _train(self, material: TrainingMaterial, log: FurtherLog | None) -> FurtherTrained:
        from medtest.training.further.train import FACTS, HISTORY, train_further

        if log is not None:
            options = self.recipe.model_dump(mode="json", exclude={"notes", "summary", "source"})
            counts = {f"pairs_{kind}": count for kind, count in material.counts.items()}
            log.params({**flat(options), **counts, "from": self.start.sha256})
        trained = train_further(
            self.start,
            material,
            self.recipe,
            self.out,
            device=self.device,
            threads=self.threads,
            log=log,
            progress=_Reporter(self.console),
        )
        if log is not None:
            log.attach([trained.weights, self.out / FACTS, self.out / HISTORY])
            log.end_training(failed=False)
        how = "stopped early, " if trained.stopped_early else ""
        self.console.print(
            f"{how}{trained.steps} steps; the weights of step {trained.step} are kept: {trained.weights.name}",
            markup=False,
            soft_wrap=True,
        )
        if trained.step == 0:
            self.console.print(
                "Nothing was better on held-out pairs than the start, which is kept.", markup=False, soft_wrap=True
            )
        return trained

    def _compare(self, trained: FurtherTrained, log: FurtherLog | None) -> ComparedSystems | None:
        if not self.request.compare:
            return None
        if not self.testable:
            self.console.print(
                "Add test=FOLDER to this command and it tests before and after.", markup=False, soft_wrap=True
            )
            return None
        from medtest.cli.further_compare import compare

        return compare(
            self.loaded.suite,
            self.invocation,
            model=self.request.model,
            network=self.start.name,
            before=self.start.checkpoint,
            after=trained.weights,
            settings={"label_vectors": self.request.label_vectors} if self.request.label_vectors else {},
            out=self.out,
            log=log,
            console=self.console,
        )


class _Reporter:
    """Prints a line per validation, and a short one now and then in a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def drawing(self, done: int, total: int) -> None:
        """Tell how far making the perturbed images is."""
        if self._console.is_terminal and (done % 20 == 0 or done == total):
            self._console.print(f"perturbed images of {done}/{total} pictures", markup=False, soft_wrap=True)

    def __call__(self, point: FurtherStep) -> None:
        if point.validation:
            found = point.validation
            kinds = [kind for kind in ("clean", "perturbed") if f"dice_{kind}" in found]
            scores = ", ".join(f"{kind} {found[f'dice_{kind}']:.3f}" for kind in kinds)
            head = f"step {point.step}/{point.steps}" + ("" if point.step == 0 else f"  loss {point.loss:.3f}")
            tail = f"best {point.best_score:.3f} at step {point.best_step}"
            self._console.print(f"{head}  held-out Dice {scores}  {tail}", markup=False, soft_wrap=True)
        elif point.step % 20 == 0 and self._console.is_terminal:
            self._console.print(
                f"step {point.step}/{point.steps}  loss {point.loss:.3f}  rate {point.rate:.2e}", markup=False
            )
