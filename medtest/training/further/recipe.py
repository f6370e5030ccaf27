"""Recipes of further training, as data. Those of the four papers and ``compact`` are in ``recipes/``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from medtest.training.settings.recipe import Recipe, RecipeTable, Validation
from medtest.training.settings.recipe_files import load_file

FOLDER = Path(__file__).parent / "recipes"


class Scales(RecipeTable):
    """Input sides of a batch.

    Attributes:
        kind: ``one`` (the recipe's size); ``each`` (an optimizer step at every factor of the size, rounded to a
            multiple of 32); ``draw`` (one of ``sizes`` per step, with ``weights``).
        factors: For ``each``.
        sizes: For ``draw``.
        weights: For ``draw``; equal if empty.
        corners: Whether images are resized with their corners aligned.
        mask: ``bilinear`` or ``nearest``.
    """

    kind: Literal["one", "each", "draw"] = "one"
    factors: list[Annotated[float, Field(gt=0, le=8)]] = []
    sizes: list[int] = []
    weights: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = []
    corners: bool = False
    mask: Literal["bilinear", "nearest"] = "nearest"

    @model_validator(mode="after")
    def _fits(self) -> Scales:
        if self.kind == "each" and not self.factors:
            raise ValueError("kind: each needs factors")
        if self.kind == "draw" and not self.sizes:
            raise ValueError("kind: draw needs sizes")
        if any(size <= 0 or size % 32 for size in self.sizes):
            raise ValueError("sizes must be multiples of 32")
        if self.weights and len(self.weights) != len(self.sizes):
            raise ValueError("weights and sizes must be of one length")
        return self


_Zoom = Annotated[float, Field(ge=0.1, le=10)]


class Augment(RecipeTable):
    """Random changes of a pair before it is resized to the recipe's size; probabilities of 0 switch a change off.

    Attributes:
        own: Whether to use medtest's own augmentation (:mod:`medtest.training.segmentation.augment`) instead of the
            changes below.
        flip: Probability of a horizontal flip.
        flip_vertical: Probability of a vertical flip.
        quarter_turns: Probability of one to three quarter turns.
        rotate: Probability of a rotation by at most ``angle`` degrees, filled with black.
        angle: Degrees.
        zoom: Probability of a crop or of a larger field of view, ``zoom_range`` times the image's side.
        zoom_range: Smallest and largest factor.
        dropout: Probability of one to ``holes`` black rectangles with sides of at most ``hole_side`` pixels; masks
            are unchanged.
        holes: Maximum number of rectangles.
        hole_side: Maximum side of a rectangle in pixels.
        tone: Probability of each of contrast, sharpness and brightness times 1 to ``tone_factor``.
        tone_factor: Largest factor.
        morph: Probability that the mask grows or shrinks by an ellipse of 2 to 4 pixels.
        exchange: Probability that the image takes the colours of another training image.
    """

    own: bool = False
    flip: float = Field(default=0.0, ge=0, le=1)
    flip_vertical: float = Field(default=0.0, ge=0, le=1)
    quarter_turns: float = Field(default=0.0, ge=0, le=1)
    rotate: float = Field(default=0.0, ge=0, le=1)
    angle: float = Field(default=0.0, ge=0, le=360)
    zoom: float = Field(default=0.0, ge=0, le=1)
    zoom_range: tuple[_Zoom, _Zoom] = (1.0, 1.0)
    dropout: float = Field(default=0.0, ge=0, le=1)
    holes: int = Field(default=0, ge=0)
    hole_side: int = Field(default=0, ge=0)
    tone: float = Field(default=0.0, ge=0, le=1)
    tone_factor: float = Field(default=1.0, ge=1)
    morph: float = Field(default=0.0, ge=0, le=1)
    exchange: float = Field(default=0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _fits(self) -> Augment:
        if self.zoom_range[0] > self.zoom_range[1]:
            raise ValueError("zoom_range needs the smaller factor first")
        return self


class Loss(RecipeTable):
    """Loss terms.

    Attributes:
        map: ``structure`` (PraNet: cross-entropy and border-weighted IoU), ``bce_dice`` (SANet: cross-entropy and Dice
            per image), ``bce_batch_dice`` (TGANet: cross-entropy and Dice over the batch), ``bce_pixel_dice``
            (SSFormer: cross-entropy and a Dice of every single pixel).
        auxiliary: Weight of side maps, for networks with several.
        judgements: Weight of the cross-entropy of number and size, for networks that predict them.
    """

    map: Literal["structure", "bce_dice", "bce_batch_dice", "bce_pixel_dice"] = "structure"
    auxiliary: float = Field(default=1.0, ge=0)
    judgements: float = Field(default=1.0, ge=0)


class Quirks(RecipeTable):
    """Differences between the published training code and its paper; true reproduces the code.

    Attributes:
        mean_cross_entropy: PraNet: the cross-entropy of the structure loss is the batch's plain mean, without border
            weights, because a reduction is passed to an outdated argument.
        soft_masks: PraNet: masks are resized like images and hold values between 0 and 1.
        wrapping_colours: SANet: exchanged colours outside of 0 to 255 wrap around.
        double_softmax: TGANet: number and size go through a softmax before a cross-entropy that applies one.
        double_sigmoid: SSFormer: the map goes through a sigmoid before a loss that applies one; in tests it goes
            through one.
    """

    mean_cross_entropy: bool = False
    soft_masks: bool = False
    wrapping_colours: bool = False
    double_softmax: bool = False
    double_sigmoid: bool = False


class PairValidation(Validation):
    """Validation on held-out training pairs, by the mean of clean and perturbed Dice.

    Attributes:
        held_out: Number of held-out pairs; a share if below 1.
        perturbed: Perturbed images per held-out pair, of random relations and severities.
        clean_floor: With ``keep: best``: largest drop of mean Dice on clean held-out images, relative to the start, at
            which weights may be selected. Null for no limit.
    """

    held_out: float = Field(default=40, gt=0)
    perturbed: int = Field(default=3, ge=0)
    clean_floor: float | None = Field(default=None, ge=0, le=1)


class SegmentationRecipe(Recipe):
    """Recipe of a segmentation network's further training.

    Attributes:
        size: Side in pixels; null for the network's own.
        perturbed: Number of perturbed images per original.
        draw: ``random`` (all follow-ups with equal probability) or ``balanced`` (every original and every relation
            equally often).
        mix: ``shuffled`` (one set) or ``half`` (half of every batch from each).
        scales: Sides of a batch.
        augment: Random changes.
        loss: Loss terms.
        seed: Seed of perturbed images, order, changes and dropout.
        validation: Validation.
        quirks: Oddities of the published code.
    """

    size: int | None = Field(default=None, ge=64, le=1024, multiple_of=32)
    perturbed: float = Field(default=1.0, ge=0, le=20)
    draw: Literal["random", "balanced"] = "random"
    mix: Literal["shuffled", "half"] = "shuffled"
    scales: Scales = Scales()
    augment: Augment = Augment()
    loss: Loss = Loss()
    seed: int = Field(default=0, ge=0)
    validation: PairValidation = PairValidation()
    quirks: Quirks = Quirks()

    @model_validator(mode="after")
    def _counts_epochs(self) -> SegmentationRecipe:
        if self.schedule.kind == "milestones" and self.epochs is None:
            raise ValueError("milestones are counted in epochs: give epochs")
        return self


def load_recipe(name: str, changes: Mapping[str, Any] | None = None) -> SegmentationRecipe:
    """Return a recipe of segmentation networks; see :func:`medtest.training.settings.recipe_files.load_file`."""
    return load_file(SegmentationRecipe, FOLDER, name, changes)
