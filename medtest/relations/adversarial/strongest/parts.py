"""Sequence of attacks run by ``strongest``."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from medtest.core.probes import Probe
from medtest.relations.adversarial.attack import AttackBatch, SearchResult, losses_of, uniform_start
from medtest.relations.adversarial.auto_pgd import auto_pgd
from medtest.relations.adversarial.square import square_search
from medtest.relations.adversarial.strongest.distilled import distilled_search
from medtest.relations.adversarial.strongest.draws import AveragedProbe, drawn_logits, mean_loss
from medtest.relations.adversarial.strongest.passing import PassingProbe
from medtest.relations.adversarial.strongest.settings import StrongestSettings
from medtest.relations.adversarial.strongest.worst import AttackPart, Worst

GRADIENT = "auto_pgd"
"""Name of the attack that follows the network's own gradients."""
AVERAGED, PASSING, LEAKY = "averaged", "straight_through", "leaky"
SURROGATE, SQUARE = "surrogate", "square"
_FEWEST = 12
"""Least number of tries for fitting a surrogate."""


def parts_of(settings: StrongestSettings, batch: AttackBatch, probe: Probe, worst: Worst) -> Iterator[AttackPart]:
    """Yield the attacks on a batch; later ones depend on the results of earlier ones.

    Args:
        settings: Settings of the search.
        batch: The images.
        probe: Probe of the system.
        worst: The worst images so far.
    """
    losses, draws = batch.goal.losses_known, settings.draws if batch.random else 1
    own = AVERAGED if batch.random else GRADIENT
    for restart in range(settings.restarts):
        for number, loss in enumerate(losses):
            yield _AutoPgd(own, settings, loss, salt=10 * restart + number, draws=draws)
    if bool(worst.open.any()) and PassingProbe(probe, leaky=False).helps(batch.images[:1]):
        for number, loss in enumerate(losses):
            yield _Passing(PASSING, settings, loss, salt=100 + number, draws=draws)
    starved = worst.open & worst.starved
    if bool(starved.any()) and PassingProbe(probe, leaky=True).helps(batch.images[:1]):
        yield _Passing(LEAKY, settings, "margin", salt=200, draws=draws)
    if settings.norm == "linf" and settings.tries:
        if settings.tries >= _FEWEST:
            yield _Surrogate(settings.tries, draws)
        yield _Square(settings.tries, draws)


class _AutoPgd:
    """Auto-PGD on one loss."""

    follows = True

    def __init__(self, name: str, settings: StrongestSettings, loss: str, *, salt: int, draws: int) -> None:
        self.name, self._settings, self._loss, self._salt, self._draws = name, settings, loss, salt, draws

    def wanted(self, worst: Worst) -> Tensor:
        """Return all open images."""
        return worst.open

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Search with gradients averaged over the draws."""
        searched = auto_pgd(
            drawn_logits(probe, self._draws),
            batch.images,
            mean_loss(losses_of(batch.goal, self._loss), self._draws),
            epsilon=batch.epsilon,
            steps=self._settings.steps,
            norm=self._settings.norm,
            start=uniform_start(batch, salt=self._salt),
            within=batch.within,
        )
        result = SearchResult.of(searched)
        return SearchResult(
            images=result.images,
            queries=[count * self._draws for count in result.queries],
            zero_gradient=result.zero_gradient,
        )


class _Passing(_AutoPgd):
    """Auto-PGD with gradients passed through blocking functions; zero gradients are not reported."""

    follows = False

    def wanted(self, worst: Worst) -> Tensor:
        """Return all open images, or only those without gradients."""
        return worst.starved if self.name == LEAKY else worst.open

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Search; return the source if even these gradients are not available."""
        from medtest.core.errors import BadOutput

        try:
            searched = super().search(batch, PassingProbe(probe, leaky=self.name == LEAKY))
        except (BadOutput, RuntimeError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            return SearchResult(
                images=batch.images, queries=[1] * len(batch.images), zero_gradient=[None] * len(batch.images)
            )
        return SearchResult(
            images=searched.images, queries=searched.queries, zero_gradient=[None] * len(searched.images)
        )


class _Surrogate:
    """Surrogate distilled from scores, for images with zero or missing gradients."""

    name, follows = SURROGATE, False

    def __init__(self, tries: int, draws: int) -> None:
        self._tries, self._draws = tries, draws

    def wanted(self, worst: Worst) -> Tensor:
        """Return the images without gradients."""
        return worst.starved

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Search with a surrogate per image."""
        return _scaled_queries(distilled_search(batch, _averaged(probe, self._draws), tries=self._tries), self._draws)


class _Square:
    """The Square attack."""

    name, follows = SQUARE, False

    def __init__(self, tries: int, draws: int) -> None:
        self._tries, self._draws = tries, draws

    def wanted(self, worst: Worst) -> Tensor:
        """Return all open images."""
        return worst.open

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Search on mean scores of the draws."""
        return _scaled_queries(
            square_search(batch, _averaged(probe, self._draws), tries=self._tries, p=0.8), self._draws
        )


def _averaged(probe: Probe, draws: int) -> Probe:
    if draws == 1:
        return probe
    averaged: Probe = AveragedProbe(probe, draws)
    return averaged


def _scaled_queries(searched: SearchResult, draws: int) -> SearchResult:
    return SearchResult(
        images=searched.images,
        queries=[count * draws for count in searched.queries],
        zero_gradient=searched.zero_gradient,
    )
