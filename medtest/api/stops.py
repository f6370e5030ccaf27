"""Why a campaign ends before its last question, by what the server says or by its silence.

Each ends the run with one message and leaves nothing recorded as ERROR that a later session could answer.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import ClassVar

from medtest.api.redact import redact
from medtest.core.errors import ExitCode, MedtestError

_NOT_RECORDED = "Nothing is recorded as ERROR for it."


class _Stop(MedtestError):
    """What a server did, said in one message."""

    words: ClassVar[str]

    def __init__(self, base_url: str, reason: str, times: int = 0) -> None:
        said = self.words.format(server=redact(base_url), reason=redact(reason).rstrip("."), times=times)
        super().__init__(f"{said} {_NOT_RECORDED}")


class TurnedAway(_Stop):
    """A server answers nothing and refuses requests for the key, the model's name or the address."""

    words = (
        "{server} has answered nothing and said {times} times: {reason}. Look at the key, the model's name and"
        " base_url, and run the same command again."
    )


class ServerMissing(_Stop):
    """Nobody answers at the address: no connection, or no such host; nothing was ever answered."""

    words = (
        "no server answers at {server}: {times} calls reached nobody ({reason}). Look at base_url: is the server"
        " running? Then run the same command again."
    )


class ServerGone(_Stop):
    """A server that has answered is reached no longer."""

    exit_code = ExitCode.BUDGET
    words = (
        "{server} is not reached any more: {times} questions in a row ended after all their tries ({reason}). What"
        " was answered is kept. Once the server runs again, the same command goes on."
    )


class AccessLost(_Stop):
    """A server that has answered refuses the key, the model or the address from some moment on."""

    exit_code = ExitCode.BUDGET
    words = (
        "{server} answered at first and then said {times} times in a row: {reason}. What was answered is kept. Look"
        " at the key (was it revoked?) and the model's name; the same command goes on."
    )


class NoCredit(_Stop):
    """The account that pays is empty, or its own limit of spending is reached."""

    exit_code = ExitCode.BUDGET
    words = (
        "the account has no credit: {server} said {reason}. What was answered is kept. Once the account has credit"
        " again, the same command goes on."
    )


class ServerClosed(MedtestError):
    """A server asks for a longer pause than a question may last: its quota is used up, or it is being mended.

    It is no answer and no fault of the system under test: the run ends as at a budget's limit, which a quota is.

    Attributes:
        seconds: The pause that it asks for.
    """

    exit_code = ExitCode.BUDGET

    def __init__(self, base_url: str, seconds: float, allowed: float, *, wall: float | None = None) -> None:
        self.seconds = seconds
        moment = datetime.fromtimestamp((time.time() if wall is None else wall) + seconds).astimezone()
        super().__init__(
            f"{redact(base_url)} asks to wait {in_words(seconds)}, until {moment:%Y-%m-%d %H:%M}: that is beyond what"
            f" total_seconds={allowed:g} lets a question last. What was answered is kept, and nothing is recorded as"
            " ERROR for it: run the same command then to go on."
        )


def in_words(seconds: float) -> str:
    """Return a pause as people say it: ``45 s``, ``12 min``, ``5.0 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
