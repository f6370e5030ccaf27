"""Synthetic fundus photographs: the four grades of diabetic retinopathy of Messidor, with the lesions' mask.

Drawings for exercising a suite, without clinical evidence.
"""

from medtest.phantoms.fundus.generator import NAMES, REVISION, SIZE, judge, make

__all__ = ["NAMES", "REVISION", "SIZE", "judge", "make"]
