"""Training recipes of classifiers, as data. The published ones and ``compact`` are in ``recipes/``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from medtest.training.defences.defence import Defence
from medtest.training.settings.recipe import Recipe, RecipeTable, Validation
from medtest.training.settings.recipe_files import load_file

FOLDER = Path(__file__).parent / "recipes"


class Changes(RecipeTable):
    """Random changes of a training image; probabilities and widths of 0 switch a change off.

    Attributes:
        flip: Probability of a horizontal flip.
        flip_vertical: Probability of a vertical flip.
        quarter_turns: Probability of one to three quarter turns.
        angle: Largest rotation in degrees, uniform in both directions.
        shear: Largest shear in degrees, uniform in both directions.
        zoom: Smallest and largest scale; below 1 the image shrinks and a reflection fills its rim.
        crop: Side of a random crop, relative to the image's; the crop is the network's input.
        brightness: Largest shift of all channels, in grey levels.
        contrast: Largest relative change of the spread around the mean.
        colour: Largest independent shift of each channel, in grey levels.
        blur: Largest σ of a Gaussian blur in pixels.
        noise: Largest standard deviation of white noise in grey levels.
    """

    flip: float = Field(default=0.0, ge=0, le=1)
    flip_vertical: float = Field(default=0.0, ge=0, le=1)
    quarter_turns: float = Field(default=0.0, ge=0, le=1)
    angle: float = Field(default=0.0, ge=0, le=180)
    shear: float = Field(default=0.0, ge=0, le=45)
    zoom: tuple[float, float] = (1.0, 1.0)
    crop: float = Field(default=1.0, gt=0.3, le=1)
    brightness: float = Field(default=0.0, ge=0, le=128)
    contrast: float = Field(default=0.0, ge=0, lt=1)
    colour: float = Field(default=0.0, ge=0, le=64)
    blur: float = Field(default=0.0, ge=0, le=8)
    noise: float = Field(default=0.0, ge=0, le=64)

    @model_validator(mode="after")
    def _fits(self) -> Changes:
        if not 0.3 <= self.zoom[0] <= self.zoom[1] <= 3:
            raise ValueError("zoom needs two factors between 0.3 and 3, the smaller first")
        return self


class Losses(RecipeTable):
    """Loss terms; each family uses those that apply to it.

    Attributes:
        gamma: AttnMel: exponent of the focal loss; null is cross-entropy.
        smoothing: Label smoothing of the cross-entropy.
        l1: Weight of the L1 norm of all parameters.
        weighted: CheXNet: whether the two states of a finding are weighted by the other's share (its paper, eq. 1).
        attention: AttnMel: whether lesion masks, if any, guide the attention.
        deformation: AGDN: weight of the two losses that compare the branches' attention (DAC).
        interaction: DSI-Net: weight of the divergence between its two answers.
        segmentation: DSI-Net: weight of the Dice of its two maps, for images with a known mask.
    """

    gamma: float | None = Field(default=None, ge=0)
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    l1: float = Field(default=0.0, ge=0)
    weighted: bool = False
    attention: bool = False
    deformation: float = Field(default=0.0, ge=0)
    interaction: float = Field(default=0.0, ge=0)
    segmentation: float = Field(default=1.0, ge=0)


class Watching(Validation):
    """Validation on held-out training cases.

    Attributes:
        held_out: Share of the cases (whole patients or videos) held out of training.
        score: ``accuracy``, or ``auroc`` (mean area under the ROC curve, one class against the rest).
    """

    held_out: float = Field(default=0.15, gt=0, lt=1)
    score: Literal["accuracy", "auroc"] = "accuracy"


class ClassifierRecipe(Recipe):
    """Training recipe of a classifier.

    Attributes:
        size: Input side in pixels after a further training; null for the network's own.
        passes: Number of passes over the cases per "epoch" of the schedule.
        balanced: Whether all classes are drawn equally often (single-label only).
        small: Initial share of the steps with images at ``small_side`` times their side.
        small_side: Relative side in these steps; sides are rounded to multiples of 32.
        changes: Random changes.
        loss: Loss terms.
        perturbed: In further training, the share of the images that each relation perturbs; by default none with a
            defence.
        defence: Attack on batches before they are used; null for none.
        watching: Validation.
    """

    size: int | None = Field(default=None, ge=64, le=640, multiple_of=32)
    passes: int = Field(default=1, ge=1, le=100)
    balanced: bool = False
    small: float = Field(default=0.0, ge=0, lt=1)
    small_side: float = Field(default=0.5, gt=0.2, le=1)
    changes: Changes = Changes()
    loss: Losses = Losses()
    perturbed: float = Field(default=0.125, ge=0, le=1)
    defence: Defence | None = None
    watching: Watching = Watching()

    @model_validator(mode="before")
    @classmethod
    def _default_perturbed(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("defence") and "perturbed" not in values:
            return {**values, "perturbed": 0.0}
        return values

    def identity(self) -> dict[str, Any]:
        """Return the values that a resumed training must share, omitting an unset size and defence."""
        facts = self.model_dump(mode="json")
        if self.size is None:
            facts.pop("size")
        if self.defence is None:
            facts.pop("defence")
        else:
            facts["defence"].pop("whose")
        return facts


def load_recipe(name: str, changes: Mapping[str, Any] | None = None) -> ClassifierRecipe:
    """Return a recipe of classifiers; see :func:`medtest.training.settings.recipe_files.load_file`."""
    return load_file(ClassifierRecipe, FOLDER, name, changes)
