"""Validation of blocks and settings by pydantic, with its errors converted to mistakes."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from medtest.core.errors import Mistake, nearest_name
from medtest.core.plugins import AT_KEY, is_trusted
from medtest.suite.reading.library import Origin
from medtest.suite.reading.safety import Key, dotted, short

M = TypeVar("M", bound=BaseModel)
Originator = Callable[[Key], Origin]

_ALLOWED: Mapping[str, str] = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "keys and values",
    "mapping_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "none_required": "nothing (null)",
    "finite_number": "a finite number",
    "missing": "a value",
}
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "above {}"),
    "greater_than_equal": ("ge", "at least {}"),
    "less_than": ("lt", "below {}"),
    "less_than_equal": ("le", "at most {}"),
    "multiple_of": ("multiple_of", "a multiple of {}"),
    "too_short": ("min_length", "at least {} items"),
    "too_long": ("max_length", "at most {} items"),
    "string_too_short": ("min_length", "at least {} characters"),
    "string_too_long": ("max_length", "at most {} characters"),
    "string_pattern_mismatch": ("pattern", "text like {}"),
}
_PLAIN_PATTERNS: Mapping[str, str] = {
    r"^[a-z0-9][a-z0-9_-]{0,63}$": "at most 64 lower-case letters, digits, _ and -",
}


def validate(
    model: type[M],
    values: Mapping[str, Any],
    *,
    at: Key,
    origin: Originator,
    mistakes: list[Mistake],
    given: Mapping[str, Any] | None = None,
) -> M | None:
    """Validate a block; every error becomes a mistake with its own line.

    Args:
        model: The block, or a part's ``Settings``.
        values: Plain data.
        at: Key of the block.
        origin: Returns the file and line of a key.
        mistakes: List to which mistakes are added.
        given: The user's part of ``values``; shown if keys are incompatible.

    Returns:
        The model, or None if there were mistakes.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        mistakes.extend(_mistakes(model, error, at, origin, values if given is None else given))
        return None


def _mistakes(
    model: type[BaseModel], error: ValidationError, at: Key, origin: Originator, stated: Mapping[str, Any]
) -> Iterator[Mistake]:
    grouped: dict[Key, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        grouped.setdefault(_location(model, detail["loc"]), []).append(detail)
    for location, details in grouped.items():
        if not location and details[0]["type"] == AT_KEY:
            for wrong in details[0]["ctx"]["mistakes"]:
                place = origin((*at, *wrong.key))
                yield Mistake(
                    where=place.where,
                    line=place.line,
                    key=dotted((*at, *wrong.key)),
                    found=short(_found(_value_at(stated, wrong.key)) if wrong.found is None else wrong.found),
                    allowed=wrong.allowed,
                    nearest=wrong.nearest,
                    fix=wrong.fix,
                )
            continue
        key = (*at, *location)
        place = origin(key)
        first = details[0]
        missing = first["type"] == "missing"
        nearest = None
        if first["type"] == "extra_forbidden":
            names = field_names(model, location[:-1])
            actual, allowed = f"the key {location[-1]}", ", ".join(names) or "no keys here"
            nearest = nearest_name(str(location[-1]), names)
        else:
            actual = "nothing" if missing else short(_found(first["input"] if location else dict(stated)))
            allowed = " or ".join(dict.fromkeys(_allowed(detail) for detail in details))
            nearest = _nearest_literal(details)
        yield Mistake(
            where=place.where, line=place.line, key=dotted(key), found=actual, allowed=allowed, nearest=nearest
        )


def _value_at(stated: Mapping[str, Any], key: tuple[str, ...]) -> object:
    """Return the user's value at the key of a mistake; keys of mappings are compared as text."""
    value: object = stated
    for part in key:
        items = value.items() if isinstance(value, Mapping) else ()
        inner = [item for name, item in items if str(name) == part]
        if not inner:
            return "its default"
        value = inner[0]
    return value


def _found(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing (null)"
    if isinstance(value, str):
        return f"{value!r} (text)" if value.replace(".", "", 1).lstrip("+-").isdecimal() else repr(value)
    return repr(value)


def _allowed(detail: ErrorDetails) -> str:
    error, context = detail["type"], detail.get("ctx", {})
    if error in _BOUNDS:
        name, text = _BOUNDS[error]
        bound = context.get(name, "?")
        return _PLAIN_PATTERNS.get(str(bound), text.format(bound))
    if error in ("literal_error", "enum"):
        names = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ").split(", ")
        return ", ".join(dict.fromkeys(names))  # 1 and "1" look the same to people
    if error in _ALLOWED:
        return _ALLOWED[error]
    return str(detail["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _nearest_literal(details: list[ErrorDetails]) -> str | None:
    for detail in details:
        if detail["type"] == "literal_error" and isinstance(detail["input"], str):
            names = [name.strip() for name in _allowed(detail).split(",")]
            return nearest_name(detail["input"], names)
    return None


def _location(model: type[BaseModel], loc: tuple[int | str, ...]) -> Key:
    """Remove the parts of pydantic's location that are not keys: members of unions, tagged types."""
    key: list[int | str] = []
    annotation: Any = model
    for part in loc:
        if part == "[key]":
            continue
        inner = _step(annotation, part)
        if inner is _NOT_A_KEY:
            continue
        in_list = any(get_origin(option) in (list, tuple, set) for option in _options(annotation))
        key.append(part if in_list else str(part))
        annotation = inner
    return tuple(key)


_NOT_A_KEY = object()


def _step(annotation: Any, part: int | str) -> Any:
    """Return the annotation one key further in; ``_NOT_A_KEY`` if ``part`` names a branch and not a key."""
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            if part in option.model_fields:
                return option.model_fields[str(part)].annotation
            if not any(_is_branch(o, part) for o in _options(annotation)):
                return Any
        origin, arguments = get_origin(option), get_args(option)
        if origin in (list, tuple, set) and isinstance(part, int):
            return arguments[0] if arguments else Any
        if origin is dict and not _is_branch(option, part):
            return arguments[1] if len(arguments) > 1 else Any
    if annotation is Any:
        return Any
    return _NOT_A_KEY


def _is_branch(option: Any, part: int | str) -> bool:
    name = getattr(option, "__name__", str(option))
    text = str(part)
    return text == name or text.startswith((f"{name}[", "function-", "constrained-", "literal[", "tagged-union"))


def _options(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for argument in get_args(annotation):
            yield from _options(argument)
    else:
        yield annotation


def field_names(model: type[BaseModel], location: Key) -> list[str]:
    """Return the keys that a block allows at a location inside it."""
    annotation: Any = model
    for part in location:
        annotation = _step(annotation, part)
    for option in _options(annotation):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return list(option.model_fields)
    return []


def is_text(field: FieldInfo) -> bool:
    """Return True if a field holds only text, so that a typed value is literal."""
    options = set(_options(field.annotation))
    return str in options and options <= {str, type(None)}


def trusted_keys(model: type[BaseModel], at: Key = ()) -> Iterator[Key]:
    """Yield the paths of the fields that a suite may not set (``json_schema_extra=TRUSTED``)."""
    for name, info in model.model_fields.items():
        if is_trusted(info):
            yield (*at, name)
            continue
        for option in _options(info.annotation):
            if isinstance(option, type) and issubclass(option, BaseModel) and option is not model:
                yield from trusted_keys(option, (*at, name))
