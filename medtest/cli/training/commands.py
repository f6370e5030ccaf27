"""``medtest train``: train the bundled networks again, or others of their classes, and evaluate them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from pydantic import BaseModel
from rich.console import Console

from medtest.cli.terminal import GroupedCommands
from medtest.cli.training.reporter import TrainingReporter
from medtest.cli.training.tokens import checked, from_scratch, parse_scratch, train_anew
from medtest.training.classification.options import ClassificationOptions
from medtest.training.settings.options import SegmentationOptions, TrainingOptions

DEFAULT = "network"
SHARED = set(TrainingOptions.model_fields) - {"network"}


class TrainCommands(GroupedCommands):
    """Command group that accepts ``medtest train model=NAME …`` for ``medtest train network model=NAME …``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command's name if it is missing."""
        named = bool(args) and args[0] in self.commands
        if not named and any("=" in word and not word.startswith("-") for word in args):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=TrainCommands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)

Tokens = Annotated[
    list[str],
    typer.Argument(help="model=NAME suite=NAME data=TRAINING [test=FOLDER] [from=CHECKPOINT] [recipe=NAME] …"),
]
ConfigDirs = Annotated[list[Path] | None, typer.Option("--config-dir", help="A folder like conf/ of your own.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of torch in training.")]
Out = Annotated[Path, typer.Option(help="Folder of this training: cases, state, weights, history.")]
Resume = Annotated[bool, typer.Option(help="Go on where an interrupted training of this folder stopped.")]
Command: TypeAlias = Callable[..., None]


def with_options(options: type[BaseModel]) -> Callable[[Command], Command]:
    """Give a command an option for each field of a model, with its type, default and description.

    The command takes them as ``**given`` and validates them with the model.

    Args:
        options: The model.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        parameters = [parameter for name, parameter in own.items() if name != "given"]
        fields = sorted(options.model_fields.items(), key=lambda field: field[0] in SHARED)
        for name, field in fields:
            default = ... if field.is_required() else field.get_default(call_default_factory=True)
            option = typer.Option(default, help=field.description)
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(name, keyword, default=option, annotation=field.annotation))
        command.__dict__["__signature__"] = inspect.Signature(parameters)
        return command

    return decorate


@app.command(DEFAULT)
def network(
    tokens: Annotated[
        list[str],
        typer.Argument(help="model=NAME, then suite=NAME data=TRAINING to train further, else phantoms=N, data=DIR …"),
    ],
    config_dir: ConfigDirs = None,
    threads: Threads = None,
) -> None:
    """Train a network: medtest train model=NAME KEY=VALUE … (this word may be left out).

    With suite= it is trained further, as under "further". Without, or with from=scratch, the compact network of that
    name is trained from drawn weights, or from those of from=PATH: on data=FOLDER of images and masks, on phantoms=N,
    or on the seeds of a suite of labels (suite=NAME data=FOLDER from=scratch). Further keys: out=FOLDER, fresh=true,
    steps=, batch=, seed=, device=, mlflow=false; recipe=NAME and recipe.KEY=VALUE of classifiers; rate=, warmup=,
    size=, sizes=[192,224] and others of segmentation networks. A wrong key lists them all.
    """
    if not from_scratch(tokens):
        further(tokens, config_dir, threads)
        return
    options, out, fresh = parse_scratch(tokens, threads=threads)
    _train(options, out, resume=not fresh)


@app.command("further")
def further(tokens: Tokens, config_dir: ConfigDirs = None, threads: Threads = None) -> None:
    """Train a network further on its images and as many perturbed ones, then test it before and after.

    data= is the folder of training images and masks (or one that holds train/ and test/); test= is what the suite
    tests on. Further keys: from=compact or weights, recipe=compact, pranet, sanet, tganet, ssformer or a YAML file,
    recipe.KEY=VALUE, steps=, epochs=, batch=, rate=, precision=, held_out=, out=FOLDER, store=FOLDER (store=none keeps
    no follow-ups), compare=false, and anything a run of the suite takes.
    """
    from medtest.cli.training.further import train_further_of
    from medtest.cli.training.tokens import parse

    console = Console(highlight=False)
    code = train_further_of(parse(tokens), config_dirs=config_dir or [], threads=threads, console=console)
    raise typer.Exit(int(code))


@app.command("gap")
def gap(tokens: Tokens, config_dir: ConfigDirs = None, threads: Threads = None) -> None:
    """Train a generator of adversarial perturbations against a system (GAP): model=NAME suite=NAME, then KEY=VALUE.

    It is trained on phantoms=N, on data=FOLDER, or on one of the suite's data sets, on=DATASET; whole patients are held
    out. linf=11 bounds its perturbations, in levels of 255; universal=true gives one for all images; target=LABEL (or
    LABEL|LABEL where several hold) leads towards labels. Further keys: width=8, recipe=compact, attnmel,
    inceptionv3_dr, chexnet or a YAML file, recipe.KEY=VALUE, steps=, epochs=, batch=, rate=, held_out=,
    variant=released, fresh=true, and anything a run of the suite takes. It finds its place by system, data and
    settings, where the relation gap looks for it; the same command goes on with a training that was interrupted.
    """
    from medtest.cli.training.gap import parse_gap, train_gap

    train_gap(parse_gap(tokens), config_dirs=config_dir or [], threads=threads, console=Console(highlight=False))


@app.command("release-generator")
def release_generator(
    tokens: Tokens,
    commands: Annotated[Path, typer.Option(help="Text file with the commands that made it, for the card.")],
    note: Annotated[list[str] | None, typer.Option(help="A further paragraph of the card; may be repeated.")] = None,
    phantoms: Annotated[int, typer.Option(min=2, help="Number of unseen phantoms.")] = 400,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Add a trained generator to the package, measured on unseen images, with its card.

    The words are those after which medtest train gap trained it.
    """
    from medtest.cli.training.gap_release import release_gap

    card = release_gap(tokens, commands=commands, notes=list(note or []), phantoms=phantoms, threads=threads)
    Console(highlight=False).print(card.read_text(encoding="utf-8"), markup=False)


