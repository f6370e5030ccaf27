"""What differs between further trainings of segmentation networks and of classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from medtest.errors import Mistake

if TYPE_CHECKING:
    from medtest.runner.units.parts import Parts
    from medtest.suite.model import Suite
    from medtest.training.further.leak import Print
    from medtest.training.further.networks import StartingPoint
    from medtest.training.further.train import TrainingMaterial
    from medtest.training.recipe import Recipe
    from medtest.training.trainer import Training, Writer


@dataclass(frozen=True, kw_only=True, eq=False)
class MaterialRequest:
    """What the cases of a further training are made of.

    Attributes:
        parts: Of the training suite.
        prints: What each training picture is known by; empty where phantoms are trained on.
        recipe: The recipe.
        start: The network that training starts from.
        folder: Folder of the training.
        store: Folder of the store of follow-ups, or None.
        progress: Called with images done and images in all.
    """

    parts: Parts
    prints: Mapping[str, Print]
    recipe: Any
    start: StartingPoint
    folder: Path
    store: Path | None
    progress: Callable[[int, int], None] | None = None


class FurtherKind(Protocol):
    """One kind of network that can be trained further."""

    counted: str
    """Begins the names of the numbers of cases in MLflow."""
    reported: tuple[str, str]
    """What is said of an evaluation: the words before its figures, and how the names of those begin."""

    def recipe(self, name: str, changes: Mapping[str, Any]) -> Recipe:
        """Return a recipe by name or path, with what was typed laid over it."""

    def suite(self, suite: Suite, phantoms: int) -> Suite:
        """Return the suite with training cases in place of its own."""

    def material(self, request: MaterialRequest) -> TrainingMaterial:
        """Make what training reads, or take it from where it lies."""

    def training(self, start: StartingPoint, material: Any, recipe: Any, *, device: str, write: Writer) -> Training:
        """Return what is trained, for the trainer."""


class MaskKind:
    """Segmentation networks."""

    counted = "pairs_"
    reported = ("held-out Dice ", "dice_")

    def recipe(self, name: str, changes: Mapping[str, Any]) -> Recipe:
        """Return a recipe of segmentation networks."""
        from medtest.training.further.recipe import load_recipe

        return load_recipe(name, changes)

    def suite(self, suite: Suite, phantoms: int) -> Suite:
        """Return the suite with a folder of pairs in place of its seeds.

        Raises:
            UserMistakes: Phantoms were asked for.
        """
        from medtest.training.further.material import training_suite

        if phantoms:
            raise Mistake(where="command line", key="phantoms", found=str(phantoms), allowed="a classifier").as_error()
        return training_suite(suite)

    def material(self, request: MaterialRequest) -> TrainingMaterial:
        """Draw the perturbed images."""
        import cv2

        from medtest.training.further.material import prepare_material

        cv2.setNumThreads(1)
        return prepare_material(
            request.parts,
            request.prints,
            request.recipe,
            size=request.recipe.size or request.start.size,
            folder=request.folder,
            store=request.store,
            progress=request.progress,
        )

    def training(self, start: StartingPoint, material: Any, recipe: Any, *, device: str, write: Writer) -> Training:
        """Return what is trained."""
        from medtest.training.further.task import further_training

        return further_training(start, material, recipe, device=device, write=write)


class LabelKind:
    """Classifiers."""

    counted = "cases_"
    reported = ("held out: ", "")

    def recipe(self, name: str, changes: Mapping[str, Any]) -> Recipe:
        """Return a recipe of classifiers, in which ``held_out=`` has another name."""
        from medtest.training.classification.recipe import load_recipe

        return load_recipe(name, {_watching(key): value for key, value in changes.items()})

    def suite(self, suite: Suite, phantoms: int) -> Suite:
        """Return the suite with training phantoms, or a folder, in place of its seeds."""
        from medtest.training.classification.material import training_suite

        return training_suite(suite, phantoms=phantoms)

    def material(self, request: MaterialRequest) -> TrainingMaterial:
        """Make originals and perturbed images."""
        from medtest.training.classification.families import kind_of
        from medtest.training.classification.material import prepare_material

        suite, recipe = request.parts.suite, request.recipe
        return prepare_material(
            request.parts,
            share=recipe.perturbed,
            held_out=recipe.watching.held_out,
            side=kind_of(request.start.family).side,
            seed=suite.seed if recipe.seed is None else recipe.seed,
            folder=request.folder / "cases",
        )

    def training(self, start: StartingPoint, material: Any, recipe: Any, *, device: str, write: Writer) -> Training:
        """Return what is trained."""
        from medtest.training.classification.families import kind_of
        from medtest.training.classification.task import classifier_training, some_of

        return classifier_training(
            start.family,
            start.network,
            material.cases,
            material.trained,
            some_of(material.watched, seed=material.seed),
            recipe,
            side=kind_of(start.family).side,
            shown=1.0,
            seed=material.seed,
            device=device,
            identity={"from": start.sha256, "further": True},
            write=write,
            perturbed=material.perturbed,
            from_start=True,
        )


def _watching(key: str) -> str:
    return f"watching.{key.removeprefix('validation.')}" if key.startswith("validation.") else key


def kind_of_model(model: str) -> FurtherKind:
    """Return how a network is trained further, by its family's name.

    Raises:
        UserMistakes: There is no such network.
    """
    from medtest.training.classification.families import KINDS
    from medtest.training.further.networks import check_family

    check_family(model)
    return LabelKind() if model in KINDS else MaskKind()
