"""``library.Class`` of a suite: the class, its arguments, and all mistakes before anything is run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from medtest.core.cases import Image
from medtest.core.errors import nearest_name
from medtest.core.plugins import WrongSetting, wrong_settings
from medtest.relations.perturb.arguments import argument_types, checked_arguments
from medtest.relations.perturb.library import Companions, Moves, TransformLibrary, library_names, library_of
from medtest.relations.perturb.values import as_picture

_NAMED = 12
"""Most names in a message."""


@dataclass(frozen=True, kw_only=True)
class Transform:
    """Allowed image transform of an installed library.

    Attributes:
        library: Its adapter.
        kind: Its class.
    """

    library: TransformLibrary
    kind: type

    @property
    def moves(self) -> Moves:
        """Whether it moves pixels, as its library states it."""
        return self.library.moves(self.kind)

    def change(
        self, stated: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[Image, Companions]:
        """Change a picture with a fresh object.

        Args:
            stated: Arguments as plain data, without mistakes.
            seed: Seed of the object's random numbers.
            image: uint8 H×W×3, which is not modified.
            companions: Data to move along.

        Raises:
            NotApplicable: The picture has another size.
            BadOutput: It has numbers that are not finite.
        """
        arguments, _ = checked_arguments(self.library, self.kind, stated)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changed, moved = self.library.change(self.kind, arguments, seed, image, companions)
        return as_picture(changed, image), moved

    def mistakes(self, stated: Mapping[str, Any]) -> Iterator[WrongSetting]:
        """Yield the mistakes in arguments; warnings of the constructor count."""
        arguments, wrong = checked_arguments(self.library, self.kind, stated)
        if wrong:
            yield from wrong
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                self.library.build(self.kind, arguments)
        except Exception as error:  # noqa: BLE001 - any library's own words for a wrong argument
            reason = _reason(error)
            yield WrongSetting(key=(), found=repr(dict(stated)), allowed=f"arguments of {self.kind.__name__}: {reason}")


def _reason(error: Exception) -> str:
    """Return a library's own words for a wrong argument, without those of pydantic around them."""
    if isinstance(error, ValidationError):
        return "; ".join(
            ": ".join([*(str(part) for part in detail["loc"]), detail["msg"].removeprefix("Value error, ")])
            for detail in error.errors(include_url=False)
        )
    return " ".join(str(error).split()) or type(error).__name__


@cache
def transforms_of(library: TransformLibrary) -> tuple[Mapping[str, type], Mapping[str, str]]:
    """Return the allowed classes of an installed library by name, and the reasons for the refused ones."""
    allowed: dict[str, type] = {}
    refused: dict[str, str] = {}
    for kind in library.candidates():
        name = kind.__name__
        reason = library.refused.get(name) or _unsafe(library, kind)
        if reason:
            refused[name] = reason
        else:
            allowed[name] = kind
    return allowed, refused


def _unsafe(library: TransformLibrary, kind: type) -> str:
    """Return the reason why plain data cannot create a class; "" if they can."""
    arguments = argument_types(library, kind)
    blocked = [name for name in arguments.required if name in arguments.closed and name not in library.reserved]
    return f"its argument {blocked[0]} cannot be plain data" if blocked else ""


@cache
def transform_of(text: str) -> Transform:
    """Return the transform that a suite names.

    Raises:
        PydanticCustomError: The library is unknown, missing or refused, or it has no such image transform.
    """
    prefix, _, name = text.partition(".")
    libraries = library_names()
    if prefix not in libraries or not name:
        if prefix.lower() == "albumentationsx":
            raise _wrong("a class of albumentations 2.0.8 (MIT)", fix="AlbumentationsX is under the AGPL-3.0")
        nearest = nearest_name(prefix, libraries)
        raise _wrong(
            ", ".join(f"{library}.CLASS" for library in libraries),
            nearest=nearest and f"{nearest}.{name or 'CLASS'}",
        )
    library = library_of(prefix)
    reason, fix = library.problem()
    if reason:
        raise _wrong(f"a class of {prefix}, but {reason}", fix=fix)
    try:
        allowed, refused = transforms_of(library)
    except ImportError as error:
        raise _wrong(f"a class of {prefix}, which cannot be imported: {error}") from error
    if name in refused:
        raise _wrong(f"another class of {prefix}: {name} is refused, for {refused[name]}")
    if name not in allowed:
        nearest = nearest_name(name, allowed)
        near = sorted(allowed, key=lambda other: (other[:3] != name[:3], other))[:_NAMED]
        raise _wrong(
            f"{len(allowed)} classes of {prefix}, such as {', '.join(near)} (docs/other-libraries.md lists them)",
            nearest=nearest and f"{prefix}.{nearest}",
        )
    return Transform(library=library, kind=allowed[name])


def _wrong(allowed: str, *, nearest: str | None = None, fix: str = "") -> PydanticCustomError:
    return wrong_settings([WrongSetting(key=("transform",), allowed=allowed, nearest=nearest, fix=fix)])
