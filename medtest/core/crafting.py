"""Details of follow-ups crafted by relations that need a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Crafting:
    """Details of a crafted follow-up; attributes that do not apply are None.

    Attributes:
        loss_before: The attack's loss on the source image.
        loss_after: The same on the saved image, 8 bits per channel.
        zero_gradient: Share of (step, pixel in reach, channel) triples with a gradient of exactly 0, in [0, 1].
        float_label: The system's answer to the pixels before rounding: labels joined by ``|`` in class order; None for
            masks.
        queries: Images sent to the system, i.e. forward passes with or without gradient.
        reference: Label that the attack moved away from: ``truth`` or ``answer`` (the system's own, for a seed without
            truth); ``target`` if it moved towards a label.
        smallest_epsilon: With ``minimal``: the smallest ε, in levels of 255, at which the attack flips the answer (an
            upper bound); None if no ε within bounds does.
        found_by: Of several attacks, the one whose image was kept; None for a single attack.
        note: Remark on the search, e.g. that gradients were not finite or were averaged.
        more: Further JSON values; not stored in columns.
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
