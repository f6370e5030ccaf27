"""One-time preparation of seeds before any relation: size, black frame, grey mask, factors."""

from medtest.preparation.factors import seed_factors
from medtest.preparation.frame import find_frame
from medtest.preparation.grey import grey_mask
from medtest.preparation.prepare import REVISION, prepare, resize_image, resize_mask

__all__ = ["REVISION", "find_frame", "grey_mask", "prepare", "resize_image", "resize_mask", "seed_factors"]
