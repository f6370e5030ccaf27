"""albumentations 2.0, the last versions under the MIT licence."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.relations.perturb.library import Companions, Moves, TransformLibrary, classes_of, refused_classes


class AlbumentationsLibrary(TransformLibrary):
    """Transforms of albumentations, each in a separate ``Compose``, which seeds it."""

    module: ClassVar[str] = "albumentations"
    extra: ClassVar[str] = "albumentations"
    packages: ClassVar[tuple[str, ...]] = ("albumentations", "albucore", "opencv-python", "scipy")
    refused: ClassVar[Mapping[str, str]] = refused_classes("albumentations")

    def problem(self) -> tuple[str, str]:
        """Refuse AlbumentationsX, which has the same module name and another licence."""
        for package in ("albumentationsx", "albumentations"):
            try:
                installed = version(package)
            except PackageNotFoundError:
                continue
            if package == "albumentationsx" or tuple(map(int, installed.split(".")[:3])) > (2, 0, 8):
                return (
                    f"AlbumentationsX {installed} is installed, whose licence is AGPL-3.0: software that uses it over "
                    "a network has to publish its own source",
                    "pip uninstall albumentationsx, and pip install 'medtest[albumentations]' (2.0.8, MIT)",
                )
        return super().problem()

    def candidates(self) -> Iterator[type]:
        """Yield the transforms of pictures."""
        # The library would ask a server for its newest version.
        os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
        import albumentations
        from albumentations.core import transforms_interface as base

        abstract = (base.BasicTransform, base.DualTransform, base.ImageOnlyTransform, base.NoOp)
        for kind in classes_of(albumentations, (base.BasicTransform,), without=abstract):
            if not issubclass(kind, base.Transform3D):
                yield kind

    def moves(self, kind: type) -> Moves:
        """Return the library's own distinction: image-only and dual transforms."""
        from albumentations.core.transforms_interface import ImageOnlyTransform

        return Moves.NEVER if issubclass(kind, ImageOnlyTransform) else Moves.WITH_MASKS

    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[NDArray[Any], Companions]:
        """Change a picture by ``Compose(seed=)``."""
        from albumentations import Compose, KeypointParams

        masks: dict[str, Any] = {}
        if companions.grid is not None:
            # Masks of floats, linearly: whole coordinates would be off by half a pixel.
            masks["masks"] = [companions.grid]
        if companions.points is not None:
            masks["keypoints"] = companions.points
        keypoints = None if companions.points is None else KeypointParams(format="xy", remove_invisible=False)
        smooth = None if companions.grid is None else cv2.INTER_LINEAR
        composed = Compose([kind(**arguments)], seed=seed, mask_interpolation=smooth, keypoint_params=keypoints)
        result = composed(image=image, **masks)
        mask = None
        if companions.mask is not None:
            plain = Compose([kind(**arguments)], seed=seed)(image=image, mask=companions.mask.view(np.uint8))
            mask = np.asarray(plain["mask"]) > 0
        return result["image"], Companions(
            grid=result["masks"][0] if companions.grid is not None else None,
            mask=mask,
            points=None if companions.points is None else np.asarray(result["keypoints"], np.float64)[:, :2],
        )
