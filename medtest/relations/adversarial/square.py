"""The Square attack: a random search that needs only scores.

M. Andriushchenko, F. Croce, N. Flammarion, M. Hein, "Square Attack: a query-efficient black-box adversarial attack via
random search", ECCV 2020, algorithms 1 and 2 (L∞): it starts at vertical stripes of ±ε; each try repaints a square with
one sign per channel and keeps it if the margin got worse. The square's share of the image begins at ``p`` and is halved
at fixed shares of the tries (section 5: 10, 50, 200, 1000, 2000, 4000, 6000, 8000 of 10,000).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pydantic import Field

from medtest.core.cases import PreparedSeed
from medtest.core.deferred import torch
from medtest.core.probes import Need, Probe
from medtest.relations.adversarial.attack import (
    Attack,
    AttackBatch,
    AttackSettings,
    EpsilonLevel,
    SearchResult,
    losses_of,
    noise,
)

if TYPE_CHECKING:
    from torch import Tensor

Score: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
_HALVED_AT = (10, 50, 200, 1000, 2000, 4000, 6000, 8000)


class SquareSettings(AttackSettings[EpsilonLevel]):
    """Settings of ``square``.

    Attributes:
        tries: Number of squares tried; the search of an image ends once its goal is fully reached.
        p: Area of the first square as a share of the image.
    """

    tries: int = Field(default=500, ge=1, le=1_000_000)
    p: float = Field(default=0.8, gt=0.0, le=1.0)


class Square(Attack[EpsilonLevel]):
    """Repaint random squares by ±ε and keep those that worsen the answer; needs only scores."""

    Settings = SquareSettings

    settings: SquareSettings

    @property
    def needs(self) -> Need:
        """Requirement on the system: scores."""
        return Need.SCORES

    def network_passes(self, severity: int) -> int:
        """Return the passes for all tries, the start, and checks before and after."""
        return self.settings.tries + 5

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of every attack plus the number of squares."""
        return {**super().sample(seed, severity, rng), "tries": self.settings.tries}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Search each image of a batch."""
        return square_search(batch, probe, tries=self.settings.tries, p=self.settings.p)


def square_search(batch: AttackBatch, probe: Probe, *, tries: int, p: float, salt: int = 0) -> SearchResult:
    """Search each image of a batch with the random generator of its case.

    Images are queried as they would be saved, with ε in whole levels, so that rounding loses nothing.

    Args:
        batch: The images.
        probe: Probe of the system; scores are enough.
        tries: Number of squares tried.
        p: Area of the first square as a share of the image.
        salt: Distinguishes several searches of a case.
    """
    loss = losses_of(batch.goal, "margin")
    drawn = [noise(case, 1000 + salt) for case in batch.cases]
    epsilon = (batch.epsilon * 255 + 1e-4).floor() / 255
    height, width = batch.images.shape[2:]
    stripes = np.stack([rng.choice((-1.0, 1.0), (3, 1, width)) for rng in drawn]).astype(np.float32)
    now = _painted(batch, torch.from_numpy(stripes).to(epsilon.device) * epsilon[:, None, None, None])
    everyone = torch.arange(len(now), device=now.device)
    logits = probe.logits(now)
    greatest, reached = loss(logits, everyone), batch.goal.reached(logits)
    queries = [1] * len(now)
    for number in range(tries):
        rows = (reached < 1).nonzero().flatten()
        if not len(rows):
            break
        side = _side(number, tries, p, height, width)
        tried = now[rows].clone()
        for place, row in enumerate(rows.tolist()):
            rng = drawn[row]
            top, left = int(rng.integers(height - side + 1)), int(rng.integers(width - side + 1))
            signs = torch.from_numpy(rng.choice((-1.0, 1.0), (3, 1, 1)).astype(np.float32)).to(epsilon.device)
            window = (slice(None), slice(top, top + side), slice(left, left + side))
            painted = (batch.images[row][window] + signs * epsilon[row]).clamp(0.0, 1.0)
            tried[place][window] = torch.where(
                batch.within[row].expand_as(tried[place])[window], painted, tried[place][window]
            )
            queries[row] += 1
        logits = probe.logits(tried)
        losses = loss(logits, rows)
        better = losses > greatest[rows]
        now[rows[better]] = tried[better]
        greatest[rows[better]] = losses[better]
        reached[rows[better]] = batch.goal.reached(logits, rows)[better]
    return SearchResult(images=now, queries=queries)


def _painted(batch: AttackBatch, offset: Tensor) -> Tensor:
    return torch.where(batch.within, (batch.images + offset).clamp(0.0, 1.0), batch.images)


def _side(number: int, tries: int, p: float, height: int, width: int) -> int:
    """Return the side of a try's square in pixels."""
    at = number / tries * 10_000
    share = p / 2 ** sum(at > end for end in _HALVED_AT)
    return max(1, min(height, width, round(math.sqrt(share * height * width))))
