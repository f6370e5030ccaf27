"""Handling of SIGTERM and Ctrl-C during a whole command: exit code 130 and one message about kept results.

Code that must not be interrupted uses :func:`held`; code that begins a new phase calls :func:`phase`, so that the
message is right. While systems run, the runner handles both signals itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)
CODE = 130
_NOTHING = "Interrupted before the first case. Nothing was changed; earlier results are kept."
PHASES = {
    "start": _NOTHING,
    "compose": _NOTHING,
    "run": "Interrupted. Finished results are kept; run the same command again to continue.",
    "tables": (
        "Interrupted while making tables and reports. All cases are kept; the same command makes tables and reports "
        "again without running cases."
    ),
    "tracking": (
        "Interrupted while logging to MLflow. Records, tables and reports are complete; the same command logs them "
        "again without running cases."
    ),
}
"""Message about an interruption in each phase. In the first a signal ends the process at once."""
_LATER_SECONDS = 0.05
_UNINTERRUPTED = ("<frozen importlib", os.path.join("sqlalchemy", "pool", ""))
"""Parts of the file names of code that prints any exception before raising it: imports, SQLAlchemy's connections."""


@dataclass
class _State:
    """Signal state of the process."""

    phase: str = "start"
    received: bool = False
    reported: bool = False
    held: int = 0
    again: bool = False
    due: bool = False
    process: bool = False

    def begin(self) -> None:
        """Reset the state."""
        self.phase, self.received, self.reported, self.held = "start", False, False, 0
        self.again = self.due = False


_STATE = _State()


def phase(name: str) -> None:
    """Begin a phase, one of :data:`PHASES`.

    Raises:
        KeyboardInterrupt: A signal arrived whose exception was swallowed.
    """
    _STATE.phase = name
    check()


def check() -> None:
    """Raise if a signal arrived, for libraries that catch every exception.

    Raises:
        KeyboardInterrupt: A signal arrived.
    """
    if _STATE.received and not _STATE.held:
        _STATE.due = False
        raise KeyboardInterrupt


def report_interrupt() -> int:
    """Print once which results are kept, and return the exit code."""
    _STATE.due = False
    if not _STATE.reported:
        _STATE.reported = True
        sys.stdout.flush()
        sys.stderr.write(f"\n{PHASES[_STATE.phase]}\n")
        sys.stderr.flush()
    return CODE


@contextmanager
def held() -> Iterator[None]:
    """Delay a first signal until the end of the block; a second one ends the process at once."""
    _STATE.held += 1
    try:
        yield
    finally:
        _STATE.held -= 1
    check()


@contextmanager
def handled() -> Iterator[None]:
    """Handle both signals: the first raises KeyboardInterrupt, a second ends the process at once.

    In a process that called :func:`at_start`, signals are ignored afterwards: everything is written then, and the exit
    code states the outcome.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = {number: signal.getsignal(number) for number in NUMBERS}
    hook = sys.unraisablehook
    _STATE.begin()
    sys.unraisablehook = _quiet_hook(hook)
    for number in NUMBERS:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, signal.SIG_IGN if _STATE.process else handler)
        sys.unraisablehook = hook
        _STATE.received = _STATE.due = False  # else later calls in this process would be interrupted by this signal


def at_start() -> None:
    """End the process at once and quietly on either signal until other handlers are set."""
    _STATE.process = True
    for number in NUMBERS:
        signal.signal(number, _end)


def as_usual() -> None:
    """Restore Python's handlers, for commands with their own handling."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def given() -> bool:
    """Return True if a signal arrived."""
    return _STATE.received


def _stop(number: int, frame: FrameType | None) -> None:
    if _STATE.again:
        _STATE.again = False
        if _STATE.due:  # otherwise it was raised meanwhile, and would interrupt the message
            _raise(frame)
        return
    if _STATE.received or _STATE.phase == "start":
        _end(number, frame)
    _STATE.received = True
    _raise(frame)


def _resend() -> None:
    """Send the signal again through the system, because a pending Python handler does not wake blocking calls."""
    if (
        _STATE.due and signal.getsignal(signal.SIGTERM) is _stop
    ):  # otherwise it was raised meanwhile, or no handler is set
        _STATE.again = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _raise(frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, after the end of running code that would print it (:data:`_UNINTERRUPTED`)."""
    if _STATE.held:
        return
    _STATE.due = True
    if _printing(frame):
        timer = threading.Timer(_LATER_SECONDS, _resend)
        timer.daemon = True
        timer.start()
        return
    _STATE.due = False
    raise KeyboardInterrupt


def _printing(frame: FrameType | None) -> bool:
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _UNINTERRUPTED):
            return True
        frame = frame.f_back
    return False


def _end(number: int, frame: FrameType | None) -> None:
    if not _STATE.reported:  # no print: the signal may have interrupted one
        os.write(2, f"\n{PHASES[_STATE.phase]}\n".encode())
    os._exit(CODE)


def _quiet_hook(hook: Any) -> Any:
    """Return a hook that ignores interruptions where Python cannot raise them (in a destructor)."""

    def unraisable(unraised: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraised.exc_type, KeyboardInterrupt):
            hook(unraised)

    return unraisable
