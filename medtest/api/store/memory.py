"""Lookup of stored outcomes before a call: this run's ledger, the cache of all runs, and their pictures."""

from __future__ import annotations

from medtest.api.calls.request import CallState, Outcome
from medtest.api.drawn.kept import KeptPictures
from medtest.api.store.cache import Cache, CacheMode
from medtest.api.store.ledger import Ledger


class Memory:
    """Ledger and cache, whose outcomes are valid only while their pictures are stored undamaged.

    Args:
        ledger: The run's ledger.
        cache: Answers of other runs.
        pictures: Store of generated pictures, or None.
    """

    def __init__(self, ledger: Ledger, cache: Cache, pictures: KeptPictures | None) -> None:
        self._ledger, self._cache, self._pictures = ledger, cache, pictures

    async def of_run(self, address: str, key: str) -> Outcome | None:
        """Return the outcome in this run's ledger."""
        return await self._with_picture(self._ledger.outcome(address, key))

    async def of_all(self, address: str, key: str) -> Outcome | None:
        """Return the outcome in the cache."""
        return await self._with_picture(self._cache.get(key, address))

    async def _with_picture(self, outcome: Outcome | None) -> Outcome | None:
        if outcome is None or not outcome.picture:
            return outcome
        return outcome if self._pictures is not None and await self._pictures.here(outcome) else None

    async def keep(self, outcome: Outcome) -> None:
        """Store an answer in the cache, after its picture; other outcomes are ignored."""
        if outcome.state != CallState.ANSWERED or self._cache.mode == CacheMode.OFF:
            return
        if not outcome.picture or (self._pictures is not None and await self._pictures.share(outcome)):
            self._cache.put(outcome)
