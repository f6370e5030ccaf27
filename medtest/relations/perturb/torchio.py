"""TorchIO: random transforms of volumes, on pictures of one slice and values from 0 to 1."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.relations.perturb.library import (
    Companions,
    Moves,
    TransformLibrary,
    classes_of,
    parameters_of,
    refused_classes,
)
from medtest.relations.perturb.movement import coordinate_planes
from medtest.relations.perturb.values import float_planes, pixels, seeded_torch, share_levels


class TorchIOLibrary(TransformLibrary):
    """Transforms of TorchIO, seeded by torch's generator, which is put back afterwards."""

    module: ClassVar[str] = "torchio"
    extra: ClassVar[str] = "torchio"
    packages: ClassVar[tuple[str, ...]] = ("torchio", "torch", "SimpleITK")
    refused: ClassVar[Mapping[str, str]] = refused_classes("torchio")

    def candidates(self) -> Iterator[type]:
        """Yield the transforms of intensity and space."""
        import torchio

        bases = (torchio.IntensityTransform, torchio.SpatialTransform, torchio.RandomAnisotropy, torchio.OneOf)
        yield from classes_of(torchio, bases, without=bases[:2])

    def parameters(self, kind: type) -> Mapping[str, inspect.Parameter]:
        """Add the probability, which classes take as one of ``**kwargs``."""
        chance = inspect.Parameter("p", inspect.Parameter.KEYWORD_ONLY, default=1, annotation=float)
        return {"p": chance, **super().parameters(kind)}

    def moves(self, kind: type) -> Moves:
        """Return the library's own distinction of intensity and space."""
        import torchio

        return Moves.WITH_MASKS if issubclass(kind, torchio.SpatialTransform) else Moves.NEVER

    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[NDArray[Any], Companions]:
        """Change a subject of a picture and label maps."""
        import torchio

        def changed(**images: Any) -> Any:
            others = (
                {"label_interpolation": "linear"} if "grid" in images and "label_interpolation" in parameters else {}
            )
            with seeded_torch(seed):
                return kind(**{**arguments, **others})(torchio.Subject(images))

        parameters, volume = parameters_of(self, kind), float_planes(cv2.transpose(image))[..., None]
        picture, mask, grid = torchio.ScalarImage(tensor=torch.from_numpy(volume)), companions.mask, {}
        if companions.grid is not None:
            # The library changes a copy.
            grid = {"grid": torchio.LabelMap(tensor=_volume(coordinate_planes(*image.shape[:2])))}
        subject = changed(image=picture, **grid)
        moved = None
        if mask is not None:
            labels = torchio.LabelMap(tensor=_volume(mask.astype(np.float32)[None]))
            moved = _slice(changed(image=picture, mask=labels)["mask"])[..., 0] > 0.5
        pixels_turned = pixels(share_levels(subject["image"].data.numpy()[..., 0]))
        return cv2.transpose(pixels_turned).reshape(*pixels_turned.shape[1::-1], -1), Companions(
            grid=_slice(subject["grid"]) if grid else None, mask=moved
        )


def _volume(channels: NDArray[np.float32]) -> Any:
    """Return C×H×W as channels × columns × rows × 1, the library's order; the numbers are not copied."""
    return torch.from_numpy(channels).transpose(1, 2)[..., None]


def _slice(image: Any) -> NDArray[Any]:
    """Return the numbers of a volume as H×W×C; they are not copied."""
    return np.asarray(image.data.numpy()[..., 0].transpose(2, 1, 0))
