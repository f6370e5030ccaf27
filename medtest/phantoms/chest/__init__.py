"""Synthetic chest radiographs with any of the fourteen findings of ChestX-ray14.

Drawings for exercising a suite, without clinical evidence.
"""

from medtest.phantoms.chest.generator import NAMES, REVISION, SIZE, judge, make

__all__ = ["NAMES", "REVISION", "SIZE", "judge", "make"]
