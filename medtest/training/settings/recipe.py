"""Common part of training recipes: length, batches, and optimization.

The recipes of segmentation networks (:mod:`medtest.training.further.recipe`) and of classifiers
(:mod:`medtest.training.classification.recipe`) add their own settings.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class RecipeTable(BaseModel):
    """Immutable table of a recipe without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Optimizer(RecipeTable):
    """Optimizer settings.

    Attributes:
        name: ``adam``, ``adamw`` or ``sgd``.
        rate: Learning rate before the schedule.
        backbone_rate: Learning rate of the encoder's parameters; null for ``rate``.
        decay: Weight decay (AdamW's is decoupled).
        decay_all: Whether norms and biases decay too, as if every parameter were in one group.
        momentum: Momentum of SGD.
        nesterov: Whether SGD uses Nesterov momentum.
    """

    name: Literal["adam", "adamw", "sgd"]
    rate: float = Field(gt=0)
    backbone_rate: float | None = Field(default=None, gt=0)
    decay: float = Field(default=0.0, ge=0)
    decay_all: bool = True
    momentum: float = Field(default=0.9, ge=0, lt=1)
    nesterov: bool = False


class ConstantRate(RecipeTable):
    """Rate times ``factor`` for every ``every`` epochs begun (0: never), after a linear warm-up."""

    kind: Literal["steps"]
    every: int = Field(default=0, ge=0)
    factor: float = Field(default=0.1, gt=0, le=1)
    warmup_epochs: float = Field(default=0.0, ge=0)


class Milestones(RecipeTable):
    """Rate times ``factor`` at the start of each of these epochs, counted from 1."""

    kind: Literal["milestones"]
    at: list[int] = Field(min_length=1)
    factor: float = Field(gt=0, le=1)


class Plateau(RecipeTable):
    """Rate times ``factor`` after more than ``patience`` validations in a row without a lower validation loss.

    A loss counts as lower by a relative ``threshold``.
    """

    kind: Literal["plateau"]
    patience: int = Field(ge=0)
    factor: float = Field(gt=0, lt=1)
    threshold: float = Field(default=1e-4, ge=0)


class Cosine(RecipeTable):
    """Linear warm-up of some steps, then half a cosine down to ``last`` times the rate."""

    kind: Literal["cosine"]
    warmup_steps: int = Field(default=0, ge=0)
    last: float = Field(default=0.01, ge=0, le=1)


class Poly(RecipeTable):
    """Rate times (1 - step / steps) to the power of ``power``."""

    kind: Literal["poly"]
    power: float = Field(default=0.9, gt=0)


Schedule = Annotated[ConstantRate | Milestones | Plateau | Cosine | Poly, Field(discriminator="kind")]


class Validation(RecipeTable):
    """Validation on held-out training cases.

    Attributes:
        every_steps: Steps between validations; null for an epoch.
        keep: ``best`` or ``last``.
        patience: Validations without a better score after which training stops; null never stops early.
    """

    every_steps: int | None = Field(default=None, ge=1)
    keep: Literal["best", "last"] = "best"
    patience: int | None = Field(default=None, ge=1)


class Recipe(RecipeTable):
    """Training recipe of a network.

    Attributes:
        name: Its name, a single word, because folders are named after it; by default the file's.
        summary: One line.
        source: Source of its values.
        batch: Cases of a batch.
        epochs: Passes over the training cases.
        steps: Optimizer steps; in place of ``epochs``.
        optimizer: Optimizer settings.
        fresh_every_epoch: Whether the optimizer's state is reset at each epoch.
        schedule: Learning rate schedule.
        clip_value: Maximum absolute value of a gradient's element.
        clip_norm: Maximum norm of the gradient.
        average: Decay of averaged weights, which are then validated and stored; 0 for none.
        frozen_norms: Whether batch norms keep their statistics.
        precision: ``fp32``, ``bf16`` (autocast), ``amp`` (float16 with a gradient scaler, CUDA only) or ``auto``
            (``amp`` on CUDA, otherwise ``fp32``).
        seed: Seed of order, changes and dropout; null leaves it to the command.
        notes: Known details of the published training that are not reproduced.
    """

    name: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$")
    summary: str = ""
    source: str = ""
    batch: int = Field(ge=2, le=512)
    epochs: float | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, ge=1)
    optimizer: Optimizer
    fresh_every_epoch: bool = False
    schedule: Schedule
    clip_value: float | None = Field(default=None, gt=0)
    clip_norm: float | None = Field(default=None, gt=0)
    average: float = Field(default=0.0, ge=0, lt=1)
    frozen_norms: bool = False
    precision: Literal["auto", "fp32", "bf16", "amp"] = "fp32"
    seed: int | None = Field(default=None, ge=0)
    notes: list[str] = []

    @model_validator(mode="after")
    def _has_one_length(self) -> Recipe:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give epochs or steps, one of them")
        return self

    def steps_of(self, steps_per_epoch: int) -> int:
        """Return the total number of optimizer steps, given those of an epoch."""
        return self.steps or max(1, round((self.epochs or 0) * steps_per_epoch))
