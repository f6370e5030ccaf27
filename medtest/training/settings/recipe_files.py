"""Recipe files: lookup by name or path, overrides, and readable validation errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error

_MAX_BYTES = 200_000
Model = TypeVar("Model", bound=BaseModel)


def names_in(folder: Path) -> tuple[str, ...]:
    """Return the names of the recipes of a folder."""
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def load_file(model: type[Model], folder: Path, name: str, changes: Mapping[str, Any] | None = None) -> Model:
    """Return a recipe by its name or from a file.

    Args:
        model: Model of this kind of recipe.
        folder: Folder of the bundled recipes.
        name: One of :func:`names_in`, or the path of a YAML file of this form.
        changes: Overrides by dotted keys (``{"optimizer.rate": 1e-4}``); setting ``steps`` removes ``epochs`` and vice
            versa.

    Raises:
        UserMistakes: There is no such recipe, or a key or value is invalid.
    """
    path = Path(name).expanduser()
    is_path = path.suffix.lower() in (".yaml", ".yml")
    names = names_in(folder)
    if not is_path:
        if name not in names:
            allowed = f"{', '.join(names)}, or the path of a YAML file"
            raise typed_error("recipe", repr(name), allowed, nearest=nearest_name(name, names))
        path = folder / f"{name}.yaml"
    values = _read(path, "recipe")
    for changed, value in (changes or {}).items():
        _override(values, changed, value)
    values.setdefault("name", re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-._")[:64] or "recipe")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UserMistakes(_mistakes_of(error.errors(), model, path.name if is_path else f"recipe {name}")) from error


def typed_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Parse ``KEY=VALUE`` overrides of a recipe: dotted keys and plain values.

    Raises:
        UserMistakes: A word has another form.
    """
    overrides: dict[str, Any] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name:
            raise typed_error("--change", change, "KEY=VALUE, for example optimizer.rate=1e-3")
        overrides[name] = typed_value(text)
    return overrides


def typed_value(text: str) -> Any:
    """Parse a typed value as YAML, including 1e-4 as a number, which YAML 1.1 reads as text."""
    try:
        plain = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if not isinstance(plain, str):
        return plain
    try:
        return float(plain)
    except ValueError:
        return plain


def _read(path: Path, key: str) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise typed_error(key, f"{path.name}, {path.stat().st_size} bytes", f"at most {_MAX_BYTES} bytes")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise typed_error(key, f"{path.name} ({error})", "a YAML file that can be read") from error
    except yaml.YAMLError as error:
        raise typed_error(key, f"{path.name}: {' '.join(str(error).split())[:200]}", "YAML") from error
    if not isinstance(content, dict):
        raise typed_error(key, f"{path.name} holds {type(content).__name__}", "a table of keys and values")
    return {str(name): value for name, value in content.items()}


def _override(values: dict[str, Any], key: str, value: Any) -> None:
    steps = key.split(".")
    inner = values
    for step in steps[:-1]:
        below = inner.get(step)
        inner[step] = dict(below) if isinstance(below, dict) else {}
        inner = inner[step]
    inner[steps[-1]] = value
    if key in ("steps", "epochs") and value is not None:
        values.pop("epochs" if key == "steps" else "steps", None)


def _mistakes_of(errors: Iterable[Any], model: type[BaseModel], where: str) -> list[Mistake]:
    mistakes: list[Mistake] = []
    for error in errors:
        location: Sequence[Any] = [
            step for step in error["loc"] if step not in ("steps", "milestones", "plateau", "cosine", "poly")
        ]
        unknown = error["type"] == "extra_forbidden"
        allowed_keys = _keys_at(model, error["loc"][:-1]) if unknown else ()
        allowed = f"no such key; {', '.join(allowed_keys)}" if allowed_keys else "no such key"
        mistakes.append(
            Mistake(
                where=where,
                key=".".join(str(step) for step in (location or error["loc"])),
                found="" if not location and not error["loc"] else repr(error["input"])[:120],
                allowed=allowed if unknown else str(error["msg"]).removeprefix("Value error, "),
                nearest=nearest_name(str(error["loc"][-1]), allowed_keys) if unknown else None,
            )
        )
    return mistakes


def _keys_at(model: type[BaseModel], steps: Sequence[Any]) -> tuple[str, ...]:
    """Return the keys allowed in a table of a recipe, given the keys that lead to it."""
    for step in steps:
        field = model.model_fields.get(str(step))
        kinds = (
            [
                annotation
                for annotation in get_args(field.annotation)
                if isinstance(annotation, type) and issubclass(annotation, BaseModel)
            ]
            if field
            else []
        )
        if len(kinds) > 1:  # a table of several kinds: the step after it is the kind's name
            kind = str(steps[-1])
            chosen = [table for table in kinds if kind in get_args(table.model_fields["kind"].annotation)]
            return tuple(chosen[0].model_fields) if chosen else ()
        if len(kinds) == 1:  # a table that may be null
            model = kinds[0]
            continue
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return ()
        model = field.annotation
    return tuple(model.model_fields)
