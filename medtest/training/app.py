"""``medtest train``: train the bundled networks again, or others of their classes, and evaluate them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console

from medtest.training.classification.options import ClassificationOptions
from medtest.training.options import SegmentationOptions

if TYPE_CHECKING:
    from medtest.training.classification.job import ClassifierStep
    from medtest.training.segmentation import SegmentationStep

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


Command: TypeAlias = Callable[..., None]
Model = TypeVar("Model", bound=BaseModel)


def with_options(options: type[BaseModel]) -> Callable[[Command], Command]:
    """Give a command an option for each field of a model, with its type, default and description.

    The command takes them as ``**given`` and makes the model of them, which then says what is wrong with any.

    Args:
        options: The model.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [one for one in own if not str(one).startswith("**")]
        for name, field in options.model_fields.items():
            default = ... if field.is_required() else field.get_default(call_default_factory=True)
            option = typer.Option(default, help=field.description)
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(name, keyword, default=option, annotation=field.annotation))
        command.__dict__["__signature__"] = inspect.Signature(parameters)
        return command

    return decorate


def checked(kind: type[Model], given: dict[str, Any]) -> Model:
    """Return the options that were typed.

    Raises:
        UserMistakes: A value is out of bounds.
    """
    from pydantic import ValidationError

    from medtest.errors import Mistake, UserMistakes

    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise UserMistakes(
            Mistake(
                where="command line",
                key="--" + ".".join(str(step) for step in one["loc"]).replace("_", "-"),
                found=repr(one["input"]),
                allowed=one["msg"],
            )
            for one in error.errors()
        ) from error


@app.command("segmentation")
@with_options(SegmentationOptions)
def segmentation(
    *,
    out: Annotated[Path, typer.Option(help="Folder of this training: state, weights, history.")],
    resume: Annotated[bool, typer.Option(help="Go on where an interrupted training of this folder stopped.")] = True,
    **given: Any,
) -> None:
    """Train a compact segmentation network on folders of images and masks, on phantoms, or on both."""
    from medtest.training.segmentation import train_segmentation

    options = checked(SegmentationOptions, given)
    console = Console(highlight=False)
    result = train_segmentation(options, out, resume=resume, progress=_Reporter(console))
    console.print(f"best mean Dice in validation {result.best_score:.3f} at step {result.best_step}: {result.weights}")


@app.command("classification")
@with_options(ClassificationOptions)
def classification(
    *,
    out: Annotated[Path, typer.Option(help="Folder of this training: cases, state, weights, history.")],
    resume: Annotated[bool, typer.Option(help="Go on where an interrupted training of this folder stopped.")] = True,
    **given: Any,
) -> None:
    """Train a classifier on phantoms or on the seeds of a suite."""
    from medtest.training.classification.train import train_classification

    console = Console(highlight=False)
    options = checked(ClassificationOptions, given)
    result = train_classification(options, out, resume=resume, progress=_Told(console))
    console.print(
        f"best score in validation {result.best_score:.3f} at step {result.best_step}: {result.weights}",
        markup=False,
        soft_wrap=True,
    )


class _Told:
    """Prints a line per validation of a classifier, and a short one now and then in a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, point: ClassifierStep) -> None:
        head = f"step {point.step}/{point.steps}  loss {point.loss:.3f}"
        if point.validation:
            scores = ", ".join(f"{name} {score:.3f}" for name, score in point.validation.items())
            self._console.print(f"{head}  held out: {scores}  best {point.best:.3f}", soft_wrap=True)
        elif point.step % 20 == 0 and self._console.is_terminal:
            self._console.print(head)


class _Reporter:
    """Prints a line per validation, and a short one now and then in a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, point: SegmentationStep) -> None:
        if point.validation:
            scores = ", ".join(f"{kind} {score:.3f}" for kind, score in point.validation.items())
            head = f"step {point.step}/{point.steps}  loss {point.loss:.3f}"
            self._console.print(f"{head}  validation Dice {scores}  best {point.best:.3f}")
        elif point.step % 20 == 0 and self._console.is_terminal:
            self._console.print(f"step {point.step}/{point.steps}  loss {point.loss:.3f}  rate {point.rate:.2e}")


@app.command("evaluate")
def evaluate_command(
    model: Annotated[str, typer.Option(help="System, as model= names it.")] = "pranet",
    data: Annotated[list[Path] | None, typer.Option(help="Folder of images and masks; may be repeated.")] = None,
    phantoms: Annotated[int, typer.Option(min=0, help="Number of unseen phantoms.")] = 0,
    checkpoint: Annotated[Path | None, typer.Option(help="Published weights; the compact network without.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
) -> None:
    """Score a network on unchanged images: mean Dice and IoU with 95 % bootstrap intervals."""
    from medtest.errors import Mistake, UserMistakes
    from medtest.training.classification.families import KINDS
    from medtest.training.evaluate import evaluate, folder_images, open_system, phantom_images

    if not data and not phantoms:
        fix = "add --data FOLDER, --phantoms 200, or both"
        raise UserMistakes([Mistake(where="command line", key="--data", found="nothing to evaluate on", fix=fix)])
    if model in KINDS:
        _evaluate_classifier(model, data, phantoms, checkpoint, threads, device)
        return
    system = open_system(model, checkpoint=str(checkpoint) if checkpoint else None, threads=threads, device=device)
    console = Console(highlight=False)
    sets = [(root.name, folder_images(root)) for root in data or []]
    if phantoms:
        sets.append(("phantoms", phantom_images(phantoms)))
    for name, pairs in sets:
        found = evaluate(system, pairs, name=name)
        console.print(f"{system.record_name} on {name}: Dice {found.dice}, IoU {found.iou}")
    system.close()


def _evaluate_classifier(
    model: str, data: list[Path] | None, phantoms: int, checkpoint: Path | None, threads: int, device: str
) -> None:
    from medtest.errors import Mistake, UserMistakes
    from medtest.training.classification.release import evaluate_phantoms
    from medtest.training.evaluate import open_system

    if data:
        fix = "a suite tests a classifier on images of yours: python run.py suite=skin_folder model=attnmel data=FOLDER"
        raise UserMistakes([Mistake(where="command line", key="--data", found=model, allowed="--phantoms", fix=fix)])
    given = str(checkpoint) if checkpoint else None
    system = open_system(model, checkpoint=given, threads=threads, device=device, settings={"input": "as_is"})
    found = evaluate_phantoms(system, phantoms)
    console = Console(highlight=False)
    console.print(f"{system.record_name} on {found.count} phantoms: {found}", markup=False, soft_wrap=True)
    for name, value in found.classes.items():
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
    """Put trained weights into the package: copied, scored on unseen images, with their model card."""
    from medtest.errors import Mistake, UserMistakes
    from medtest.training.classification.families import KINDS
    from medtest.training.classification.release import release_classifier
    from medtest.training.release import release

    try:
        lines = commands.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        found = f"{commands} ({error.strerror})"
        raise UserMistakes([Mistake(where="command line", key="--commands", found=found)]) from error
    if network in KINDS:
        card = release_classifier(
            network,
            weights,
            commands=[line for line in lines if line.strip()],
            phantoms=phantoms,
            notes=list(note or []),
            threads=threads,
        )
        Console(highlight=False).print(card.read_text(encoding="utf-8"), markup=False)
        return
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
