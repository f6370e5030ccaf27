"""What is known before anything is asked: this run's ledger, the cache of all runs, and whether pictures are there."""

from __future__ import annotations

from medtest.api.calls.request import CallState, Outcome
from medtest.api.drawn.kept import KeptPictures
from medtest.api.store.cache import Cache, CacheMode
from medtest.api.store.ledger import Ledger


class Memory:
    """Ledger and cache, whose outcomes count only while the pictures that they name are kept whole.

    Args:
        ledger: The run's ledger.
        cache: Answers of other runs.
        pictures: Where what is drawn is kept; None where nothing is.
    """

    def __init__(self, ledger: Ledger, cache: Cache, pictures: KeptPictures | None) -> None:
        self._ledger, self._cache, self._pictures = ledger, cache, pictures

    async def of_run(self, address: str, key: str) -> Outcome | None:
        """Return what this run's ledger keeps."""
        return await self._with_picture(self._ledger.outcome(address, key))

    async def of_all(self, address: str, key: str) -> Outcome | None:
        """Return what the cache keeps."""
        return await self._with_picture(self._cache.get(key, address))

    async def _with_picture(self, outcome: Outcome | None) -> Outcome | None:
        if outcome is None or not outcome.picture:
            return outcome
        return outcome if self._pictures is not None and await self._pictures.here(outcome) else None

    async def keep(self, outcome: Outcome) -> None:
        """Put an answer into the cache, its picture beside it first; whatever is no answer is left out."""
        if outcome.state != CallState.ANSWERED or self._cache.mode == CacheMode.OFF:
            return
        if not outcome.picture or (self._pictures is not None and await self._pictures.share(outcome)):
            self._cache.put(outcome)