@app.command("table")
def table(
    folder: Annotated[
        list[Path], typer.Argument(help="Folder of a further training (out=) or of a run, or any folder above some.")
    ],
) -> None:
    """Make the before/after tables and pages again from records, without training or testing.

    Over trainings with defence=, or runs of weights trained so, it makes the table of defences too (defences.csv).
    """
    from medtest.cli.training.compare import remake_tables

    remake_tables(folder, console=Console(highlight=False))


@app.command("segmentation")
@with_options(SegmentationOptions)
def segmentation(*, out: Out, resume: Resume = True, **given: Any) -> None:
    """The older form of medtest train model=…: a compact segmentation network from drawn weights."""
    _older("segmentation", checked(SegmentationOptions, given, dashes=True), out, resume=resume)


@app.command("classification")
@with_options(ClassificationOptions)
def classification(*, out: Out, resume: Resume = True, **given: Any) -> None:
    """The older form of medtest train model=…: a classifier from drawn weights."""
    _older("classification", checked(ClassificationOptions, given, dashes=True), out, resume=resume)


def _older(name: str, options: TrainingOptions, out: Path, *, resume: bool) -> None:
    text = f"medtest train {name} is an older name of medtest train model={options.network} …; it keeps working."
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
    _train(options, out, resume=resume)


def _train(options: TrainingOptions, out: Path, *, resume: bool) -> None:
    console = Console(highlight=False)
    trained = train_anew(options, out, resume=resume, progress=TrainingReporter(console, options.reported))
    best = f"best {options.scored} in validation {trained.best_score:.3f} at step {trained.best_step}"
    console.print(f"{best}: {trained.weights}", markup=False, soft_wrap=True)


