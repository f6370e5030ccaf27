"""Defences as data: attack of a training step and its loss. Presets are in ``presets/``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from medtest.core.errors import did_you_mean
from medtest.core.files.paths import read_yaml
from medtest.training.settings.recipe import RecipeTable

FOLDER = Path(__file__).parent / "presets"
METHODS = ("standard", "mpadvt", "maadvt")
NAMES: Mapping[str, str] = {"standard": "Standard", "mpadvt": "MPAdvT", "maadvt": "MAAdvT"}
"""Names in the paper's table 5."""
Levels = Annotated[float, Field(ge=0, le=255)]


class Watch(RecipeTable):
    """Attack on held-out cases that selects the weights: PGD, L∞, with one start noise for all evaluations.

    Attributes:
        epsilon: ε in levels of 255.
        steps: Steps.
        step: Step size α in levels.
        cases: Maximum number of attacked held-out cases.
        clean_floor: Largest drop of accuracy on clean held-out cases, relative to the start, at which weights may be
            selected; null for no limit.
    """

    epsilon: Levels = 4.0
    steps: int = Field(default=4, ge=1, le=1000)
    step: float = Field(default=1.0, gt=0, le=255)
    cases: int = Field(default=600, ge=2)
    clean_floor: float | None = Field(default=None, ge=0, le=1)


class Defence(RecipeTable):
    """Defence. Missing values come from the preset of its name and variant.

    Attributes:
        name: ``standard`` (eq. 6), ``mpadvt`` (algorithm 1) or ``maadvt`` (eq. 7 to 10, algorithm 2).
        variant: ``paper``, ``released`` (the published code's numbers and loss) and others of the preset's file.
        share: Probability that a batch is attacked.
        epsilon: Smallest and largest ε in levels of 255, drawn uniformly for each batch.
        steps: Smallest and largest number of steps, both included, drawn uniformly for each batch.
        step: Step size α in levels.
        start: ``uniform`` in the whole ε, or ``normal``, noise of standard deviation ``spread``.
        spread: Standard deviation for ``normal``, in levels.
        loss: ``family`` (the network's own, of the recipe), ``cross_entropy`` or ``boosted`` (MART's: cross-entropy
            and the margin to the most likely wrong class), of the attacked images.
        regularisation: λ, weight of KL(clean‖attacked)·(1 - C_y(x)) (eq. 8); 0 for none.
        watch: The attack on held-out cases.
        whose: Source of its numbers, by key.
    """

    name: Literal["standard", "mpadvt", "maadvt"]
    variant: str = "paper"
    share: float = Field(gt=0, le=1)
    epsilon: tuple[Levels, Levels]
    steps: tuple[Annotated[int, Field(ge=1, le=1000)], Annotated[int, Field(ge=1, le=1000)]]
    step: float = Field(gt=0, le=255)
    start: Literal["uniform", "normal"] = "uniform"
    spread: float = Field(default=0.0, ge=0, le=255)
    loss: Literal["family", "cross_entropy", "boosted"]
    regularisation: float = Field(default=0.0, ge=0, le=1000)
    watch: Watch = Watch()
    whose: dict[str, str] = {}

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        if values.get("name") not in METHODS:
            name = str(values.get("name"))
            raise ValueError(f"not {name}{did_you_mean(name, METHODS)} There are {', '.join(METHODS)}")
        variants = presets(str(values["name"]))
        variant = str(values.get("variant", "paper"))
        if variant not in variants:
            meant = did_you_mean(variant, variants)
            raise ValueError(f"not {values['name']} as {variant}{meant} It comes as {', '.join(variants)}")
        return {**variants[variant], **values}

    @model_validator(mode="after")
    def _fits(self) -> Defence:
        for key in ("epsilon", "steps"):
            low, high = getattr(self, key)
            if low > high:
                raise ValueError(f"{key} needs the smaller number first")
        if self.regularisation and self.share < 1:
            raise ValueError("regularisation compares clean with attacked images: every batch is attacked, share: 1")
        return self

    @property
    def single_label(self) -> bool:
        """Whether it needs a single true class per image, because eq. 7 and 8 use a softmax."""
        return self.loss == "boosted" or self.regularisation > 0 or self.name == "maadvt"


@cache
def presets(name: str) -> dict[str, dict[str, Any]]:
    """Return a method's presets by variant."""
    variants: dict[str, dict[str, Any]] = read_yaml(FOLDER / f"{name}.yaml")
    return variants
