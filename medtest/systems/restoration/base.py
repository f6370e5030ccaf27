"""Base class of bundled image filters: a function on grey levels, adapted to any dtype, range and number of slices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import create_model

from medtest.core.cases import Image, ImageSpec
from medtest.core.errors import Mistake
from medtest.systems.base import Algorithm, RawAnswer, SystemSettings

WHITE = 255.0
"""White in the grey levels of an 8-bit picture, the units of published filter parameters."""


class ImageFilter(Algorithm):
    """Stateless algorithm that maps an image to an image.

    Attributes:
        function: Filters one picture: float32, H×W or H×W×3 (RGB), contiguous and writable, in grey levels (the image's
            range is mapped to 0 to 255, which noise may exceed), to the same shape in any float type. Its keyword-only
            arguments become the settings, with their types, bounds and defaults.
        package: Module of an optional package that the filter needs, the message if it is missing, and the fix.
    """

    tasks: ClassVar[tuple[str, ...]] = ("image",)
    function: ClassVar[Callable[..., NDArray[np.floating[Any]]]]
    package: ClassVar[tuple[str, str, str] | None] = None

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        hints = get_type_hints(cls.function, include_extras=True)
        defaults = inspect.getfullargspec(cls.function).kwonlydefaults or {}
        fields: dict[str, Any] = {name: (hints[name], default) for name, default in defaults.items()}
        settings_class = create_model(
            "Settings", __base__=SystemSettings, __module__=cls.__module__, __doc__=cls.function.__doc__, **fields
        )
        settings_class.__qualname__ = f"{cls.__qualname__}.Settings"  # where pickle finds it
        cls.Settings = settings_class

    def check(self) -> Sequence[Mistake]:
        """Report a missing package."""
        if self.package is None or find_spec(self.package[0]):
            return super().check()
        _, problem, fix = self.package
        return [Mistake(where=self.name, found=problem, fix=fix)]

    def answer(self, image: Image, spec: ImageSpec) -> RawAnswer:
        """Filter an image of any dtype and range; volumes and films slice by slice."""
        levels = to_levels(image, spec)
        inner = 3 if spec.coloured else 2
        stack = levels.reshape(-1, *levels.shape[-inner:])
        once, options = type(self).function, self.settings.own()
        filtered = np.stack([once(np.ascontiguousarray(picture), **options) for picture in stack])
        return from_levels(filtered.reshape(levels.shape), spec)


def image_filter(
    function: Callable[..., NDArray[np.floating[Any]]], revision: int = 1, package: tuple[str, str, str] | None = None
) -> type[ImageFilter]:
    """Return the system class of a filter, named after its function.

    Args:
        function: See :class:`ImageFilter`.
        revision: Revision of the system.
        package: See :class:`ImageFilter`.
    """
    name = function.__name__.title().replace("_", "")
    members = {"function": staticmethod(function), "revision": revision, "package": package}
    members["__module__"] = function.__module__
    return cast("type[ImageFilter]", type(name, (ImageFilter,), members))


def to_levels(image: Image, spec: ImageSpec) -> NDArray[np.float32]:
    """Return a copy of an image as float32 grey levels, with its range mapped to 0 to 255."""
    if (spec.low, spec.high) == (0.0, WHITE):
        return np.array(image, dtype=np.float32, order="C")
    return ((image.astype(np.float64) - spec.low) * (WHITE / spec.span)).astype(np.float32)


def from_levels(levels: NDArray[np.floating], spec: ImageSpec) -> Image:
    """Return grey levels in the image's own units, as floats; integer images are rounded later."""
    if (spec.low, spec.high) == (0.0, WHITE):
        return levels
    return levels.astype(np.float64) * (spec.span / WHITE) + spec.low
