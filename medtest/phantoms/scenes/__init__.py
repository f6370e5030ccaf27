"""Drawn scenes: things of 40 classes and 10 colours on backgrounds, at given positions."""

from medtest.phantoms.scenes.names import ASPECTS, CLASSES, COLOURS, Placed
from medtest.phantoms.scenes.scene import draw_scene

__all__ = ["ASPECTS", "CLASSES", "COLOURS", "Placed", "draw_scene"]
