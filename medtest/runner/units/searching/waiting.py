"""Searches on a system that is asked in a stream: queries wait until the answers before them have arrived."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from medtest.runner.units.made_case import MadeCase
from medtest.runner.units.searching.searcher import Searcher

if TYPE_CHECKING:
    from medtest.runner.units.open_units import Share


class WaitingSearches:
    """Searches of the units of one system.

    Args:
        searcher: Makes the queries; None for a suite without searches.
        lock: Guards the outcomes of shares.
    """

    def __init__(self, searcher: Searcher | None, lock: threading.Condition) -> None:
        self._searcher, self._lock = searcher, lock
        self._waiting: dict[Share, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def needs(self, share: Share, number: int) -> bool:
        """Return True if a case must be answered because an unfinished query depends on it."""
        if self._searcher is None:
            return False
        with self._lock:
            return self._searcher.needed(share, number)

    def is_query(self, share: Share, number: int) -> bool:
        """Return True if a case is a query."""
        return share.searches is not None and number in share.searches.by_query

    def begin(self, share: Share) -> bool:
        """Let the searches of a share begin; return False if it has none to finish."""
        numbers = [] if share.searches is None else [n for n in share.searches.by_query if share.requests(n)]
        if not numbers or share.searches is None:
            return False
        self._waiting[share] = [number for number in share.searches.by_query if number <= max(numbers)]
        return True

    def ready(self) -> Iterator[tuple[Share, MadeCase, int]]:
        """Yield the queries that can be shown now."""
        for share in list(self._waiting):
            waiting = self._waiting[share]
            while (step := self._step(share, waiting)) is not None:
                number, case = step
                waiting.remove(number)
                if case is not None:
                    yield share, case, number

    def finished(self) -> list[Share]:
        """Return, and forget, the shares of which no query waits."""
        shares = [share for share, waiting in self._waiting.items() if not waiting]
        for share in shares:
            del self._waiting[share]
        return shares

    def again(self, share: Share, number: int) -> int:
        """Count earlier showings of the picture of a case."""
        return 0 if self._searcher is None else self._searcher.again(share, number)

    def _step(self, share: Share, waiting: list[int]) -> tuple[int, MadeCase | None] | None:
        """Return the next query that waits no longer: with what it shows, or None if it need not be shown."""
        searcher = self._searcher
        if searcher is None:
            return None
        with self._lock:
            for number in waiting:
                if searcher.outcome(share, number) is not None:
                    return number, None
                if not (share.requests(number) or searcher.needed(share, number)):
                    return number, None
                if searcher.ready(share, number):
                    return number, searcher.made(share, number)
        return None
