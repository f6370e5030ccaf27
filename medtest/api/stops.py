"""Errors that end a campaign before its last question, caused by the server's replies or silence.

Each ends the run with one message and records no ERROR that a later session could still answer.
"""

from __future__ import annotations

import time
from datetime import datetime
from enum import Enum

from medtest.api.redact import redact
from medtest.core.errors import ExitCode, MedtestError

_NOT_RECORDED = "Nothing is recorded as ERROR for it."


class Stop(Enum):
    """Server behaviour that ends a campaign: message and exit code."""

    REFUSED = (
        "{server} has refused every request ({times} times): {reason}. Check the key, the model's name and base_url,"
        " and run the same command again.",
        ExitCode.MISTAKE,
    )
    MISSING = (
        "no server answers at {server}: {times} calls failed ({reason}). Check base_url and whether the server is"
        " running, and run the same command again.",
        ExitCode.MISTAKE,
    )
    UNREACHABLE = (
        "{server} is no longer reachable: {times} questions in a row failed after all their attempts ({reason})."
        " Answers so far are kept. Run the same command again when the server is back.",
        ExitCode.BUDGET,
    )
    ACCESS_LOST = (
        "{server} answered at first and then refused {times} requests in a row: {reason}. Answers so far are kept."
        " Check the key (was it revoked?) and the model's name, and run the same command again.",
        ExitCode.BUDGET,
    )
    NO_CREDIT = (
        "the account has no credit: {server} replied {reason}. Answers so far are kept. Run the same command again"
        " when the account has credit.",
        ExitCode.BUDGET,
    )


class CampaignStopped(MedtestError):
    """Server behaviour that ends a campaign, described in one message.

    Attributes:
        stop: Kind of behaviour.
    """

    def __init__(self, stop: Stop, base_url: str, reason: str, times: int = 0) -> None:
        template, self.exit_code = stop.value
        self.stop = stop
        text = template.format(server=redact(base_url), reason=redact(reason).rstrip("."), times=times)
        super().__init__(f"{text} {_NOT_RECORDED}")


class ServerClosed(MedtestError):
    """Server that asks for a longer pause than a question may last: its quota is used up, or it is under maintenance.

    This is neither an answer nor a fault of the system under test: the run ends as at a budget's limit.

    Attributes:
        seconds: The requested pause.
    """

    exit_code = ExitCode.BUDGET

    def __init__(self, base_url: str, seconds: float, allowed: float, *, wall: float | None = None) -> None:
        self.seconds = seconds
        moment = datetime.fromtimestamp((time.time() if wall is None else wall) + seconds).astimezone()
        super().__init__(
            f"{redact(base_url)} asks to wait {duration(seconds)}, until {moment:%Y-%m-%d %H:%M}, longer than"
            f" total_seconds={allowed:g} allows. Answers so far are kept. {_NOT_RECORDED} Run the same command"
            " again then."
        )


def duration(seconds: float) -> str:
    """Return a pause in short form: ``45 s``, ``12 min``, ``5.0 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
