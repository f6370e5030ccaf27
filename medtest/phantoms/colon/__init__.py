"""Synthetic colonoscopy images with ground truth: polyps and the black frame."""

from medtest.phantoms.colon.frames import FRAME_KINDS
from medtest.phantoms.colon.generator import REVISION, ColonPhantom, colon_rng, make_colon

__all__ = ["FRAME_KINDS", "REVISION", "ColonPhantom", "colon_rng", "make_colon"]
