"""The fixed blocks of a suite and the options of a run as pydantic models, and pydantic's errors in our words."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from medtest.errors import Mistake, nearest_name
from medtest.plugins import AT_KEY, is_trusted
from medtest.suite.commandline.short_keys import device_meant
from medtest.suite.library import Origin
from medtest.suite.safety import Key, dotted, short
from medtest.suite.sharding import Shard

M = TypeVar("M", bound=BaseModel)
Percent = Annotated[float, Field(ge=0, le=100)]
Threshold = Annotated[float, Field(ge=0, lt=1)]
AgainstName = Literal["truth", "source", "input"]
Originator = Callable[[Key], Origin]

SUITE_KEYS: tuple[str, ...] = (
    "name",
    "version",
    "description",
    "seed",
    "seeds",
    "relations",
    "systems",
    "oracles",
    "gates",
    "privacy",
    "prepare",
    "exclude",
    "may_alter",
    "max_error_percent",
    "extends",
)
"""What a suite may state, in the order in which its composed form is written."""


class Block(BaseModel):
    """Base of the blocks: unknown keys and wrong types are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Head(Block):
    """What a suite says of itself."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    version: str = Field(min_length=1, max_length=40)
    description: str = ""
    seed: int = Field(ge=0, le=2**63 - 1)
    may_alter: list[str] = []
    max_error_percent: Percent = 1.0


class PrimaryBlock(Block):
    """``oracles.primary``."""

    score: str = "dice"
    threshold: Threshold = 0.25
    against: AgainstName = "truth"


class ShownBlock(Block):
    """What tables show beside the primary criterion."""

    scores: list[str] = Field(default=["dice", "iou", "both", "either"], min_length=1)
    thresholds: list[Threshold] = Field(default=[0.25, 0.5], min_length=1)
    against: list[AgainstName] = Field(default=["truth", "source"], min_length=1)


class GateBlock(Block):
    """One item of ``gates``; what it leaves out of the criterion is the primary one's."""

    score: str
    threshold: Threshold
    against: AgainstName
    dataset: str = "all"
    relation: str = "overall"
    severity: Literal["all", 0, 1, 2, 3, 4, 5, "0", "1", "2", "3", "4", "5"] = "all"
    max_percent: Percent
    bound: Literal["ci_high", "efr_percent"] = "ci_high"


class PairedGateBlock(Block):
    """One item of ``gates`` that names a finished run."""

    score: str
    threshold: Threshold
    against: AgainstName
    dataset: str = "all"
    relation: str = "overall"
    severity: Literal["all", 0, 1, 2, 3, 4, 5, "0", "1", "2", "3", "4", "5"] = "all"
    no_worse_than: str = Field(min_length=1)
    margin_percent: Percent = 2.0


class PrivacyBlock(Block):
    """``privacy``."""

    seed_ids: Literal["plain", "hashed"] = "plain"
    images: Literal["samples", "none"] = "samples"
    prompts: Literal["plain", "none"] = "plain"


class PrepareBlock(Block):
    """``prepare``."""

    size: Literal["native"] | Annotated[int, Field(ge=64, le=4096)] = 512
    resize: Annotated[int, Field(ge=64, le=4096)] | None = None


class ExcludeBlock(Block):
    """``exclude``."""

    study: str = Field(min_length=1)


class TrackingBlock(Block):
    """The group ``tracking``."""

    enabled: bool = True
    uri: str | None = None


class ExecutorBlock(Block):
    """The group ``executor``: where workers live; all but its name is of Ray."""

    name: Literal["local", "ray"] = "local"
    address: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    cpus: Annotated[float, Field(gt=0, le=1024)] = 1.0
    gpus: Annotated[float, Field(ge=0, le=64)] = 0.0
    ahead: Annotated[int, Field(ge=1, le=64)] = 2
    wheel: str | None = None
    cache_gb: Annotated[float, Field(gt=0, le=1e6)] = 20.0
    wait_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0


class BudgetBlock(Block):
    """``budget``: what a run may spend on calls of one system over an API."""

    max_usd: Annotated[float, Field(gt=0, le=1e9)] | None = None
    max_calls: Annotated[int, Field(ge=1)] | None = None


class JudgeBlock(BudgetBlock):
    """``judge``: a model over an API that reads answers in which the parser finds no value."""

    use: str | None = None
    base_url: str | None = None
    key_variable: str | None = None
    model_name: str | None = None


