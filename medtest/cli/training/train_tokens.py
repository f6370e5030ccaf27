"""What is typed after ``medtest train`` for a training from drawn weights: the fields of its options, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.training.recipe_files import typed_value

if TYPE_CHECKING:
    from medtest.training.options import TrainingOptions
    from medtest.training.run import Trained
    from medtest.training.trainer import Progress

SCRATCH = "scratch"
"""What ``from=`` calls weights drawn at random."""
OWN = ("model", "out", "from", "fresh")
Model = TypeVar("Model", bound=BaseModel)


def from_scratch(tokens: Sequence[str]) -> bool:
    """Whether a training starts from drawn weights, or from others without a suite that perturbs its images."""
    sources = [token.removeprefix("from=") for token in tokens if token.startswith("from=")]
    return SCRATCH in sources or not any(token.startswith("suite=") for token in tokens)


def parse_scratch(tokens: Sequence[str], *, threads: int | None = None) -> tuple[TrainingOptions, Path, bool]:
    """Return the options of a training, its folder, and whether an earlier training there is left aside.

    Args:
        tokens: ``KEY=VALUE`` words.
        threads: Threads of torch, where they were typed apart.

    Raises:
        UserMistakes: Something is missing or cannot be.
    """
    from medtest.paths import home
    from medtest.training.further.networks import check_family

    typed = [(key, value) for key, equals, value in (token.partition("=") for token in tokens) if equals]
    own = {key: value for key, value in typed if key in OWN}
    if not own.get("model"):
        allowed = "a network (pranet, attnmel, …)"
        raise Mistake(where="command line", key="model", found="nothing", allowed=allowed).as_error()
    check_family(own["model"])
    kind = options_of(own["model"])
    known = [name for name in kind.model_fields if name not in ("network", "start_from", "change")]
    changes = [token.removeprefix("recipe.") for token in tokens if token.startswith("recipe.")]
    mistakes: list[Mistake] = []
    given: dict[str, Any] = {"network": own["model"]}
    if changes and "change" in kind.model_fields:
        given["change"] = changes
    elif changes:
        found, fix = f"recipe.{changes[0]}", f"its own keys change this training: {', '.join(known)}"
        mistakes.append(Mistake(where="command line", found=found, fix=fix))
    for token in tokens:
        key, equals, value = token.partition("=")
        if key in OWN or key.startswith("recipe."):
            continue
        if not equals or key not in known:
            allowed = f"KEY=VALUE; {', '.join((*OWN, *known))}"
            near = nearest_name(key, (*OWN, *known))
            mistakes.append(Mistake(where="command line", found=token, allowed=allowed, nearest=near))
        elif "list" in str(kind.model_fields[key].annotation):
            several = typed_value(value) if value.startswith("[") else [value]
            given[key] = [*given.get(key, []), *(several if isinstance(several, list) else [several])]
        else:
            given[key] = Path(value).expanduser() if key in ("data", "backbone_from") else value
    if mistakes:
        raise UserMistakes(mistakes)
    if own.get("from", SCRATCH) != SCRATCH:
        given["start_from"] = Path(own["from"]).expanduser()
    if "data" in given and isinstance(given["data"], list):
        given["data"] = [Path(one).expanduser() for one in given["data"]]
    if threads is not None:
        given["threads"] = threads
    out = Path(own["out"]).expanduser() if own.get("out") else home() / "outputs" / "training" / own["model"]
    return checked(kind, given), out, own.get("fresh", "false").lower() == "true"


def options_of(model: str) -> type[TrainingOptions]:
    """Return what a training of a network may be told."""
    from medtest.training.classification.families import KINDS
    from medtest.training.classification.options import ClassificationOptions
    from medtest.training.options import SegmentationOptions

    return ClassificationOptions if model in KINDS else SegmentationOptions


def train_anew(options: TrainingOptions, out: Path, *, resume: bool, progress: Progress) -> Trained:
    """Train from drawn weights, or go on with such a training.

    Args:
        options: What to train and how.
        out: Folder of the training.
        resume: Go on where an interrupted training stopped.
        progress: Called after every step.
    """
    from medtest.training.classification.options import ClassificationOptions
    from medtest.training.options import SegmentationOptions

    if isinstance(options, ClassificationOptions):
        from medtest.training.classification.train import train_classification

        return train_classification(options, out, resume=resume, progress=progress)
    from medtest.training.segmentation.train import train_segmentation

    return train_segmentation(cast(SegmentationOptions, options), out, resume=resume, progress=progress)


def checked(kind: type[Model], given: dict[str, Any], *, dashes: bool = False) -> Model:
    """Return the options that were typed.

    Args:
        kind: The options.
        given: What was typed.
        dashes: Whether they were typed as ``--options``.

    Raises:
        UserMistakes: A value is out of bounds.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise UserMistakes(
            Mistake(
                where="command line",
                key=_name(one["loc"], dashes=dashes),
                found=repr(one["input"]),
                allowed=one["msg"],
            )
            for one in error.errors()
        ) from error


def _name(location: Sequence[Any], *, dashes: bool) -> str:
    name = ".".join(str(step) for step in location)
    return "--" + name.replace("_", "-") if dashes else name
