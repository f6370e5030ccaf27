"""Why a campaign ends before its last question: nobody is let in, or the server is closed for a long time.

Both end the run with one message and leave nothing recorded as ERROR that a later session could answer.
"""

from __future__ import annotations

import time
from datetime import datetime

from medtest.api.redact import redact
from medtest.errors import ExitCode, MedtestError


class TurnedAway(MedtestError):
    """A server answers nothing and refuses requests for the key, the model's name or the address."""

    def __init__(self, base_url: str, reason: str, times: int) -> None:
        super().__init__(
            f"{redact(base_url)} has answered nothing and said {times} times: {redact(reason).rstrip('.')}. Look at the"
            " key, the model's name and base_url; the same command asks again what was recorded as ERROR."
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
