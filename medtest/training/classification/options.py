"""What a training of a classifier may be told: each option once, for programs and for the command line alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ClassificationOptions(BaseModel):
    """What a training of a classifier may be told; descriptions are the help of the command's options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str = Field(description="Compact network: agdn, dsinet, attnmel, inceptionv3_dr or chexnet.")
    suite: str | None = Field(default=None, description="Suite whose seeds are the training cases; with --data.")
    data: Path | None = Field(default=None, description="Folder of the user's images that the suite's seeds read.")
    phantoms: int = Field(default=0, ge=0, description="Number of phantoms to train on.")
    phantom_seed: int = Field(default=30_000, description="Suite seed the phantoms are drawn from.")
    recipe: str = Field(
        default="compact",
        description="compact, agdn, dsinet, attnmel, inceptionv3_dr, chexnet, or the path of a YAML file.",
    )
    change: list[str] = Field(
        default=[], description="KEY=VALUE that changes a key of the recipe (optimizer.rate=1e-3); may be repeated."
    )
    steps: int | None = Field(default=None, ge=1, description="Optimizer steps, in place of the recipe's length.")
    batch: int | None = Field(default=None, ge=2, description="Cases in a step, in place of the recipe's.")
    side: int | None = Field(
        default=None,
        ge=64,
        le=640,
        multiple_of=32,
        description="Side in pixels that the network takes; its own without.",
    )
    start_from: Path | None = Field(
        default=None, description="Weights to start from: a training's folder or a .safetensors file."
    )
    seed: int = Field(default=0, ge=0, description="Initial weights, order, changes, dropout, and what is held out.")
    device: str = Field(default="cpu", description="cpu or cuda:N.")
    threads: int = Field(default=0, ge=0, description="Threads of torch; 0 leaves its choice.")
    mlflow: bool = Field(default=True, description="Log to MLflow (MLFLOW_TRACKING_URI, else ./mlruns).")

    def identity(self) -> dict[str, Any]:
        """Return the options that a resumed training must share, as JSON values."""
        apart = {"data", "device", "threads", "mlflow", "start_from"}
        return self.model_dump(mode="json", exclude=apart)
