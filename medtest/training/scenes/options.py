"""Options for training the reader of drawn scenes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from medtest.training.settings.options import TrainingOptions, adamw_recipe
from medtest.training.settings.recipe import Recipe, Validation


class SceneOptions(TrainingOptions):
    """Options for training the reader of drawn scenes."""

    reported = "validation "
    scored = "F1 times share of right colours"

    network: str = Field(default="scenes", pattern="^scenes$", description="Always scenes.")
    steps: int = Field(default=3600, ge=1, description="Optimizer steps.")
    batch: int = Field(default=16, ge=2, le=512, description="Pictures in a step.")
    rate: float = Field(default=2e-3, gt=0, description="Highest learning rate.")
    last_rate: float = Field(default=0.01, ge=0, le=1, description="Share of the rate at the end of the cosine.")
    warmup: int = Field(default=150, ge=0, description="Steps of linear warm-up.")
    decay: float = Field(default=0.02, ge=0, description="Weight decay.")
    clip: float = Field(default=10.0, gt=0, description="Largest norm of the gradient.")
    average: float = Field(default=0.998, ge=0, lt=1, description="Decay of the averaged weights.")
    prior: float = Field(default=-5.0, le=0, description="Logit of a peak before training.")
    watched: int = Field(default=256, ge=1, description="Number of scenes held out for validation.")
    validate_every: int = Field(default=300, ge=1, description="Steps between validations and saved states.")
    workers: int = Field(default=1, ge=0, le=64, description="Processes that draw scenes; 0 draws in this one.")

    def identity(self) -> dict[str, Any]:
        """Return the options that a resumed training must share, as JSON values."""
        return {name: value for name, value in super().identity().items() if name != "workers"}

    def recipe(self) -> Recipe:
        """Return the recipe."""
        return adamw_recipe(self, "scenes")

    def validation(self) -> Validation:
        """Return the validation settings."""
        return Validation(every_steps=self.validate_every, keep="best")

    def noted(self) -> str:
        """Return the note on the training in the weights file."""
        return f"drawn scenes, seed {self.seed}, {self.steps} steps of {self.batch}"
