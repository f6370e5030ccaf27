"""Options of a classifier's training, defined once for programs and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from medtest.training.settings.options import TrainingOptions
from medtest.training.settings.recipe_files import typed_changes


class ClassificationOptions(TrainingOptions):
    """Options of a classifier's training."""

    reported = "held out: "
    scored = "score"

    network: str = Field(description="Compact network: agdn, dsinet, attnmel, inceptionv3_dr or chexnet.")
    suite: str | None = Field(default=None, description="Suite whose seeds are the training cases; with --data.")
    data: Path | None = Field(default=None, description="Folder of the user's images that the suite's seeds read.")
    phantoms: int = Field(default=0, ge=0, description="Number of phantoms to train on.")
    phantom_seed: int = Field(default=30_000, description="Suite seed of the phantoms.")
    recipe: str = Field(
        default="compact",
        description="compact, agdn, dsinet, attnmel, inceptionv3_dr, chexnet, or the path of a YAML file.",
    )
    change: list[str] = Field(
        default=[], description="KEY=VALUE that changes a key of the recipe (optimizer.rate=1e-3); may be repeated."
    )
    steps: int | None = Field(default=None, ge=1, description="Optimizer steps, instead of the recipe's length.")
    batch: int | None = Field(default=None, ge=2, description="Cases in a step, instead of the recipe's.")
    side: int | None = Field(
        default=None,
        ge=64,
        le=640,
        multiple_of=32,
        description="Input side in pixels; by default the network's own.",
    )

    def changes(self) -> dict[str, Any]:
        """Return the recipe keys set by the user.

        Raises:
            UserMistakes: A change is no ``KEY=VALUE``.
        """
        own = {key: value for key in ("steps", "batch") if (value := getattr(self, key)) is not None}
        return {**typed_changes(self.change), **own}
