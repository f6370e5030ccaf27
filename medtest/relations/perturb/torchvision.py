"""torchvision.transforms.v2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.relations.perturb.library import Companions, Moves, TransformLibrary, classes_of, refused_classes
from medtest.relations.perturb.movement import coordinate_planes
from medtest.relations.perturb.values import pixels, planes, seeded_torch

_PACKAGE = "torchvision.transforms.v2."
_MODULES = ("_augment", "_auto_augment", "_color", "_geometry")


class TorchvisionLibrary(TransformLibrary):
    """Transforms of torchvision, seeded by torch's generator, which is put back afterwards."""

    module: ClassVar[str] = "torchvision.transforms.v2"
    packages: ClassVar[tuple[str, ...]] = ("torchvision", "torch")
    refused: ClassVar[Mapping[str, str]] = refused_classes("torchvision")

    def candidates(self) -> Iterator[type]:
        """Yield the transforms of pictures."""
        from torchvision.transforms import v2

        for kind in classes_of(v2, (v2.Transform,), without=(v2.Transform,)):
            if kind.__module__.removeprefix(_PACKAGE) in _MODULES:
                yield kind
        yield from (v2.GaussianBlur, v2.GaussianNoise)

    def moves(self, kind: type) -> Moves:
        """Return the place of its module: geometry moves masks; policies of operations take no masks."""
        module = kind.__module__.removeprefix(_PACKAGE)
        return {"_geometry": Moves.WITH_MASKS, "_auto_augment": Moves.WITHOUT_MASKS}.get(module, Moves.NEVER)

    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[NDArray[Any], Companions]:
        """Change tensors of pictures, masks and points in one call."""
        from torchvision import tv_tensors

        shape = image.shape[:2]
        inputs: dict[str, Any] = {"image": tv_tensors.Image(torch.from_numpy(planes(image)))}
        if companions.grid is not None:
            # As a picture, linearly: classes of geometry do nothing to values, and masks would be off by half a pixel.
            inputs["grid"] = tv_tensors.Image(torch.from_numpy(coordinate_planes(*shape).copy()))
        if companions.mask is not None:
            inputs["mask"] = tv_tensors.Mask(torch.from_numpy(companions.mask.view(np.uint8).copy()))
        if companions.points is not None:
            places = torch.from_numpy(companions.points)
            inputs["points"] = tv_tensors.KeyPoints(places, canvas_size=shape)
        with seeded_torch(seed):
            result = kind(**arguments)(inputs)
        return pixels(result["image"].numpy()), Companions(
            grid=result["grid"].numpy().transpose(1, 2, 0) if "grid" in result else None,
            mask=result["mask"].numpy() > 0 if "mask" in result else None,
            points=result["points"].numpy().astype(np.float64) if "points" in result else None,
        )
