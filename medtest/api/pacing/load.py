"""Latency as a function of the number of calls in flight, to detect when more calls only queue.

By Little's law (J. D. C. Little, Operations Research 9, 1961) ``n`` calls in flight that take ``t`` seconds each are
``n / t`` answers per second. If ``t`` grows in proportion to ``n``, the server does not work faster: it has a queue.
Deriving a limit from latency is the idea of TCP Vegas (Brakmo and Peterson, IEEE JSAC 13, 1995); but here the slope
decides instead of a comparison with the shortest latency ever seen, so that a server that answers in batches, each
slower than a single answer but together faster, may receive more calls.
"""

from __future__ import annotations

import math

_LEAST_VARIANCE = 0.01
"""Minimum variance of the logarithm of calls in flight; below it the number was constant and has no slope."""
_SATURATED = 0.6
"""A slope above it means that the server has a queue."""
_NEAR = 0.5
"""Share of a wait that a queue must explain to be its cause."""
_IN_TIME = 0.9
"""Share of the allowed time within which an additional call must be expected to end."""
_PATIENCE, _MOST_PATIENCE = 10, 160
"""Number of timely answers before an additional call is tried, initially and at most."""
_WEIGHT = 0.1
"""Weight of the newest answer in the mean of seconds per call."""


class Load:
    """Slope of log seconds over log calls in flight, 0 for a server with spare capacity and 1 for a full one.

    It is a regression with decaying weights, with its standard error, because random variation of latencies is not a
    sign of a queue.

    Attributes:
        ceiling: Most calls in flight without a late answer, as far as known; initially infinite.
    """

    def __init__(self) -> None:
        self.ceiling = math.inf
        self._allowed = math.inf
        self._a_call = 0.0
        self._in_time, self._patience = 0, _PATIENCE
        self._weight = 0.0
        self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def answered(self, beside: float, seconds: float) -> None:
        """Record an answer.

        Args:
            beside: Calls in flight when it was sent, including itself.
            seconds: Its duration.
        """
        self._add(beside, seconds)
        self._a_call += (_WEIGHT if self._a_call else 1.0) * (seconds / beside - self._a_call)
        self._in_time += 1
        if self._in_time >= max(self._patience, self.ceiling):
            # Try one more call if all would be in time even without additional throughput.
            self._in_time = 0
            if (self.ceiling + 1) * self._a_call < _IN_TIME * self._allowed:
                self.ceiling += 1

    def explains(self, beside: float, seconds: float) -> bool:
        """Return True if a queue may explain that nothing came in this many seconds, judging by previous answers."""
        return not self._a_call or beside * self._a_call >= _NEAR * seconds

    def late(self, beside: float, seconds: float, *, first: bool) -> None:
        """Record a call that the server was too busy to answer in time.

        Args:
            beside: Average number of calls in flight with it, including itself.
            seconds: Time waited.
            first: Whether answers came since the last such call. If none did, the server is still working on abandoned
                calls, which reveals nothing about its capacity.
        """
        self._add(beside, seconds)
        self._allowed, self._in_time = seconds, 0
        if first:
            self._patience = min(_MOST_PATIENCE, 2 * self._patience)
            self.ceiling = max(1.0, min(self.ceiling, math.ceil(beside) - 1.0))

    def full(self) -> bool:
        """Return True if latency certainly grows at least six tenths as fast as the calls in flight."""
        slope, error = self._slope()
        return slope - error > _SATURATED

    def doubtful(self) -> bool:
        """Return True if it seems to, although chance may explain it."""
        return self._slope()[0] > _SATURATED

    def _slope(self) -> tuple[float, float]:
        """Return the slope and its uncertainty: two standard errors, more if answers are few."""
        if self._weight < 2.0:
            return 0.0, 0.0
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        var_x = self._xx / self._weight - mean_x**2
        if var_x < _LEAST_VARIANCE:
            return 0.0, 0.0  # only one number was tried recently
        covariance = self._xy / self._weight - mean_x * mean_y
        slope = covariance / var_x
        residual = max(0.0, self._yy / self._weight - mean_y**2 - slope * covariance)
        free = max(0.5, self._weight - 2.0)  # two degrees of freedom belong to the line
        return slope, math.sqrt(residual / (var_x * free)) * (2.0 + 4.0 / free)

    def _add(self, beside: float, seconds: float) -> None:
        decay = 1.0 - 1.0 / (8.0 + 3.0 * beside)
        x, y = math.log(beside), math.log(max(seconds, 1e-6))
        self._weight = decay * self._weight + 1.0
        self._x, self._y = decay * self._x + x, decay * self._y + y
        self._xx, self._xy, self._yy = decay * self._xx + x * x, decay * self._xy + x * y, decay * self._yy + y * y
