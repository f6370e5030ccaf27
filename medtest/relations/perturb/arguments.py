"""Arguments of other libraries' classes as plain data: names from the signature, types from its annotations."""

from __future__ import annotations

import builtins
import collections.abc
import json
import numbers
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from medtest.core.errors import nearest_name
from medtest.core.plugins import WrongSetting
from medtest.relations.perturb.library import TransformLibrary, parameters_of

_PLAIN = (bool, int, float, str, types.NoneType)
_OPAQUE = ("Callable", "Path", "ndarray", "Tensor", "Array", "dtype", "DType", "device", "Device", "Module", "type[")
"""Words of annotations that cannot be evaluated and that hold no plain data."""
_LONGEST = 1000
"""Most items of a list and letters of a text."""
_LARGEST = 1e9
"""Largest absolute number."""


@dataclass(frozen=True)
class ArgumentTypes:
    """Arguments of a class that a suite may set.

    Attributes:
        types: Validators by name; None if the annotation does not say.
        shown: Types as words by name.
        required: Names without a default.
        closed: Reasons by name for arguments that a suite may not set.
    """

    types: Mapping[str, TypeAdapter[Any] | None]
    shown: Mapping[str, str]
    required: tuple[str, ...]
    closed: Mapping[str, str]


@cache
def argument_types(library: TransformLibrary, kind: type) -> ArgumentTypes:
    """Return the arguments of a class that a suite may set."""
    validators: dict[str, TypeAdapter[Any] | None] = {}
    shown, closed, required = {}, {}, []
    for name, parameter in parameters_of(library, kind).items():
        if name in library.reserved:
            closed[name] = "medtest sets it"
            continue
        annotation = _evaluated(parameter.annotation, kind)
        if not _is_plain(annotation):
            closed[name] = "it takes code, arrays, files or devices"
        else:
            validators[name] = _validator(annotation)
            shown[name] = _words(annotation)
        if parameter.default is parameter.empty:
            required.append(name)
    return ArgumentTypes(types=validators, shown=shown, required=tuple(required), closed=closed)


def checked_arguments(
    library: TransformLibrary, kind: type, stated: Mapping[str, Any]
) -> tuple[dict[str, Any], list[WrongSetting]]:
    """Return arguments in the types of a class, with the adapter's defaults, and all mistakes.

    Args:
        library: The class's library.
        kind: The class.
        stated: Plain data from a suite. Keys of mistakes are relative to it.
    """
    arguments, values, wrong = argument_types(library, kind), library.default_arguments(kind), list[WrongSetting]()
    for name, value in stated.items():
        problem = _problem(arguments, name, value)
        if problem is not None:
            wrong.append(problem)
            continue
        validator = arguments.types[name]
        try:
            text = json.dumps(value, allow_nan=False)
            values[name] = value if validator is None else validator.validate_json(text, strict=True)
        except (ValidationError, ValueError):
            wrong.append(WrongSetting(key=(name,), found=_shown(value), allowed=arguments.shown[name]))
    for name in arguments.required:
        if name not in stated and name not in arguments.closed:
            wrong.append(WrongSetting(key=(name,), found="nothing", allowed=arguments.shown[name]))
    return values, wrong


def _problem(arguments: ArgumentTypes, name: str, value: Any) -> WrongSetting | None:
    if name in arguments.closed:
        return WrongSetting(
            key=(name,), found=f"the argument {name}, which a suite cannot set: {arguments.closed[name]}",
            allowed=", ".join(arguments.types),
        )  # fmt: skip
    if name not in arguments.types:
        nearest = nearest_name(name, arguments.types)
        return WrongSetting(
            key=(name,),
            found=f"the argument {name}",
            allowed=", ".join(arguments.types) or "no arguments",
            nearest=nearest,
        )
    if not is_plain_data(value):
        allowed = f"plain data ({arguments.shown[name]}): numbers below {_LARGEST:g}, short texts and lists; no code"
        return WrongSetting(key=(name,), found=_shown(value), allowed=allowed)
    return None


def is_plain_data(value: Any) -> bool:
    """Return True for numbers, texts, true, false, null, and lists and mappings of them, none of them huge."""
    if isinstance(value, str):
        return len(value) <= _LONGEST
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int | float):
        return abs(value) <= _LARGEST  # False for nan and inf
    if isinstance(value, list | tuple):
        return len(value) <= _LONGEST and all(map(is_plain_data, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_plain_data(item) for name, item in value.items())
    return False


def _shown(value: Any) -> str:
    return "a function" if callable(value) else repr(value)


def _evaluated(annotation: Any, kind: type) -> Any:
    """Return an annotation as a type; as text if it names types that are not imported at run time."""
    if not isinstance(annotation, str):
        return annotation
    for owner in kind.__mro__:
        names = {**vars(builtins), **vars(typing), **vars(sys.modules.get(owner.__module__, builtins))}
        try:
            return eval(annotation, names)  # noqa: S307 - text of the installed library's own signature
        except (NameError, AttributeError, TypeError):
            continue
    return annotation


def _is_plain(annotation: Any) -> bool:
    """Return True if no value of an annotated argument can be code, an array, a file or a device."""
    if isinstance(annotation, str):
        return not any(word in annotation for word in _OPAQUE)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (Any, Ellipsis, numbers.Number, None) or annotation is getattr(types, "_empty", None):
        return True
    if origin is Literal:
        return True
    if origin in (Union, types.UnionType):
        return all(map(_is_plain, arguments))
    if origin is not None and _is_collection(origin):
        return all(map(_is_plain, arguments))
    if hasattr(annotation, "__metadata__"):
        return _is_plain(arguments[0])
    if not isinstance(annotation, type):
        return False
    if annotation.__name__ == "_empty":
        return True
    return annotation in _PLAIN or issubclass(annotation, Enum) or _is_collection(annotation)


def _is_collection(origin: Any) -> bool:
    allowed = (list, tuple, dict, set, collections.abc.Sequence, collections.abc.Mapping, collections.abc.Iterable)
    return origin in allowed


def _validator(annotation: Any) -> TypeAdapter[Any] | None:
    if isinstance(annotation, str) or getattr(annotation, "__name__", "") == "_empty":
        return None
    if annotation is numbers.Number:
        annotation = float
    try:
        return TypeAdapter(_numbers_as_float(annotation), config=ConfigDict(arbitrary_types_allowed=False))
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError):
        return None


def _numbers_as_float(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return Union[tuple(int | float if each is numbers.Number else each for each in get_args(annotation))]  # noqa: UP007
    return annotation


def _words(annotation: Any) -> str:
    """Return a type as words for people."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    simple = {bool: "true or false", int: "a whole number", float: "a number", str: "text", types.NoneType: "null"}
    if annotation in simple:
        return simple[annotation]
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, arguments)))
    if origin is Literal:
        return "one of " + ", ".join(str(value) for value in arguments)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + ", ".join(str(each.value) for each in annotation)
    if origin in (tuple, list, collections.abc.Sequence):
        inner = [each for each in arguments if each is not Ellipsis]
        many = f"{len(inner)} of " if origin is tuple and len(arguments) > 1 and Ellipsis not in arguments else ""
        return f"a list ({many}{' or '.join(dict.fromkeys(map(_words, inner)))})"
    if origin in (dict, collections.abc.Mapping):
        return "keys and values"
    if annotation is numbers.Number:
        return "a number"
    return "plain data"
