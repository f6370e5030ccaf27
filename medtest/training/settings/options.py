"""Options for training a compact network, defined once for programs and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from medtest.training.settings.recipe import Cosine, Optimizer, Recipe, Validation


class TrainingOptions(BaseModel):
    """Options of every training from scratch; descriptions are the help of the command's options."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    reported: ClassVar[str]
    """Text before the figures of an evaluation."""
    scored: ClassVar[str]
    """Score that selects the best weights."""

    network: str = Field(description="Compact network.")
    start_from: Path | None = Field(
        default=None, description="Weights to start from: a training's folder or a .safetensors file."
    )
    seed: int = Field(default=0, ge=0, description="Initial weights, order, changes, dropout, and what is held out.")
    device: str = Field(default="cpu", description="cpu or cuda:N.")
    threads: int = Field(default=0, ge=0, description="Threads of torch; 0 for its default.")
    mlflow: bool = Field(default=True, description="Log to MLflow (MLFLOW_TRACKING_URI, else ./mlruns).")

    def identity(self) -> dict[str, Any]:
        """Return the options that a resumed training must share, as JSON values."""
        apart = {"data", "device", "threads", "mlflow", "start_from", "backbone_from"}
        return self.model_dump(mode="json", exclude=apart)


def adamw_recipe(options: Any, name: str, *, precision: Literal["fp32", "bf16"] = "fp32") -> Recipe:
    """Return the recipe of a training from scratch: AdamW, a warm-up and a cosine, averaged weights."""
    return Recipe(
        name=name,
        batch=options.batch,
        steps=options.steps,
        optimizer=Optimizer(name="adamw", rate=options.rate, decay=options.decay, decay_all=False),
        schedule=Cosine(kind="cosine", warmup_steps=options.warmup, last=options.last_rate),
        clip_norm=options.clip,
        average=options.average,
        precision=precision,
        seed=options.seed,
    )


class SegmentationOptions(TrainingOptions):
    """Options for training a segmentation network."""

    reported = "validation Dice "
    scored = "mean Dice"

    network: str = Field(description="Compact network: pranet, sanet, tganet or ssformer.")
    data: list[Path] = Field(default=[], description="Folder of images and masks with training pairs; may be repeated.")
    phantoms: int = Field(default=0, ge=0, description="Number of phantoms to train on as well.")
    phantom_negatives: float | None = Field(
        default=None, ge=0, le=1, description="Share of phantoms without a polyp; by default that of the generator."
    )
    phantom_seed: int = Field(default=20_000, description="Suite seed of the phantoms.")
    phantom_share: float = Field(
        default=0.4, ge=0, le=1, description="Share of phantoms in a batch if there are real pairs too."
    )
    held_out: int = Field(default=40, ge=0, description="Real pairs kept for validation.")
    steps: int = Field(default=4000, ge=1, description="Optimizer steps.")
    batch: int = Field(default=8, ge=2, le=512, description="Pairs in a step.")
    size: int = Field(default=256, ge=64, multiple_of=32, description="Input side of the trained network in pixels.")
    sizes: list[int] = Field(
        default=[],
        description="Sides drawn for single steps, multiples of 32; may be repeated; by default --size.",
    )
    rate: float = Field(default=1e-3, gt=0, description="Highest learning rate.")
    last_rate: float = Field(default=0.01, ge=0, le=1, description="Share of the rate at the end of the cosine.")
    warmup: int = Field(default=100, ge=0, description="Steps of linear warm-up.")
    decay: float = Field(default=0.05, ge=0, description="Weight decay.")
    clip: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    auxiliary: float = Field(
        default=0.5, ge=0, description="Weight of the auxiliary maps; half that of TGANet's two judgements."
    )
    average: float = Field(default=0.998, ge=0, lt=1, description="Decay of the averaged weights.")
    backbone_from: Path | None = Field(
        default=None, description="Weights of medtest whose backbone the training starts from; a folder or a file."
    )
    exchange: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of images with another image's colours; 0.8 for sanet, else 0.",
    )
    bf16: bool = Field(default=False, description="bfloat16 autocast; slower on CPUs without AVX-512.")
    validate_every: int = Field(default=200, ge=1, description="Steps between validations and saved states.")

    def recipe(self) -> Recipe:
        """Return the recipe."""
        return adamw_recipe(self, f"{self.network}-compact", precision="bf16" if self.bf16 else "fp32")

    def validation(self, *, watched: bool) -> Validation:
        """Return the validation settings; without validation pairs, the last weights are selected."""
        return Validation(every_steps=self.validate_every, keep="best" if watched else "last")
