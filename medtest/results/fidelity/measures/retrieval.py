"""R-precision: retrieval of a picture's own caption among 99 others (ACTesting, section 4.3).

T. Xu et al., AttnGAN, CVPR 2018. It is RP only if pictures and captions are encoded by CLIP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from medtest.results.cube.resampling import generator
from medtest.results.fidelity.features import Floats, Integers, PictureFeatures

DISTRACTORS: Final = 99
_TOGETHER: Final = 256

Fits = Callable[[Integers, Integers], Floats]
"""Similarity of pictures and captions: n indices of pictures and n×m of captions give float64 n×m; higher is better."""


def r_precision(fits: Fits, own: Integers, meanings: Sequence[str], names: Sequence[str]) -> tuple[Floats, Integers]:
    """Return for each picture whether its own caption fits it best.

    The other captions are drawn from the picture's name (its address) and the captions only, so that any selection of
    cases with the same captions gives the same result. Captions with the same meaning as the picture's own are
    excluded.

    Args:
        fits: Similarity of pictures and captions.
        own: int64 N; index of each picture's own caption, in [0, M).
        meanings: Meaning of each of M captions: equal for captions that mean the same.
        names: Name of each picture.

    Returns:
        float64 N in [0, 1], 1 / k if k captions including its own tie for the best, NaN without other captions; and
            int64
        N, the number of other captions.
    """
    codes = np.unique(np.asarray(meanings, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)
    won, against = np.full(len(own), np.nan), np.zeros(len(own), np.int64)
    for start in range(0, len(own), _TOGETHER):
        batch = np.arange(start, min(start + _TOGETHER, len(own)))
        distractor_numbers = [_drawn(codes, int(own[n]), names[int(n)], DISTRACTORS) for n in batch]
        against[batch] = [len(numbers) for numbers in distractor_numbers]
        for count in np.unique(against[batch]):
            rows = batch[against[batch] == count]
            if count:
                candidates = np.stack([np.concatenate([[own[n]], distractor_numbers[n - start]]) for n in rows])
                won[rows] = _won(fits(rows, candidates))
    return won, against


def _drawn(codes: Integers, own: int, name: str, count: int) -> Integers:
    """Return the indices of captions with another meaning, drawn without replacement."""
    rng = generator("r-precision", name)
    if len(codes) > 4 * count:  # few of those drawn have the same meaning; a second draw is almost never needed
        first = rng.choice(len(codes), 2 * count, replace=False)
        different = first[codes[first] != codes[own]]
        if len(different) >= count:
            return np.asarray(different[:count], np.int64)
    candidates = np.flatnonzero(codes != codes[own])
    numbers: Integers = rng.permutation(candidates)[:count].astype(np.int64)
    return numbers


def _won(values: Floats) -> Floats:
    """Return 1 for each row whose first value is the largest, or a share in case of ties."""
    best = values.max(1)
    alike = (values == best[:, None]).sum(1)
    won: Floats = np.where(values[:, 0] == best, 1.0 / alike, 0.0)
    return won


def cosine(pictures: PictureFeatures, captions: PictureFeatures) -> Fits:
    """Return a function that compares pictures and captions by the cosine between their features.

    Args:
        pictures: N×D.
        captions: M×D of the same encoder; held in memory.
    """
    encoded = np.concatenate(list(_units(captions))) if captions.count else np.zeros((0, captions.dimension))

    def fits(rows: Integers, numbers: Integers) -> Floats:
        units = _unit(pictures.rows(rows).astype(np.float64))
        cosines: Floats = np.einsum("nd,nmd->nm", units, encoded[numbers])
        return cosines

    return fits


def _units(features: PictureFeatures) -> Iterator[Floats]:
    for chunk in features.chunks():
        yield _unit(chunk.astype(np.float64))


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
