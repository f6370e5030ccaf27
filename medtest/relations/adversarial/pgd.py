"""PGD and FGSM: steps along the sign of the gradient.

Xu et al. 2021, section 4.2.1, equations 1 and 2. The paper gives ε and the number of steps t (2/255 t=1, 4/255 t=4,
5/255 t=40, 10/255 t=60) but no step length; 1/255 is the released code's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field

from medtest.core.cases import PreparedSeed
from medtest.core.deferred import torch
from medtest.core.probes import Probe
from medtest.relations.adversarial.attack import (
    LEVELS,
    Attack,
    AttackBatch,
    AttackSettings,
    EpsilonLevel,
    SearchResult,
    losses_of,
    uniform_start,
)
from medtest.relations.levels import number

if TYPE_CHECKING:
    from torch import Tensor


class PgdLevel(EpsilonLevel):
    """One severity.

    Attributes:
        step: α, the length of a step in levels of 255.
        steps: Number of steps, t.
    """

    step: float = Field(gt=0.0, le=1e6)
    steps: int = Field(ge=1, le=10_000)


G = TypeVar("G", bound=EpsilonLevel)


class GradientSettings(AttackSettings[G], Generic[G]):
    """Settings shared by gradient attacks.

    Attributes:
        norm: Norm of the ε ball: ``linf`` (each value) or ``l2`` (all values of an image together).
        loss: Loss to maximise: ``cross_entropy`` (of exclusive classes; binary over labels or pixels), ``margin``,
            or, for masks, ``dice``.
    """

    norm: Literal["linf", "l2"] = "linf"
    loss: Literal["cross_entropy", "margin", "dice"] = "cross_entropy"


class PgdSettings(GradientSettings[PgdLevel]):
    """Settings of ``pgd``.

    Attributes:
        random_start: Start at a point drawn uniformly from the ball (for L2 from its box, projected back) instead of
            the source.
        restarts: Number of starts; the end point of greatest loss is kept.
        iterate: Iterate returned by a start: the ``last`` (as in the paper), or the ``best``, that of greatest loss.
        variant: ``paper``: ε in pixels; ``released``: as the published code, in normalised values (``std``, ``mean``).
        mean: For ``released``: mean of each channel in [0, 1], red, green, blue.
        std: For ``released``: standard deviation of each channel; ε in pixels is ε times this.
    """

    random_start: bool = True
    restarts: int = Field(default=1, ge=1, le=1000)
    iterate: Literal["last", "best"] = "last"
    variant: Literal["paper", "released"] = "paper"
    mean: list[float] = Field(default=[0.485, 0.456, 0.406], min_length=3, max_length=3)
    std: list[float] = Field(default=[0.229, 0.224, 0.225], min_length=3, max_length=3)


class Pgd(Attack[PgdLevel]):
    """Projected gradient descent: x ← Π(x + α·sign ∇L), t times, from a random start."""

    Settings = PgdSettings

    settings: PgdSettings

    def network_passes(self, severity: int) -> int:
        """Return the passes for all starts and steps, and for checks before and after."""
        steps = self.settings.levels[severity].steps
        best = self.settings.iterate == "best" or self.settings.restarts > 1
        return self.settings.restarts * (steps + best) + 4

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of every attack plus those of the steps."""
        params = super().sample(seed, severity, rng)
        params |= {"best": self.settings.iterate == "best", "restarts": self.settings.restarts}
        if self.settings.variant == "released":
            params["variant"] = "released"
        return params

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Run each start and keep the end point of greatest loss."""
        if self.settings.restarts == 1:
            return self._search_from(batch, probe, 0)
        images = batch.images.clone()
        greatest = torch.full((len(images),), -torch.inf, device=images.device)
        queries, zeros = [0] * len(images), [0.0] * len(images)
        for restart in range(self.settings.restarts):
            result = self._search_from(batch, probe, restart)
            queries = [a + int(b) + 1 for a, b in zip(queries, result.queries, strict=True)]
            zeros = [a + float(b or 0.0) for a, b in zip(zeros, result.zero_gradient, strict=True)]
            losses = batch.goal.losses(self.settings.loss, probe.logits(result.images))
            better = losses > greatest
            greatest = torch.where(better, losses, greatest)
            images[better] = result.images[better]
        shares = [zero / self.settings.restarts for zero in zeros]
        return SearchResult(images=images, queries=queries, zero_gradient=shares)

    def _search_from(self, batch: AttackBatch, probe: Probe, restart: int) -> SearchResult:
        settings = self.settings
        step = _step_of(batch)
        options: dict[str, Any] = {"best": settings.iterate == "best"}
        start = uniform_start(batch, salt=restart) if settings.random_start else None
        if settings.variant == "released":
            std = batch.images.new_tensor(settings.std)[:, None, None]
            start = None if start is None else start * std
            options["low"], options["high"] = self._released_bounds(batch)
            options |= {"epsilon": batch.epsilon[:, None, None, None] * std, "step": step[:, None, None, None] * std}
        return _follow_gradient(batch, probe, settings, start=start, **options)

    def _released_bounds(self, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        """Return the published code's clipping bounds in pixels: least and greatest normalised value of the image.

        The code takes them over the batch and all channels, instead of the valid pixel range.
        """
        mean, std = (batch.images.new_tensor(v)[:, None, None] for v in (self.settings.mean, self.settings.std))
        normalised = ((batch.images - mean) / std).flatten(1)
        low, high = (value[:, None, None, None] for value in (normalised.amin(dim=1), normalised.amax(dim=1)))
        return low * std + mean, high * std + mean


def _step_of(batch: AttackBatch) -> Tensor:
    return batch.images.new_tensor([number(case.params, "step") / LEVELS for case in batch.cases])


def _follow_gradient(batch: AttackBatch, probe: Probe, settings: GradientSettings[Any], **options: Any) -> SearchResult:
    """Return the result of the steps that the cases' parameters say; options replace those of the search."""
    from medtest.relations.adversarial.projected_gradient import projected_gradient

    arguments = {"epsilon": batch.epsilon, "step": _step_of(batch), "norm": settings.norm, **options}
    steps = torch.tensor([int(number(case.params, "steps")) for case in batch.cases])
    loss = losses_of(batch.goal, settings.loss)
    return SearchResult.of(
        projected_gradient(probe.logits, batch.images, loss, steps=steps, within=batch.within, **arguments)
    )


FgsmSettings = GradientSettings[EpsilonLevel]


class Fgsm(Attack[EpsilonLevel]):
    """One step of length ε from the source.

    I. Goodfellow, J. Shlens, C. Szegedy, "Explaining and harnessing adversarial examples", ICLR 2015.
    """

    Settings = FgsmSettings

    settings: GradientSettings[EpsilonLevel]

    def network_passes(self, severity: int) -> int:
        """Return the passes for one step and for checks before and after."""
        return 5

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of every attack plus those of the single step."""
        params = super().sample(seed, severity, rng)
        return {**params, "steps": 1, "step": params["epsilon"]}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Take one gradient step."""
        return _follow_gradient(batch, probe, self.settings)
