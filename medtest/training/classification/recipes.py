"""Recipes by name or from a file, with keys changed, and what is wrong with them in our words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.training.classification.recipe import FOLDER, ClassifierRecipe

_MAX_BYTES = 200_000


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes that ship with medtest."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def load_recipe(name: str, changes: Sequence[str] = (), **over: Any) -> ClassifierRecipe:
    """Return a recipe.

    Args:
        name: One of :func:`recipe_names`, or the path of a YAML file of this form.
        changes: ``KEY=VALUE`` with dotted keys, laid over it.
        over: Keys and values laid over it after those; None is left out. ``steps`` takes ``epochs`` out.

    Raises:
        UserMistakes: There is no such recipe, or a key or value does not fit.
    """
    path = Path(name).expanduser()
    if path.suffix.lower() not in (".yaml", ".yml"):
        if name not in recipe_names():
            allowed = f"{', '.join(recipe_names())}, or the path of a YAML file"
            raise _mistake("--recipe", name, allowed, nearest_name(name, recipe_names()))
        path = FOLDER / f"{name}.yaml"
    values = {**_read(path), "name": path.stem}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise _mistake("--change", change, "KEY=VALUE, as optimizer.rate=1e-3")
        _lay(values, key, _value(text))
    for key, value in over.items():
        if value is not None:
            _lay(values, key, value)
    try:
        return ClassifierRecipe.model_validate(values)
    except ValidationError as error:
        raise UserMistakes(_rephrased(error.errors(), path.name)) from error


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _mistake("--recipe", f"{path.name}, {path.stat().st_size} bytes", f"at most {_MAX_BYTES} bytes")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _mistake("--recipe", f"{path.name} ({error})", "a YAML file that can be read") from error
    except yaml.YAMLError as error:
        raise _mistake("--recipe", f"{path.name}: {' '.join(str(error).split())[:200]}", "YAML") from error
    if not isinstance(content, dict):
        raise _mistake("--recipe", f"{path.name} holds {type(content).__name__}", "a table of keys and values")
    return {str(key): value for key, value in content.items()}


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


def _lay(values: dict[str, Any], key: str, value: Any) -> None:
    *above, last = key.split(".")
    inner = values
    for step in above:
        below = inner.get(step)
        inner[step] = dict(below) if isinstance(below, dict) else {}
        inner = inner[step]
    inner[last] = value
    if key in ("steps", "epochs"):
        values.pop("epochs" if key == "steps" else "steps", None)


def _rephrased(errors: Sequence[Any], where: str) -> list[Mistake]:
    found: list[Mistake] = []
    for one in errors:
        unknown = one["type"] == "extra_forbidden"
        known = tuple(ClassifierRecipe.model_fields) if unknown and len(one["loc"]) == 1 else ()
        found.append(
            Mistake(
                where=where,
                key=".".join(str(step) for step in one["loc"]),
                found=repr(one["input"])[:120] if one["loc"] else "",
                allowed=(f"no such key; {', '.join(known)}" if known else "no such key")
                if unknown
                else str(one["msg"]).removeprefix("Value error, "),
                nearest=nearest_name(str(one["loc"][-1]), known) if known else None,
            )
        )
    return found


def _mistake(key: str, found: str, allowed: str, nearest: str | None = None) -> UserMistakes:
    return UserMistakes([Mistake(where="command line", key=key, found=found, allowed=allowed, nearest=nearest)])
