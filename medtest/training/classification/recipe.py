"""Recipes of classifiers, as data: how a network is trained. The published ones and ``compact`` lie in ``recipes/``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from medtest.training.further.recipe import Optimizer, Schedule

FOLDER = Path(__file__).parent / "recipes"


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Changes(_Data):
    """Random changes of a training image; probabilities and widths of 0 switch a change off.

    Attributes:
        flip: Probability of a mirror image left to right.
        flip_vertical: Probability of a mirror image top to bottom.
        quarter_turns: Probability of one to three quarter turns.
        angle: Largest rotation in degrees, uniform to both sides.
        shear: Largest shear in degrees, likewise.
        zoom: Smallest and largest scale; below 1 the image shrinks and a reflection fills its rim.
        crop: Side of a random crop, as a share of the image's; the crop is what the network sees.
        brightness: Largest shift of all channels, in grey levels.
        contrast: Largest relative change of the spread around the mean.
        colour: Largest shift of each channel by itself, in grey levels.
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
            raise ValueError("zoom wants two factors between 0.3 and 3, the smaller first")
        return self


class Losses(_Data):
    """What answers are compared by; a family takes of it what it has.

    Attributes:
        gamma: AttnMel: exponent of the focal loss; null is cross-entropy.
        smoothing: Label smoothing of the cross-entropy.
        l1: Weight of the L1 norm of all parameters.
        weighted: CheXNet: the two states of a finding are weighted by the other's share (its paper, eq. 1).
        attention: AttnMel: the attention is guided by the lesions' masks where there are any.
        deformation: AGDN: weight of the two losses that compare the branches' attention (DAC).
        interaction: DSI-Net: weight of the divergence between its two answers.
        segmentation: DSI-Net: weight of the Dice of its two maps; images without a known mask have none.
    """

    gamma: float | None = Field(default=None, ge=0)
    smoothing: float = Field(default=0.0, ge=0, lt=1)
    l1: float = Field(default=0.0, ge=0)
    weighted: bool = False
    attention: bool = False
    deformation: float = Field(default=0.0, ge=0)
    interaction: float = Field(default=0.0, ge=0)
    segmentation: float = Field(default=1.0, ge=0)


class Watching(_Data):
    """How training is watched, on training cases that are held out.

    Attributes:
        held_out: Share of the cases (whole patients or videos) held out of training.
        every_steps: Steps between validations; an epoch where null.
        score: What is compared: ``accuracy``, or ``auroc`` (mean area under the ROC curve, one class against the rest).
        keep: ``best`` or ``last``.
        patience: Validations without a better score after which training stops; null never stops early.
    """

    held_out: float = Field(default=0.15, gt=0, lt=1)
    every_steps: int | None = Field(default=None, ge=1)
    score: Literal["accuracy", "auroc"] = "accuracy"
    keep: Literal["best", "last"] = "best"
    patience: int | None = Field(default=None, ge=1)


class ClassifierRecipe(_Data):
    """One way of training a classifier.

    Attributes:
        name: The file's.
        summary: One line.
        source: Where its facts come from.
        batch: Cases of a batch.
        epochs: Passes over the training cases.
        steps: Optimizer steps; in place of ``epochs``.
        passes: How often an "epoch" of the schedule passes over the cases.
        balanced: Classes are drawn alike often (single-label alone).
        optimizer: How weights are moved.
        fresh_every_epoch: The optimizer is made anew at each epoch, which forgets its momentum.
        schedule: How the rate changes.
        clip_norm: Largest norm of the gradient.
        small: Share of the steps, at the beginning, whose images are shown at ``small_side`` times their side.
        small_side: See there; sides are rounded to multiples of 32.
        changes: Random changes.
        loss: What is compared.
        average: Decay of averaged weights, which are then what is validated and kept; 0 for none.
        perturbed: In further training, the share of the images that each relation perturbs.
        precision: ``fp32``, ``bf16`` (autocast) or ``amp`` (float16 with a gradient scaler, CUDA only).
        watching: How it is watched.
        notes: What is known of the published training and not repeated here.
    """

    name: str = ""
    summary: str = ""
    source: str = ""
    batch: int = Field(ge=2, le=512)
    epochs: float | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, ge=1)
    passes: int = Field(default=1, ge=1, le=100)
    balanced: bool = False
    optimizer: Optimizer
    fresh_every_epoch: bool = False
    schedule: Schedule
    clip_norm: float | None = Field(default=None, gt=0)
    small: float = Field(default=0.0, ge=0, lt=1)
    small_side: float = Field(default=0.5, gt=0.2, le=1)
    changes: Changes = Changes()
    loss: Losses = Losses()
    average: float = Field(default=0.0, ge=0, lt=1)
    perturbed: float = Field(default=0.125, ge=0, le=1)
    precision: Literal["fp32", "bf16", "amp"] = "fp32"
    watching: Watching = Watching()
    notes: list[str] = []

    @model_validator(mode="after")
    def _fits(self) -> ClassifierRecipe:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give epochs or steps, one of them")
        return self
