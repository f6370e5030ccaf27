"""Findings, names and bounds of the checks on attacks."""

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
"""Title of each check."""

MOST_REPEAT = 1e-4
"""Largest allowed difference in probability between two predictions for one image.

Batches of a deterministic network differ by about 1e-6.
"""
MOST_PROBE = 0.01
"""Largest allowed difference in probability between a probe and the answers."""
MOSTLY = 0.5
"""A case with zero gradients in more than this share of pixels and steps gave the attack little to follow.

Cropping inside a network leaves up to 0.4 of the pixels without influence.
"""
MOST_ZERO = 0.01
"""Largest allowed share of such cases."""
LARGE = 64.0
"""ε, in levels, at which no image remains recognizable."""
LEFT_OF_MASKS = 0.05
"""Largest mean Dice allowed at :data:`LARGE`; for labels, no answer may be right there."""
TOO_KIND = frozenset(
    {REPEATS, PROBE, FOLLOWED, ZERO, EPSILON, STEPS, UNBOUNDED, BLACK_BOX, OTHERS, STRONG, STRONGER, FLOOR}
)
"""Checks whose failure means that a rate may be too optimistic; not if the attack left nothing right."""
MISLEADS = "gradients are misleading: read the strongest row"
LITTLE = 0.1
"""An attack is idle if its advantage over noise of the same ε may be zero and is below this share."""


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """Result of one check: a row of the table without its keys."""

    check: str
    verdict: str
    why: str
    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    bound: float = float("nan")

    @classmethod
    def unchecked(cls, check: str, why: str, figures: Mapping[str, float] | None = None) -> CheckFinding:
        """Return the result of a check without enough cases."""
        return cls(check=check, verdict=NOT_CHECKED, why=why, **(figures or {}))

    @classmethod
    def of(
        cls, check: str, passes: bool, why: str, figures: Mapping[str, float], explanation: str = ""
    ) -> CheckFinding:
        """Return the result of a check; if it fails, the explanation follows the reason."""
        return cls(check=check, verdict=OK if passes else FAILS, why=why if passes else why + explanation, **figures)
