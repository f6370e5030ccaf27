"""Server-stated limits, and token buckets that respect them.

Supported headers: ``retry-after`` (seconds or an HTTP date, RFC 9110 section 10.2.3), ``retry-after-ms``,
``x-ratelimit-{limit,remaining,reset}-{requests,tokens}`` with durations such as ``6m0s`` or ``120ms`` (OpenAI, vLLM
gateways, Azure), ``x-ratelimit-{limit,remaining,reset}`` (OpenRouter: the reset is an epoch in milliseconds) and
``ratelimit-{limit,remaining,reset}`` (the IETF draft: seconds).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "requests": ("x-ratelimit-{}-requests", "x-ratelimit-{}", "ratelimit-{}"),
    "tokens": ("x-ratelimit-{}-tokens",),
}
_AGREE = 5.0
"""Tolerance in seconds between two clocks, including the answer's travel time."""
LONGEST_PAUSE = 86400.0
"""Limit of pauses in seconds; longer requests are treated as errors of the server's clock."""


def seconds_of(text: str, wall: float) -> float | None:
    """Return seconds from a duration (``1m30.5s``, ``20``), an epoch (s or ms) or a date; None for anything else.

    Args:
        text: The header's value.
        wall: Now, as an epoch in seconds.
    """
    value = text.strip()
    parts = _PART.findall(value)
    if parts and "".join(number + unit for number, unit in parts) == value.replace(" ", ""):
        return _bounded(sum(float(number) * _UNITS[unit] for number, unit in parts))
    try:
        number = float(value)
    except ValueError:
        return _until(value, wall)
    if not math.isfinite(number) or number < 0:
        return None
    if number > 1e11:
        return _bounded(number / 1000 - wall)
    return _bounded(number - wall if number > 1e9 else number)


def _until(value: str, wall: float) -> float | None:
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            return None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    return _bounded(when.timestamp() - wall)


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), LONGEST_PAUSE)


def retry_after(headers: Mapping[str, str], wall: float) -> float | None:
    """Return the seconds the server asks to wait, None if not stated. Header names are lower case."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        try:
            return _bounded(float(milliseconds) / 1000)
        except ValueError:
            pass
    text = headers.get("retry-after")
    return None if text is None else seconds_of(text, _clock_of(headers, wall))


def _clock_of(headers: Mapping[str, str], wall: float) -> float:
    """Return the current time by the server's clock if it is stated and differs from ours, because its dates use it."""
    try:
        server_time = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return wall
    return server_time if abs(server_time - wall) > _AGREE else wall


@dataclass(frozen=True, slots=True)
class Quota:
    """Remaining quota of a server.

    Attributes:
        limit: The full allowance; None if not stated.
        remaining: The remaining allowance.
        reset: Seconds until it is full again; None if not stated.
    """

    limit: float | None
    remaining: float
    reset: float | None


def quotas(headers: Mapping[str, str], wall: float) -> dict[str, Quota]:
    """Return the quotas of ``requests`` and ``tokens`` in the headers; empty if none are stated."""
    stated: dict[str, Quota] = {}
    for kind, patterns in _FAMILIES.items():
        for pattern in patterns:
            remaining = _number(headers.get(pattern.format("remaining")))
            if remaining is None:
                continue
            reset = headers.get(pattern.format("reset"))
            stated[kind] = Quota(
                _number(headers.get(pattern.format("limit"))),
                remaining,
                None if reset is None else seconds_of(reset, _clock_of(headers, wall)),
            )
            break
    return stated


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.split(",")[0].split(";")[0])
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


class Bucket:
    """Token bucket that follows the server's headers.

    Between answers the level rises by ``rate`` and falls with sent calls; each answer's headers correct it. The rate is
    implied by the headers: (limit - remaining) / reset, which is exact for a server that refills steadily. A server
    that counts in fixed windows refills only at the reset: after two refusals that the bucket did not foresee, and
    implied rates that differ widely, the server is treated as such (``windowed``), and nothing is added before the
    reset. Each unforeseen refusal also increases the ``spare`` calls held back, up to half of the capacity: they absorb
    calls in flight that arrive later, or closer together, than they were sent.

    Times are seconds of one monotonic clock.
    """

    def __init__(self) -> None:
        self.capacity = math.inf
        self.level = math.inf
        self.rate: float | None = None
        self.reset_at: float | None = None
        self.windowed = False
        self.spare = 1.0
        self._surprises = 0
        self._slowest, self._fastest = math.inf, 0.0
        self._shortest = math.inf
        self._at = 0.0

    @property
    def known(self) -> bool:
        """Whether any header was seen."""
        return math.isfinite(self.level)

    def _advance(self, now: float) -> None:
        if not self.known:
            return
        if self.reset_at is not None and now >= self.reset_at:
            self.level, self.reset_at = self.capacity, None
        elif self.rate is not None and not self.windowed:
            self.level = min(self.capacity, self.level + self.rate * max(0.0, now - self._at))
        self._at = now

    def ready_in(self, cost: float, now: float, *, to_the_last: bool = False) -> float:
        """Return seconds until ``cost`` may be spent; 0 if it may be spent now.

        Args:
            cost: Cost of the call.
            now: The clock.
            to_the_last: Whether to hold nothing back.
        """
        self._advance(now)
        if not self.known:
            return 0.0
        spare = 0.0 if to_the_last else min(self.spare, (0.1 if self._surprises == 0 else 0.5) * self.capacity)
        need = min(cost + spare, self.capacity)
        if self.level >= need:
            return 0.0
        until_reset = None if self.reset_at is None else self.reset_at - now
        if self.rate is None or self.windowed:
            # Without a reset the time to continue is unknown: the answer to the next call will tell.
            return 0.0 if until_reset is None else until_reset
        refill = (need - self.level) / self.rate
        return refill if until_reset is None else min(refill, until_reset)

    def take(self, cost: float, now: float) -> None:
        """Spend ``cost``."""
        self._advance(now)
        self.level -= cost

    def learn(self, quota: Quota, *, sent_since: float, age: float, now: float) -> None:
        """Correct the level.

        Args:
            quota: Quota in an answer's headers.
            sent_since: Cost of calls sent after the answered one, which the server had not counted.
            age: Seconds since that call was sent, in which the server has refilled.
            now: The clock.
        """
        self.capacity = max(quota.limit if quota.limit else quota.remaining, quota.remaining, 1.0)
        deficit = self.capacity - quota.remaining
        if quota.limit and quota.reset and deficit >= 1:
            # The remainder is rounded down, so up to one of the deficit may already be refilled.
            rate = (deficit - 0.5 if deficit >= 2 else deficit) / quota.reset
            self.rate = rate if self.rate is None else 0.7 * self.rate + 0.3 * rate
            if deficit >= 3:
                self._slowest, self._fastest = min(self._slowest, rate), max(self._fastest, rate)
        # The shortest duration so far is the server's own time; a call that took longer may have waited to arrive.
        self._shortest = min(self._shortest, age)
        refilled = (self.rate or 0.0) * self._shortest if not self.windowed else 0.0
        self.level = min(self.capacity, quota.remaining + refilled - sent_since)
        self.reset_at = None if quota.reset is None else now + max(0.0, quota.reset)
        self._at = now

    def surprised(self) -> None:
        """Record a refusal that the bucket did not foresee."""
        self._surprises += 1
        self.spare += 1.0
        apart = self._fastest > 3 * self._slowest
        self.windowed = self.windowed or (self._surprises >= 2 and apart and self.reset_at is not None)
