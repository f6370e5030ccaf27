"""Retry policy: which replies are retried, how often, and after which pause."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from medtest.api.calls.request import AnswerFields, CallState

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses after which a call is sent again; every other status of 400 and above is final."""


class Trouble(StrEnum):
    """Problem of one call."""

    NONE = "none"
    THROTTLED = "throttled"
    STATUS = "status"
    REJECTED = "rejected"
    """The server rejects this request, however often it is sent."""
    NO_CREDIT = "no_credit"
    """The paying account is empty; the server rejects all its requests until that changes."""
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    """A success by its status, but the body is truncated or no JSON."""
    NO_SCHEMA = "no_schema"
    """The server does not support structured output; plain words are requested."""
    NO_SEVERAL = "no_several"
    """The server rejects a request for several answers; a single one is requested."""
    NO_LIKELY = "no_likely"
    """The server rejects a request for log-probabilities; none are requested."""


_UNUSABLE = 2
"""Number of whole but unusable replies (HTML, no JSON, too long), each paid, after which a request is given up."""
_FINAL = frozenset({Trouble.REJECTED, Trouble.NO_CREDIT})
SIMPLER = frozenset({Trouble.NO_SCHEMA, Trouble.NO_SEVERAL, Trouble.NO_LIKELY})
"""Problems after which the same question is sent at once, asking for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(AnswerFields):
    """Reply to one call.

    Attributes:
        trouble: Its problem.
        status: HTTP status; None without a response.
        headers: Names in lower case.
        state: State of the answer; None with trouble.
        seconds: From sending to the last byte.
        maybe_billed: Whether the server may charge for it: it answered, or was cut off on the way.
        unreached: Whether the server was unreachable: connection refused, host not found, or timeout while connecting.
        drawn: The received file of a picture; never shown, and not stored in this form.
        pictures: Number of pictures charged by the service.
        task: Id of a task that continues at the service: the next call polls it instead of starting one.
        more: Replies of the same call to further repeats of the request.
        complete: Whether an unusable body arrived whole, so that the same request may get it again, at the same price.
    """

    trouble: Trouble = Trouble.NONE
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    state: CallState | None = None
    seconds: float = 0.0
    maybe_billed: bool = False
    unreached: bool = False
    drawn: bytes = field(default=b"", repr=False)
    pictures: int = 0
    task: str = ""
    complete: bool = False
    more: tuple[Reply, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Retry policy: number of calls and length of pauses.

    Attributes:
        attempts: Maximum number of calls per request, not counting refusals for too many (429). A reply that arrives
            whole and is unusable is asked for once more at most.
        throttled: Maximum number of such refusals per request; the limiter makes them rare.
        first_pause: Seconds before the second call; doubles with each further one.
        longest_pause: Limit of our own pauses, seconds.
        call_seconds: Time limit of one call, first byte to last.
        total_seconds: Time limit of one request from its first call on, retries and pauses included, but not its wait
            for other calls of ours: no further call starts after it. A call already sent finishes as usual, within its
            own limit.
    """

    attempts: int = 6
    throttled: int = 20
    first_pause: float = 0.5
    longest_pause: float = 20.0
    call_seconds: float = 120.0
    total_seconds: float = 900.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.throttled < 0:
            raise ValueError("attempts must be at least 1 and throttled at least 0")
        if min(self.first_pause, self.longest_pause) < 0 or min(self.call_seconds, self.total_seconds) <= 0:
            raise ValueError("pauses and time limits must be positive")

    def pause(self, failures: int, draw: random.Random) -> float:
        """Return seconds before the next call after ``failures`` (1 or more): doubling, half of it random."""
        longest = min(self.longest_pause, self.first_pause * 2.0 ** (failures - 1))
        return longest * (0.5 + 0.5 * draw.random())


@dataclass(slots=True)
class Tally:
    """Calls of one request so far.

    Attributes:
        sent: Number of calls.
        failures: Number of those that failed, without refusals for too many.
        unusable: Number of replies that arrived whole and were unusable.
        throttled: Number of refusals for too many.
        began: Time of the first call.
        queued: Seconds of waiting for other calls.
        usd: Cost of the calls that may be billed, earlier sessions' too; those without a count at their expected price.
        earlier: Number of calls of earlier sessions.
        declined: Whether the server rejected a call for several answers.
    """

    sent: int = 0
    failures: int = 0
    unusable: int = 0
    throttled: int = 0
    began: float = 0.0
    queued: float = 0.0
    usd: float = 0.0
    earlier: int = 0
    declined: bool = False

    def left(self, rules: Retries, now: float) -> float:
        """Return the seconds left for starting another call; the whole time before the first."""
        return rules.total_seconds - (now - self.began - self.queued if self.sent else 0.0)

    def again(self, reply: Reply, rules: Retries, now: float) -> bool:
        """Count a failed reply and return True if another call may follow."""
        if reply.trouble in _FINAL:
            return False
        if reply.trouble == Trouble.THROTTLED:
            self.throttled += 1
            within = self.throttled <= rules.throttled
        elif reply.trouble in SIMPLER:
            self.declined |= reply.trouble == Trouble.NO_SEVERAL
            within = self.sent < rules.attempts + rules.throttled
        else:
            self.failures += 1
            self.unusable += reply.complete and not reply.task
            within = self.failures < rules.attempts and self.unusable < _UNUSABLE
        return within and self.left(rules, now) > 0

    def why(self, reply: Reply, rules: Retries, now: float) -> str:
        """Return the reason why there is no answer, one line."""
        calls = "1 call" if self.sent == 1 else f"{self.sent} calls"
        if self.left(rules, now) <= 0:
            return f"no answer within {rules.total_seconds:g} s ({calls}); the last: {reply.reason}"
        return reply.reason if reply.trouble in _FINAL else f"no answer after {calls}; the last: {reply.reason}"
