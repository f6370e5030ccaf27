"""Release of a trained generator: copies it into the package, measures it on unseen images, writes card and digests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtest.core.errors import MedtestError
from medtest.core.files import file_sha256, read_object
from medtest.core.files.paths import package_folder
from medtest.relations.adversarial.generators.files import SHIPPED, load_generator
from medtest.suite.model import PartPlan, Suite
from medtest.training.generators.material import prepare_cases
from medtest.training.generators.task import GeneratorObjective, fooled
from medtest.training.release import card_text
from medtest.training.scores import bootstrap

if TYPE_CHECKING:
    from medtest.training.classification.cases import LabelledSet

UNSEEN = 9_000_000
"""Number of the first phantom for measurements, far from those for training and testing."""
LEVELS = (3.0, 7.0, 11.0, 13.0, 15.0)


def unseen_suite(suite: Suite, count: int) -> Suite:
    """Return the suite with phantoms that no training saw in place of its seeds.

    Raises:
        MedtestError: It tests on images other than phantoms.
    """
    plan = suite.seeds[0]
    if not getattr(plan.info.load(), "phantom", False):
        raise MedtestError(f"{suite.name} tests on real images: a generator that ships is measured on phantoms")
    settings = plan.settings.model_copy(update={"count": count, "start": UNSEEN})
    return replace(suite, seeds=(PartPlan(id="unseen", info=plan.info, settings=settings),))


def measure(
    attack: GeneratorObjective, weights: Path, cases: LabelledSet, levels: Sequence[float] = LEVELS
) -> list[dict[str, Any]]:
    """Return the effect of a generator on unseen images, scaled to each bound, for its card.

    Each has its bound in levels of 255 as ``linf``, the mean over images of
    :func:`medtest.relations.adversarial.generators.goals.reached` as ``fooled``, and the same under uniform noise of
    the bound as ``noise``.

    Args:
        attack: The system; only the file's settings in its ``info`` are used.
        weights: The generator.
        cases: The images.
        levels: The bounds.
    """
    network, info = load_generator(weights)
    measurements: list[dict[str, Any]] = []
    every = np.arange(len(cases))
    with attack.probe.attached():
        for linf in levels:
            at = replace(attack, info=replace(info, settings=replace(info.settings, linf=linf)))
            came, noise = (fooled(at, generator, cases, every)[0] for generator in (network, None))
            measurements.append({"linf": linf, "fooled": bootstrap(came), "noise": bootstrap(noise)})
    return measurements


def release(
    attack: GeneratorObjective,
    weights: Path,
    *,
    name: str,
    system: str,
    parts: Any,
    folder: Path,
    commands: Sequence[str],
    notes: Sequence[str] = (),
) -> Path:
    """Copy a generator to the package folder, measure it, and write the card next to it.

    Args:
        attack: The system that it was trained against.
        weights: Weights file of a training.
        name: Name of the system in records.
        system: Digest of the system.
        parts: Parts of :func:`unseen_suite`.
        folder: Folder of the arrays of unseen images.
        commands: The commands that created it, for the card.
        notes: Further paragraphs of the card.

    Returns:
        The card.

    Raises:
        MedtestError: The weights cannot be used.
    """
    cases = prepare_cases(parts, folder)
    load_generator(weights)  # rejects other files before anything is overwritten
    target = package_folder() / "weights" / f"gap-{name}.safetensors"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(weights, target)
    add_system(target, system)
    card = target.with_suffix(".md")
    network, info = load_generator(target)
    text = card_text(
        Path(__file__).with_name("card.md.jinja"),
        weights=target,
        name=name,
        info=info,
        settings=info.settings,
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        megabytes=target.stat().st_size / 1e6,
        sha256=file_sha256(target),
        commands=commands,
        notes=notes,
        count=len(cases),
        found=measure(attack, target, cases),
    )
    card.write_text(text, encoding="utf-8")
    return card


def add_system(target: Path, system: str) -> None:
    """Record that a bundled generator was trained against a system, by its digest."""
    index = target.parent / SHIPPED
    listed: dict[str, Any] = read_object(index)
    systems = [str(digest) for digest in listed.get(target.stem, [])]
    listed[target.stem] = sorted({*systems, system})
    index.write_text(json.dumps(listed, indent=1, sort_keys=True) + "\n", encoding="utf-8")
