"""Call rate allowed by a server, learned from its refusals, and detection of random refusals."""

from __future__ import annotations

import itertools
import math
from collections import deque
from functools import lru_cache

FEW = 8
"""A refusal after fewer calls than these indicates that the rate may be much too fast."""

_MARGIN, _LESS = 0.9, 0.9
"""Factors by which a learned rate stays below the observed one, and by which it is lowered after growing too fast."""
_LEAST = 0.33
"""Minimum factor left of a rate after one refusal."""
_SHORTEST_STEP, _FIRST_STEP, _LONGEST_STEP = 2.0, 16.0, 128.0
"""Number of calls in which a learned rate grows by a step: shortest, first and longest."""
_FREQUENT, _DROPPED = 1.5, 4.0
"""Growth after which tries are frequent again, and after which a rate is dropped."""
_ALIKE, _GROWN = 0.95, 1.1
"""Factors between rates that count as equal, and as clearly higher."""
_RECENT, _LATELY = 20, 8
"""Number of recent answers considered together, and of the latest ones."""
_REMEMBERED = 200
"""Number of answers in the mean share of accidents."""
_JUST = 2.0
"""Seconds for which a rate counts as just lowered."""
_HARDLY = 0.02
"""Share of accidents that counts as negligible."""
_RARE = 1e-4
"""Probability below which accidents do not explain the observations."""


