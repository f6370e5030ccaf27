"""Differences between further trainings of segmentation networks and of classifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from medtest.core.errors import typed_error

if TYPE_CHECKING:
    from medtest.runner.units.parts import Parts
    from medtest.suite.model import Suite
    from medtest.training.engine.trainer import Training, Writer
    from medtest.training.further.leak import Print
    from medtest.training.further.networks import StartingPoint
    from medtest.training.further.train import TrainingMaterial
    from medtest.training.settings.recipe import Recipe


class MaskKind:
    """Further training of segmentation networks.

    Attributes:
        counted: Prefix of the numbers of cases in MLflow.
        reported: Report of an evaluation: the words before its figures, and the prefix of their names.
    """

    counted = "pairs_"
    reported = ("held-out Dice ", "dice_")

    def recipe(self, name: str, changes: Mapping[str, Any]) -> Recipe:
        """Return a recipe of segmentation networks."""
        from medtest.training.further.recipe import load_recipe

        return load_recipe(name, changes)

    def suite(self, suite: Suite, phantoms: int) -> Suite:
        """Return the suite with a folder of pairs in place of its seeds.

        Raises:
            UserMistakes: Phantoms were requested.
        """
        from medtest.training.further.material import training_suite

        if phantoms:
            raise typed_error("phantoms", str(phantoms), "a classifier")
        return training_suite(suite)

    def material(
        self,
        parts: Parts,
        prints: Mapping[str, Print],
        recipe: Any,
        *,
        start: StartingPoint,
        folder: Path,
        store: Path | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> TrainingMaterial:
        """Draw the perturbed images, or load existing ones.

        Args:
            parts: Parts of the training suite.
            prints: Fingerprint of each training picture.
            recipe: The recipe.
            start: Initial network.
            folder: Folder of the training.
            store: Folder of the follow-up store, or None.
            progress: Called with images done and images in total.
        """
        import cv2

        from medtest.training.further.material import prepare_material

        cv2.setNumThreads(1)
        size = recipe.size or start.size
        return prepare_material(parts, prints, recipe, size=size, folder=folder, store=store, progress=progress)

    def training(self, start: StartingPoint, material: Any, recipe: Any, *, device: str, write: Writer) -> Training:
        """Return the training task."""
        from medtest.training.further.task import further_training

        return further_training(start, material, recipe, device=device, write=write)


class LabelKind:
    """Further training of classifiers; attributes as in :class:`MaskKind`."""

    counted = "cases_"
    reported = ("held out: ", "")

    def recipe(self, name: str, changes: Mapping[str, Any]) -> Recipe:
        """Return a recipe of classifiers, in which ``held_out=`` has another name."""
        from medtest.training.classification.recipe import load_recipe

        return load_recipe(name, {re.sub(r"^validation\.", "watching.", key): value for key, value in changes.items()})

    def suite(self, suite: Suite, phantoms: int) -> Suite:
        """Return the suite with training phantoms, or a folder, in place of its seeds."""
        from medtest.training.classification.material import training_suite

        return training_suite(suite, phantoms=phantoms)

    def material(
        self,
        parts: Parts,
        prints: Mapping[str, Print],
        recipe: Any,
        *,
        start: StartingPoint,
        folder: Path,
        store: Path | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> TrainingMaterial:
        """Create originals and perturbed images."""
        from medtest.training.classification.families import kind_of
        from medtest.training.classification.material import prepare_material

        return prepare_material(
            parts,
            share=recipe.perturbed,
            held_out=recipe.watching.held_out,
            side=recipe.size or kind_of(start.family).side,
            seed=parts.suite.seed if recipe.seed is None else recipe.seed,
            folder=folder / "cases",
        )

    def training(self, start: StartingPoint, material: Any, recipe: Any, *, device: str, write: Writer) -> Training:
        """Return the training task."""
        from medtest.training.classification.cases import MOST_WATCHED, some_of
        from medtest.training.classification.families import kind_of
        from medtest.training.classification.task import ClassifierData, classifier_training

        most = MOST_WATCHED if recipe.defence is None else recipe.defence.watch.cases
        data = ClassifierData(
            family=start.family,
            cases=material.cases,
            trained=material.trained,
            watched=some_of(material.watched, seed=material.seed, most=most),
            recipe=recipe,
            side=recipe.size or kind_of(start.family).side,
            shown=1.0,
            seed=material.seed,
            device=device,
            perturbed=material.perturbed,
        )
        identity = {"from": start.sha256, "further": True}
        return classifier_training(start.network, data, identity=identity, write=write, from_start=True)


FurtherKind: TypeAlias = "MaskKind | LabelKind"
"""Kind of network that supports further training."""


def kind_of_model(model: str) -> FurtherKind:
    """Return the kind of further training of a network, by its family's name.

    Raises:
        UserMistakes: Unknown network.
    """
    from medtest.training.classification.families import KINDS
    from medtest.training.further.networks import check_family

    check_family(model)
    return LabelKind() if model in KINDS else MaskKind()
