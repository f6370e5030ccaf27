"""NRTK 1: perturbers of pictures; it moves boxes, but no masks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.relations.perturb.library import (
    NO_COMPANIONS,
    Companions,
    Moves,
    TransformLibrary,
    parameters_of,
    refused_classes,
)

_PACKAGE = "nrtk.impls.perturb_image"
_MODULES = ("", ".environment", ".geometric.random", ".optical", ".optical.otf")
_PHOTOMETRIC = (".photometric.blur", ".photometric.enhance", ".photometric.noise")


class NrtkLibrary(TransformLibrary):
    """Perturbers of NRTK, seeded by their argument ``seed``."""

    module: ClassVar[str] = "nrtk"
    extra: ClassVar[str] = "nrtk"
    packages: ClassVar[tuple[str, ...]] = ("nrtk", "scikit-image", "pillow", "opencv-python", "scipy", "albumentations")
    chance: ClassVar[str] = "probability"
    reserved: ClassVar[frozenset[str]] = TransformLibrary.reserved | {"is_static"}
    refused: ClassVar[Mapping[str, str]] = refused_classes("nrtk")

    def candidates(self) -> Iterator[type]:
        """Yield the perturbers whose own requirements are installed."""
        from nrtk.interfaces import PerturbImage

        for module in (*_MODULES, *_PHOTOMETRIC):
            package = importlib.import_module(f"{_PACKAGE}{module}")
            for name in sorted(dir(package)):
                try:
                    kind = getattr(package, name)
                except (ImportError, AttributeError):
                    continue  # an optional requirement is not installed
                if isinstance(kind, type) and issubclass(kind, PerturbImage):
                    yield kind

    def moves(self, kind: type) -> Moves:
        """Return WITHOUT_MASKS for the geometric ones, which move boxes alone."""
        geometric = kind.__name__ == "RadialDistortionPerturber" or hasattr(_geometric(), kind.__name__)
        return Moves.WITHOUT_MASKS if geometric else Moves.NEVER

    def change(
        self, kind: type, arguments: Mapping[str, Any], seed: int, image: Image, companions: Companions
    ) -> tuple[NDArray[Any], Companions]:
        """Perturb a picture."""
        seeded = {"seed": seed} if "seed" in parameters_of(self, kind) else {}
        changed, _ = kind(**arguments, **seeded)(image=image)
        return changed, NO_COMPANIONS


def _geometric() -> Any:
    return importlib.import_module(f"{_PACKAGE}.geometric.random")
