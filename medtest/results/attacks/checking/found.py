"""What a check on attacks finds, and what the checks are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OK, FAILS, NOT_CHECKED = "ok", "fails", "not checked"

REPEATS, PROBE, ZERO = "answers_repeat", "probe", "zero_gradients"
EPSILON, STEPS, UNBOUNDED = "epsilon", "steps", "unbounded"
BLACK_BOX, OTHERS, STRONG, FLOOR = "black_box", "transfer", "strongest", "uniform_noise"
ROUNDING, WITHIN = "rounding", "within_epsilon"
STRONGER, FOLLOWED, MISLEADING = "stronger", "gradients", "misleading"

TITLES: Mapping[str, str] = {
    REPEATS: "answers repeat",
    PROBE: "probe and answers agree",
    MISLEADING: "gradients do not mislead",
    FOLLOWED: "gradients can be followed",
    ZERO: "gradients are not zero",
    EPSILON: "a larger ε leaves no more right",
    STEPS: "more steps leave no more right",
    UNBOUNDED: "nothing withstands ε of 64/255 and more",
    BLACK_BOX: "black box is no stronger",
    OTHERS: "transfer is no stronger",
    STRONG: "no attack is stronger than strongest",
    STRONGER: "no attack of the same ε is stronger",
    FLOOR: "uniform noise is weaker",
    ROUNDING: "no success is lost by rounding",
    WITHIN: "pixels stay within ε",
}
"""What each check asks, in words."""

MOST_REPEAT = 1e-4
"""Largest difference in probability of two askings about the same image; batches of a deterministic network differ by
about 1e-6."""
MOST_PROBE = 0.01
"""Largest difference in probability between a probe and the answers."""
MOSTLY = 0.5
"""A case whose gradients were zero in more than this share of pixels and steps had little to follow; cropping inside a
network leaves up to 0.4 of the pixels without influence."""
MOST_ZERO = 0.01
"""Largest share of such cases."""
LARGE = 64.0
"""ε, in levels, that leaves no image what it was."""
LEFT_OF_MASKS = 0.05
"""Mean Dice that may be left at :data:`LARGE`; of labels no image's whole answer may be right."""
TOO_KIND = frozenset(
    {REPEATS, PROBE, FOLLOWED, ZERO, EPSILON, STEPS, UNBOUNDED, BLACK_BOX, OTHERS, STRONG, STRONGER, FLOOR}
)
"""Checks that say of an attack which failed that its rate may be too kind; one that left nothing right cannot be."""
MISLEADS = "gradients are misleading: read the strongest row"
LITTLE = 0.1
"""An attack that is shown to take less than this more than noise of the same ε, and not shown to take more, is idle."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a check found, a row of the table without its keys."""

    check: str
    verdict: str
    why: str
    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    bound: float = float("nan")
