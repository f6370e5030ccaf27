"""Detection of server refusals that no single question caused, to decide whether to continue.

With an empty account, a revoked key or an unreachable address, every question would be refused, and no refusal is an
answer of the system under test. The door counts such refusals; after enough of them the campaign ends, and the refused
questions have no outcome: the next session sends them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from medtest.api.calls.request import CallState, Outcome
from medtest.api.calls.retry import Reply, Trouble
from medtest.api.stops import CampaignStopped, Stop
from medtest.core.errors import MedtestError

KEY_STATUSES = frozenset({401, 403, 404})
"""Statuses about the key, the model or the address instead of the question."""
KNOCKS = 5
"""Number of such refusals, or of unreachable calls, after which a server that has never answered is given up, and
number of such refusals in a row after which one that has answered is given up.
"""
FORBIDDEN = 20
"""Like :data:`KNOCKS` for 403 in a row after answers: some servers use it for single images or questions."""
GONE = 20
"""Number of questions in a row with only unreachable calls, after which a server that has answered is given up."""


class _Row:
    """Questions refused in a row for one reason, without a good answer in between."""

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
        """Record a good answer; one sent before the first refusal does not end the row."""
        if sent_at >= self._since:
            self.addresses.clear()
            self.statuses.clear()


class Door:
    """Counts server refusals that no question caused.

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
        """Return True if this request's ERROR may be the server's fault, as part of a row still open."""
        return address in self._refused.addresses or address in self._lost.addresses

    def observe(self, address: str, reply: Reply, outcome: Outcome | None, *, sent_at: float) -> None:
        """Record the result of a call.

        Args:
            address: The request's address.
            reply: The reply.
            outcome: The request's outcome, None if another call follows.
            sent_at: Time of sending, on the door's clock.

        Raises:
            CampaignStopped: The account is empty; the server has never answered and a few calls were refused (for the
                key, the model or the address) or unreachable; or, after answers, many in a row were.
        """
        if reply.trouble == Trouble.NO_CREDIT:
            raise CampaignStopped(Stop.NO_CREDIT, self._base_url, reply.reason)
        if reply.unreached:
            self._unreached(address, reply, outcome)
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
            return (
                CampaignStopped(Stop.REFUSED, self._base_url, reason, len(statuses))
                if len(statuses) >= KNOCKS
                else None
            )
        enough = sum(status != 403 for status in statuses) >= KNOCKS or len(statuses) >= FORBIDDEN
        return CampaignStopped(Stop.ACCESS_LOST, self._base_url, reason, len(statuses)) if enough else None

    def _unreached(self, address: str, reply: Reply, outcome: Outcome | None) -> None:
        self._misses += 1
        if not self._reached and self._misses >= KNOCKS:
            raise CampaignStopped(Stop.MISSING, self._base_url, reply.reason, self._misses)
        if outcome is not None:
            self._lost.add(address, None, self._clock())
            if self._reached and len(self._lost.addresses) >= GONE:
                raise CampaignStopped(Stop.UNREACHABLE, self._base_url, reply.reason, len(self._lost.addresses))
