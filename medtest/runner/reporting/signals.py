"""SIGTERM and Ctrl-C, from a command's first line to its last: exit code 130 and one message of what is kept.

Whoever does something that must not be cut says so (:func:`held`); whoever begins a new phase says that too
(:func:`phase`), so that the message is right. While systems run, the runner looks after both signals itself.
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
_NOTHING = "Interrupted before anything was run. Nothing was changed; what earlier runs finished is kept."
PHASES = {
    "start": _NOTHING,
    "compose": _NOTHING,
    "run": "Interrupted. What was finished is kept; the same command goes on from there.",
    "tables": (
        "Interrupted while tables and reports were made. Every case that was run is kept; the same command makes them "
        "anew and runs no case again."
    ),
    "tracking": (
        "Interrupted while MLflow was told. Records, tables and reports are whole; the same command tells it again and "
        "runs no case again."
    ),
}
"""What is said of an interruption in each phase. In the first a signal ends the process at once."""
_LATER_SECONDS = 0.05


@dataclass
class _State:
    """What the process knows of signals: there is one of it, as there is one process."""

    phase: str = "start"
    given: bool = False
    told: bool = False
    held: int = 0
    again: bool = False
    due: bool = False
    process: bool = False

    def begin(self) -> None:
        """Forget what was before."""
        self.phase, self.given, self.told, self.held = "start", False, False, 0
        self.again = self.due = False


_STATE = _State()


def phase(name: str) -> None:
    """Begin a phase, one of :data:`PHASES`.

    Raises:
        KeyboardInterrupt: A signal came that something swallowed.
    """
    _STATE.phase = name
    check()


def check() -> None:
    """Raise if a signal came: libraries that catch everything would go on otherwise.

    Raises:
        KeyboardInterrupt: One did.
    """
    if _STATE.given and not _STATE.held:
        _STATE.due = False
        raise KeyboardInterrupt


def tell() -> int:
    """Say what is kept, once, and return the exit code."""
    _STATE.due = False
    if not _STATE.told:
        _STATE.told = True
        sys.stdout.flush()
        sys.stderr.write(f"\n{PHASES[_STATE.phase]}\n")
        sys.stderr.flush()
    return CODE


@contextmanager
def held() -> Iterator[None]:
    """Let a first signal wait for the end of the block; a second one ends the process at once."""
    _STATE.held += 1
    try:
        yield
    finally:
        _STATE.held -= 1
    check()


@contextmanager
def handled() -> Iterator[None]:
    """Look after both signals: the first raises KeyboardInterrupt, a second ends the process at once.

    In a process that called :func:`at_start` no signal disturbs what comes after: everything is written then, and the
    exit code says what came out.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = {number: signal.getsignal(number) for number in NUMBERS}
    hook = sys.unraisablehook
    _STATE.begin()
    sys.unraisablehook = _quiet(hook)
    for number in NUMBERS:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, signal.SIG_IGN if _STATE.process else handler)
        sys.unraisablehook = hook


def at_start() -> None:
    """End the process at once and quietly on either signal, as long as nothing else looks after them."""
    _STATE.process = True
    for number in NUMBERS:
        signal.signal(number, _end)


def as_usual() -> None:
    """Give both signals back to Python, for commands that look after them otherwise."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def given() -> bool:
    """Whether a signal came."""
    return _STATE.given


def _stop(number: int, frame: FrameType | None) -> None:
    if _STATE.again:
        _STATE.again = False
        if _STATE.due:  # else it was raised meanwhile, and would cut what says so
            _raise(frame)
        return
    if _STATE.given or _STATE.phase == "start":
        _end(number, frame)
    _STATE.given = True
    _raise(frame)


def _again() -> None:
    """Send the signal anew, as the system does: one that Python alone knows of wakes nothing that waits."""
    if _STATE.due and signal.getsignal(signal.SIGTERM) is _stop:  # else it was raised meanwhile, or nobody looks
        _STATE.again = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _raise(frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, once no import is under way: extension modules print it and raise something else."""
    if _STATE.held:
        return
    _STATE.due = True
    if _importing(frame):
        later = threading.Timer(_LATER_SECONDS, _again)
        later.daemon = True
        later.start()
        return
    _STATE.due = False
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end(number: int, frame: FrameType | None) -> None:
    if not _STATE.told:  # no print: the signal may have come in the middle of one
        os.write(2, f"\n{PHASES[_STATE.phase]}\n".encode())
    os._exit(CODE)


def _quiet(hook: Any) -> Any:
    """Return a hook that says nothing of an interruption where Python cannot raise it (in a destructor)."""

    def unraisable(found: sys.UnraisableHookArgs) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            hook(found)

    return unraisable
