"""What a server says about its limits, and buckets that keep to it.

Headers that are understood: ``retry-after`` (seconds or an HTTP date, RFC 9110 section 10.2.3), ``retry-after-ms``,
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
"""Seconds that two clocks may differ, the answer's way included, and still be called the same."""
LONGEST_PAUSE = 86400.0
"""Seconds; what a server asks beyond that is taken as a mistake of its clock."""


def seconds_of(text: str, wall: float) -> float | None:
    """Return seconds from a duration (``1m30.5s``, ``20``), an epoch (s or ms) or a date; None if it is none of them.

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
    """Return how many seconds the server asks to wait, None where it does not say. Header names are lower case."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        try:
            return _bounded(float(milliseconds) / 1000)
        except ValueError:
            pass
    text = headers.get("retry-after")
    return None if text is None else seconds_of(text, _clock_of(headers, wall))


def _clock_of(headers: Mapping[str, str], wall: float) -> float:
    """Return now by the server's clock where it says so and ours is set otherwise: its dates are of its own."""
    try:
        there = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return wall
    return there if abs(there - wall) > _AGREE else wall


@dataclass(frozen=True, slots=True)
class Quota:
    """What a server still allows.

    Attributes:
        limit: The full allowance; None where it does not say.
        remaining: What is left of it.
        reset: Seconds until it is full again; None where it does not say.
    """

    limit: float | None
    remaining: float
    reset: float | None


def quotas(headers: Mapping[str, str], wall: float) -> dict[str, Quota]:
    """Return what the headers say about ``requests`` and ``tokens``; empty where they say nothing."""
    found: dict[str, Quota] = {}
    for kind, patterns in _FAMILIES.items():
        for pattern in patterns:
            remaining = _number(headers.get(pattern.format("remaining")))
            if remaining is None:
                continue
            reset = headers.get(pattern.format("reset"))
            found[kind] = Quota(
                _number(headers.get(pattern.format("limit"))),
                remaining,
                None if reset is None else seconds_of(reset, _clock_of(headers, wall)),
            )
            break
    return found


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.split(",")[0].split(";")[0])
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


class Bucket:
    """A token bucket that follows what the server says.

    Between answers the level rises by ``rate`` and falls with what is sent; each answer's headers put it right. The
    rate is what the headers imply: (limit - remaining) / reset, which is exact for a server that refills steadily. A
    server that counts in fixed windows refills only at the reset: after two refusals that the bucket did not foresee,
    and implied rates that lie far apart, it is taken for one (``windowed``), and nothing is added before the reset.
    Each unforeseen refusal also raises the ``spare`` calls kept back, up to half of the capacity: they absorb what is
    under way and arrives later, or closer together, than it was sent.

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
        """Return seconds until ``cost`` may be spent; 0 if it may now.

        Args:
            cost: Of the call.
            now: The clock.
            to_the_last: Keep nothing back.
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
            # Without a reset nothing says when to go on: the answer to the next call will.
            return 0.0 if until_reset is None else until_reset
        refill = (need - self.level) / self.rate
        return refill if until_reset is None else min(refill, until_reset)

    def take(self, cost: float, now: float) -> None:
        """Spend ``cost``."""
        self._advance(now)
        self.level -= cost

    def learn(self, quota: Quota, *, sent_since: float, age: float, now: float) -> None:
        """Put the level right.

        Args:
            quota: What an answer's headers say.
            sent_since: Cost of what was sent after the call that this answers: the server had not counted it.
            age: Seconds since that call was sent: within them the server has refilled.
            now: The clock.
        """
        self.capacity = max(quota.limit if quota.limit else quota.remaining, quota.remaining, 1.0)
        deficit = self.capacity - quota.remaining
        if quota.limit and quota.reset and deficit >= 1:
            # The remainder is rounded down, so up to one of the deficit may be refilled already.
            rate = (deficit - 0.5 if deficit >= 2 else deficit) / quota.reset
            self.rate = rate if self.rate is None else 0.7 * self.rate + 0.3 * rate
            if deficit >= 3:
                self._slowest, self._fastest = min(self._slowest, rate), max(self._fastest, rate)
        # The shortest way so far is the server's own time; what a call took beyond it, it may have waited to arrive.
        self._shortest = min(self._shortest, age)
        refilled = (self.rate or 0.0) * self._shortest if not self.windowed else 0.0
        self.level = min(self.capacity, quota.remaining + refilled - sent_since)
        self.reset_at = None if quota.reset is None else now + max(0.0, quota.reset)
        self._at = now

    def surprised(self) -> None:
        """Take note of a refusal for which the bucket had seen no reason."""
        self._surprises += 1
        self.spare += 1.0
        apart = self._fastest > 3 * self._slowest
        self.windowed = self.windowed or (self._surprises >= 2 and apart and self.reset_at is not None)
