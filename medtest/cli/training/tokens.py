"""Parsing of the tokens after ``medtest train``, for training from scratch and for further training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error, typed_mistake
from medtest.core.files.paths import typed_folder
from medtest.training.settings.recipe_files import typed_value

if TYPE_CHECKING:
    from medtest.training.engine.trainer import Progress
    from medtest.training.run import Trained
    from medtest.training.settings.options import TrainingOptions

SCRATCH = "scratch"
"""Value of ``from=`` for randomly initialised weights."""
SCENES = "scenes"
"""The network of the bundled picture reader, which is not a system and trains on generated scenes."""
SCRATCH_KEYS = ("model", "out", "from", "fresh")
Model = TypeVar("Model", bound=BaseModel)
FURTHER_KEYS = ("model", "data", "phantoms", "test", "from", "recipe", "out", "store", "label_vectors", "compare")
SHORT = {
    "steps": "steps",
    "epochs": "epochs",
    "batch": "batch",
    "rate": "optimizer.rate",
    "precision": "precision",
    "held_out": "validation.held_out",
    "defence": "defence.name",
}
"""Keys of a recipe that may be typed without ``recipe.``."""
MOST_PHANTOMS = 100_000
TRAIN_NAMES = ("train", "training", "traindataset", "trainset")
TEST_NAMES = ("test", "testing", "testdataset", "testset")


@dataclass(frozen=True, kw_only=True)
class FurtherRequest:
    """Request for further training, as typed.

    Attributes:
        suite: Name of the suite.
        overrides: Overrides of a run (``relations.blur.severities=[3]``, ``device=cuda``).
        model: Name of the network.
        data: Folder of training images and masks; None for phantoms.
        phantoms: Number of phantoms to train a classifier on; 0 for none.
        test: Root of the suite's test images, or None.
        start: ``compact`` or the path of weights.
        recipe: Name or path of a recipe.
        changes: Typed keys of the recipe.
        out: Folder of the training, or None for the usual one.
        store: Folder of the store of follow-ups, None for the usual one; "" for none.
        label_vectors: TGANet's word vectors, or None.
        compare: Whether to test before and after.
    """

    suite: str
    overrides: tuple[str, ...]
    model: str
    data: Path | None
    test: Path | None
    start: str
    recipe: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    out: Path | None = None
    store: str | None = None
    label_vectors: str | None = None
    compare: bool = True
    phantoms: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the system set on the command line."""
        return {"label_vectors": self.label_vectors} if self.label_vectors else {}


def split_recipe(tokens: Sequence[str], short: Mapping[str, str], *prefixes: str) -> tuple[dict[str, Any], list[str]]:
    """Return the typed keys of a recipe with their values, and the other tokens.

    Args:
        tokens: The typed tokens.
        short: Keys of the recipe by those that may be typed for them.
        prefixes: Beginnings of further keys; "recipe." is left out of the key.
    """
    changes: dict[str, Any] = {}
    rest: list[str] = []
    for token in tokens:
        key, equals, value = token.partition("=")
        if equals and (key.startswith(prefixes) or key in short):
            changes[short.get(key, key.removeprefix("recipe."))] = typed_value(value)
        else:
            rest.append(token)
    return changes, rest


def parse(tokens: Sequence[str]) -> FurtherRequest:
    """Parse the tokens.

    Raises:
        UserMistakes: Something is missing or invalid.
    """
    from medtest.cli.typed import split_tokens

    changes, rest = split_recipe(tokens, SHORT, "recipe.", "defence.")
    name, overrides, own, words = split_tokens(rest, *FURTHER_KEYS)
    fix = "medtest train further --help lists the keys"
    mistakes = [typed_mistake("", word, "KEY=VALUE", fix, nearest_name(word, FURTHER_KEYS)) for word in words]
    phantoms = own.get("phantoms") or ""
    if phantoms and not (phantoms.isdecimal() and 1 < int(phantoms) <= MOST_PHANTOMS):
        mistakes.append(typed_mistake("phantoms", phantoms, f"a number from 2 to {MOST_PHANTOMS:,}"))
    if phantoms and own.get("data"):
        mistakes.append(typed_mistake("phantoms", "phantoms= and data=", "one of the two"))
    for key, allowed_value in (("model", "a network (pranet, ssformer, …)"), ("data", "the folder of training pairs")):
        if not own.get(key) and not (key == "data" and phantoms):
            mistakes.append(typed_mistake(key, "nothing", allowed_value))
    test = own.get("test")
    for key in ("data", "test"):
        if own.get(key) and not Path(own[key]).expanduser().is_dir():
            mistakes.append(typed_mistake(key, own[key], "an existing folder"))
    if own.get("compare", "true").lower() not in ("true", "false"):
        mistakes.append(typed_mistake("compare", own["compare"], "true or false"))
    if mistakes:
        raise UserMistakes(mistakes)
    data, found_test = _parted(typed_folder(own["data"])) if own.get("data") else (None, None)
    return FurtherRequest(
        suite=name,
        overrides=tuple(overrides),
        model=own["model"],
        data=data,
        test=typed_folder(test) if test else found_test,
        start=own.get("from") or "compact",
        recipe=own.get("recipe") or "compact",
        changes=changes,
        out=Path(own["out"]).expanduser().resolve() if own.get("out") else None,
        store="" if own.get("store", "").lower() in ("none", "null", "false") else own.get("store"),
        label_vectors=own.get("label_vectors"),
        compare=own.get("compare", "true").lower() == "true",
        phantoms=int(phantoms) if phantoms else 0,
    )


