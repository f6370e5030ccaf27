"""What a server's refusals say of the server and not of a question: whether going on makes sense.

An account without credit, a key that is no longer taken, an address at which nobody answers: each would be refused as
often as there are questions, and none of these refusals is an answer of the system under test. The door counts such
refusals; where they are enough the campaign ends, and the questions that were refused for it have no outcome: the next
session asks them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from medtest.api.calls.request import CallState, Outcome
from medtest.api.calls.retry import Reply, Trouble
from medtest.api.stops import AccessLost, NoCredit, ServerGone, ServerMissing, TurnedAway
from medtest.core.errors import MedtestError

KEY_STATUSES = frozenset({401, 403, 404})
"""Statuses that speak of the key, the model or the address, and not of the question."""
KNOCKS = 5
"""Such refusals, or calls that reach nobody, after which a server that has answered nothing is not asked further; and
such refusals in a row after which one that did answer is not."""
FORBIDDEN = 20
"""As :data:`KNOCKS` for 403 in a row after answers: some servers say so of single images or questions too."""
GONE = 20
"""Questions in a row whose calls all ended in reaching nobody, after which a server that did answer is not asked
further."""


DOOR_CLOSED = (NoCredit, AccessLost, ServerGone, TurnedAway, ServerMissing)
"""What :meth:`Door.mind` raises."""


class _Row:
    """Questions refused in a row for one reason, with no good answer between."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.statuses: list[int | None] = []
        self._since = 0.0

    def add(self, address: str, status: int | None, now: float) -> None:
        if not self.addresses:
            self._since = now
        self.addresses.append(address)
        self.statuses.append(status)

    def end(self, sent_at: float) -> None:
        """Take note of a good answer; one that left before the first refusal says nothing of what came after it."""
        if sent_at >= self._since:
            self.addresses.clear()
            self.statuses.clear()


class Door:
    """Counts what a server refuses for reasons of its own.

    Args:
        base_url: The server's address, for messages.
        clock: Seconds, monotonic.
    """

    def __init__(self, base_url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._base_url, self._clock = base_url, clock
        self._let_in = self._reached = False
        self._misses = 0
        self._refused, self._lost = _Row(), _Row()

    def now(self) -> float:
        """Return the clock, for ``sent_at``."""
        return self._clock()

    def doubts(self, address: str) -> bool:
        """Whether this request's ERROR may be the server's: it was refused in a row that has not ended yet."""
        return address in self._refused.addresses or address in self._lost.addresses

    def mind(self, address: str, reply: Reply, outcome: Outcome | None, *, sent_at: float) -> None:
        """Take note of what a call brought.

        Args:
            address: The request's.
            reply: What came back.
            outcome: The request's, None where another call follows.
            sent_at: When the call left, on the door's clock.

        Raises:
            NoCredit: The account has none.
            ServerMissing: Nothing was ever answered, and a few calls reached nobody.
            TurnedAway: Nothing was ever answered, and a few requests were refused for the key, the model, the address.
            AccessLost: Such refusals came in a row after answers.
            ServerGone: Nobody was reached for many questions in a row after answers.
        """
        if reply.trouble == Trouble.NO_CREDIT:
            raise NoCredit(self._base_url, reply.reason)
        if reply.unreached:
            self._nobody(address, reply, outcome)
            return
        self._reached = True
        self._lost.end(sent_at)
        if outcome is None:
            return
        if outcome.state != CallState.ERROR:
            self._let_in = True
            self._refused.end(sent_at)
        elif reply.status in KEY_STATUSES:
            self._refused.add(address, reply.status, self._clock())
            if stop := self._closed(reply.reason):
                raise stop

    def _closed(self, reason: str) -> MedtestError | None:
        statuses = self._refused.statuses
        if not self._let_in:
            return TurnedAway(self._base_url, reason, len(statuses)) if len(statuses) >= KNOCKS else None
        enough = sum(status != 403 for status in statuses) >= KNOCKS or len(statuses) >= FORBIDDEN
        return AccessLost(self._base_url, reason, len(statuses)) if enough else None

    def _nobody(self, address: str, reply: Reply, outcome: Outcome | None) -> None:
        self._misses += 1
        if not self._reached and self._misses >= KNOCKS:
            raise ServerMissing(self._base_url, reply.reason, self._misses)
        if outcome is not None:
            self._lost.add(address, None, self._clock())
            if self._reached and len(self._lost.addresses) >= GONE:
                raise ServerGone(self._base_url, reply.reason, len(self._lost.addresses))
