"""Recipes of classifiers by name or from a file, with keys changed as the command line gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from medtest.training.classification.recipe import FOLDER, ClassifierRecipe
from medtest.training.recipe_files import load_file, mistake, names_in


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes that ship with medtest."""
    return names_in(FOLDER)


def load_recipe(name: str, changes: Sequence[str] = (), **over: Any) -> ClassifierRecipe:
    """Return a recipe.

    Args:
        name: One of :func:`recipe_names`, or the path of a YAML file of this form.
        changes: ``KEY=VALUE`` with dotted keys, laid over it.
        over: Keys and values laid over it after those; None is left out. ``steps`` takes ``epochs`` out.

    Raises:
        UserMistakes: There is no such recipe, or a key or value does not fit.
    """
    laid: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise mistake("--change", change, "KEY=VALUE, as optimizer.rate=1e-3")
        laid[key] = _value(text)
    laid |= {key: value for key, value in over.items() if value is not None}
    return load_file(ClassifierRecipe, FOLDER, name, laid)


def _value(text: str) -> Any:
    try:
        plain = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if not isinstance(plain, str):
        return plain
    try:
        return float(plain)  # YAML 1.1 takes 1e-4 for text
    except ValueError:
        return plain
