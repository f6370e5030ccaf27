"""Bounded caches, and values cached in a prepared seed, which its follow-ups share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from medtest.core.cases import PreparedSeed

K = TypeVar("K")
P = ParamSpec("P")
V = TypeVar("V")


class Recent(dict[K, V]):
    """Mapping of the most recently used entries; the others are dropped. It is not thread-safe.

    Args:
        most: Maximum number of entries.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __getitem__(self, key: K) -> V:
        value = self.pop(key)
        super().__setitem__(key, value)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > self.most:
            del self[next(iter(self))]


def per_seed(make: Callable[Concatenate[PreparedSeed, P], V]) -> Callable[Concatenate[PreparedSeed, P], V]:
    """Cache the results of a function in the seed; its other arguments are numbers, booleans or strings."""
    name = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def wrapper(seed: PreparedSeed, /, *arguments: P.args, **options: P.kwargs) -> V:
        key = f"{name} {arguments} {options}" if arguments or options else name
        return seed.memo(key, lambda: make(seed, *arguments, **options))

    return wrapper


def last_of(seed: PreparedSeed, name: str, key: Hashable, make: Callable[[], V]) -> V:
    """Return the value for a key, cached in the seed; each name keeps its latest value only."""
    cache: dict[Hashable, V] = seed.memo(name, dict)
    if key not in cache:
        value = make()
        cache.clear()
        cache[key] = value
    return cache[key]
