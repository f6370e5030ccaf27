"""Hours in milliseconds: an event loop whose clock jumps to the next timer as soon as nothing else is to be done."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_SETTLED = 0.002


class _Jumping(selectors.DefaultSelector):
    """Waits for sockets a moment of real time, and then lets the clock jump instead of waiting on."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        # What was written to a socket of this machine can be read at once, or nearly.
        found = super().select(_SETTLED if self.get_map() and len(self.get_map()) > 1 else 0)
        if not found:
            self.ahead += timeout
        return found


class Loop(asyncio.SelectorEventLoop):
    """An event loop on a clock of its own, which starts at 1000 s."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return its clock."""
        return 1000.0 + self._jumping.ahead


def played(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run a coroutine and return what it returns, and its seconds on the loop's clock."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        began = runner.get_loop().time()
        return runner.run(main), runner.get_loop().time() - began
