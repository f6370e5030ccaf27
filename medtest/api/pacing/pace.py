"""The rate at which a server lets calls in, learned from its refusals, and which refusals tell nothing of one."""

from __future__ import annotations

import itertools
import math
from collections import deque
from functools import lru_cache

FEW = 8
"""A refusal after fewer calls than these says that the rate may be much too fast."""

_MARGIN, _LESS = 0.9, 0.9
"""A learned rate stays so far below what was seen, and is lowered so far where it has grown too fast."""
_LEAST = 0.33
"""What one refusal leaves of a rate at least."""
_SHORTEST_STEP, _FIRST_STEP, _LONGEST_STEP = 2.0, 16.0, 128.0
"""Calls in which a learned rate grows by a step, at first and at most."""
_FREQUENT, _DROPPED = 1.5, 4.0
"""Growth after which tries are frequent again, and after which a rate is dropped."""
_ALIKE, _GROWN = 0.95, 1.1
"""Shares of a rate from which another is the same, and is well above it."""
_RECENT, _LATELY = 20, 8
"""Answers that are looked at together, and that are the last ones."""
_REMEMBERED = 200
"""Answers over which the share of accidents is a mean."""
_JUST = 2.0
"""Seconds for which a rate has just been lowered."""
_HARDLY = 0.02
"""Share of accidents below which there are hardly any."""
_RARE = 1e-4
"""Probability below which accidents do not explain what is seen."""


class Pace:
    """Calls per second, learned from refusals and spent evenly, so that a short window never gets more than its share.

    A refusal tells that what was let through since the last one, spread over the time since and the pause that the
    server asks for, was about what it allows. Afterwards the rate grows a little with every call, which is how more is
    tried: slowly at first, then fast if nothing refuses. Where a refusal finds the same rate again, the next try comes
    after twice as many calls; where none comes at half as much again, the first estimate was too low, and tries are
    frequent again. A rate that is four times as fast without a refusal is dropped.

    Attributes:
        base: Calls per second after the last refusal; None where nothing limits.
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
        """Return calls per second at this moment, None where nothing limits."""
        return None if self.base is None else self.base * self.growth()

    def growth(self) -> float:
        """Return how many times as fast as after the last refusal it is."""
        steps = self._taken / self._step
        return math.exp(0.03 * steps + 0.004 * steps**2)

    def lower(self) -> bool:
        """Say whether the rate is lower than when it was refused the last time, and hardly above what was learned."""
        rate = self.rate()
        return rate is not None and rate < _ALIKE * self._refused_at and not self.grown()

    def grown(self) -> bool:
        """Say whether it is well above what was learned, and nothing refused."""
        return self.growth() >= _GROWN

    def low(self, at: float) -> bool:
        """Say whether nothing limited at that moment, or the rate had just been lowered."""
        return self.base is None or at < self._since + _JUST

    def ready_in(self, now: float) -> float:
        """Return seconds until the next call."""
        return 0.0 if self.base is None else max(0.0, self._next - now)

    def take(self, now: float) -> None:
        """Take note that a call leaves."""
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
            let_in: Calls that the server let in since the last refusal.
            seconds: Time since then.
            pause: Seconds after which the server lets the next in, as far as is known.
            again_at: When the next call may leave.
            fresh: Whether any call was let in since the last refusal.
            stated: Calls per second that the server states of the limit that it refused for.
            sure: Whether it surely was a limit's, and no accident that is better forgotten soon.
        """
        rate = self.rate()
        seen = _MARGIN * max(1, let_in) / max(seconds + pause, 0.05)
        if rate is None:
            base = seen
        elif not fresh:
            base = max(seen, _LEAST * rate)
        else:
            # After few calls it may be much too fast, or chance: half is left at least, and at the second a third.
            least = _LEAST if self._soon else max(0.5, let_in / (let_in + 2))
            base = min(_LESS * rate, max(seen, least * rate))
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
        """Drop what was learned: refusals come whatever the rate."""
        self.base = None


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

    def rare(self) -> bool:
        """Say whether there are hardly any, so that a lone refusal under a learned rate is the limit's."""
        return self._share < _HARDLY

    def lately(self) -> bool:
        """Say whether any of the last answers was a refusal that nothing was learned from yet."""
        return any(refused for refused, _ in itertools.islice(reversed(self._recent), _LATELY))

    def in_a_row(self) -> bool:
        """Say whether the last refusals are too many in a row for accidents."""
        return self._in_a_row >= max(2, math.ceil(math.log(_RARE) / math.log(max(self._share, 0.01))))

    def many(self, least: int) -> bool:
        """Say whether the recent refusals are too many for accidents, and at least so many."""
        return sum(refused for refused, _ in self._recent) >= max(least, _too_many(round(self._share, 2)))

    def are(self, share: float) -> None:
        """Take note of their share, found at a rate that was lowered for them in vain."""
        self._share, self._seen = share, _REMEMBERED // 2

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
