"""Settings of the strongest of several attacks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from medtest.relations.adversarial.attack import AttackSettings, EpsilonLevel


class StrongestSettings(AttackSettings[EpsilonLevel]):
    """Settings of ``strongest``.

    Attributes:
        norm: Norm of the ε ball; Square runs only for ``linf``.
        steps: Steps of each Auto-PGD.
        restarts: Number of starts of each Auto-PGD, all at random points.
        tries: Number of squares that Square tries, and of queries for a surrogate; 0 leaves both out.
        draws: Number of draws over which gradients and scores are averaged if answers do not repeat. Images are judged
            over twice as many.
    """

    norm: Literal["linf", "l2"] = "linf"
    steps: int = Field(default=30, ge=1, le=10_000)
    restarts: int = Field(default=1, ge=1, le=1000)
    tries: int = Field(default=200, ge=0, le=1_000_000)
    draws: int = Field(default=8, ge=1, le=1000)
