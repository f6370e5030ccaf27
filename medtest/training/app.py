"""``medtest train``: train the bundled networks again, or others of their classes, and evaluate them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from medtest.training.segmentation import Point

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command("segmentation")
def segmentation(
    network: Annotated[str, typer.Option(help="Compact network: pranet, sanet, tganet or ssformer.")],
    out: Annotated[Path, typer.Option(help="Folder of this training: state, weights, history.")],
    data: Annotated[
        list[Path] | None, typer.Option(help="Folder of images and masks with training pairs; may be repeated.")
    ] = None,
    phantoms: Annotated[int, typer.Option(min=0, help="Number of phantoms to make beside them.")] = 0,
    phantom_negatives: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of phantoms without a polyp; their own by default.")
    ] = None,
    phantom_seed: Annotated[int, typer.Option(help="Suite seed the phantoms are drawn from.")] = 20_000,
    phantom_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of phantoms in a batch, where there are both.")
    ] = 0.4,
    held_out: Annotated[int, typer.Option(min=0, help="Real pairs kept for validation.")] = 40,
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps.")] = 4000,
    batch: Annotated[int, typer.Option(min=2, help="Pairs in a step.")] = 8,
    size: Annotated[int, typer.Option(help="Side in pixels that the trained network takes; a multiple of 32.")] = 256,
    sizes: Annotated[
        list[int] | None, typer.Option(help="Sides that steps draw from; may be repeated. Only --size without.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    last_rate: Annotated[float, typer.Option(help="Share of it left at the end of the cosine.")] = 0.01,
    warmup: Annotated[int, typer.Option(min=0, help="Steps of linear warm-up.")] = 100,
    decay: Annotated[float, typer.Option(min=0, help="Weight decay.")] = 0.05,
    clip: Annotated[float, typer.Option(help="Largest norm of the gradient.")] = 1.0,
    auxiliary: Annotated[float, typer.Option(min=0, help="Weight of the auxiliary maps in the loss.")] = 0.5,
    average: Annotated[float, typer.Option(min=0, max=0.99999, help="Decay of the averaged weights.")] = 0.998,
    seed: Annotated[int, typer.Option(help="Initial weights, order, changes and dropout.")] = 0,
    start_from: Annotated[
        Path | None, typer.Option(help="Weights to start from: a training's folder or a .safetensors file.")
    ] = None,
    backbone_from: Annotated[
        Path | None, typer.Option(help="Weights of ours whose backbone alone to start from, likewise.")
    ] = None,
    exchange: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of images that take another's colours; 0.8 with sanet, else 0."),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on where an interrupted training of this folder stopped.")] = True,
    bf16: Annotated[bool, typer.Option(help="bfloat16 autocast; slower on CPUs without AVX-512.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0 leaves its choice.")] = 0,
    validate_every: Annotated[int, typer.Option(min=1, help="Steps between validations and saved states.")] = 200,
    mlflow: Annotated[bool, typer.Option(help="Log to MLflow (MLFLOW_TRACKING_URI, else ./mlruns).")] = True,
) -> None:
    """Train a compact segmentation network on folders of images and masks, on phantoms, or on both."""
    from pydantic import ValidationError

    from medtest.errors import Mistake, UserMistakes
    from medtest.training.segmentation import SegmentationOptions, train_segmentation

    try:
        options = SegmentationOptions(
            network=network,
            data=list(data or []),
            phantoms=phantoms,
            phantom_share=phantom_share,
            phantom_negatives=phantom_negatives,
            phantom_seed=phantom_seed,
            held_out=held_out,
            steps=steps,
            batch=batch,
            size=size,
            sizes=list(sizes or []),
            rate=rate,
            last_rate=last_rate,
            warmup=warmup,
            decay=decay,
            clip=clip,
            auxiliary=auxiliary,
            average=average,
            seed=seed,
            start_from=start_from,
            backbone_from=backbone_from,
            exchange=exchange,
            bf16=bf16,
            device=device,
            threads=threads,
            validate_every=validate_every,
            mlflow=mlflow,
        )
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
    console = Console(highlight=False)
    result = train_segmentation(options, out, resume=resume, progress=_Reporter(console))
    console.print(f"best mean Dice in validation {result.best_score:.3f} at step {result.best_step}: {result.weights}")


class _Reporter:
    """Prints a line per validation, and a short one now and then in a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, point: Point) -> None:
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
    from medtest.training.evaluate import evaluate, folder_images, open_system, phantom_images

    if not data and not phantoms:
        fix = "add --data FOLDER, --phantoms 200, or both"
        raise UserMistakes([Mistake(where="command line", key="--data", found="nothing to evaluate on", fix=fix)])
    system = open_system(model, checkpoint=str(checkpoint) if checkpoint else None, threads=threads, device=device)
    console = Console(highlight=False)
    sets = [(root.name, folder_images(root)) for root in data or []]
    if phantoms:
        sets.append(("phantoms", phantom_images(phantoms)))
    for name, pairs in sets:
        found = evaluate(system, pairs, name=name)
        console.print(f"{system.record_name} on {name}: Dice {found.dice}, IoU {found.iou}")
    system.close()


@app.command("release")
def release_command(
    network: Annotated[str, typer.Option(help="Compact network: pranet, sanet, tganet or ssformer.")],
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
    from medtest.training.release import release

    try:
        lines = commands.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        found = f"{commands} ({error.strerror})"
        raise UserMistakes([Mistake(where="command line", key="--commands", found=found)]) from error
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
