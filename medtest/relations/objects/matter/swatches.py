"""Swatches: pieces of the matter of a library's objects, two pictures beside the cut-out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.errors import Mistake
from medtest.relations.objects.library import ObjectInfo, ObjectLibrary, outside, picture_problem

SIDES = (64, 1024)
"""Least and largest side of a swatch in pixels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Swatch:
    """Piece of an object's matter, lit evenly; arrays are uint8 of one square shape, 64 to 1024 pixels a side.

    A pixel is a 256th of the longer side of an image. The two pictures are RGB: ``NAME.albedo.png`` holds the colour,
    ``NAME.surface.png`` height, opacity and wetness in R, G and B.

    Attributes:
        name: Name of the object.
        albedo: S×S×3 RGB, at the median light of a field of usual mucosa (:data:`scene.USUAL`).
        height: 16 steps a pixel of height, 128 the middle.
        opacity: 0 clear, 255 opaque.
        wetness: 0 dull, 255 mirror-like.
    """

    name: str
    albedo: NDArray[np.uint8]
    height: NDArray[np.uint8]
    opacity: NDArray[np.uint8]
    wetness: NDArray[np.uint8]

    @cached_property
    def mean(self) -> tuple[float, float, float]:
        """Mean of the albedo, R, G and B."""
        red, green, blue = self.albedo.reshape(-1, 3).sum(axis=0, dtype=np.int64) / self.height.size
        return float(red), float(green), float(blue)


@lru_cache(maxsize=32)
def swatches_of(library: ObjectLibrary, kind: str) -> tuple[Swatch, ...]:
    """Return the swatches of a kind, by name; empty without any.

    Raises:
        UserMistakes: A swatch cannot be read.
    """
    return tuple(_read(library, info) for info in library.kind(kind) if library.beside(info, "albedo").is_file())


def swatch_digest(swatches: tuple[Swatch, ...]) -> str:
    """Return the SHA-256 of swatches."""
    digest = hashlib.sha256(b"medtest swatches 1")
    for swatch in swatches:
        digest.update(f"{swatch.name}/{len(swatch.height)}".encode())
        for part in (swatch.albedo, swatch.height, swatch.opacity, swatch.wetness):
            digest.update(part.tobytes())
    return digest.hexdigest()


def _read(library: ObjectLibrary, info: ObjectInfo) -> Swatch:
    pictures = []
    for part in ("albedo", "surface"):
        path = library.beside(info, part)
        problem = outside(library.folder, path) or picture_problem(path, "RGB")
        decoded = None if problem else cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_COLOR)
        low, high = SIDES
        if decoded is None or decoded.shape[0] != decoded.shape[1] or not low <= len(decoded) <= high:
            raise Mistake(
                where=f"{library.label}/{info.kind}/{path.name}",
                found=problem or f"not a square of {low} to {high} pixels a side",
                fix="make the library again",
            ).as_error()
        pictures.append(np.ascontiguousarray(decoded[..., ::-1], np.uint8))
    albedo, surface = pictures
    if albedo.shape != surface.shape:
        raise Mistake(
            where=f"{library.label}/{info.kind}/{info.name}",
            found=f"swatch pictures of {len(albedo)} and {len(surface)} pixels a side",
            fix="make the library again",
        ).as_error()
    height, opacity, wetness = (np.ascontiguousarray(surface[..., channel]) for channel in range(3))
    return Swatch(name=info.name, albedo=albedo, height=height, opacity=opacity, wetness=wetness)
