"""The strongest of several attacks, image by image, judged on what is saved.

After AutoAttack (Croce and Hein 2020), which cannot be taken as it is: its DLR loss is undefined under three classes,
its targeted form under four, and it knows neither several labels nor masks. Here: Auto-PGD on cross-entropy, on the
margin (of masks also on Dice), each with restarts, then Square; of all their images, rounded to 8 bits, the one that
the system answers worst is taken. An image of which all is reached that can be is not attacked further.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from medtest.cases import PreparedSeed
from medtest.probes import Probe
from medtest.relations.adversarial.attack import (
    Attack,
    AttackBatch,
    AttackSettings,
    EpsilonLevel,
    SearchResult,
    losses_of,
    uniform_start,
)
from medtest.relations.adversarial.saving import pixels_of, saved

if TYPE_CHECKING:
    from torch import Tensor


class StrongestSettings(AttackSettings[EpsilonLevel]):
    """Settings of ``strongest``.

    Attributes:
        norm: The norm in which ε bounds; Square is of ``linf`` alone.
        steps: Steps of each Auto-PGD.
        restarts: How often each is started; the first at a random point, as every one.
        tries: Squares that Square tries; 0 leaves it out.
    """

    norm: Literal["linf", "l2"] = "linf"
    steps: int = Field(default=30, ge=1, le=10_000)
    restarts: int = Field(default=1, ge=1, le=1000)
    tries: int = Field(default=200, ge=0, le=1_000_000)


class Strongest(Attack[EpsilonLevel]):
    """The worst of Auto-PGD on two losses and of Square, for each image."""

    Settings = StrongestSettings

    settings: StrongestSettings

    def network_passes(self, severity: int) -> int:
        """Return at most those of all its parts, and what is asked before and after."""
        settings = self.settings
        return 2 * settings.restarts * (settings.steps + 2) + settings.tries + 4

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """As of every attack, with how long each of its parts searches."""
        settings = self.settings
        said = {"steps": settings.steps, "restarts": settings.restarts, "tries": settings.tries}
        return {**super().sample(seed, severity, rng), **said}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Attack in turn whatever is not wholly reached, and keep the worst of each image."""
        import torch

        kept, worst = batch.images.clone(), _badness(batch, batch.clean)
        queries, zeros = [0] * len(kept), [np.nan] * len(kept)
        for part in self._parts(batch):
            rows = (worst < _WHOLE).nonzero().flatten()
            if not len(rows):
                break
            own = batch.part(rows)
            found = part.search(own, probe)
            shown = torch.cat([self._as_saved(own, number, image) for number, image in enumerate(found.images)])
            badness = _badness(own, probe.logits(shown))
            better = badness > worst[rows]
            kept[rows[better]], worst[rows[better]] = shown[better], badness[better]
            for number, row in enumerate(rows.tolist()):
                queries[row] += found.queries[number] + 1
                zero = found.zero_gradient[number]
                zeros[row] = np.nanmax([zeros[row], zero]) if zero is not None else zeros[row]
        return SearchResult(
            images=kept, queries=queries, zero_gradient=[None if np.isnan(z) else float(z) for z in zeros]
        )

    def _as_saved(self, batch: AttackBatch, number: int, image: Tensor) -> Tensor:
        epsilon = float(batch.epsilon[number]) * 255
        source = batch.cases[number].seed.image
        return pixels_of(saved(image[None], source, epsilon + 1e-4, norm=self.norm), str(image.device))

    def _parts(self, batch: AttackBatch) -> Iterator[_AutoPgd | _Square]:
        for restart in range(self.settings.restarts):
            for number, loss in enumerate(batch.goal.losses_known):
                yield _AutoPgd(loss, self.settings, 10 * restart + number)
        if self.settings.tries and self.settings.norm == "linf":
            yield _Square(self.settings.tries)


_WHOLE = 1e9
"""Badness of an image of which all is reached."""


def _badness(batch: AttackBatch, logits: Tensor) -> Tensor:
    """Return how wrongly each image is answered: how far the attack came, then the margin; float B."""
    import torch

    reached = batch.goal.reached(logits)
    margin = torch.tanh(batch.goal.losses("margin", logits)) / 2 + 0.5  # between 0 and 1: it only breaks ties
    one = 2.0 * batch.goal.parts  # so that one more label, or pixel, that is wrong counts more than any margin
    found = torch.where(reached >= 1, _WHOLE, reached * one) + margin
    return found.nan_to_num(nan=-1.0)


class _AutoPgd:
    def __init__(self, loss: str, settings: StrongestSettings, salt: int) -> None:
        self._loss, self._settings, self._salt = loss, settings, salt

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        from medtest.relations.adversarial.auto_pgd import auto_pgd

        found = auto_pgd(
            probe.logits,
            batch.images,
            losses_of(batch.goal, self._loss),
            epsilon=batch.epsilon,
            steps=self._settings.steps,
            norm=self._settings.norm,
            start=uniform_start(batch, salt=self._salt),
            within=batch.within,
        )
        return SearchResult.of(found)


class _Square:
    def __init__(self, tries: int) -> None:
        self._tries = tries

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        from medtest.relations.adversarial.square import square_search

        return square_search(batch, probe, tries=self._tries, p=0.8)