class Pace:
    """Calls per second, learned from refusals and spread evenly, so that a short window never gets more than its share.

    A refusal implies that the calls let through since the last one, divided by the time since then plus the pause
    requested by the server, are about the allowed rate. Afterwards the rate grows slightly with every call: slowly at
    first, then fast if nothing is refused. If a refusal confirms the same rate, the next try comes after twice as many
    calls; if no refusal comes at one and a half times the rate, the first estimate was too low, and tries become
    frequent again. A rate that reaches four times its value without a refusal is dropped.

    Attributes:
        base: Calls per second after the last refusal; None without a limit.
    """

    def __init__(self) -> None:
        self.base: float | None = None
        self._learned = self._refused_at = 0.0
        self._since = 0.0
        self._next = 0.0
        self._taken = 0
        self._step = _FIRST_STEP
        self._soon = False

    def rate(self) -> float | None:
        """Return the current calls per second, None without a limit."""
        return None if self.base is None else self.base * self.growth()

    def growth(self) -> float:
        """Return the growth factor since the last refusal."""
        steps = self._taken / self._step
        return math.exp(0.03 * steps + 0.004 * steps**2)

    def lower(self) -> bool:
        """Return True if the rate is lower than at the last refusal, and hardly above the learned one."""
        rate = self.rate()
        return rate is not None and rate < _ALIKE * self._refused_at and not self.grown()

    def grown(self) -> bool:
        """Return True if the rate is clearly above the learned one, without a refusal."""
        return self.growth() >= _GROWN

    def low(self, at: float) -> bool:
        """Return True if there was no limit at that moment, or the rate had just been lowered."""
        return self.base is None or at < self._since + _JUST

    def ready_in(self, now: float) -> float:
        """Return seconds until the next call."""
        return 0.0 if self.base is None else max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Record a call that is sent."""
        rate = self.rate()
        if self.base is None or rate is None:
            return
        self._next = max(now, self._next) + 1.0 / rate
        self._taken += 1
        if rate > _DROPPED * self._learned:
            self.base = None
        elif self.growth() > _FREQUENT:
            self.base, self._taken, self._step = rate, 0, 0.5 * _FIRST_STEP

    def refused(
        self,
        *,
        let_in: int,
        seconds: float,
        pause: float,
        again_at: float,
        fresh: bool,
        stated: float | None = None,
        sure: bool = True,
    ) -> None:
        """Learn from a refusal.

        Args:
            let_in: Calls that the server accepted since the last refusal.
            seconds: Time since then.
            pause: Seconds after which the server accepts the next call, as far as known.
            again_at: Time at which the next call may leave.
            fresh: Whether any call was accepted since the last refusal.
            stated: Calls per second of the refusing limit according to the server.
            sure: Whether the refusal is certainly due to a limit, and not an accident to be forgotten soon.
        """
        rate = self.rate()
        observed = _MARGIN * max(1, let_in) / max(seconds + pause, 0.05)
        if rate is None:
            base = observed
        elif not fresh:
            base = max(observed, _LEAST * rate)
        else:
            # After few calls, either the rate is much too fast or the refusal was chance: keep at least half of it, or
            # a third after a second such refusal.
            least = _LEAST if self._soon else max(0.5, let_in / (let_in + 2))
            base = min(_LESS * rate, max(observed, least * rate))
            self._soon = let_in < FEW
            if let_in >= FEW:
                alike = rate > _ALIKE * self._refused_at
                self._step = min(_LONGEST_STEP, 2.0 * max(self._step, _FIRST_STEP)) if alike else _FIRST_STEP
        self.base = self._learned = max(0.02, base, _LESS * (stated or 0.0))
        if not sure:
            self._step = _SHORTEST_STEP
        self._refused_at = rate or base / _MARGIN
        self._since = self._next = again_at
        self._taken = 0

    def forget(self) -> None:
        """Drop the learned rate, because refusals come at any rate."""
        self.base = None


class Accidents:
    """Distinguishes unexplained refusals due to a limit from random ones.

    A limit refuses in clusters, and stops once the pace is below it; an overloaded server refuses, say, one call in
    twenty at any pace, and pausing for that would stop all progress. The recent refusals are therefore compared with
    their share among earlier calls that left without a pace, or with one that had just been lowered. Refusals that led
    to a lesson are forgotten, because they were due to a limit.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[bool, bool]] = deque()
        self._share, self._seen = 0.0, _RECENT
        self._in_a_row = 0

    def add(self, *, refused: bool, slow: bool) -> None:
        """Record an answer.

        Args:
            refused: Whether it was "too many".
            slow: Whether the call left without a pace, or with one that had just been lowered.
        """
        self._in_a_row = self._in_a_row + 1 if refused else 0
        self._recent.append((refused, slow))
        if len(self._recent) > _RECENT:
            earlier, counts = self._recent.popleft()
            if counts:
                self._seen = min(self._seen + 1, _REMEMBERED)
                self._share += (earlier - self._share) / self._seen

    def rare(self) -> bool:
        """Return True if random refusals are negligible, so that a single one under a learned rate is a limit's."""
        return self._share < _HARDLY

    def lately(self) -> bool:
        """Return True if one of the latest answers was a refusal without a lesson so far."""
        return any(refused for refused, _ in itertools.islice(reversed(self._recent), _LATELY))

    def in_a_row(self) -> bool:
        """Return True if the last refusals are too many in a row for accidents."""
        return self._in_a_row >= max(2, math.ceil(math.log(_RARE) / math.log(max(self._share, 0.01))))

    def many(self, least: int) -> bool:
        """Return True if the recent refusals are too many for accidents, and at least ``least``."""
        return sum(refused for refused, _ in self._recent) >= max(least, _too_many(round(self._share, 2)))

    def are(self, share: float) -> None:
        """Record the share of accidents, measured at a rate that was lowered in vain."""
        self._share, self._seen = share, _REMEMBERED // 2

    def learned(self) -> None:
        """Forget the recent answers."""
        self._recent.clear()


@lru_cache(maxsize=128)
def _too_many(share: float) -> int:
    """Return the number of random refusals among recent answers with a probability below one in ten thousand."""
    tail, refused = 0.0, _RECENT + 1
    while refused > 0 and tail < _RARE:
        refused -= 1
        tail += math.comb(_RECENT, refused) * share**refused * (1 - share) ** (_RECENT - refused)
    return refused + 1
