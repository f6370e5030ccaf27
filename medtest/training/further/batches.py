"""Batches of a recipe: selection of pairs, random changes and side, depending only on the seed and batch number."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.training.engine.order import case_at
from medtest.training.further.changes import change
from medtest.training.further.recipe import SegmentationRecipe
from medtest.training.segmentation.augment import Augmentation, augment
from medtest.training.segmentation.colour import colours_of, exchange_colours
from medtest.training.segmentation.data import Pairs, shrink

Pixels = NDArray[np.uint8]
_OWN = Augmentation()
_CHANGES, _SCALE = 1, 5


class RecipeBatches:
    """Draws a recipe's batches.

    Args:
        originals: The original pairs.
        perturbed: The perturbed pairs, usually as many; may be empty.
        recipe: The recipe.
        size: Input side of the network.
    """

    def __init__(self, originals: Pairs, perturbed: Pairs, recipe: SegmentationRecipe, *, size: int) -> None:
        self._recipe = recipe
        self._size = size
        whole = (originals, perturbed) if len(perturbed) else (originals,)
        if recipe.mix == "half" and len(whole) == 2:
            half = recipe.batch // 2
            groups: list[tuple[tuple[Pairs, ...], int]] = [((originals,), recipe.batch - half), ((perturbed,), half)]
        else:
            groups = [(whole, recipe.batch)]
        self._groups = groups
        self._all = whole
        self.pairs = sum(len(part) for part in whole)

    @property
    def steps_per_batch(self) -> int:
        """Optimizer steps per batch."""
        scales = self._recipe.scales
        return len(scales.factors) if scales.kind == "each" else 1

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of one pass over all pairs."""
        return -(-self.pairs // self._recipe.batch) * self.steps_per_batch

    def batch(self, step: int) -> tuple[Pixels, Pixels, int]:
        """Return the batch of an optimizer step, from 0, before normalisation.

        Returns:
            Images, uint8 B×S×S×3 RGB; masks, uint8 B×S×S, 0 or 255, or between if the recipe's masks are soft; and the
            input side of the network for this batch.
        """
        number, turn = divmod(step, self.steps_per_batch)
        rng = np.random.Generator(np.random.PCG64([self._recipe.seed, _CHANGES, number]))
        images: list[Pixels] = []
        masks: list[Pixels] = []
        for group, (parts, count) in enumerate(self._groups):
            length = sum(len(part) for part in parts)
            for position in range(number * count, (number + 1) * count):
                image, mask = _pick(parts, case_at(position, length, seed=self._recipe.seed, group=group))
                changed = self._changed(rng, image, mask)
                images.append(changed[0])
                masks.append(changed[1])
        return np.stack(images), np.stack(masks), self._side(step, turn)

    def _side(self, step: int, turn: int) -> int:
        scales = self._recipe.scales
        if scales.kind == "each":
            return max(32, round(self._size * scales.factors[turn] / 32) * 32)
        if scales.kind == "draw":
            rng = np.random.Generator(np.random.PCG64([self._recipe.seed, _SCALE, step]))
            weights = np.array(scales.weights or [1.0] * len(scales.sizes))
            return int(rng.choice(scales.sizes, p=weights / weights.sum()))
        return self._size

    def _changed(self, rng: np.random.Generator, image: Pixels, mask: Pixels) -> tuple[Pixels, Pixels]:
        changes = self._recipe.augment
        if changes.exchange > 0 and rng.random() < changes.exchange:
            donor, _ = _pick(self._all, int(rng.integers(self.pairs)))
            image = exchange_colours(image, colours_of(donor), wrap=self._recipe.quirks.wrapping_colours)
        if changes.own:
            return augment(rng, image, mask, size=self._size, changes=_OWN)
        image, mask = change(rng, image, mask, changes)
        small = np.asarray(cv2.resize(mask, (self._size, self._size), interpolation=cv2.INTER_LINEAR), np.uint8)
        if not self._recipe.quirks.soft_masks:
            small = np.where(small > 127, 255, 0).astype(np.uint8)
        return shrink(image, self._size), small


def _pick(parts: Sequence[Pairs], index: int) -> tuple[Pixels, Pixels]:
    """Return a copy of one pair from several concatenated sets, which may be on disk."""
    for part in parts:
        if index < len(part):
            return np.array(part.images[index]), np.array(part.masks[index])
        index -= len(part)
    raise IndexError(index)