@app.command("evaluate")
def evaluate_command(
    model: Annotated[str, typer.Option(help="System, as model= names it.")] = "pranet",
    data: Annotated[list[Path] | None, typer.Option(help="Folder of images and masks; may be repeated.")] = None,
    phantoms: Annotated[int, typer.Option(min=0, help="Number of unseen phantoms.")] = 0,
    checkpoint: Annotated[Path | None, typer.Option(help="Published weights; the compact network without.")] = None,
    weights: Annotated[str, typer.Option(help="compact, or a classifier's standard, mpadvt, maadvt.")] = "compact",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
) -> None:
    """Score a network on unchanged images: mean Dice and IoU with 95 % bootstrap intervals."""
    from medtest.core.errors import Mistake
    from medtest.training.classification.families import KINDS
    from medtest.training.evaluate import evaluate, folder_images, open_system, phantom_images

    if not data and not phantoms:
        fix = "add --data FOLDER, --phantoms 200, or both"
        raise Mistake(where="command line", key="--data", found="nothing to evaluate on", fix=fix).as_error()
    if model in KINDS:
        _evaluate_classifier(model, data, phantoms, checkpoint, weights, threads, device)
        return
    system = open_system(model, checkpoint=str(checkpoint) if checkpoint else None, threads=threads, device=device)
    console = Console(highlight=False)
    sets = [(root.name, folder_images(root)) for root in data or []]
    if phantoms:
        sets.append(("phantoms", phantom_images(phantoms)))
    for name, pairs in sets:
        scores = evaluate(system, pairs, name=name)
        console.print(f"{system.record_name} on {name}: Dice {scores.dice}, IoU {scores.iou}")
    system.close()


def _evaluate_classifier(
    model: str,
    data: list[Path] | None,
    phantoms: int,
    checkpoint: Path | None,
    weights: str,
    threads: int,
    device: str,
) -> None:
    from medtest.core.errors import Mistake
    from medtest.training.classification.evaluate import evaluate_phantoms
    from medtest.training.evaluate import open_system

    if data:
        fix = "a suite tests a classifier on images of yours: python run.py suite=skin_folder model=attnmel data=FOLDER"
        raise Mistake(where="command line", key="--data", found=model, allowed="--phantoms", fix=fix).as_error()
    path = str(checkpoint) if checkpoint else None
    settings = {"input": "as_is", "weights": weights}
    system = open_system(model, checkpoint=path, threads=threads, device=device, settings=settings)
    scores = evaluate_phantoms(system, phantoms)
    console = Console(highlight=False)
    console.print(f"{system.record_name} on {scores.count} phantoms: {scores}", markup=False, soft_wrap=True)
    for name, value in scores.classes.items():
        console.print(f"  {name:20} {value:.3f}", markup=False)
    system.close()


@app.command("release")
def release_command(
    network: Annotated[str, typer.Option(help="Compact network: pranet, ssformer, dsinet, attnmel …")],
    weights: Annotated[Path, typer.Option(help="The .safetensors file that a training wrote.")],
    commands: Annotated[Path, typer.Option(help="Text file with the commands that made it, for the card.")],
    data: Annotated[list[Path] | None, typer.Option(help="Folder of real test pairs; may be repeated.")] = None,
    phantoms: Annotated[int, typer.Option(min=0, help="Number of unseen phantoms.")] = 200,
    size: Annotated[int | None, typer.Option(help="Side it takes, where validation found another.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Threshold that validation found.")] = None,
    note: Annotated[list[str] | None, typer.Option(help="A further paragraph of the card; may be repeated.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Add trained weights to the package, scored on unseen images, with their model card."""
    from medtest.core.errors import Mistake
    from medtest.training.release import release

    try:
        lines = commands.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        problem = f"{commands} ({error.strerror})"
        raise Mistake(where="command line", key="--commands", found=problem).as_error() from error
    card = release(
        network,
        weights,
        commands=[line for line in lines if line.strip()],
        data=list(data or []),
        phantoms=phantoms,
        size=size,
        threshold=threshold,
        notes=list(note or []),
        threads=threads,
    )
    Console(highlight=False).print(card.read_text(encoding="utf-8"), markup=False)
