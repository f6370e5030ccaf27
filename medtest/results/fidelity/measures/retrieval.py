"""R-precision: whether a picture finds its own caption among 99 others (ACTesting, section 4.3).

T. Xu et al., AttnGAN, CVPR 2018.
It is RP where pictures and captions are encoded by CLIP, and nowhere else.
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
"""How well pictures fit captions: numbers of n pictures and n×m of captions in, float64 n×m out, more is better."""


def r_precision(
    fits: Fits, own: Integers, meanings: Sequence[str], names: Sequence[str], *, distractors: int = DISTRACTORS
) -> tuple[Floats, Integers]:
    """Return for each picture whether its own caption fits it best.

    Which captions stand against it is drawn from the picture's name (its address) and the captions alone, so that
    another selection of cases that holds the same captions gives the same. A caption that means the same as its own is
    no mismatch and stands against no picture.

    Args:
        fits: How well pictures fit captions.
        own: int64 N; the number of each picture's own caption, in [0, M).
        meanings: What each of M captions means: captions that mean the same are equal.
        names: What each picture is called.
        distractors: How many captions stand against it at most; fewer where there are fewer.

    Returns:
        float64 N in [0, 1], 1 / k where k captions fit best alike and its own is one of them, NaN where no other
        caption is there; and int64 N, how many stood against it.
    """
    codes = np.unique(np.asarray(meanings, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)
    found, against = np.full(len(own), np.nan), np.zeros(len(own), np.int64)
    for start in range(0, len(own), _TOGETHER):
        here = np.arange(start, min(start + _TOGETHER, len(own)))
        others = [_drawn(codes, int(own[n]), names[int(n)], distractors) for n in here]
        against[here] = [len(one) for one in others]
        for count in np.unique(against[here]):
            rows = here[against[here] == count]
            if count:
                asked = np.stack([np.concatenate([[own[n]], others[n - start]]) for n in rows])
                found[rows] = _won(fits(rows, asked))
    return found, against


def _drawn(codes: Integers, own: int, name: str, count: int) -> Integers:
    """Return the numbers of captions that mean something else, drawn without replacement."""
    rng = generator("r-precision", name)
    if len(codes) > 4 * count:  # few of those drawn mean the same; a second draw is next to never needed
        first = rng.choice(len(codes), 2 * count, replace=False)
        kept = first[codes[first] != codes[own]]
        if len(kept) >= count:
            return np.asarray(kept[:count], np.int64)
    others = np.flatnonzero(codes != codes[own])
    drawn: Integers = rng.permutation(others)[:count].astype(np.int64)
    return drawn


def _won(values: Floats) -> Floats:
    """Return of each row whether the first value is the largest; a share where others are as large."""
    best = values.max(1)
    alike = (values == best[:, None]).sum(1)
    won: Floats = np.where(values[:, 0] == best, 1.0 / alike, 0.0)
    return won


def cosine(pictures: PictureFeatures, captions: PictureFeatures) -> Fits:
    """Return how well pictures fit captions by the cosine between their features.

    Args:
        pictures: N×D.
        captions: M×D of the same encoder; they are held in memory.
    """
    encoded = np.concatenate(list(_units(captions))) if captions.count else np.zeros((0, captions.dimension))

    def fits(rows: Integers, asked: Integers) -> Floats:
        units = _unit(pictures.rows(rows).astype(np.float64))
        found: Floats = np.einsum("nd,nmd->nm", units, encoded[asked])
        return found

    return fits


def _units(features: PictureFeatures) -> Iterator[Floats]:
    for chunk in features.chunks():
        yield _unit(chunk.astype(np.float64))


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
