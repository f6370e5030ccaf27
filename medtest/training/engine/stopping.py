"""Handling of Ctrl-C and SIGTERM during a training."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Convert Ctrl-C and SIGTERM to a flag that is checked between steps; only in the main thread."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    for kind in before:
        signal.signal(kind, lambda *_: requested.set())
    try:
        yield requested
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
