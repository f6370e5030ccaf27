"""``medtest train``: training and evaluation of the bundled networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from medtest.cli.terminal import GroupedCommands, say
from medtest.cli.training.reporter import TrainingReporter
from medtest.cli.training.tokens import from_scratch, parse_scratch, train_anew
from medtest.cli.typed import ConfigDirs
from medtest.core.errors import typed_error

DEFAULT = "network"


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
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of torch in training.")]


@app.command(DEFAULT)
def network(
    tokens: Annotated[
        list[str],
        typer.Argument(help="model=NAME, then suite=NAME data=TRAINING to train further, else phantoms=N, data=DIR …"),
    ],
    config_dir: ConfigDirs = None,
    threads: Threads = None,
) -> None:
    """Train a network: medtest train model=NAME KEY=VALUE … (the word "network" is optional).

    With suite=NAME, this is medtest train further. Without it, or with from=scratch, the compact network of that name
    is trained from random weights, or from the weights from=PATH: on data=FOLDER of images and masks, on phantoms=N, or
    on the seeds of a suite with labels (suite=NAME data=FOLDER from=scratch). Other keys: out=FOLDER, fresh=true,
    steps=, batch=, seed=, device=, mlflow=false; for classifiers recipe=NAME and recipe.KEY=VALUE; for segmentation
    networks rate=, warmup=, size=, sizes=[192,224] and others. An unknown key prints the list of all keys.
    """
    if not from_scratch(tokens):
        further(tokens, config_dir, threads)
        return
    options, out, fresh = parse_scratch(tokens, threads=threads)
    console = Console(highlight=False)
    trained = train_anew(options, out, resume=not fresh, progress=TrainingReporter(console, options.reported))
    best = f"best {options.scored} in validation {trained.best_score:.3f} at step {trained.best_step}"
    say(console, f"{best}: {trained.weights}")


@app.command("further")
def further(tokens: Tokens, config_dir: ConfigDirs = None, threads: Threads = None) -> None:
    """Retrain a network on original and perturbed images, and test it before and after.

    data= is the folder of training images and masks, or one with train/ and test/; test= is the folder of test images.
    Other keys: from=compact or weights, recipe=compact, pranet, sanet, tganet, ssformer or a YAML file,
    recipe.KEY=VALUE, steps=, epochs=, batch=, rate=, precision=, held_out=, out=FOLDER, store=FOLDER (store=none stores
    no follow-ups), compare=false, and any key of a run of the suite.
    """
    from medtest.cli.training.further import train_further_of
    from medtest.cli.training.tokens import parse

    console = Console(highlight=False)
    code = train_further_of(parse(tokens), config_dirs=config_dir or [], threads=threads, console=console)
    raise typer.Exit(int(code))


@app.command("gap")
def gap(tokens: Tokens, config_dir: ConfigDirs = None, threads: Threads = None) -> None:
    """Train a generator of adversarial perturbations against a system (GAP): model=NAME suite=NAME, then KEY=VALUE.

    Training images: phantoms=N, data=FOLDER, or a data set of the suite, on=DATASET; whole patients are held out.
    linf=11 bounds the perturbations, in levels of 255; universal=true learns one for all images; target=LABEL (or
    LABEL|LABEL with several labels per image) is the label to aim for. Other keys: width=8, recipe=compact, attnmel,
    inceptionv3_dr, chexnet or a YAML file, recipe.KEY=VALUE, steps=, epochs=, batch=, rate=, held_out=,
    variant=released, fresh=true, and any key of a run of the suite. The generator is written where the relation gap
    finds it. The same command continues an interrupted training.
    """
    from medtest.cli.training.gap import parse_gap, train_gap

    train_gap(parse_gap(tokens), config_dirs=config_dir or [], threads=threads, console=Console(highlight=False))


@app.command("release-generator")
def release_generator(
    tokens: Tokens,
    commands: Annotated[Path, typer.Option(help="Text file with the training commands, for the card.")],
    note: Annotated[list[str] | None, typer.Option(help="Paragraph to add to the card; repeatable.")] = None,
    phantoms: Annotated[int, typer.Option(min=2, help="Number of unseen phantoms.")] = 400,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Add a trained generator to the package, measured on unseen images, with its card.

    The tokens are those of medtest train gap.
    """
    from medtest.cli.training.gap_release import release_gap

    card = release_gap(tokens, commands=commands, notes=list(note or []), phantoms=phantoms, threads=threads)
    Console(highlight=False).print(card.read_text(encoding="utf-8"), markup=False)


@app.command("table")
def table(
    folder: Annotated[
        list[Path], typer.Argument(help="Folders of further trainings (out=) or runs, or folders that contain some.")
    ],
) -> None:
    """Recompute the before/after tables and pages from records, without training or testing.

    For trainings with defence=, or runs of defended weights, it also makes the table of defences (defences.csv).
    """
    from medtest.cli.training.compare import remake_tables

    remake_tables(folder, console=Console(highlight=False))


@app.command("evaluate")
def evaluate_command(
    model: Annotated[str, typer.Option(help="Name of the system.")] = "pranet",
    data: Annotated[list[Path] | None, typer.Option(help="Folder of images and masks; repeatable.")] = None,
    phantoms: Annotated[int, typer.Option(min=0, help="Number of unseen phantoms.")] = 0,
    checkpoint: Annotated[Path | None, typer.Option(help="Published weights. Default: the compact network.")] = None,
    weights: Annotated[str, typer.Option(help="compact; for classifiers also standard, mpadvt, maadvt.")] = "compact",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
) -> None:
    """Score a network on unchanged images: mean Dice and IoU with 95 % bootstrap intervals."""
    from medtest.training.classification.families import KINDS
    from medtest.training.evaluate import evaluate, folder_images, open_system, phantom_images

    if not data and not phantoms:
        fix = "add --data FOLDER, --phantoms 200, or both"
        raise typed_error("--data", "nothing to evaluate on", fix=fix)
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
    from medtest.training.classification.evaluate import evaluate_phantoms
    from medtest.training.evaluate import open_system

    if data:
        fix = "test classifiers on your images with a suite: medtest run suite=skin_folder model=attnmel data=FOLDER"
        raise typed_error("--data", model, "--phantoms", fix)
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
    weights: Annotated[Path, typer.Option(help=".safetensors file of a training.")],
    commands: Annotated[Path, typer.Option(help="Text file with the training commands, for the card.")],
    data: Annotated[list[Path] | None, typer.Option(help="Folder of real test pairs; repeatable.")] = None,
    phantoms: Annotated[int, typer.Option(min=0, help="Number of unseen phantoms.")] = 200,
    size: Annotated[int | None, typer.Option(help="Input side in pixels, if validation chose another.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Threshold that validation chose.")] = None,
    note: Annotated[list[str] | None, typer.Option(help="Paragraph to add to the card; repeatable.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Add trained weights to the package, scored on unseen images, with a model card."""
    from medtest.training.release import release

    try:
        lines = commands.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        problem = f"{commands} ({error.strerror})"
        raise typed_error("--commands", problem) from error
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
