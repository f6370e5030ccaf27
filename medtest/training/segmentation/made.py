"""Phantoms for training, generated once and stored next to the training's state."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from medtest.phantoms.colon import REVISION, colon_rng, make_colon
from medtest.training.segmentation.data import Pairs, shrink, shrink_mask

DATASET = "training"
"""Data set name of training phantoms; suites use other names, so that their phantoms differ."""


def phantom_pairs(count: int, *, seed: int, size: int, cache: Path, negatives: float | None = None) -> Pairs:
    """Return phantoms with masks at one size, from the cache if present.

    Args:
        count: Number of phantoms.
        seed: Suite seed of the phantoms.
        size: Side in pixels.
        cache: Folder of the cache; created if missing.
        negatives: Probability of a phantom without a polyp; None for the phantoms' own.
    """
    share = "" if negatives is None else f"_neg{negatives:g}"
    file = cache / f"colon_r{REVISION}_s{seed}_n{count}{share}_{size}.npz"
    names = tuple(f"{DATASET}/{index}" for index in range(count))
    if file.is_file():
        with np.load(file) as stored:
            return Pairs(images=stored["images"], masks=stored["masks"], names=names)
    images = np.empty((count, size, size, 3), np.uint8)
    masks = np.empty((count, size, size), np.uint8)
    for index in range(count):
        rng = colon_rng(seed, DATASET, index)
        phantom = make_colon(rng) if negatives is None else make_colon(rng, negatives=negatives)
        images[index] = shrink(phantom.image, size)
        masks[index] = shrink_mask(phantom.mask.astype(np.uint8) * 255, size)
    cache.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    with partial.open("wb") as opened:
        np.savez(opened, images=images, masks=masks)
    partial.replace(file)
    return Pairs(images=images, masks=masks, names=names)