def _as_shard(typed: object) -> str | None:
    return None if typed is None else str(Shard.typed(str(typed)))


_DEVICE = r"^(auto|cpu|cuda(:\d{1,3})?)$"


class RunBlock(Block):
    """The options of a run: ``conf/config.yaml`` and the command line."""

    system_name: str | None = None
    data: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    only: str | list[str] | None = None
    shard: Annotated[str, BeforeValidator(_as_shard)] | None = None
    plan: bool = False
    fresh: bool = False
    device: str = Field(default="auto", pattern=_DEVICE)
    workers: Annotated[int, Field(ge=0, le=512)] | None = None
    threads: Annotated[int, Field(ge=1, le=512)] | None = None
    batch_size: int = Field(default=8, ge=1, le=4096)
    batch_seconds: float = Field(default=300.0, gt=0, le=86_400)
    followups: Literal["make", "store"] = "make"
    reference: str | None = None
    budget: BudgetBlock = BudgetBlock()
    cache: Literal["use", "refresh", "off"] = "use"
    judge: JudgeBlock = JudgeBlock()
    track: bool = True
    quiet: bool = False
    tracking: TrackingBlock = TrackingBlock()
    executor: ExecutorBlock = ExecutorBlock()


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
    r"^[a-z0-9][a-z0-9_-]{0,63}$": "small letters, digits, _ and -, 64 at most",
    _DEVICE: "auto, cpu, cuda or cuda:N",
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
        at: Where the block stands.
        origin: Tells where a key stands.
        mistakes: Is added to.
        given: What the user wrote of ``values``; shown when keys do not go together.

    Returns:
        The model, or None when something was wrong.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        mistakes.extend(_mistakes(model, error, at, origin, values if given is None else given))
        return None


def _mistakes(
    model: type[BaseModel], error: ValidationError, at: Key, origin: Originator, given: Mapping[str, Any]
) -> Iterator[Mistake]:
    grouped: dict[Key, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        grouped.setdefault(_location(model, detail["loc"]), []).append(detail)
    for location, details in grouped.items():
        if not location and details[0]["type"] == AT_KEY:
            location = (str(details[0]["ctx"]["key"]),)  # noqa: PLW2901
        key = (*at, *location)
        place = origin(key)
        first = details[0]
        missing = first["type"] == "missing"
        nearest, fix = None, ""
        if first["type"] == "extra_forbidden":
            names = field_names(model, location[:-1])
            found, allowed = f"the key {location[-1]}", ", ".join(names) or "no keys here"
            nearest = nearest_name(str(location[-1]), names)
        else:
            found = "nothing" if missing else short(_found(_blamed(first, location, given)))
            allowed = " or ".join(dict.fromkeys(_allowed(detail) for detail in details))
            device, fix = _device(details)
            nearest = _nearest_literal(details) or device
        yield Mistake(
            where=place.where, line=place.line, key=dotted(key), found=found, allowed=allowed, nearest=nearest, fix=fix
        )


def _blamed(detail: ErrorDetails, location: Key, given: Mapping[str, Any]) -> object:
    """Return what the user wrote where an error stands."""
    if detail["type"] == AT_KEY:
        return given.get(str(location[0]), "its default")
    return detail["input"] if location else dict(given)


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
        return ", ".join(dict.fromkeys(names))  # 1 and "1" are one to people
    if error in _ALLOWED:
        return _ALLOWED[error]
    return str(detail["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _nearest_literal(details: list[ErrorDetails]) -> str | None:
    for detail in details:
        if detail["type"] == "literal_error" and isinstance(detail["input"], str):
            names = [name.strip() for name in _allowed(detail).split(",")]
            return nearest_name(detail["input"], names)
    return None


def _device(details: list[ErrorDetails]) -> tuple[str | None, str]:
    for detail in details:
        if detail.get("ctx", {}).get("pattern") == _DEVICE:
            return device_meant(str(detail["input"]))
    return None, ""


def _location(model: type[BaseModel], loc: tuple[int | str, ...]) -> Key:
    """Take out of pydantic's location what names no key: members of unions, tagged types."""
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
    """Return the annotation one key further in; ``_NOT_A_KEY`` when ``part`` names a branch and no key."""
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
    """Whether a field holds text and nothing else: what is typed for it is taken as it stands."""
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
