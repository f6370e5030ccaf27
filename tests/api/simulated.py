"""Simulated servers and campaigns: decisions of the throttle, against limits and queues that are written down here.

Nothing waits and no socket is opened: events are played in the order of their times. Rules of a campaign around the
limits are played too: repeated calls go first, refusals without a reason are tried again after a pause.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from medtest.api.calls.retry import Reply, Retries, Tally, Trouble
from medtest.api.faulty.faults import Faults, Limiter
from medtest.api.pacing.throttle import Permit, Throttle

Answer = tuple[int, int, Mapping[str, str]]
"""Number of a call, its status, its headers."""


class Server(Protocol):
    """Takes calls and answers them, on the clock of its caller."""

    def take(self, call: int, now: float) -> None:
        """Take a call."""

    def next(self) -> float:
        """Return the time of the next answer, infinity without calls under way."""

    def ready(self, now: float) -> list[Answer]:
        """Return the answers that are ready."""


class Delayed:
    """Answers every call after the same time, which ``jitter`` lengthens; the answer is decided on arrival."""

    def __init__(self, latency: float, jitter: float = 0.0, seed: int = 0) -> None:
        self.latency, self.jitter, self.draw = latency, jitter, random.Random(seed)
        self._under_way: list[tuple[float, int, int, Mapping[str, str]]] = []
        self._count = itertools.count()

    def says(self, now: float) -> tuple[int, Mapping[str, str]]:
        """Return status and headers for a call that arrives."""
        return 200, {}

    def take(self, call: int, now: float) -> None:
        """Take a call."""
        status, headers = self.says(now)
        seconds = self.latency + self.jitter * self.draw.random()
        heapq.heappush(self._under_way, (now + seconds, next(self._count), call, status, headers))  # type: ignore[misc]

    def next(self) -> float:
        """Return the time of the next answer."""
        return self._under_way[0][0] if self._under_way else math.inf

    def ready(self, now: float) -> list[Answer]:
        """Return the answers that are ready."""
        answers: list[Answer] = []
        while self.next() <= now:
            answers.append(heapq.heappop(self._under_way)[2:])  # type: ignore[arg-type]
        return answers


class Limited(Delayed):
    """Keeps the limits of a fault server; ``sliding`` counts the calls let in during the last seconds instead."""

    def __init__(self, faults: Faults, *, sliding: bool = False) -> None:
        super().__init__(faults.latency, faults.jitter, faults.seed)
        self.faults, self.limiter, self.sliding = faults, Limiter(faults), sliding
        self._let_in: deque[float] = deque()

    def says(self, now: float) -> tuple[int, Mapping[str, str]]:
        """Return status and headers for a call that arrives."""
        faults = self.faults
        if self.sliding and faults.hidden is not None:
            while self._let_in and self._let_in[0] <= now - faults.hidden_seconds:
                self._let_in.popleft()
            let_in = len(self._let_in) < faults.hidden
            wait = 0.0 if let_in else self._let_in[0] + faults.hidden_seconds - now
            if let_in:
                self._let_in.append(now)
            stated: Mapping[str, str] = {}
        else:
            let_in, stated, wait = self.limiter.admit(now)
        if let_in and not (faults.too_many and self.draw.random() < faults.too_many):
            return 200, stated
        retry_header = {} if faults.retry_after == "none" or let_in else {"retry-after": str(max(1, math.ceil(wait)))}
        return 429, {**stated, **retry_header}


class Queue:
    """``slots`` calls at once, each for ``seconds``; others wait in the order of their arrival.

    Abandoned calls are worked on all the same.
    """

    def __init__(self, slots: int, seconds: float) -> None:
        self.seconds = seconds
        self._free = [0.0] * slots
        self._under_way: deque[tuple[float, int]] = deque()

    def take(self, call: int, now: float) -> None:
        """Take a call."""
        done = max(now, heapq.heappop(self._free)) + self.seconds
        heapq.heappush(self._free, done)
        self._under_way.append((done, call))

    def next(self) -> float:
        """Return the time of the next answer."""
        return self._under_way[0][0] if self._under_way else math.inf

    def ready(self, now: float) -> list[Answer]:
        """Return the answers that are ready."""
        answers: list[Answer] = []
        while self.next() <= now:
            answers.append((self._under_way.popleft()[1], 200, {}))
        return answers


class Shared:
    """All calls at once, and all slower if they are more than ``slots``: each needs ``seconds`` of a slot."""

    def __init__(self, slots: int, seconds: float) -> None:
        self.slots, self.seconds = slots, seconds
        self._worked, self._at = 0.0, 0.0
        self._under_way: list[tuple[float, int]] = []

    def _speed(self) -> float:
        return min(1.0, self.slots / max(1, len(self._under_way)))

    def _advance(self, now: float) -> None:
        self._worked += (now - self._at) * self._speed()
        self._at = now

    def take(self, call: int, now: float) -> None:
        """Take a call."""
        self._advance(now)
        heapq.heappush(self._under_way, (self._worked + self.seconds, call))

    def next(self) -> float:
        """Return the time of the next answer."""
        if not self._under_way:
            return math.inf
        return self._at + max(0.0, self._under_way[0][0] - self._worked) / self._speed()

    def ready(self, now: float) -> list[Answer]:
        """Return the answers that are ready."""
        answers: list[Answer] = []
        while self.next() <= now + 1e-9:
            self._advance(max(self._at, self.next()))
            answers.append((heapq.heappop(self._under_way)[1], 200, {}))
        return answers


@dataclass(slots=True)
class Played:
    """Result of a campaign.

    Attributes:
        answered: Questions with an answer.
        sent: Calls.
        refused: Refused calls.
        late: Calls without an answer in time.
        most: Most calls of one question.
        in_flight: Most calls under way at once.
        seconds: Time until the last question was finished.
    """

    answered: int = 0
    sent: int = 0
    refused: int = 0
    late: int = 0
    most: int = 0
    in_flight: int = 0
    seconds: float = 0.0

    @property
    def refused_share(self) -> float:
        """Return the share of refused calls."""
        return self.refused / max(1, self.sent)


@dataclass(slots=True)
class _Question:
    tally: Tally = field(default_factory=Tally)


def played(
    server: Server, questions: int, *, most: int = 32, rules: Retries | None = None, limits: Throttle | None = None
) -> Played:
    """Ask a server questions, up to so many at once, until all have an answer or are given up."""
    return _Campaign(server, questions, rules or Retries(), limits or Throttle(most=most)).played()


class _Campaign:
    def __init__(self, server: Server, questions: int, rules: Retries, limits: Throttle) -> None:
        self.server, self.rules, self.limits = server, rules, limits
        self.first = deque(_Question() for _ in range(questions))
        self.again: deque[_Question] = deque()
        self.pausing: list[tuple[float, int, _Question]] = []
        self.calls: dict[int, tuple[_Question, Permit]] = {}
        self.sent_at: deque[tuple[float, int]] = deque()
        self.count = itertools.count()
        self.draw = random.Random(1)
        self.found = Played()
        self.left = questions
        self.now = 1000.0

    def played(self) -> Played:
        while self.left:
            self.now = min(self._send(), self._next())
            while self.pausing and self.pausing[0][0] <= self.now:
                self.again.append(heapq.heappop(self.pausing)[2])
                self._send()
            for call, status, headers in self.server.ready(self.now):
                self._answered(call, status, headers)
                self._send()
            while self.sent_at and self.sent_at[0][0] <= self.now:
                self._answered(self.sent_at.popleft()[1], None, {})
                self._send()
        self.found.seconds = self.now - 1000.0
        return self.found

    def _next(self) -> float:
        """Return the time of the next event."""
        while self.sent_at and self.sent_at[0][1] not in self.calls:
            self.sent_at.popleft()
        return min(
            self.pausing[0][0] if self.pausing else math.inf,
            self.sent_at[0][0] if self.sent_at else math.inf,
            max(self.now, self.server.next()),
        )

    def _send(self) -> float:
        """Send the calls that may be sent; return the time of the next one, as far as time decides."""
        while queue := self.again or self.first:
            if self.limits.in_flight >= int(self.limits.limit):
                return math.inf
            wait = self.limits.ready_in(0.0, self.now)
            if wait > 0:
                return self.now + max(wait, 0.001)
            question = queue.popleft()
            permit = self.limits.take(0.0, self.now)
            question.tally.began = question.tally.began or self.now
            question.tally.sent += 1
            call = next(self.count)
            self.calls[call] = question, permit
            self.sent_at.append((self.now + self.rules.call_seconds, call))
            self.found.sent += 1
            self.found.most = max(self.found.most, question.tally.sent)
            self.found.in_flight = max(self.found.in_flight, self.limits.in_flight)
            self.server.take(call, self.now)
        return math.inf

    def _answered(self, call: int, status: int | None, headers: Mapping[str, str]) -> None:
        if call not in self.calls:
            return  # it was abandoned
        question, permit = self.calls.pop(call)
        late = status is None
        allowed = self.rules.call_seconds
        self.limits.answered(permit, status=status, headers=headers, now=self.now, late=late, allowed=allowed)
        tally = question.tally
        if status == 200:
            self.found.answered += 1
            self.left -= 1
            return
        self.found.late += late
        self.found.refused += not late
        reply = Reply(trouble=Trouble.TIMEOUT if late else Trouble.THROTTLED, status=status, headers=headers)
        if not tally.again(reply, self.rules, self.now):
            self.left -= 1
            return
        if headers:
            self.again.append(question)
            return
        pause = self.rules.pause(tally.failures if late else tally.throttled, self.draw)
        heapq.heappush(self.pausing, (self.now + pause, next(self.count), question))
