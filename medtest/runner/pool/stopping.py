"""Stopping a run by a signal, at a safe point."""

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

    If systems have paid calls, the safe point is the end of the running calls.
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

    for signum in numbers:
        signal.signal(signum, stop)
    try:
        yield
    finally:
        for signum, handler in earlier.items():
            signal.signal(signum, handler)
