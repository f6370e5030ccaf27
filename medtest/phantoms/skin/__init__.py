"""Synthetic dermoscopy: benign lesions and melanomas by the ABCD rule, with the lesion's mask.

Drawings for exercising a suite, without clinical evidence.
"""

from medtest.phantoms.skin.generator import NAMES, REVISION, SIZE, judge, make

__all__ = ["NAMES", "REVISION", "SIZE", "judge", "make"]
