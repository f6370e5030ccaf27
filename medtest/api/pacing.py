"""When the next call may leave: what is learned from answers, with no waiting in it and all times given.

Three things hold a call back: the number in flight, which starts small, grows while that pays
(:class:`~medtest.api.load.Load`) and falls with refusals and timeouts; the server's own quotas, kept by token buckets
that its headers feed; and a pause with a learned pace after a refusal (429) that names no quota, or after one that
comes although the quota that it names was not used up.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from medtest.api.limits import Bucket, quotas, retry_after
from medtest.api.load import Load

LATE_STATUSES = frozenset({408, 504, 524})
"""Statuses that say of a call what a timeout says: nothing came in time."""
START = 4
"""Calls in flight at first, before anything is known about the server."""

_FEWER, _ROUNDS = 0.75, 2
_LONGEST_REST, _LONGEST_GUESS = 20.0, 12.0
_RECENT = 20
_REMEMBERED = 200
_JUST = 2.0
_RARE = 1e-4
_GROWTH, _HASTE = 0.03, 0.004
"""A learned pace grows by these in a second, and in a second squared: slowly at first, then fast if nothing refuses."""
_CALLS_A_SECOND = 8.0
"""Of a slower pace, so many calls count as a second."""


@dataclass(slots=True, eq=False)
class Permit:
    """Leave to send one call; given back with :meth:`Gate.leave`.

    Attributes:
        tokens: Tokens that the call is expected to use.
        sent_at: When it was given, on the gate's clock.
        sent_before: Calls let through before it.
        tokens_before: Their tokens.
        beside: Calls under way when it left, itself among them.
        queued: Seconds that it waited for the end of other calls, the server's pauses and quotas not counted.
    """

    tokens: float
    sent_at: float
    sent_before: int
    tokens_before: float
    beside: int
    queued: float = 0.0


class Pace:
    """Calls per second, learned from refusals alone.

    A refusal tells that what was let through since the last one, spread over the time since and the pause that the
    server asks for, was about what it allows. Afterwards the pace grows slowly, and is dropped once it is four times
    as fast without a refusal.

    Attributes:
        base: Calls per second after the last refusal; None where nothing limits.
        most: Calls per second that are stated, where a limit is kept in shorter windows than is said; None for none. A
            pace grows no further, and is kept.
    """

    def __init__(self) -> None:
        self.base: float | None = None
        self.most: float | None = None
        self._since = 0.0
        self._next = 0.0
        self._taken = 0
        self._sure = False

    def rate(self, now: float) -> float | None:
        """Return calls per second at this moment, None where nothing limits."""
        if self.base is None:
            return None
        # A slow pace needs longer to be found too low, or every few calls would be one too many.
        since = max(0.0, now - self._since)
        if self._sure:
            since = min(since, self._taken / _CALLS_A_SECOND)
        growth = math.exp(min(2.0, _GROWTH * since + _HASTE * since**2))
        if self.most is not None:
            return min(self.base * growth, 0.95 * self.most)
        if growth > 4.0:
            self.base = None
            return None
        return self.base * growth

    @property
    def sure(self) -> bool:
        """Whether there is a pace, learned from refusals that surely were a limit's."""
        return self.base is not None and self._sure

    def low(self, at: float) -> bool:
        """Say whether nothing limited at that moment, or the pace had just been lowered."""
        return self.base is None or at < self._since + _JUST

    def ready_in(self, now: float) -> float:
        """Return seconds until the next call."""
        return 0.0 if self.rate(now) is None else max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Take note that a call leaves."""
        rate = self.rate(now)
        if rate is not None:
            self._next = max(now, self._next) + 1.0 / rate
            self._taken += 1

    def refused(self, *, let_in: int, seconds: float, pause: float, now: float, sure: bool) -> None:
        """Learn from a refusal.

        Args:
            let_in: Calls that the server let in since the last refusal.
            seconds: Time since then.
            pause: Seconds of the pause that follows.
            now: The clock.
            sure: Whether it surely was a limit, and no accident that is better forgotten soon.
        """
        seen = max(1, let_in) / max(seconds + pause, 0.05)
        now_at = self.rate(now)
        self.base = max(0.02, 0.95 * (seen if now_at is None else min(seen, now_at)))
        self._since = self._next = now + pause
        self._taken, self._sure = 0, sure


class Accidents:
    """Tells refusals without a word that are a limit from those that come at random.

    A limit refuses in clusters, and nothing once the pace is below it; an overloaded server refuses one call in twenty
    whatever the pace, and pausing for that would bring everything to a crawl. So the recent refusals are held against
    their share among earlier calls that left at no pace, or at one that had just been lowered. Those that led to a
    lesson are forgotten: they were a limit's.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[bool, bool]] = deque()
        self._share, self._seen = 0.0, _RECENT
        self._in_a_row = 0

    def add(self, *, refused: bool, slow: bool) -> None:
        """Take note of an answer.

        Args:
            refused: Whether it said "too many".
            slow: Whether the call left at no pace, or at one that had just been lowered.
        """
        self._in_a_row = self._in_a_row + 1 if refused else 0
        self._recent.append((refused, slow))
        if len(self._recent) > _RECENT:
            earlier, counts = self._recent.popleft()
            if counts:
                self._seen = min(self._seen + 1, _REMEMBERED)
                self._share += (earlier - self._share) / self._seen

    def in_a_row(self) -> bool:
        """Say whether the last refusals are too many in a row for accidents."""
        return self._in_a_row >= max(2, math.ceil(math.log(_RARE) / math.log(max(self._share, 0.01))))

    def many(self, least: int) -> bool:
        """Say whether the recent refusals are too many for accidents, and at least so many."""
        return sum(refused for refused, _ in self._recent) >= max(least, _too_many(round(self._share, 2)))

    def learned(self) -> None:
        """Forget the recent answers."""
        self._recent.clear()


