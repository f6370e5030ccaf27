"""Training data of generators: prepared seeds of a suite, with their fields of view."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Classes, SeedRef
from medtest.core.errors import MedtestError, Mistake, nearest_name, typed_error
from medtest.runner.units.parts import Parts
from medtest.suite.model import Suite
from medtest.training.classification.cases import LabelledCase, LabelledSet, Pixels, keep
from medtest.training.engine.order import case_at


def suite_on(suite: Suite, *, phantoms: int = 0, dataset: str = "") -> Suite:
    """Return the suite with a generator's training data in place of its seeds.

    Args:
        suite: The suite.
        phantoms: Number of training phantoms, of the kind in the suite; 0 for none.
        dataset: One of the suite's data sets; "" for phantoms, or the folder of ``data=``.

    Raises:
        UserMistakes: The suite has no such data set.
        MedtestError: The suite tests on phantoms and no number was given, or vice versa.
    """
    from medtest.training.classification.material import training_suite

    if not dataset:
        return training_suite(suite, phantoms=phantoms)
    names = [plan.id for plan in suite.seeds]
    if dataset not in names:
        near = nearest_name(dataset, names)
        raise typed_error("on", dataset, ", ".join(names), nearest=near)
    return replace(suite, seeds=tuple(plan for plan in suite.seeds if plan.id == dataset))


def side_of(suite: Suite) -> int:
    """Return the side in pixels of a suite's prepared images.

    Raises:
        UserMistakes: They keep the size of their files, or are not pictures with labels.
    """
    side = suite.prepare.size
    if not suite.task.labels:
        allowed = "a suite whose seeds have labels"
        raise typed_error("suite", suite.name, allowed)
    if side is None:
        fix = "a generator is built for images of one side: prepare: {size: 224}"
        raise Mistake(
            where=suite.name, key="prepare.size", found="null", allowed="a side in pixels", fix=fix
        ).as_error()
    return side


def classes_of(parts: Parts) -> Classes:
    """Return the classes of the training data.

    Raises:
        MedtestError: There is no image, or its classes are unknown.
    """
    refs = parts.refs()
    if not refs:
        raise MedtestError("there is no image to train on")
    number, first = refs[0]
    classes: Classes | None = parts.prepared(number, first).classes
    if classes is None:
        raise MedtestError(f"{first.seed_id} has no classes: a generator is trained against answers of classes")
    return classes


def prepare_cases(parts: Parts, folder: Path) -> LabelledSet:
    """Prepare every seed, or open existing arrays in the folder; masks are the fields of view.

    Args:
        parts: Parts of :func:`suite_on`.
        folder: Folder of the arrays.

    Raises:
        MedtestError: There is no image, or its classes are unknown.
    """
    refs = parts.refs()
    classes = classes_of(parts)
    side = side_of(parts.suite)
    facts = {"seeds": [source.digest() for source in parts.sources], "prepare": parts.suite.prepare.covers()}
    origin = "fields of view " + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return keep(_cases(parts, refs), folder, classes=classes, side=side, origin=origin)


def _cases(parts: Parts, refs: list[tuple[int, SeedRef]]) -> Iterator[LabelledCase]:
    for number, ref in refs:
        seed = parts.prepared(number, ref)
        cluster = f"{ref.dataset}/{ref.cluster}"
        yield LabelledCase(image=seed.image, labels=seed.labels or (), mask=~seed.frame, cluster=cluster)


FieldBatch: TypeAlias = tuple[Pixels, NDArray[np.bool_]]
"""Images, uint8 B×S×S×3 RGB, and where their pixels may change, B×S×S."""


class FieldBatches:
    """Draws batches, each depending only on the seed and its number.

    Args:
        cases: All cases.
        members: Indices of the training cases.
        batch: Cases of a batch.
        seed: Seed of the shuffles.
        most: Maximum number of batches of an epoch; None for all.
    """

    def __init__(
        self, cases: LabelledSet, members: NDArray[np.int64], *, batch: int, seed: int, most: int | None = None
    ) -> None:
        self._cases, self._members, self._batch, self._seed = cases, members, batch, seed
        whole = max(1, len(members) // batch)
        self.steps_per_epoch = whole if most is None else min(whole, most)

    def batch(self, step: int) -> FieldBatch:
        """Return the batch of an optimizer step, from 0."""
        places = range(step * self._batch, (step + 1) * self._batch)
        return taken(self._cases, [int(self._members[case_at(p, len(self._members), seed=self._seed)]) for p in places])


def taken(cases: LabelledSet, indices: list[int]) -> FieldBatch:
    """Return cases as a batch, copied from the arrays."""
    images = np.stack([np.array(cases.images[i]) for i in indices])
    return images, np.stack([np.array(cases.masks[i]) > 127 for i in indices])
