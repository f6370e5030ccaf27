"""Recipes of generators, as data: how one is built and trained. Those that ship lie in ``recipes/``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from medtest.training.settings.recipe import Recipe, Validation
from medtest.training.settings.recipe_files import load_file, names_in

FOLDER = Path(__file__).parent / "recipes"


class GeneratorWatching(Validation):
    """How a training is watched, on training cases that are held out.

    Attributes:
        held_out: Share of the patients or videos held out of training.
    """

    held_out: float = Field(default=0.15, gt=0, lt=1)


class GeneratorRecipe(Recipe):
    """One way of training a generator.

    Attributes:
        width: Channels of its outermost convolution (ngf of the published code).
        activation: Of its decoder.
        dropout: Share of the innermost values that training drops.
        start: Weights before training: ``spread`` keeps the spread of what flows through, ``torch`` is torch's own.
        goal: What it is led towards where no target is named, see :mod:`medtest.relations.generators.goals`.
        most_batches: Largest number of batches of an epoch; null for all.
        seed: Decides weights, order, dropout and what is held out.
        watching: How it is watched.
    """

    width: int = Field(ge=1, le=256)
    activation: Literal["relu", "selu"] = "relu"
    dropout: float = Field(default=0.5, ge=0, lt=1)
    start: Literal["spread", "torch"] = "spread"
    goal: Literal["away", "least_likely"] = "away"
    most_batches: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    watching: GeneratorWatching = GeneratorWatching()


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes that ship with medtest."""
    return names_in(FOLDER)


def load_recipe(name: str, changes: Mapping[str, Any] | None = None) -> GeneratorRecipe:
    """Return a recipe of generators; see :func:`medtest.training.settings.recipe_files.load_file`."""
    return load_file(GeneratorRecipe, FOLDER, name, changes)
