"""Batches of a classifier's training: selection of cases, random changes and side.

Each batch depends only on the seed and the number of its step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import torch
from medtest.training.classification.cases import LabelledSet, Pixels
from medtest.training.classification.changes import centred, changed
from medtest.training.classification.recipe import ClassifierRecipe
from medtest.training.engine.order import case_at

if TYPE_CHECKING:
    from torch import Tensor

_CHANGES = 1
_STEP = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledBatch:
    """One batch before normalisation.

    Attributes:
        images: uint8 B×S×S×3 RGB.
        truth: float32 B×C.
        masks: uint8 B×S×S, 255 on the lesion.
        has_mask: bool B; whether the mask is known.
    """

    images: Pixels
    truth: NDArray[np.float32]
    masks: Pixels
    has_mask: NDArray[np.bool_]

    def mask_tensors(self, device: str) -> tuple[Tensor | None, Tensor | None]:
        """Return the masks, float [B, 1, S, S] in [0, 1], and whether each is known; None if no mask is known."""
        if not self.has_mask.any():
            return None, None
        masks = torch.from_numpy(self.masks).to(device).float().div(255)[:, None]
        return masks, torch.from_numpy(self.has_mask).to(device)


class LabelledBatches:
    """Draws batches.

    Args:
        cases: All cases.
        members: Indices of the training cases.
        recipe: The recipe.
        side: Input side of the network in pixels.
        shown: That side relative to the stored side, the size of a crop.
        steps: Total number of optimizer steps.
        seed: Determines order and changes.
    """

    def __init__(
        self,
        cases: LabelledSet,
        members: NDArray[np.int64],
        recipe: ClassifierRecipe,
        *,
        side: int,
        shown: float,
        steps: int,
        seed: int,
    ) -> None:
        self._cases = cases
        self._members = members
        self._recipe = recipe
        self._side = side
        self._changes = recipe.changes.model_copy(update={"crop": min(recipe.changes.crop, shown)})
        self._small_steps = round(recipe.small * steps)
        self._seed = seed
        classes = cases.truth[members].argmax(axis=1)
        self._by_class = [members[classes == number] for number in np.unique(classes)]
        self._balanced = recipe.balanced and not cases.classes.multi and len(self._by_class) > 1

    def side_at(self, step: int) -> int:
        """Return the side of the images in a step."""
        if step >= self._small_steps:
            return self._side
        return max(64, round(self._side * self._recipe.small_side / _STEP) * _STEP)

    def batch(self, step: int) -> LabelledBatch:
        """Return the batch of a step, from 0."""
        count = self._recipe.batch
        rng = np.random.Generator(np.random.PCG64([self._seed, _CHANGES, step]))
        chosen = [self._index(position) for position in range(step * count, (step + 1) * count)]
        side = self.side_at(step)
        images = np.empty((count, side, side, 3), np.uint8)
        masks = np.empty((count, side, side), np.uint8)
        for place, index in enumerate(chosen):
            image, mask = np.array(self._cases.images[index]), np.array(self._cases.masks[index])
            images[place], masks[place] = changed(rng, image, mask, side, self._changes)
        return LabelledBatch(
            images=images, truth=self._cases.truth[chosen], masks=masks, has_mask=self._cases.has_mask[chosen]
        )

    def _index(self, position: int) -> int:
        """Return the index of the case at a position."""
        group, members = 0, self._members
        if self._balanced:
            position, number = divmod(position, len(self._by_class))
            group, members = number + 1, self._by_class[number]
        return int(members[case_at(position, len(members), seed=self._seed, group=group)])


def shown_cases(
    cases: LabelledSet, members: NDArray[np.int64], *, side: int, shown: float
) -> tuple[Pixels, NDArray[np.float32]]:
    """Return cases as in validation: uint8 B×S×S×3 and truth float32 B×C."""
    images = [centred(np.array(cases.images[i]), np.array(cases.masks[i]), shown, side)[0] for i in members]
    return np.stack(images), cases.truth[members]
