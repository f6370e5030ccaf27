"""Hours in milliseconds: an event loop whose clock jumps to the next timer as soon as it has nothing else to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_SETTLED = 0.002


class _Jumping(selectors.DefaultSelector):
    """Waits a short real time for sockets, and then lets the clock jump instead of waiting on."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        # Data written to a socket of this machine can be read at once, or nearly.
        events = super().select(_SETTLED if self.get_map() and len(self.get_map()) > 1 else 0)
        if not events:
            self.ahead += timeout
        return events


class Loop(asyncio.SelectorEventLoop):
    """An event loop with its own clock, which starts at 1000 s."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the time of its clock."""
        return 1000.0 + self._jumping.ahead


def played(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run a coroutine; return its result and its seconds on the loop's clock."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        began = runner.get_loop().time()
        return runner.run(main), runner.get_loop().time() - began
