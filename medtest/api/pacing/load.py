"""How the duration of answers goes with the number of calls under way: where more at once bring nothing but waiting.

By Little's law (J. D. C. Little, Operations Research 9, 1961) ``n`` calls under way that take ``t`` seconds each are
``n / t`` answers a second. Where ``t`` grows in step with ``n`` the server does not work faster: it has a queue. That a
limit follows from latency is the idea of TCP Vegas (Brakmo and Peterson, IEEE JSAC 13, 1995); but it is the slope that
decides here, and no comparison with the shortest latency ever seen, so that a server which answers in batches, each
slower than a lone answer and all together faster, may be given more.
"""

from __future__ import annotations

import math

_LEAST_VARIANCE = 0.01
"""Of the logarithm of calls under way; below it there was but one number, which has no slope."""
_SATURATED = 0.6
"""A slope above it says that the server has a queue."""
_NEAR = 0.5
"""Share of a wait that a queue must account for to be its reason."""
_IN_TIME = 0.9
"""Share of the time allowed within which one call more must be expected to end."""
_PATIENCE, _MOST_PATIENCE = 10, 160
"""Answers in time before one call more is tried, at first and at most."""
_WEIGHT = 0.1
"""Of the newest answer in the mean of seconds a call."""


class Load:
    """The slope of log seconds over log calls under way, 0 for a server with room and 1 for a full one.

    It is a regression whose older answers weigh less and less, with its standard error: what latencies vary by
    themselves is no sign of a queue.

    Attributes:
        ceiling: Most calls under way with which no answer was late, as far as is known; infinite at first.
    """

    def __init__(self) -> None:
        self.ceiling = math.inf
        self._allowed = math.inf
        self._a_call = 0.0
        self._in_time, self._patience = 0, _PATIENCE
        self._weight = 0.0
        self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def answered(self, beside: float, seconds: float) -> None:
        """Take note of an answer.

        Args:
            beside: Calls under way when it left, itself among them.
            seconds: How long it took.
        """
        self._add(beside, seconds)
        self._a_call += (_WEIGHT if self._a_call else 1.0) * (seconds / beside - self._a_call)
        self._in_time += 1
        if self._in_time >= max(self._patience, self.ceiling):
            # One more is tried where all would be in time even if the server did no more for it.
            self._in_time = 0
            if (self.ceiling + 1) * self._a_call < _IN_TIME * self._allowed:
                self.ceiling += 1

    def explains(self, beside: float, seconds: float) -> bool:
        """Say whether a server's queue may be why nothing came in so many seconds, as far as its answers tell."""
        return not self._a_call or beside * self._a_call >= _NEAR * seconds

    def late(self, beside: float, seconds: float, *, first: bool) -> None:
        """Take note that a server had too much to do to answer in time.

        Args:
            beside: Calls under way with it on average, itself among them.
            seconds: How long it was waited for.
            first: Whether answers came since the last such time. Where none did the server is working on what was
                given up, which says nothing of how many it could take.
        """
        self._add(beside, seconds)
        self._allowed, self._in_time = seconds, 0
        if first:
            self._patience = min(_MOST_PATIENCE, 2 * self._patience)
            self.ceiling = max(1.0, min(self.ceiling, math.ceil(beside) - 1.0))

    def full(self) -> bool:
        """Say whether latency surely grows in step with the calls under way, or six tenths so fast."""
        slope, error = self._slope()
        return slope - error > _SATURATED

    def doubtful(self) -> bool:
        """Say whether it seems to, which chance may explain."""
        return self._slope()[0] > _SATURATED

    def _slope(self) -> tuple[float, float]:
        """Return the slope and what chance may make of it: two standard errors, more where answers are few."""
        if self._weight < 2.0:
            return 0.0, 0.0
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        var_x = self._xx / self._weight - mean_x**2
        if var_x < _LEAST_VARIANCE:
            return 0.0, 0.0  # nothing was tried of late but one number
        covariance = self._xy / self._weight - mean_x * mean_y
        slope = covariance / var_x
        left = max(0.0, self._yy / self._weight - mean_y**2 - slope * covariance)
        free = max(0.5, self._weight - 2.0)  # two degrees of freedom are the line's own
        return slope, math.sqrt(left / (var_x * free)) * (2.0 + 4.0 / free)

    def _add(self, beside: float, seconds: float) -> None:
        kept = 1.0 - 1.0 / (8.0 + 3.0 * beside)
        x, y = math.log(beside), math.log(max(seconds, 1e-6))
        self._weight = kept * self._weight + 1.0
        self._x, self._y = kept * self._x + x, kept * self._y + y
        self._xx, self._xy, self._yy = kept * self._xx + x * x, kept * self._xy + x * y, kept * self._yy + y * y
