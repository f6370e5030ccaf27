"""Sequence of attacks run by ``strongest``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from medtest.core.errors import BadOutput
from medtest.core.probes import Probe
from medtest.relations.adversarial.attack import AttackBatch, SearchResult, losses_of, uniform_start
from medtest.relations.adversarial.auto_pgd import auto_pgd
from medtest.relations.adversarial.square import square_search
from medtest.relations.adversarial.strongest.distilled import distilled_search
from medtest.relations.adversarial.strongest.draws import ProbeWith, drawn_logits, mean_loss
from medtest.relations.adversarial.strongest.passing import passing, passing_helps
from medtest.relations.adversarial.strongest.settings import StrongestSettings
from medtest.relations.adversarial.strongest.worst import AttackPart, Search, Worst

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
    pgd = partial(_auto_pgd, settings=settings, draws=draws)
    for restart in range(settings.restarts):
        for number, loss in enumerate(losses):
            search: Search = partial(pgd, loss=loss, salt=10 * restart + number)
            yield AttackPart(name=own, search=search, by_gradient=True)
    passed = partial(_passing_pgd, settings=settings, draws=draws)
    if bool(worst.open.any()) and passing_helps(probe, batch.images[:1], leaky=False):
        for number, loss in enumerate(losses):
            yield AttackPart(name=PASSING, search=partial(passed, leaky=False, loss=loss, salt=100 + number))
    starved = worst.open & worst.starved
    if bool(starved.any()) and passing_helps(probe, batch.images[:1], leaky=True):
        search = partial(passed, leaky=True, loss="margin", salt=200)
        yield AttackPart(name=LEAKY, search=search, starved=True)
    if settings.norm == "linf" and settings.tries:
        if settings.tries >= _FEWEST:
            search = _by_scores(partial(distilled_search, tries=settings.tries), draws)
            yield AttackPart(name=SURROGATE, search=search, starved=True)
        yield AttackPart(name=SQUARE, search=_by_scores(partial(square_search, tries=settings.tries, p=0.8), draws))


def _auto_pgd(
    batch: AttackBatch, probe: Probe, *, settings: StrongestSettings, draws: int, loss: str, salt: int
) -> SearchResult:
    """Search by Auto-PGD on one loss, with gradients averaged over the draws."""
    searched = auto_pgd(
        drawn_logits(probe, draws),
        batch.images,
        mean_loss(losses_of(batch.goal, loss), draws),
        epsilon=batch.epsilon,
        steps=settings.steps,
        norm=settings.norm,
        start=uniform_start(batch, salt=salt),
        within=batch.within,
    )
    return _scaled_queries(SearchResult.of(searched), draws)


def _passing_pgd(batch: AttackBatch, probe: Probe, *, leaky: bool, **options: Any) -> SearchResult:
    """Search with gradients passed through blocking functions; return the source if these are missing too."""
    try:
        searched = _auto_pgd(batch, passing(probe, leaky=leaky), **options)
    except (BadOutput, RuntimeError) as error:
        if isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        return SearchResult(images=batch.images, queries=[1] * len(batch.images))
    return replace(searched, zero_gradient=())


def _by_scores(search: Search, draws: int) -> Search:
    """Return a search by scores, or by their mean over several draws."""
    if draws == 1:
        return search

    def averaged(batch: AttackBatch, probe: Probe) -> SearchResult:
        mean: Probe = ProbeWith(probe, lambda images: drawn_logits(probe, draws)(images).mean(dim=0))
        return _scaled_queries(search(batch, mean), draws)

    return averaged


def _scaled_queries(searched: SearchResult, draws: int) -> SearchResult:
    return replace(searched, queries=[count * draws for count in searched.queries])
