"""What of two pictures and of a change a reader can tell: the rest is on neither side of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from medtest.core.scenes import Tells
from medtest.tasks.depict.views import PoolChange, Said, SceneLook


def told_classes(names: Iterable[str], one: Tells, two: Tells) -> set[str]:
    """Return the classes of some names that both tell."""
    known = _known(one, two)[0]
    return set(names) if known is None else set(known.intersection(names))


def told_predicates(predicates: Iterable[str], one: Tells, two: Tells, most: int | None = None) -> set[str]:
    """Return the first ``most`` predicates of those that both tell."""
    known = _known(one, two)[1]
    kept = [name for name in predicates if known is None or name in known]
    return set(kept[:most])


@lru_cache(maxsize=4096)
def _known(one: Tells, two: Tells) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Return the classes and the predicates that both tell; None for all."""
    if one is two:
        return one.classes, one.predicates
    found = []
    for first, second in ((one.classes, two.classes), (one.predicates, two.predicates)):
        found.append(second if first is None else first if second is None else first & second)
    return found[0], found[1]


def told_by_both(one: Tells, two: Tells) -> Callable[[str], bool]:
    """Return what says of a class whether both tell it."""
    known = _known(one, two)[0]
    return (lambda name: True) if known is None else known.__contains__


def entities_told(before: SceneLook, after: SceneLook, said: Said, change: PoolChange) -> bool:
    """Say whether the classes that a change took away or brought can be told."""
    return _what_is_told(before.tells, after.tells, said, change)[0]


def change_told(before: SceneLook, after: SceneLook, said: Said, change: PoolChange) -> bool:
    """Say whether all that a change did can be told."""
    return _what_is_told(before.tells, after.tells, said, change)[1]


@lru_cache(maxsize=4096)
def _what_is_told(before: Tells, after: Tells, said: Said, change: PoolChange) -> tuple[bool, bool]:
    """Return whether a change of classes can be told, and whether all of it; asked by each rule in turn."""
    entities = _entities_of(before, after, said, change)
    return entities, entities and not any(predicates_untold(change, tells) for tells in (before, after))


def _entities_of(before: Tells, after: Tells, said: Said, change: PoolChange) -> bool:
    """Say whether the classes that a change took away or brought can be told, and by how many where that matters."""
    both = told_by_both(before, after)
    if not all(both(name) for name in change.removed) or not all(after.names(name) for name in change.added):
        return False
    if before.counts and after.counts:
        return True
    # without numbers a class that is said before and after stays, however many came or went
    return not any(
        said.names[name] - change.added[name] + change.removed[name] > 0 and said.names[name] > 0
        for name in change.removed.keys() | change.added.keys()
    )


def predicates_untold(change: PoolChange, tells: Tells) -> bool:
    """Say whether a change is of a predicate that a reader cannot tell."""
    return tells.predicates is not None and not change.predicates <= tells.predicates
