"""Settings of the strongest of several attacks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from medtest.relations.adversarial.attack import AttackSettings, EpsilonLevel


class StrongestSettings(AttackSettings[EpsilonLevel]):
    """Settings of ``strongest``.

    Attributes:
        norm: The norm in which ε bounds; Square is of ``linf`` alone.
        steps: Steps of each Auto-PGD.
        restarts: How often each is started; the first at a random point, as every one.
        tries: Squares that Square tries, and how often a system is asked for a surrogate; 0 leaves both out.
        draws: Where answers do not repeat: over how many draws a gradient and a score are averaged. Images are judged
            over twice as many.
    """

    norm: Literal["linf", "l2"] = "linf"
    steps: int = Field(default=30, ge=1, le=10_000)
    restarts: int = Field(default=1, ge=1, le=1000)
    tries: int = Field(default=200, ge=0, le=1_000_000)
    draws: int = Field(default=8, ge=1, le=1000)
