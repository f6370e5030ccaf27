"""Base class of adapters: each offers the image transforms of one library that take nothing but plain data."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.core.errors import MedtestError
from medtest.core.files.paths import read_yaml
from medtest.relations.perturb import GROUP, LIBRARIES

Grid = NDArray[np.float32]
"""H×W×3: each pixel's column and row, and 1; see :func:`medtest.relations.perturb.movement.coordinates`."""


class Moves(Enum):
    """Statement of a library on whether a transform moves pixels."""

    NEVER = "never"
    WITH_MASKS = "with masks"
    """It may move pixels, and moves coordinates, masks and points by the same draws."""
    WITHOUT_MASKS = "without masks"
    """It may move pixels, and the library does not tell where: refused where answers have places."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Companions:
    """Data that a transform moves along with an image, by the same draws; None for what is not asked for.

    Attributes:
        grid: Coordinates, interpolated linearly; 0 for pixels that come from outside.
        mask: bool H×W, through the library's mask path.
        points: float64 N×2, (x, y) in pixels, through the library's path of points; None after a change by a library
            without one.
    """

    grid: Grid | None = None
    mask: Mask | None = None
    points: NDArray[np.float64] | None = None


NO_COMPANIONS = Companions()
REFUSED = Path(__file__).with_name("refused.yaml")


class TransformLibrary(ABC):
    """Base class of adapters.

    Attributes:
        module: Module to import; its absence makes the library a missing extra.
        extra: Extra of medtest that installs it; "" for a dependency.
        packages: Distributions whose versions decide the bytes, the library's own first.
        chance: Name of the argument that is the probability of a change; set to 1 unless a suite says otherwise.
        defaults: Arguments by name that replace the library's defaults in every class that has them.
        reserved: Arguments that the adapter sets itself or that do not suit pictures.
        refused: Reasons by class name for classes that are no image transforms, or that cannot be judged.
    """

    module: ClassVar[str]
    extra: ClassVar[str] = ""
    packages: ClassVar[Sequence[str]]
    chance: ClassVar[str] = "p"
    defaults: ClassVar[Mapping[str, Any]] = {}
    reserved: ClassVar[frozenset[str]] = frozenset({"seed", "device", "dtype", "inplace", "lazy"})
    refused: ClassVar[Mapping[str, str]] = {}

    def problem(self) -> tuple[str, str]:
        """Return the reason and the fix if the library cannot be used at all, before it is imported; else two ""."""
        if importlib.util.find_spec(self.module.partition(".")[0]) is None:
            install = f"pip install 'medtest[{self.extra}]'" if self.extra else f"pip install {self.packages[0]}"
            return "it is not installed", install
        return "", ""

    @abstractmethod
    def candidates(self) -> Iterator[type]:
        """Yield every transform class of the installed library that changes pictures, refused ones included."""

    def parameters(self, kind: type) -> Mapping[str, inspect.Parameter]:
        """Return the arguments of a class by name, without ``self``, ``*`` and ``**`` ones."""
        plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        signature = inspect.signature(kind)
        return {name: each for name, each in signature.parameters.items() if each.kind in plain}

    def default_arguments(self, kind: type) -> dict[str, Any]:
        """Return the arguments of a class that replace the library's defaults."""
        stated = {self.chance: 1.0, **self.defaults}
        return {name: value for name, value in stated.items() if name in parameters_of(self, kind)}

    @abstractmethod
    def moves(self, kind: type) -> Moves:
        """Return whether a class moves pixels, as the library states it."""

    @abstractmethod
    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[NDArray[Any], Companions]:
        """Build the transform, seed it by the library's own means, and change a picture.

        Args:
            kind: One of :meth:`candidates`.
            arguments: Checked arguments.
            seed: From 0 to 2³¹ − 1.
            image: uint8 H×W×3, which is not modified.
            companions: Data to move along.

        Returns:
            The picture, H×W×3 (uint8, or floats on the scale of 0 to 255), and the moved data.
        """

    def build(self, kind: type, arguments: Mapping[str, Any]) -> Any:
        """Build the transform without seeding it, to find mistakes in its arguments."""
        return kind(**arguments)

    def versions(self) -> dict[str, str]:
        """Return the installed versions of :attr:`packages`; without those that are not installed."""
        installed = {}
        for package in self.packages:
            try:
                installed[package] = version(package)
            except PackageNotFoundError:
                continue
        return installed


def classes_of(module: Any, bases: tuple[type, ...], *, without: Collection[type] = ()) -> Iterator[type]:
    """Yield the classes that a module names and that are below one of some bases, by name."""
    for name in dir(module):
        kind = getattr(module, name)
        if isinstance(kind, type) and issubclass(kind, bases) and kind not in without:
            yield kind


def refused_classes(library: str) -> dict[str, str]:
    """Return the reasons of ``refused.yaml`` by class of a library."""
    reasons = read_yaml(REFUSED)[library]
    return {name: reason for reason, names in reasons.items() for name in names}


@cache
def parameters_of(library: TransformLibrary, kind: type) -> Mapping[str, inspect.Parameter]:
    """Return :meth:`TransformLibrary.parameters`, which takes longer than many a change of a picture."""
    return library.parameters(kind)


@cache
def library_names() -> Mapping[str, str]:
    """Return the adapters of medtest and of installed packages by name, as ``module:Class``.

    Raises:
        MedtestError: Two packages provide one name.
    """
    names = dict(LIBRARIES)
    for point in entry_points(group=GROUP):
        if names.setdefault(point.name, point.value) != point.value:
            raise MedtestError(f"two packages provide perturbations named {point.name!r}: uninstall one of them")
    return names


@cache
def library_of(name: str) -> TransformLibrary:
    """Return the adapter of a name in :func:`library_names`; the library itself is not imported.

    Raises:
        MedtestError: The adapter cannot be loaded.
    """
    module, _, adapter = library_names()[name].partition(":")
    try:
        return cast(TransformLibrary, getattr(importlib.import_module(module), adapter)())
    except (ImportError, AttributeError) as error:
        raise MedtestError(f"perturbations of {name!r} cannot be loaded: {error}") from error