@lru_cache(maxsize=128)
def _too_many(share: float) -> int:
    """Return how many of the recent answers are refused at random less often than once in ten thousand."""
    tail, refused = 0.0, _RECENT + 1
    while refused > 0 and tail < _RARE:
        refused -= 1
        tail += math.comb(_RECENT, refused) * share**refused * (1 - share) ** (_RECENT - refused)
    return refused + 1


class Limits:
    """Everything that decides when a call may leave; no waiting in here, and times are given."""

    def __init__(self, *, most: int, start: int = START) -> None:
        self.most = most
        self.limit = float(max(1, min(start, most)))
        self.paused_until = 0.0
        self.buckets = {"requests": Bucket(), "tokens": Bucket()}
        self.pace = Pace()
        self.let_through = 0
        self.tokens = 0.0
        self.throttled = 0
        self._began: float | None = None
        self._let_through_at_cut = self._refused_since_cut = 0
        self._cut_at = -1.0
        self._counted: tuple[int, float] | None = None
        self._in_a_row = 0
        self._slow_start = True
        self._accidents = Accidents()
        self._late_in_a_row, self._heard_at = 0, -math.inf
        self.in_flight = 0
        self._load = Load()
        self._until_less, self._eased = 0.0, False

    def ready_in(self, tokens: float, now: float, *, patience: float = math.inf) -> float:
        """Return seconds until a call of so many tokens may leave, as far as time decides.

        What is kept back of a quota (:class:`~medtest.api.limits.Bucket`) is spent where a call would otherwise wait
        longer than its patience.
        """
        stated = self._stated(tokens, now, to_the_last=False)
        if stated > patience:
            stated = self.closed_for(tokens, now)
        return max(stated, self.pace.ready_in(now))

    def closed_for(self, tokens: float, now: float) -> float:
        """Return seconds until the server would let a call of so many tokens through, by its own word."""
        return self._stated(tokens, now, to_the_last=True)

    def _stated(self, tokens: float, now: float, *, to_the_last: bool) -> float:
        return max(
            self.paused_until - now,
            self.buckets["requests"].ready_in(1.0, now, to_the_last=to_the_last),
            self.buckets["tokens"].ready_in(tokens, now, to_the_last=to_the_last),
            0.0,
        )

    def take(self, tokens: float, now: float) -> Permit:
        """Let a call through."""
        if self._began is None:
            self._began = now
        self.in_flight += 1
        permit = Permit(tokens, now, self.let_through, self.tokens, self.in_flight)
        self.let_through += 1
        self.tokens += tokens
        self.buckets["requests"].take(1.0, now)
        self.buckets["tokens"].take(tokens, now)
        self.pace.take(now)
        return permit

    def never_sent(self) -> None:
        """Take back a permit that nobody used."""
        self.in_flight -= 1

    def answered(
        self,
        permit: Permit,
        *,
        status: int | None,
        headers: Mapping[str, str],
        now: float,
        late: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Learn from an answer.

        Args:
            permit: The call's.
            status: HTTP status, None where none came.
            headers: The answer's headers, names in lower case.
            now: The clock.
            late: Whether the call ended because no whole answer came in time.
            seconds: How long the server had it; None for all the time since the permit was given.
        """
        seconds = now - permit.sent_at if seconds is None else seconds
        self.in_flight -= 1
        wall = time.time()
        stated = quotas(headers, wall) if headers else {}
        foreseen = self._foreseen()
        for kind, quota in stated.items():
            sent = self.let_through - permit.sent_before - 1
            since = float(sent) if kind == "requests" else self.tokens - permit.tokens_before - permit.tokens
            self.buckets[kind].learn(quota, sent_since=since, age=now - permit.sent_at, now=now)
        wait = retry_after(headers, wall) if status in (429, 503) else None
        if status == 429 or (status == 503 and wait is not None):
            used_up = any(
                quota.remaining < (1.0 if kind == "requests" else max(1.0, 2.0 * permit.tokens))
                for kind, quota in stated.items()
            )
            self._refused(
                permit, stated=used_up, hidden=bool(stated) and not used_up, foreseen=foreseen, wait=wait, now=now
            )
            return
        if late or status in LATE_STATUSES:
            self._late(permit, seconds, now)
            return
        self._accidents.add(refused=False, slow=self.pace.low(permit.sent_at))
        if status is not None and status < 400:
            self._in_a_row = self._late_in_a_row = 0
            self._heard_at = now
            self._load.answered(permit.beside, seconds)
            self._grow()

    def _grow(self) -> None:
        """Let more leave at once while that pays; where it only makes all wait, fewer."""
        if self._load.full():
            self._eased = True
            self._until_less -= 1.0
            if self._until_less <= 0.0:
                self.limit = max(1.0, _FEWER * self.limit)
                self._until_less = _ROUNDS * self.limit
            return
        self._until_less = 0.0
        if not self._slow_start or self._load.doubtful():
            step = 1.0 / self.limit
        else:
            step = 1.0 / math.sqrt(self.limit) if self._eased else 1.0
        self.limit = min(self.limit + step, self.most, self._load.ceiling)

    def _late(self, permit: Permit, seconds: float, now: float) -> None:
        """Learn from a call that nothing came of in time, where that is the server's having too much to do."""
        silent = self._heard_at < permit.sent_at
        if permit.sent_at <= self._cut_at or not (silent or self._load.explains(permit.beside, seconds)):
            return  # one lesson, not two; or a call that was lost while others came back soon
        self._load.late(permit.beside, seconds, first=not self._late_in_a_row)
        self.limit = max(1.0, min(0.5 * self.limit, self._load.ceiling))
        self._slow_start = False
        self._cut_at = now
        if self._late_in_a_row:
            # Nothing has come since the last time: what was given up is still being worked on.
            self.paused_until = max(self.paused_until, now + min(_LONGEST_REST, 2.0 ** (self._late_in_a_row - 1)))
        self._late_in_a_row += 1

    def _foreseen(self) -> bool:
        bucket = self.buckets["requests"]
        return bucket.known and bucket.level < 0.0

    def _refused(
        self, permit: Permit, *, stated: bool, hidden: bool, foreseen: bool, wait: float | None, now: float
    ) -> None:
        """Learn from a refusal.

        Args:
            permit: The call's.
            stated: Whether it names a quota that is used up.
            hidden: Whether it names quotas of which none is: another limit has refused that nothing is said of.
            foreseen: Whether the bucket had reason to expect it.
            wait: Seconds that it asks to wait, None where it does not say.
            now: The clock.
        """
        self.throttled += 1
        if wait is not None:
            self.paused_until = max(self.paused_until, now + wait)
        if permit.sent_at <= self._cut_at:
            return  # it left before the last refusal was known: one lesson, not two
        self._refused_since_cut += 1
        self._accidents.add(refused=True, slow=self.pace.low(permit.sent_at))
        if stated and not foreseen:
            for kind in ("requests", "tokens"):
                if self.buckets[kind].known and self.buckets[kind].level < 1.0:
                    self.buckets[kind].surprised()
        sure = wait is not None or hidden
        if wait is None and not stated:
            # A lone refusal without a word of when to come back may be an accident; several are a limit.
            known = hidden and (self.pace.sure or self._accidents.in_a_row())
            if not (known or self._accidents.many(5)):
                return
            wait = min(8.0, 0.5 * 2.0**self._in_a_row)
            if hidden:
                wait = max(wait, min(_LONGEST_GUESS, self._rest(permit, now)))
            self.paused_until = max(self.paused_until, now + wait)
        if hidden:
            self.pace.most = self.buckets["requests"].steady
        if not stated:
            self._slow_down(permit, pause=wait or 0.0, now=now, sure=sure)
        self._in_a_row += 1
        self._let_through_at_cut, self._refused_since_cut = self.let_through, 0
        self._cut_at = now
        self._accidents.learned()

    def _count(self, permit: Permit) -> tuple[int, float]:
        """Return the calls that were let in before a refused one and after the refusal before it, and since when."""
        let_in = permit.sent_before - self._let_through_at_cut - self._refused_since_cut
        if let_in > 0 or self._counted is None:
            return max(0, let_in), max(self._cut_at, 0.0 if self._began is None else self._began)
        return self._counted  # nothing was let in since the last refusal: the pauses before and after it are one

    def _rest(self, permit: Permit, now: float) -> float:
        """Return seconds until the calls let in, and one more, are what the stated quota gives in their time."""
        rate = self.buckets["requests"].rate
        let_in, since = self._count(permit)
        return 0.0 if not rate else (let_in + 1) / rate - (now - since)

    def _slow_down(self, permit: Permit, *, pause: float, now: float, sure: bool) -> None:
        # Where quotas are stated the buckets keep to them, and fewer in flight would only slow a slow network.
        self._counted = self._count(permit)
        let_in, since = self._counted
        self.pace.refused(let_in=let_in, seconds=now - since, pause=pause, now=now, sure=sure)
        self.limit = max(1.0, 0.7 * self.limit)
        self._slow_start = False
