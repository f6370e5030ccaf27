"""Drawn scenes: things of 40 classes and 10 colours on backgrounds, at given positions."""

from medtest.phantoms.scenes.names import ASPECTS as ASPECTS
from medtest.phantoms.scenes.names import CLASSES as CLASSES
from medtest.phantoms.scenes.names import COLOURS as COLOURS
from medtest.phantoms.scenes.names import Placed as Placed
from medtest.phantoms.scenes.scene import draw_scene as draw_scene
