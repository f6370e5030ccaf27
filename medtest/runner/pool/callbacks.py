"""Callbacks of a dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from medtest.runner.pool.layout import Layout
from medtest.runner.pool.messages import PoolTask, Told


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """Callbacks of a dispatcher.

    Attributes:
        result: Receives the result of a unit.
        renew: Returns a unit's task again with its unfinished part, or None if nothing is left.
        tick: Called several times a second.
        layout: Returns the layout for the resolved device.
        more: Called when every task is done; returns further tasks, or None.
        told: Receives the progress of a system's calls.
    """

    result: Callable[[Any, int], None]
    renew: Callable[[Any], PoolTask | None]
    layout: Callable[[str], Layout]
    tick: Callable[[], None] = lambda: None
    more: Callable[[], Iterator[PoolTask] | None] = lambda: None
    told: Callable[[Told], None] = lambda told: None
