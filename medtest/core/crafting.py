"""How follow-ups of relations that need a system were crafted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Crafting:
    """How a follow-up was crafted; attributes that do not apply are None.

    Attributes:
        loss_before: The attack's loss on the source image.
        loss_after: The same on the image as it is saved, 8 bits a channel.
        zero_gradient: Share of (step, pixel in reach, channel) whose gradient was exactly 0, in [0, 1].
        float_label: What the system answered to the pixels before they were rounded: labels joined by ``|`` in the
            order of the classes; None of masks.
        queries: Images that the system was asked about, forward passes with or without gradient.
        reference: What the attack led away from: ``truth``, ``answer`` (the system's own, of a seed without truth) or
            ``target`` (it led towards one).
        smallest_epsilon: With ``minimal``: the smallest ε, in levels of 255, at which the attack flips the answer, an
            upper bound; None where none within bounds does.
        found_by: Of several attacks, the one that made the image that was kept; None of a single attack.
        note: What must be said of how it was searched for: that gradients are not finite, or were averaged.
        more: Anything else, JSON values; no column.
    """

    loss_before: float | None = None
    loss_after: float | None = None
    zero_gradient: float | None = None
    float_label: str | None = None
    queries: int | None = None
    reference: str | None = None
    smallest_epsilon: float | None = None
    found_by: str | None = None
    note: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
