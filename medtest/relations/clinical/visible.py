"""The strongest setting of a severity that leaves every lesion visible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from medtest.core.cases import Image, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.preparation.visibility import keeps_lesion_visible

STEPS = 8
"""Settings between the level below and a level, the level itself included."""


def strongest_visible(
    seed: PreparedSeed,
    between: Callable[[float], dict[str, Any]],
    render: Callable[[Params], Image],
) -> dict[str, Any]:
    """Return the parameters of a level, weakened as far as the visibility of the lesions demands.

    Args:
        seed: The prepared seed.
        between: Parameters at a share of the way from the level below (0, exclusive) to the level (1), with the
            share's ``scale``.
        render: The follow-up's image for parameters.

    Returns:
        The parameters with the level's own ``scale``; if they were weakened, ``scale_applied`` holds the scale of what
        was applied.

    Raises:
        NotApplicable: Every setting above the level below would hide the lesion.
    """
    full = between(1.0)
    for step in range(STEPS, 0, -1):
        params = full if step == STEPS else between(step / STEPS)
        if keeps_lesion_visible(seed, render(params)):
            break
    else:
        raise NotApplicable("at this strength the lesion would be invisible")
    if params is full:
        return full
    return {**params, "scale": full["scale"], "scale_applied": round(float(params["scale"]), 6)}


def interpolate(low: Mapping[str, float], high: Mapping[str, float], share: float) -> dict[str, float]:
    """Return numbers between those of two levels, at a share of the way; ``high`` itself at 1."""
    return {name: value if share == 1.0 else low[name] + share * (value - low[name]) for name, value in high.items()}
