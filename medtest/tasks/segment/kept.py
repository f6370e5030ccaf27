"""Masks as runs keep them: a bit a pixel, and with ``answers: maps`` the 8-bit map that the evaluator's scores take.

That map is at the size of the original mask, as :func:`medtest.tasks.segment.oracle.levels` makes it of the answer, so
that scores of it are those of the answer to the last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import MaskOutput, PreparedSeed
from medtest.core.errors import MedtestError
from medtest.core.tasks.border import resize_probability
from medtest.tasks.segment.oracle import levels

_MASK, _MAP = "mask", "map"


def mask_arrays(answer: MaskOutput, seed: PreparedSeed, *, maps: bool) -> dict[str, NDArray[Any]]:
    """Return what is kept of a segmentation: bool H×W, and with ``maps`` the levels, uint8 h×w."""
    found: dict[str, NDArray[Any]] = {_MASK: answer.mask}
    if maps and answer.probability is not None:
        own = answer.probability if answer.native is None else answer.native
        original = seed.mask if seed.original_mask is None else seed.original_mask
        found[_MAP] = levels(answer, own.shape if original is None else original.shape)
    return found


def mask_of(arrays: dict[str, NDArray[Any]]) -> MaskOutput:
    """Return the segmentation of which these arrays were kept; without a map it has no probabilities.

    Raises:
        MedtestError: There is no mask among them.
    """
    mask = arrays.get(_MASK)
    if mask is None or mask.dtype != np.bool_ or mask.ndim != 2:
        raise MedtestError("a stored answer holds no mask")
    known = arrays.get(_MAP)
    if known is None:
        return MaskOutput(mask=mask)
    native = known.astype(np.float32) * np.float32(1 / 255)
    if native.shape == mask.shape:
        return MaskOutput(mask=mask, probability=native)
    return MaskOutput(mask=mask, probability=resize_probability(native, mask.shape), native=native)
