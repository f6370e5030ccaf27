"""Cache of answers by content, and lookup of stored outcomes before a call.

Runs share the cache, so that the same question to the same model is paid for once. It is one SQLite file for any number
of processes. The key covers provider, model, every generation parameter, prompt, pictures, seed and repeat
(:func:`medtest.api.calls.request.content_key`). Only answers are stored: an error, a refusal, a content filter's stop,
a length stop or a malformed answer is never reused.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from medtest.api.calls.request import CallState, Outcome, Source
from medtest.api.drawn.kept import KeptPictures
from medtest.api.store.answers import CacheMode, KeptTexts
from medtest.api.store.ledger import Ledger

__all__ = ["Cache", "CacheMode"]


class Cache(KeptTexts):
    """Cache in one file.

    Args:
        path: The file; created with its folder if missing and needed by the mode.
        mode: ``use``, ``refresh`` (request again and store the new answer) or ``off``.

    Raises:
        OutputProblem: The file cannot be used.
    """

    def __init__(self, path: Path | None, mode: CacheMode | str = CacheMode.USE) -> None:
        super().__init__(path, mode, "the cache")

    def get(self, key: str, address: str) -> Outcome | None:
        """Return the undamaged answer stored for this content, as the outcome of this address.

        Raises:
            OutputProblem: The file cannot be read.
        """
        line = self.text(key)
        return None if line is None else Outcome.read(line, address=address, key=key, source=Source.CACHE)

    def put(self, outcome: Outcome) -> None:
        """Store an answer; other outcomes are ignored.

        Raises:
            OutputProblem: The file cannot be written.
        """
        if outcome.state == CallState.ANSWERED:
            self.keep(outcome.key, outcome.to_json())


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
        return await self.with_picture(self._ledger.outcome(address, key))

    async def of_all(self, address: str, key: str) -> Outcome | None:
        """Return the outcome in the cache."""
        return await self.with_picture(self._cache.get(key, address))

    async def with_picture(self, outcome: Outcome | None) -> Outcome | None:
        """Return an outcome if it has no picture, or its picture is stored undamaged."""
        if outcome is None or not outcome.picture:
            return outcome
        return outcome if self._pictures is not None and await self._pictures.here(outcome) else None

    def with_paid(self, stored: Outcome, *, priced: bool) -> Outcome:
        """Return a stored answer with the cost of the calls that earlier sessions made for it in vain."""
        _, paid_usd = self._ledger.paid_before(stored.address, stored.key)
        return replace(stored, cost_usd=(stored.cost_usd or 0.0) + paid_usd) if priced and paid_usd else stored

    async def keep(self, outcome: Outcome) -> None:
        """Store an answer in the cache, after its picture; other outcomes are ignored."""
        if outcome.state != CallState.ANSWERED or self._cache.mode == CacheMode.OFF:
            return
        if not outcome.picture or (self._pictures is not None and await self._pictures.share(outcome)):
            self._cache.put(outcome)
