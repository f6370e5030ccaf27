"""How a run is stopped: by a signal, at a safe point."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from medtest.runner.pool.dispatch import Dispatcher


@contextmanager
def stop_gently(dispatcher: Dispatcher) -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) end the run at a safe point; a second one ends it at once.

    Where systems are asked questions, the safe point is the end of the calls that are under way: they are paid for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    earlier = {number: signal.getsignal(number) for number in numbers}

    def stop(number: int, frame: FrameType | None) -> None:
        if dispatcher.stop:
            raise KeyboardInterrupt
        dispatcher.stop = True

    for each in numbers:
        signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)
