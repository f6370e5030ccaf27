"""Stored masks: one bit per pixel, and with ``answers: maps`` the 8-bit map for the evaluator's scores.

The map has the size of the original mask, as computed by :func:`medtest.tasks.segment.oracle.levels`, so that its
scores equal those of the answer to the last digit.
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
    """Return the stored form of a segmentation: bool H×W, and with ``maps`` the levels, uint8 h×w."""
    arrays: dict[str, NDArray[Any]] = {_MASK: answer.mask}
    if maps and answer.probability is not None:
        native = answer.probability if answer.native is None else answer.native
        original = seed.mask if seed.original_mask is None else seed.original_mask
        arrays[_MAP] = levels(answer, native.shape if original is None else original.shape)
    return arrays


def mask_of(arrays: dict[str, NDArray[Any]]) -> MaskOutput:
    """Return the segmentation from stored arrays; without a map it has no probabilities.

    Raises:
        MedtestError: There is no mask among them.
    """
    mask = arrays.get(_MASK)
    if mask is None or mask.dtype != np.bool_ or mask.ndim != 2:
        raise MedtestError("a stored answer holds no mask")
    stored_map = arrays.get(_MAP)
    if stored_map is None:
        return MaskOutput(mask=mask)
    native = stored_map.astype(np.float32) * np.float32(1 / 255)
    if native.shape == mask.shape:
        return MaskOutput(mask=mask, probability=native)
    return MaskOutput(mask=mask, probability=resize_probability(native, mask.shape), native=native)
