"""Synthetic frames of capsule endoscopy: normal, vascular and inflammatory, with the lesion's mask.

Drawings for exercising a suite, without clinical evidence.
"""

from medtest.phantoms.capsule.generator import NAMES, REVISION, SIZE, judge, make

__all__ = ["NAMES", "REVISION", "SIZE", "judge", "make"]
