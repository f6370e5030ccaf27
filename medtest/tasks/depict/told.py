"""Parts of two pictures and of a change that a reader can detect; the rest is excluded from comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from medtest.core.scenes import Tells
from medtest.tasks.depict.views import PoolChange, Said, SceneLook


def told_classes(names: Iterable[str], first: Tells, two: Tells) -> set[str]:
    """Return the classes among names that both readers can detect."""
    common = _known(first, two)[0]
    return set(names) if common is None else set(common.intersection(names))


def told_predicates(predicates: Iterable[str], first: Tells, two: Tells, most: int | None = None) -> set[str]:
    """Return the first ``most`` predicates among those that both readers can detect."""
    common = _known(first, two)[1]
    usable = [name for name in predicates if common is None or name in common]
    return set(usable[:most])


@lru_cache(maxsize=4096)
def _known(left: Tells, right: Tells) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Return the classes and the predicates that both readers can detect; None for all."""
    if left is right:
        return left.classes, left.predicates
    common = []
    for first, second in ((left.classes, right.classes), (left.predicates, right.predicates)):
        common.append(second if first is None else first if second is None else first & second)
    return common[0], common[1]


def told_by_both(first: Tells, two: Tells) -> Callable[[str], bool]:
    """Return a predicate on classes: True if both readers can detect the class."""
    common = _known(first, two)[0]
    return (lambda name: True) if common is None else common.__contains__


def entities_told(before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange) -> bool:
    """Return True if the readers can detect the classes that a change removed or added."""
    return _what_is_told(before.tells, after.tells, prompt, change)[0]


def change_told(before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange) -> bool:
    """Return True if the readers can detect the whole change."""
    return _what_is_told(before.tells, after.tells, prompt, change)[1]


@lru_cache(maxsize=4096)
def _what_is_told(before: Tells, after: Tells, prompt: Said, change: PoolChange) -> tuple[bool, bool]:
    """Return whether a change of classes can be detected, and whether the whole change can; cached across rules."""
    entities = _entities_of(before, after, prompt, change)
    readers = (before, after)
    untold = any(predicates_untold(change, tells) or attributes_untold(change, tells) for tells in readers)
    return entities, entities and not untold


def _entities_of(before: Tells, after: Tells, prompt: Said, change: PoolChange) -> bool:
    """Return True if the readers can detect the classes that a change removed or added, and their numbers if needed."""
    detectable = told_by_both(before, after)
    if not all(detectable(name) for name in change.removed) or not all(after.names(name) for name in change.added):
        return False
    if before.counts and after.counts:
        return True
    # without counts, a class that is stated before and after stays, independent of its number
    return not any(
        prompt.names[name] - change.added[name] + change.removed[name] > 0 and prompt.names[name] > 0
        for name in change.removed.keys() | change.added.keys()
    )


def attributes_untold(change: PoolChange, tells: Tells) -> bool:
    """Return True if a change concerns an attribute that a reader cannot detect."""
    return any(not (tells.names(name) and tells.describes(value, name)) for name, value in change.lost | change.gained)


def predicates_untold(change: PoolChange, tells: Tells) -> bool:
    """Return True if a change concerns a predicate that a reader cannot detect."""
    return tells.predicates is not None and not change.predicates <= tells.predicates