def _parted(root: Path) -> tuple[Path, Path | None]:
    """Return the training and test folders of a root that holds both, else the root and None."""
    inside = {path.name.lower().replace("_", "").replace("-", ""): path for path in root.iterdir() if path.is_dir()}
    train = next((inside[name] for name in TRAIN_NAMES if name in inside), None)
    test = next((inside[name] for name in TEST_NAMES if name in inside), None)
    return (train, test) if train is not None and test is not None else (root, None)


def command_of(request: FurtherRequest) -> str:
    """Return the command without local paths."""
    words = ["medtest train further", f"model={request.model}", f"suite={Path(request.suite).stem}"]
    words.append(f"phantoms={request.phantoms}" if request.phantoms else "data=PATH")
    words += ["test=PATH"] if request.test else []
    words.append("from=compact" if request.start == "compact" else "from=CHECKPOINT")
    words.append(
        f"recipe={Path(request.recipe).stem if request.recipe.endswith(('.yaml', '.yml')) else request.recipe}"
    )
    words += [f"recipe.{key}={value}" for key, value in request.changes.items()]
    words += [
        override for override in request.overrides if not any(mark in override.partition("=")[2] for mark in "/\\~:")
    ]
    return " ".join(words)


def from_scratch(tokens: Sequence[str]) -> bool:
    """Return True for training from random weights, or from given ones without a suite that perturbs its images."""
    sources = [token.removeprefix("from=") for token in tokens if token.startswith("from=")]
    return SCRATCH in sources or not any(token.startswith("suite=") for token in tokens)


def parse_scratch(tokens: Sequence[str], *, threads: int | None = None) -> tuple[TrainingOptions, Path, bool]:
    """Return the options of a training run, its folder, and whether to ignore an earlier run there.

    Args:
        tokens: ``KEY=VALUE`` words.
        threads: Threads of torch, if typed separately.

    Raises:
        UserMistakes: Something is missing or invalid.
    """
    from medtest.core.files.paths import home
    from medtest.training.further.networks import check_family

    typed = [(key, value) for key, equals, value in (token.partition("=") for token in tokens) if equals]
    own = {key: value for key, value in typed if key in SCRATCH_KEYS}
    if not own.get("model"):
        raise typed_error("model", "nothing", "a network (pranet, attnmel, …)")
    check_family(own["model"], others=(SCENES,))
    kind = options_of(own["model"])
    names = [name for name in kind.model_fields if name not in ("network", "start_from", "change")]
    changes = [token.removeprefix("recipe.") for token in tokens if token.startswith("recipe.")]
    mistakes: list[Mistake] = []
    values: dict[str, Any] = {"network": own["model"]}
    if changes and "change" in kind.model_fields:
        values["change"] = changes
    elif changes:
        mistakes.append(
            typed_mistake("", f"recipe.{changes[0]}", fix=f"use the keys of this training: {', '.join(names)}")
        )
    for token in tokens:
        key, equals, value = token.partition("=")
        if key in SCRATCH_KEYS or key.startswith("recipe."):
            continue
        if not equals or key not in names:
            allowed = f"KEY=VALUE; {', '.join((*SCRATCH_KEYS, *names))}"
            mistakes.append(typed_mistake("", token, allowed, nearest=nearest_name(key, (*SCRATCH_KEYS, *names))))
        elif "list" in str(kind.model_fields[key].annotation):
            several = typed_value(value) if value.startswith("[") else [value]
            values[key] = [*values.get(key, []), *(several if isinstance(several, list) else [several])]
        else:
            values[key] = Path(value).expanduser() if key in ("data", "backbone_from") else value
    if mistakes:
        raise UserMistakes(mistakes)
    if own.get("from", SCRATCH) != SCRATCH:
        values["start_from"] = Path(own["from"]).expanduser()
    if "data" in values and isinstance(values["data"], list):
        values["data"] = [Path(path).expanduser() for path in values["data"]]
    if threads is not None:
        values["threads"] = threads
    out = Path(own["out"]).expanduser() if own.get("out") else home() / "outputs" / "training" / own["model"]
    return _checked(kind, values), out, own.get("fresh", "false").lower() == "true"


def options_of(model: str) -> type[TrainingOptions]:
    """Return the class of options for training a network."""
    from medtest.training.classification.families import KINDS
    from medtest.training.classification.options import ClassificationOptions
    from medtest.training.scenes.options import SceneOptions
    from medtest.training.settings.options import SegmentationOptions

    if model == SCENES:
        return SceneOptions
    return ClassificationOptions if model in KINDS else SegmentationOptions


def train_anew(options: TrainingOptions, out: Path, *, resume: bool, progress: Progress) -> Trained:
    """Train from random weights, or continue such a run.

    Args:
        options: Options of the training.
        out: Folder of the training.
        resume: Whether to continue an interrupted run.
        progress: Called after every step.

    Raises:
        UserMistakes: The folder has other content.
    """
    from medtest.core.files.written import claim
    from medtest.runner.folder import output_problems
    from medtest.training.run import train

    with output_problems(out):
        claim(out, "out")
    return train(options, out, resume=resume, progress=progress)


def _checked(kind: type[Model], values: dict[str, Any]) -> Model:
    """Return the validated options.

    Raises:
        UserMistakes: A value is out of bounds.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UserMistakes(
            typed_mistake(".".join(map(str, detail["loc"])), repr(detail["input"]), detail["msg"])
            for detail in error.errors()
        ) from error
