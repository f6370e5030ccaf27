"""Recipes of generators, as data. The bundled ones are in ``recipes/``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from medtest.training.settings.recipe import Recipe, Validation
from medtest.training.settings.recipe_files import load_file

FOLDER = Path(__file__).parent / "recipes"


class GeneratorWatching(Validation):
    """Validation on held-out training cases.

    Attributes:
        held_out: Share of the patients or videos held out of training.
    """

    held_out: float = Field(default=0.15, gt=0, lt=1)


class GeneratorRecipe(Recipe):
    """Recipe of a generator.

    Attributes:
        width: Channels of its outermost convolution (ngf of the published code).
        activation: Activation of its decoder.
        dropout: Share of the innermost values dropped in training.
        start: Initial weights: ``spread`` preserves the variance of activations, ``torch`` is torch's default.
        goal: Objective if no target is named, see :mod:`medtest.relations.adversarial.generators.goals`.
        most_batches: Maximum number of batches of an epoch; null for all.
        seed: Determines weights, order, dropout and the held-out cases.
        watching: Validation.
    """

    width: int = Field(ge=1, le=256)
    activation: Literal["relu", "selu"] = "relu"
    dropout: float = Field(default=0.5, ge=0, lt=1)
    start: Literal["spread", "torch"] = "spread"
    goal: Literal["away", "least_likely"] = "away"
    most_batches: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    watching: GeneratorWatching = GeneratorWatching()


def load_recipe(name: str, changes: Mapping[str, Any] | None = None) -> GeneratorRecipe:
    """Return a recipe of generators; see :func:`medtest.training.settings.recipe_files.load_file`."""
    return load_file(GeneratorRecipe, FOLDER, name, changes)
