"""``medtest train gap``: train a generator of adversarial perturbations against a system, for the relation ``gap``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from medtest.cli.training.reporter import TrainingReporter
from medtest.cli.training.tokens import MOST_PHANTOMS, SHORT, split_recipe
from medtest.core.errors import MedtestError, UserMistakes, nearest_name, typed_error, typed_mistake

if TYPE_CHECKING:
    from medtest.core.cases import Classes
    from medtest.relations.adversarial.generators.files import GeneratorInfo, GeneratorSettings
    from medtest.suite.compose import Loaded
    from medtest.suite.model import Invocation, Suite
    from medtest.systems.base import System
    from medtest.training.classification.cases import LabelledSet
    from medtest.training.engine.log import TrainingLog
    from medtest.training.generators.recipe import GeneratorRecipe
    from medtest.training.generators.task import GeneratorObjective
    from medtest.training.run import Trained

KEYS = ("phantoms", "on", "linf", "universal", "target", "variant", "recipe", "width")
OF_RECIPE = {**SHORT, "held_out": "watching.held_out", "width": "width"}
MOST_LEVELS = 255.0


@dataclass(frozen=True, kw_only=True)
class GapRequest:
    """The typed request.

    Attributes:
        suite: Name of the suite.
        overrides: Overrides of a run (``model=attnmel``, ``data=FOLDER``, ``device=cuda``).
        settings: Settings of the generator.
        phantoms: Number of phantoms to train on; 0 for none.
        dataset: The suite's data set to train on; "" for phantoms, or the folder of ``data=``.
        recipe: Name or path of a recipe.
        changes: Typed keys of the recipe.
    """

    suite: str
    overrides: tuple[str, ...]
    settings: GeneratorSettings
    phantoms: int = 0
    dataset: str = ""
    recipe: str = "compact"
    changes: Mapping[str, Any] = field(default_factory=dict)


def parse_gap(tokens: Sequence[str]) -> GapRequest:
    """Parse the tokens after ``medtest train gap``.

    Raises:
        UserMistakes: Something is missing or invalid.
    """
    from medtest.cli.typed import split_tokens
    from medtest.relations.adversarial.generators.files import GeneratorSettings
    from medtest.training.settings.recipe_files import typed_value

    changes, rest = split_recipe(tokens, OF_RECIPE, "recipe.")
    name, overrides, own, words = split_tokens(rest, *KEYS)
    mistakes = [typed_mistake("", word, "KEY=VALUE", nearest=nearest_name(word, KEYS)) for word in words]
    if not any(token.startswith(("model=", "systems=")) for token in overrides):
        fix = "a generator is trained against one system: model=attnmel"
        mistakes.append(typed_mistake("model", "nothing", "a system", fix))
    phantoms = own.get("phantoms", "0")
    if not (phantoms.isdecimal() and int(phantoms) <= MOST_PHANTOMS and int(phantoms) != 1):
        allowed = f"a number from 2 to {MOST_PHANTOMS:,}"
        mistakes.append(typed_mistake("phantoms", phantoms, allowed))
    if own.get("phantoms") and own.get("on"):
        mistakes.append(typed_mistake("phantoms", "on= too", "one of the two"))
    linf = typed_value(own.get("linf", "11"))
    if isinstance(linf, bool) or not isinstance(linf, int | float) or not 0 < linf <= MOST_LEVELS:
        allowed = "levels of 255, above 0: 3, 7, 11, 13 …"
        mistakes.append(typed_mistake("linf", str(own["linf"]), allowed))
    universal = own.get("universal", "false").lower()
    if universal not in ("true", "false"):
        mistakes.append(typed_mistake("universal", own["universal"], "true or false"))
    variant = own.get("variant", "paper")
    if variant not in ("paper", "released"):
        mistakes.append(typed_mistake("variant", variant, "paper or released"))
    if mistakes:
        raise UserMistakes(mistakes)
    settings = GeneratorSettings(
        linf=float(linf),
        universal=universal == "true",
        target=tuple(sorted(word for word in own.get("target", "").split("|") if word)),
        variant=variant,
    )
    return GapRequest(
        suite=name,
        overrides=tuple(overrides),
        settings=settings,
        phantoms=int(phantoms),
        dataset=own.get("on", ""),
        recipe=own.get("recipe") or "compact",
        changes=changes,
    )


def train_gap(
    request: GapRequest, *, config_dirs: Sequence[Path] = (), threads: int | None = None, console: Console
) -> Trained:
    """Train a generator, or continue an interrupted training.

    Args:
        request: The typed request.
        config_dirs: Further folders like ``conf/``.
        threads: Threads of torch in training; None for the run's ``threads=``.
        console: Console for progress.

    Raises:
        UserMistakes: Something cannot be used; nothing was trained.
        MedtestError: Training failed; finished parts are kept.
    """
    from medtest.cli.training.further import device_of, locked_folder
    from medtest.core.files.paths import path_from_here
    from medtest.relations.adversarial.generators.files import training_folder
    from medtest.runner.units.parts import Parts
    from medtest.session.runs import invocation_of
    from medtest.training.generators.material import side_of, suite_on
    from medtest.training.generators.recipe import load_recipe
    from medtest.training.generators.train import noise_floor, train_generator

    recipe = load_recipe(request.recipe, request.changes)
    loaded = load_of(request, config_dirs)
    invocation = invocation_of(loaded)
    device = device_of(invocation.device)
    system, digest = attacked(loaded)
    side = side_of(loaded.suite)  # reports a mismatch before anything is made
    on = suite_on(loaded.suite, phantoms=request.phantoms, dataset=request.dataset)
    parts = Parts(on, invocation.data, invocation.batch_size)
    classes = _classes(parts, system, request.settings)
    out = training_folder(digest, classes, side, request.settings)
    with locked_folder(out, fresh=invocation.fresh, console=console):
        cores = threads or invocation.threads or 1
        attack, cases = attacking(request, recipe, parts, system, digest, out / "cases", device, cores)
        try:
            with _logged(loaded.suite, invocation, out, system, request, recipe) as log:
                trained = train_generator(
                    attack,
                    cases,
                    out,
                    system=digest,
                    device=device,
                    threads=threads or invocation.threads,
                    log=log,
                    progress=TrainingReporter(console, "held out: "),
                )
            floor = noise_floor(attack, cases)
        finally:
            system.close()
    came = f"{trained.best_score:.3f} of the answers to held-out images change, {floor:.3f} under uniform noise"
    if request.settings.target:
        came = f"{trained.best_score:.3f} of the answers to held-out images are the target, {floor:.3f} under noise"
    where = path_from_here(trained.weights)
    console.print(f"{came} of L∞ {request.settings.linf:g}: {where}", markup=False, soft_wrap=True)
    return trained


def load_of(request: GapRequest, config_dirs: Sequence[Path]) -> Loaded:
    """Return the suite, with the overrides typed for it.

    Raises:
        UserMistakes: It cannot be used.
    """
    from medtest.cli.typed import own_keys
    from medtest.suite.compose import load

    with own_keys(*KEYS, *OF_RECIPE):
        return load(request.suite, request.overrides, config_dirs=config_dirs)


def attacked(loaded: Loaded) -> tuple[System, str]:
    """Return the single system of a suite, not yet opened, and its digest.

    Raises:
        UserMistakes: There are several, its files have problems, or it gives no gradients.
    """
    from medtest.core.probes import Need
    from medtest.suite.digest import system_digest

    suite = loaded.suite
    systems = list(suite.build_systems().values())
    if len(systems) != 1:
        named = ", ".join(plan.id for plan in suite.systems)
        raise typed_error("model", named, "one system")
    system = systems[0]
    mistakes = list(system.check())
    if not mistakes and system.offers() is not Need.GRADIENTS:
        problem = f"{system.record_name}, which gives {system.offers().value} and no gradients"
        allowed = "a torch network: a generator is trained on gradients"
        mistakes = [typed_mistake("model", problem, allowed)]
    if mistakes:
        raise UserMistakes(mistakes)
    return system, system_digest(suite.systems[0], system, suite.task)


def _classes(parts: Any, system: System, settings: GeneratorSettings) -> Classes:
    """Return the classes of the training images.

    Raises:
        UserMistakes: A target is not among them, or several are named for exclusive classes.
        MedtestError: There is no image, or it has no classes.
    """
    from medtest.training.generators.material import classes_of

    classes = classes_of(parts)
    strangers = [label for label in settings.target if label not in classes.names]
    if strangers or (len(settings.target) > 1 and not classes.multi):
        allowed = f"{'any' if classes.multi else 'one'} of {', '.join(classes.names)}"
        target = "|".join(settings.target)
        near = nearest_name(strangers[0], classes.names) if strangers else None
        raise typed_error("target", target, allowed, nearest=near)
    return classes


def attacking(
    request: GapRequest,
    recipe: GeneratorRecipe,
    parts: Any,
    system: System,
    digest: str,
    folder: Path,
    device: str,
    threads: int,
) -> tuple[GeneratorObjective, LabelledSet]:
    """Return the objective of a generator against a system, which is opened, and the cases, made in a folder."""
    from medtest.systems.pytorch.probe import probe_of
    from medtest.training.generators.material import prepare_cases
    from medtest.training.generators.task import GeneratorObjective

    cases = prepare_cases(parts, folder)
    system.open(device=device, threads=threads)
    probe = probe_of(system, classes=cases.classes, digest=digest)
    info = info_of(request.settings, recipe, cases.classes, int(cases.images.shape[1]), system)
    return GeneratorObjective(probe=probe, classes=cases.classes, info=info, recipe=recipe), cases


def info_of(
    settings: GeneratorSettings, recipe: GeneratorRecipe, classes: Classes, side: int, system: System
) -> GeneratorInfo:
    """Return the description stored in a generator's file.

    Raises:
        MedtestError: The published code's variant is requested, and the network's pixel normalisation is unknown.
    """
    from medtest.relations.adversarial.generators.files import GeneratorInfo
    from medtest.relations.adversarial.generators.network import GeneratorShape

    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if settings.variant == "released":
        kind = getattr(system, "input_kind", None)
        if kind is None:
            raise MedtestError(f"{system.record_name}: how its pixels are normalised is not known: variant=paper")
        mean, std = kind.mean, kind.std
    shape = GeneratorShape(width=recipe.width, side=side, activation=recipe.activation, dropout=recipe.dropout)
    return GeneratorInfo(
        settings=settings, shape=shape.described(), classes=classes, mean=mean, std=std, pattern=recipe.seed
    )


@contextmanager
def _logged(
    suite: Suite, invocation: Invocation, out: Path, system: System, request: GapRequest, recipe: GeneratorRecipe
) -> Iterator[TrainingLog | None]:
    """Yield the training's MLflow run, or None without tracking, and close it at the end."""
    if not invocation.track:
        yield None
        return
    from medtest.cli.training.further import flat
    from medtest.training.engine.log import TrainingLog

    name = f"generator against {system.record_name}"
    tags = {"suite": suite.name, "system": system.record_name}
    log = TrainingLog(out, name, home=invocation.home, uri=invocation.tracking_uri, experiment=suite.name, tags=tags)
    failed = True
    try:
        options = recipe.model_dump(mode="json", exclude={"notes", "summary", "source"})
        log.params({**flat(options), **request.settings.described()})
        yield log
        failed = False
    finally:
        log.close(failed=failed)
