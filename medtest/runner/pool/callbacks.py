"""What a dispatcher calls, whoever has it hand out work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import PoolTask, Told


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """What a dispatcher calls.

    Attributes:
        result: Takes what came of a unit.
        renew: Gives a unit's task again with what is still to do, or None when nothing is.
        tick: Called several times a second.
        layout: Given the resolved device, the layout to use.
        more: Called when every task is done; further tasks, or None.
        told: Told how far a system's calls are.
    """

    result: Callable[[Any, int], None]
    renew: Callable[[Any], PoolTask | None]
    layout: Callable[[str], Layout]
    tick: Callable[[], None] = lambda: None
    more: Callable[[], Iterator[PoolTask] | None] = lambda: None
    told: Callable[[Told], None] = lambda told: None
