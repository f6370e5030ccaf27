"""Shared parts of the tests of the API room: a picture, requests, a campaign on a server with faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import Outcome, Parameters, Picture, Request
from medtest.api.calls.retry import Retries
from medtest.api.campaign import Campaign
from medtest.api.pacing.rate_limiter import RateLimiter
from medtest.api.store.cache import Cache, CacheMode
from medtest.api.store.ledger import Ledger

QUICK = Retries(first_pause=0.01, longest_pause=0.05, call_seconds=20)


def picture(size: int = 8, seed: int = 0) -> Picture:
    """Return a small picture of noise."""
    return Picture.of(np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8))


def questions(count: int, **more: Any) -> Iterator[Request]:
    """Yield requests with different addresses and prompts."""
    shown = (picture(),)
    for index in range(count):
        yield Request(**{"address": f"case/{index}", "prompt": f"question {index}", "pictures": shown, **more})


@contextmanager
def campaign(
    folder: Path,
    base_url: str,
    *,
    mode: CacheMode = CacheMode.USE,
    parameters: Parameters | None = None,
    retries: Retries = QUICK,
    max_in_flight: int = 16,
    key_variable: str = "",
    **more: Any,
) -> Iterator[Campaign]:
    """Return a campaign with its ledger and cache in a folder."""
    import openai  # noqa: F401 - loading it takes seconds, which are no time of the first question

    endpoint = Endpoint(base_url=base_url, key_variable=key_variable)
    caller = Caller(
        endpoint,
        parameters or Parameters(model="simulated"),
        max_in_flight=max_in_flight,
        call_seconds=retries.call_seconds,
    )
    with Ledger(folder / "ledger.sqlite") as ledger, Cache(folder / "cache.sqlite", mode) as cache:
        yield Campaign(
            caller, ledger, cache=cache, limiter=RateLimiter(max_in_flight=max_in_flight), retries=retries, **more
        )


def ask_all(folder: Path, base_url: str, requests: Iterable[Request], **more: Any) -> list[Outcome]:
    """Send requests and return their outcomes, by address."""
    with campaign(folder, base_url, **more) as running:
        return sorted(running.iterate(requests), key=lambda outcome: outcome.address)
