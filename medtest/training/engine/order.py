"""Order of the cases in a training: each pass over a set is completed before it is reshuffled."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_ORDER = 2


def case_at(position: int, length: int, *, seed: int, group: int = 0) -> int:
    """Return the index of the case at a position.

    Args:
        position: From 0 on, over all passes.
        length: Number of cases of the set.
        seed: Seed of the shuffles.
        group: Number of the set, if batches are drawn from several.
    """
    return int(_shuffled(seed, group, position // length, length)[position % length])


@lru_cache(maxsize=32)
def _shuffled(seed: int, group: int, turn: int, length: int) -> NDArray[np.int64]:
    return np.random.Generator(np.random.PCG64([seed, _ORDER, group, turn])).permutation(length)
