"""Collection of the image with the worst answer among several attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from medtest.core.errors import BadOutput
from medtest.core.probes import NO_GRADIENT, NOT_FINITE, Probe
from medtest.relations.adversarial.attack import AttackBatch, SearchResult
from medtest.relations.adversarial.saving import pixels_of, saved

_WHOLE = 1e9
"""Badness of an image whose goal is fully reached."""
_MOSTLY = 0.5
"""Share of exactly zero gradients above which gradient attacks are considered starved."""


Search: TypeAlias = Callable[[AttackBatch, Probe], SearchResult]


@dataclass(frozen=True, kw_only=True)
class AttackPart:
    """One of several attacks.

    Attributes:
        name: Name in records.
        search: Searches for adversarial images.
        by_gradient: Whether it needs gradients, which may be missing.
        starved: Whether it attacks only images with zero or missing gradients.
    """

    name: str
    search: Search
    by_gradient: bool = False
    starved: bool = False


class Worst:
    """Worst image so far of each image of a batch, as it would be saved.

    Args:
        batch: The images.
        probe: Probe of the system.
        norm: Norm of the ε ball: ``linf`` or ``l2``.
        draws: Queries per judged image; above 1 if answers do not repeat.

    Attributes:
        zeros: Largest share of zero gradients met by an attack, by image; NaN without gradients.
        blocked: Reason for missing gradients, by image; absent if available.
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
        """Images not fully reached, bool B."""
        return self._badness < _WHOLE

    @property
    def starved(self) -> Tensor:
        """Images whose gradients are mostly zero or missing, bool B."""
        rows = range(len(self.zeros))
        without = [row in self.blocked or self.zeros[row] > _MOSTLY for row in rows]
        return torch.tensor(without, dtype=torch.bool, device=self._badness.device)

    def attack(self, part: AttackPart) -> None:
        """Run one attack and keep images with worse answers.

        Raises:
            Exception: Any error of the network if only scores are requested.
        """
        pending = self.open & self.starved if part.starved else self.open
        if part.by_gradient:
            for row in self.blocked:
                pending[row] = False
        rows = pending.nonzero().flatten()
        if len(rows):
            self._run_part(rows, part)

    def _run_part(self, rows: Tensor, part: AttackPart) -> None:
        own = self._batch.part(rows)
        try:
            self._take(rows, own, part.search(own, self._probe), part.name)
        except (BadOutput, RuntimeError) as error:
            if not part.by_gradient or isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            if len(rows) == 1:
                self.blocked[int(rows[0])] = _failure_reason(error)
            else:
                for row in rows:  # retried one by one, so that one image without gradient does not affect the others
                    self._run_part(row[None], part)

    def _take(self, rows: Tensor, own: AttackBatch, searched: SearchResult, name: str) -> None:
        shown = torch.cat([self._as_saved(own, number, image) for number, image in enumerate(searched.images)])
        for row, count in zip(rows.tolist(), searched.queries, strict=True):
            self._queries[row] += count
        for row, zero in zip(rows.tolist(), searched.zero_gradient, strict=False):
            self.zeros[row] = float(np.nanmax([self.zeros[row], zero]))
        self.offer(rows, shown, name)

    def offer(self, rows: Tensor, images: Tensor, name: str) -> None:
        """Judge images and keep those answered worse than the current ones.

        Args:
            rows: int64 K, indices of their source images in the batch.
            images: float32 K×3×H×W as they would be saved.
            name: Name of the attack.
        """
        badness = self._judged(self._batch.part(rows), images)
        better = badness > self._badness[rows]
        self._images[rows[better]], self._badness[rows[better]] = images[better], badness[better]
        for row, is_better in zip(rows.tolist(), better.tolist(), strict=True):
            self._queries[row] += self._draws
            if is_better:
                self._by[row] = name

    def result(self) -> SearchResult:
        """Return the images kept."""
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
    """Return a measure of each image's wrong answer: progress of the attack first, margin second; float64 B.

    Args:
        batch: The images.
        drawn: Their logits, one tensor per query.
    """
    reached = torch.stack([batch.goal.reached(logits) for logits in drawn]).double().mean(dim=0)
    margins = torch.stack([batch.goal.losses("margin", logits) for logits in drawn]).double().mean(dim=0)
    margin = torch.tanh(margins) / 2 + 0.5  # between 0 and 1: it only breaks ties
    weight = 2.0 * batch.goal.parts * len(drawn)  # so that one more wrong answer counts more than any margin
    badness = torch.where(reached >= 1, _WHOLE, reached * weight) + margin
    return badness.nan_to_num(nan=-1.0)


def _failure_reason(error: Exception) -> str:
    words = str(error)
    if NOT_FINITE in words:
        return "gradients are not finite"
    if NO_GRADIENT in words or "does not require grad" in words:
        return NO_GRADIENT
    return f"gradients cannot be had ({words.splitlines()[0][:120] if words else type(error).__name__})"
