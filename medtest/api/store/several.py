"""Answers to repeats of one request that a single call brings.

Repeats have the same content but for their number. The call of one of them may ask for the others as well
(``n`` pictures): their answers wait in the ledger as *spares*, in the same transaction as the call, until the requests
of these repeats come. So addresses, content keys and records are those of single calls, a resumed run uses spares
that were paid for, and a service that sends fewer is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from medtest.api.calls.request import Outcome, Request
from medtest.api.store.cache import Cache, CacheMode, Memory
from medtest.api.store.ledger import Ledger


class Several:
    """Repeats that calls under way will answer, and answers that wait for their requests.

    Args:
        ledger: The run's ledger.
        cache: Answers of other runs.
        memory: Lookup of both.
        key_of: Returns the content key of a request.
    """

    def __init__(self, ledger: Ledger, cache: Cache, memory: Memory, key_of: Callable[[Request], str]) -> None:
        self._ledger, self._cache, self._memory, self._key_of = ledger, cache, memory, key_of
        self._promised: dict[str, asyncio.Future[None]] = {}
        self._called: set[str] = set()
        self.declined = False

    async def spare(self, request: Request, key: str) -> Outcome | None:
        """Return the answer that another repeat's call brought, waiting for such a call; None without one.

        Raises:
            OutputProblem: The ledger or a picture cannot be read or written.
        """
        if len(request.repeats) < 2:
            return None
        while key in self._promised:
            await asyncio.shield(self._promised[key])
        outcome = await self._memory.with_picture(self._ledger.take_spare(request.address, key))
        if outcome is not None:
            await self._memory.keep(outcome)
        return outcome

    @contextmanager
    def promised(self, request: Request, key: str) -> Iterator[tuple[str, ...]]:
        """Give the keys of the repeats that the call of a request asks for as well, while it is under way.

        Repeats with an answer, in the ledger or the cache, or a call of their own are left out.
        """
        others = [replace(request, repeat=repeat) for repeat in request.repeats if repeat != request.repeat]
        keys = [self._key_of(other) for other in others] if not self.declined else []
        keys = [other for other in keys if self._is_open(other)][: max(0, request.most_together - 1)]
        for other in keys:
            self._promised[other] = asyncio.get_running_loop().create_future()
        self._called.add(key)
        try:
            yield tuple(keys)
        finally:
            self._called.discard(key)
            for other in keys:
                self._promised.pop(other).set_result(None)

    def _is_open(self, key: str) -> bool:
        if key in self._promised or key in self._called or self._ledger.holds(key):
            return False
        return self._cache.mode != CacheMode.USE or self._cache.get(key, "") is None
