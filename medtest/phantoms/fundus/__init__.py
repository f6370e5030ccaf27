"""Procedural fundus photographs: the four grades of diabetic retinopathy of Messidor, with the lesions' mask.

Drawings for exercising a suite; they never stand for clinical evidence.
"""

from medtest.phantoms.fundus.generator import NAMES, REVISION, SIZE, judge, make

__all__ = ["NAMES", "REVISION", "SIZE", "judge", "make"]
