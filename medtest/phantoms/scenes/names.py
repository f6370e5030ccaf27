"""Contents of drawn scenes: classes, colours and positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from medtest.core.scenes import Box

ASPECTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "airplane": 1.6, "ball": 1.0, "bear": 1.25, "bed": 1.6, "bench": 1.7, "bike": 1.5, "bird": 1.25,
        "boat": 1.2, "book": 1.3, "bottle": 0.42, "bowl": 1.7, "bus": 1.8, "car": 1.9, "cat": 1.0,
        "chair": 0.65, "clock": 1.0, "cow": 1.4, "cup": 1.15, "dog": 1.2, "elephant": 1.35, "flag": 0.85,
        "flower": 0.65, "giraffe": 0.7, "hat": 1.6, "horse": 1.15, "house": 1.05, "kite": 0.65, "lamp": 0.65,
        "laptop": 1.4, "motorcycle": 1.5, "person": 0.45, "sheep": 1.3, "skateboard": 2.4, "surfboard": 0.4,
        "table": 1.5, "train": 1.9, "tree": 0.8, "truck": 1.8, "umbrella": 1.05, "vase": 0.6,
    }
)  # fmt: skip
"""Natural aspect ratio of each class, width over height in pixels; layouts may deviate by a quarter."""
CLASSES: Final = tuple(ASPECTS)
"""40 names; all but ``ball`` are among Visual Genome's 150 classes."""
COLOURS: Final = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white")


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Thing in a scene.

    Attributes:
        name: One of :data:`CLASSES`.
        colour: One of :data:`COLOURS`.
        box: Left, top, right and bottom edge, as fractions of the picture's width and height; the drawing reaches
            all four to within a pixel.
    """

    name: str
    colour: str
    box: Box
