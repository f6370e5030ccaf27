"""Keeps, of several attacks on the same images, the image that a system answers worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from medtest.core.errors import BadOutput
from medtest.core.probes import NO_GRADIENT, NOT_FINITE, Probe
from medtest.relations.adversarial.attack import AttackBatch, SearchResult
from medtest.relations.adversarial.saving import pixels_of, saved

_WHOLE = 1e9
"""Badness of an image of which all is reached."""
_MOSTLY = 0.5
"""Share of gradients that are exactly zero from which an attack has little to follow."""


class AttackPart(Protocol):
    """One of several attacks.

    Attributes:
        name: What records call it.
        follows: Whether it follows gradients, which may be missing.
    """

    name: str
    follows: bool

    def wanted(self, worst: Worst) -> Tensor:
        """Return for which images it is wanted, bool B, of those that are not wholly reached."""

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Look for images."""


class Worst:
    """The worst image so far of each of a batch, as it would be saved.

    Args:
        batch: The images.
        probe: Of the system.
        norm: In which ε bounds: ``linf`` or ``l2``.
        draws: How often the system is asked about an image that is judged; above 1 where answers do not repeat.

    Attributes:
        zeros: Largest share of zero gradients that an attack met, by image; NaN where none was followed.
        blocked: By image, why no gradient can be followed; absent where one can.
    """

    def __init__(self, batch: AttackBatch, probe: Probe, *, norm: str, draws: int) -> None:
        self._batch, self._probe, self._norm, self._draws = batch, probe, norm, draws
        self._images = batch.images.clone()
        self._badness = _badness(batch, [batch.clean]) if draws == 1 else self._judged(batch, batch.images)
        count = len(batch.images)
        self._queries = [0 if draws == 1 else draws] * count
        self._by, self.zeros = [""] * count, [float("nan")] * count
        self.blocked: dict[int, str] = {}

    @property
    def open(self) -> Tensor:
        """Which images are not wholly reached, bool B."""
        return self._badness < _WHOLE

    @property
    def starved(self) -> Tensor:
        """For which images gradients are mostly zero or cannot be had, bool B."""
        rows = range(len(self.zeros))
        without = [row in self.blocked or self.zeros[row] > _MOSTLY for row in rows]
        return torch.tensor(without, dtype=torch.bool, device=self._badness.device)

    def attack(self, part: AttackPart) -> None:
        """Have one attack look for images that are answered worse.

        Raises:
            Exception: Whatever the network raises where it is asked for scores alone.
        """
        wanted = self.open & part.wanted(self)
        if part.follows:
            for row in self.blocked:
                wanted[row] = False
        rows = wanted.nonzero().flatten()
        if not len(rows):
            return
        own = self._batch.part(rows)
        try:
            self._take(rows, own, part.search(own, self._probe), part.name)
        except (BadOutput, RuntimeError) as error:
            if not part.follows or isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            if len(rows) == 1:
                self.blocked[int(rows[0])] = _why(error)
                return
            for row in rows:  # one image without a gradient leaves the others theirs
                self._alone(row[None], part)

    def _alone(self, rows: Tensor, part: AttackPart) -> None:
        own = self._batch.part(rows)
        try:
            self._take(rows, own, part.search(own, self._probe), part.name)
        except (BadOutput, RuntimeError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            self.blocked[int(rows[0])] = _why(error)

    def _take(self, rows: Tensor, own: AttackBatch, searched: SearchResult, name: str) -> None:
        shown = torch.cat([self._as_saved(own, number, image) for number, image in enumerate(searched.images)])
        for number, row in enumerate(rows.tolist()):
            self._queries[row] += searched.queries[number]
            zero = searched.zero_gradient[number]
            if zero is not None:
                self.zeros[row] = float(np.nanmax([self.zeros[row], zero]))
        self.offer(rows, shown, name)

    def offer(self, rows: Tensor, images: Tensor, name: str) -> None:
        """Judge images, and keep those that are answered worse than what is kept.

        Args:
            rows: int64 K, which of the batch's images they are made of.
            images: float32 K×3×H×W as they would be saved.
            name: Which attack made them.
        """
        badness = self._judged(self._batch.part(rows), images)
        better = badness > self._badness[rows]
        self._images[rows[better]], self._badness[rows[better]] = images[better], badness[better]
        for row, is_better in zip(rows.tolist(), better.tolist(), strict=True):
            self._queries[row] += self._draws
            if is_better:
                self._by[row] = name

    def result(self) -> SearchResult:
        """Return what is kept."""
        return SearchResult(
            images=self._images,
            queries=self._queries,
            zero_gradient=[None if np.isnan(zero) else zero for zero in self.zeros],
            found_by=self._by,
            notes=[self._note(row) for row in range(len(self._by))],
        )

    def _note(self, row: int) -> str:
        random = f"answers do not repeat: gradients are averaged over {self._draws // 2} draws"
        notes = [random] if self._draws > 1 else []
        if row in self.blocked:
            notes.append(f"{self.blocked[row]}: a surrogate of its scores and Square instead")
        elif self.zeros[row] > _MOSTLY:
            notes.append("most gradients are zero: a surrogate of its scores beside")
        return "; ".join(notes)

    def _as_saved(self, batch: AttackBatch, number: int, image: Tensor) -> Tensor:
        epsilon = float(batch.epsilon[number]) * 255
        source = batch.cases[number].seed.image
        return pixels_of(saved(image[None], source, epsilon + 1e-4, norm=self._norm), str(image.device))

    def _judged(self, batch: AttackBatch, images: Tensor) -> Tensor:
        return _badness(batch, [self._probe.logits(images) for _ in range(self._draws)])


def _badness(batch: AttackBatch, drawn: Sequence[Tensor]) -> Tensor:
    """Return how wrongly each image is answered: how far the attack came, then the margin; float64 B.

    Args:
        batch: The images.
        drawn: Their logits, one tensor for each asking.
    """
    reached = torch.stack([batch.goal.reached(logits) for logits in drawn]).double().mean(dim=0)
    margins = torch.stack([batch.goal.losses("margin", logits) for logits in drawn]).double().mean(dim=0)
    margin = torch.tanh(margins) / 2 + 0.5  # between 0 and 1: it only breaks ties
    weight = 2.0 * batch.goal.parts * len(drawn)  # so that one more wrong answer counts more than any margin
    badness = torch.where(reached >= 1, _WHOLE, reached * weight) + margin
    return badness.nan_to_num(nan=-1.0)


def _why(error: Exception) -> str:
    words = str(error)
    if NOT_FINITE in words:
        return "gradients are not finite"
    if NO_GRADIENT in words or "does not require grad" in words:
        return NO_GRADIENT
    return f"gradients cannot be had ({words.splitlines()[0][:120] if words else type(error).__name__})"
