"""Training of a classifier from options: cases, network, steps, weights for suites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, typed_error
from medtest.training.classification.cases import (
    LabelledCase,
    LabelledSet,
    held_out,
    keep,
    phantom_cases,
    seed_cases,
    some_of,
)
from medtest.training.classification.families import ClassifierFamily, kind_of
from medtest.training.classification.options import ClassificationOptions
from medtest.training.classification.recipe import load_recipe

if TYPE_CHECKING:
    from medtest.core.cases import Classes
    from medtest.training.engine.prepared import PreparedTraining


def prepare_classification(options: ClassificationOptions, out: Path) -> PreparedTraining:
    """Return the training of a classifier; its cases are kept as arrays in ``cases/`` of its folder.

    Raises:
        UserMistakes: Options, recipe or files cannot be used.
        MedtestError: The cases do not fit the network.
    """
    from medtest.systems.pytorch import networks
    from medtest.training.classification.task import ClassifierData, classifier_training
    from medtest.training.engine.initial import initialise
    from medtest.training.engine.prepared import PreparedTraining, compact_writer
    from medtest.training.engine.start import start_from

    kind = kind_of(options.network)
    recipe = load_recipe(options.recipe, options.changes())
    seed = options.seed if recipe.seed is None else recipe.seed
    cases = training_cases(options, kind, out / "cases")
    config = config_for(options.network, len(cases.classes.names))
    torch.manual_seed(seed)
    network = networks.make(config)
    if not kind.own_start:
        initialise(network, seed)
    if options.start_from is not None:
        start_from(network, options.start_from)
    side = options.side or kind.side
    names = () if kind.classes == cases.classes else cases.classes.names
    trained, watched = held_out(cases, share=recipe.watching.held_out, seed=seed)
    data = ClassifierData(
        family=options.network,
        cases=cases,
        trained=trained,
        watched=some_of(watched, seed=seed),
        recipe=recipe,
        side=side,
        shown=kind.side / kind.stored,
        seed=seed,
        device=options.device,
    )
    weights = out / f"{options.network}.safetensors"
    training = classifier_training(
        network,
        data,
        identity={**options.identity(), "network": networks.describe(config)},
        write=compact_writer(weights, config, size=side, classes=names),
    )
    params = {"cases": len(cases), "held_out": len(data.watched)}
    return PreparedTraining(training=training, weights=weights, name=f"{options.network}-compact", params=params)


def training_cases(options: ClassificationOptions, kind: ClassifierFamily, folder: Path) -> LabelledSet:
    """Create or load the training cases.

    Raises:
        UserMistakes: No training data was specified, or the suite cannot be used.
    """
    if bool(options.phantoms) == bool(options.suite):
        fix = "add --phantoms 2000, or --suite NAME --data FOLDER"
        problem = "both phantoms and a suite" if options.phantoms else "nothing to train on"
        raise typed_error("--phantoms", problem, "one of two", fix)
    if options.phantoms:
        from importlib import import_module

        from medtest.training.classification.cases import PHANTOM_ROOMS

        revision = import_module(f"medtest.phantoms.{PHANTOM_ROOMS[kind.phantoms]}").REVISION
        origin = f"{kind.phantoms} phantoms {options.phantoms} seed {options.phantom_seed} revision {revision}"
        phantoms = phantom_cases(kind.phantoms, options.phantoms, seed=options.phantom_seed, size=kind.stored)
        return keep(phantoms, folder, classes=kind.classes, side=kind.stored, origin=origin)
    return _from_suite(options, kind, folder)


def _from_suite(options: ClassificationOptions, kind: ClassifierFamily, folder: Path) -> LabelledSet:
    """Store the labelled seeds of a suite, prepared at the side of stored training images."""
    from medtest.preparation.prepare import prepare
    from medtest.suite.compose import load

    overrides = [f"model={kind.name}", *([f"data={options.data}"] if options.data else [])]
    suite = load(options.suite or "", overrides).suite
    if not suite.task.labels:
        allowed = "a suite whose seeds have labels"
        raise typed_error("--suite", suite.name, allowed)
    sources = suite.build_seeds(options.data)
    class_lists: list[Classes] = []
    for source in sources:
        first = next(iter(source.refs()), None)
        classes = None if first is None else source.load(first).classes
        if classes is not None:
            class_lists.append(classes)
    if not class_lists or any(classes != class_lists[0] for classes in class_lists):
        raise MedtestError(f"the seeds of {suite.name} do not share one list of classes to train on")

    def seeds() -> Iterator[LabelledCase]:
        for source in sources:
            for ref in source.refs():
                yield from seed_cases([prepare(source.load(ref), size=kind.stored, resize=kind.stored)])

    digests = ",".join(source.digest() for source in sources)
    return keep(seeds(), folder, classes=class_lists[0], side=kind.stored, origin=f"suite {suite.name} {digests}")


def config_for(family: str, classes: int) -> Any:
    """Return the description of a family's compact network with this number of classes."""
    from medtest.systems.pytorch import networks

    compact = networks.COMPACT[family]
    return compact if compact.classes == classes else replace(compact, classes=classes)
