"""Values that are kept with a prepared seed, so that its follow-ups share them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from medtest.core.cases import PreparedSeed
from medtest.core.recent import Recent

P = ParamSpec("P")
T = TypeVar("T")


def per_seed(make: Callable[Concatenate[PreparedSeed, P], T]) -> Callable[Concatenate[PreparedSeed, P], T]:
    """Keep the results of a function of a seed, and of further arguments that their words tell apart."""
    name = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def wrapper(seed: PreparedSeed, /, *arguments: P.args, **options: P.kwargs) -> T:
        key = f"{name} {arguments} {options}" if arguments or options else name
        return seed.memo(key, lambda: make(seed, *arguments, **options))

    return wrapper


def last_of(seed: PreparedSeed, name: str, key: Hashable, make: Callable[[], T]) -> T:
    """Return the value of a key, kept with the seed; only the last value under a name is."""
    cache: Recent[Hashable, T] = seed.memo(name, lambda: Recent(1))
    if key not in cache:
        cache[key] = make()
    return cache[key]
