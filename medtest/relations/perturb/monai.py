"""MONAI: transforms of arrays, intensity and space, on pictures of values from 0 to 1."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.relations.perturb.library import (
    Companions,
    Moves,
    TransformLibrary,
    classes_of,
    parameters_of,
    refused_classes,
)
from medtest.relations.perturb.movement import coordinate_planes
from medtest.relations.perturb.values import float_planes, pixels, share_levels

_PACKAGE = "monai.transforms."
_MODULES = ("intensity.array", "smooth_field.array", "spatial.array")


class MonaiLibrary(TransformLibrary):
    """Transforms of MONAI, seeded by ``set_random_state``."""

    module: ClassVar[str] = "monai"
    extra: ClassVar[str] = "monai"
    packages: ClassVar[tuple[str, ...]] = ("monai", "torch", "scipy")
    chance: ClassVar[str] = "prob"
    defaults: ClassVar[Mapping[str, Any]] = {"upsample_mode": "bilinear"}
    reserved: ClassVar[frozenset[str]] = TransformLibrary.reserved | {
        "cache_grid",
        "return_clipping_values",
    }
    refused: ClassVar[Mapping[str, str]] = refused_classes("monai")

    def candidates(self) -> Iterator[type]:
        """Yield the transforms of arrays."""
        from monai import transforms

        for kind in classes_of(transforms, (transforms.Transform,)):
            if kind.__module__.removeprefix(_PACKAGE) in _MODULES and not inspect.isabstract(kind):
                yield kind

    def default_arguments(self, kind: type) -> dict[str, Any]:
        """Fill edges, which the library repeats or mirrors: no effect describes that. Histograms end at 1."""
        parameters, stated = parameters_of(self, kind), super().default_arguments(kind)
        if "padding_mode" in parameters:
            stated["padding_mode"] = "constant" if parameters["padding_mode"].default == "edge" else "zeros"
        return {**stated, "max": 1} if kind.__name__ == "HistogramNormalize" else stated

    def moves(self, kind: type) -> Moves:
        """Return the place of its module; lower resolution is no movement."""
        spatial = kind.__module__ == f"{_PACKAGE}spatial.array" and kind.__name__ != "RandSimulateLowResolution"
        return Moves.WITH_MASKS if spatial else Moves.NEVER

    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[NDArray[Any], Companions]:
        """Change arrays of channels first, each by a separate object with the same seed."""

        def changed(channels: NDArray[np.float32], **others: Any) -> NDArray[Any]:
            transform = kind(**{**arguments, **others})
            if hasattr(transform, "set_random_state"):
                transform.set_random_state(seed=seed)
            result = transform(channels)
            result = result[0] if isinstance(result, tuple) else result  # Affine returns its matrix, too
            return np.asarray(getattr(result, "array", result))

        modes = {"mode"} & set(parameters_of(self, kind))
        mask, grid = companions.mask, None
        if companions.grid is not None:
            places = changed(coordinate_planes(*image.shape[:2]).copy(), **dict.fromkeys(modes, "bilinear"))
            grid = places.transpose(1, 2, 0)
        return pixels(share_levels(changed(float_planes(image)))), Companions(
            grid=grid,
            mask=None
            if mask is None
            else changed(mask.astype(np.float32)[None], **dict.fromkeys(modes, "nearest"))[0] > 0.5,
        )
