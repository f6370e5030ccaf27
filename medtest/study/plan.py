"""Selection of follow-ups, their assignment to annotators, and their order. Pure functions of a random generator.

Every annotator gets the same number of items of each relation (plus or minus one), evenly spread over the list in
random order, so that neither fatigue nor practice affects one relation more than others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from medtest.core.cases import Address

REPEAT_GAP = 0.3
"""Least distance between the two showings of a repeated item, as a share of the list."""

_LOOK_AHEAD = 12


Slot: TypeAlias = tuple[int, int]
"""A place in an annotator's list: the number of the item, and its showing, 1, or 2 if it is repeated."""


def generator(seed: int, *names: object) -> np.random.Generator:
    """Return a random generator determined by the study's seed and names."""
    key = "\x1f".join(["medtest.study", str(seed), *(str(name) for name in names)])
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")))


def preferred(candidates: Sequence[Address], rng: np.random.Generator) -> Iterator[Address]:
    """Yield a relation's candidates in order of preference.

    Data sets, severities and repeats take turns; within a turn, seeds that were used least come first.

    Args:
        candidates: Addresses of one relation.
        rng: The study's generator for this relation.
    """
    strata: dict[tuple[str, int, int], list[Address]] = {}
    for address in candidates:
        strata.setdefault((address.dataset, address.severity, address.repeat), []).append(address)
    for members in strata.values():
        rng.shuffle(members)
    keys = list(strata)
    uses: dict[tuple[str, str], int] = {}
    while keys:
        for place in rng.permutation(len(keys)):
            members = strata[keys[place]]
            index = min(range(len(members)), key=lambda i: uses.get(_seed(members[i]), 0))
            address = members.pop(index)
            uses[_seed(address)] = uses.get(_seed(address), 0) + 1
            yield address
        keys = [key for key in keys if strata[key]]


def _seed(address: Address) -> tuple[str, str]:
    return address.dataset, address.seed_id


def assign(
    groups: Mapping[str, Sequence[int]], *, annotators: int, raters: int, rng: np.random.Generator
) -> list[dict[str, list[int]]]:
    """Assign items to annotators.

    Args:
        groups: Items by relation.
        annotators: Number of annotators.
        raters: Number of annotators who see each item, at most ``annotators``.
        rng: The study's generator.

    Returns:
        The items of each annotator by relation. Loads differ by at most one item, also within each relation.
    """
    lists: list[dict[str, list[int]]] = [{name: [] for name in groups} for _ in range(annotators)]
    people = rng.permutation(annotators)
    start = 0
    for name, items in groups.items():
        for item in rng.permutation(np.asarray(items, dtype=np.int64)):
            for step in range(raters):
                lists[int(people[(start + step) % annotators])][name].append(int(item))
            start = (start + raters) % annotators
    return lists


def arrange(
    own: Mapping[str, Sequence[int]],
    *,
    catches: Sequence[int],
    repeats: int,
    sources: Mapping[int, str],
    rng: np.random.Generator,
) -> list[Slot]:
    """Order one annotator's items.

    Args:
        own: The annotator's items by relation.
        catches: Catch items, spread among them.
        repeats: Number of repeated items.
        sources: Source image of each item; items of the same source are kept apart if possible.
        rng: The annotator's generator.
    """
    placed: list[tuple[float, Slot]] = []
    for items in (*own.values(), catches):
        shuffled = rng.permutation(np.asarray(items, dtype=np.int64))
        for index, item in enumerate(shuffled):
            placed.append(((index + rng.random()) / len(shuffled), (int(item), 1)))
    again = _come_back(placed, own, repeats, rng)
    order = [slot for _, slot in sorted([*placed, *again], key=lambda pair: pair[0])]
    return _apart(order, sources)


def _come_back(
    placed: Sequence[tuple[float, Slot]], own: Mapping[str, Sequence[int]], repeats: int, rng: np.random.Generator
) -> list[tuple[float, Slot]]:
    """Choose items from the first part of the list, cycling through the relations, and a later place for each."""
    early = {item: place for place, (item, _) in placed if place < 1 - REPEAT_GAP}
    turns = [
        [item for item in rng.permutation(np.asarray(items, dtype=np.int64)) if item in early] for items in own.values()
    ]
    order = [items[turn] for turn in range(max(map(len, turns), default=0)) for items in turns if turn < len(items)]
    repeated: list[tuple[float, Slot]] = []
    for item in order[:repeats]:
        low = early[int(item)] + REPEAT_GAP
        repeated.append((low + (1 - low) * rng.random(), (int(item), 2)))
    return repeated


def _apart(order: list[Slot], sources: Mapping[int, str]) -> list[Slot]:
    """Separate neighbours of the same source by swapping with a nearby slot; repeated items stay in place."""
    repeated = {item for item, showing in order if showing == 2}
    slots = list(order)

    def source(place: int) -> str:
        return sources[slots[place][0]]

    def clashes(place: int) -> bool:
        return 0 < place < len(slots) and source(place) == source(place - 1)

    for place in range(1, len(slots)):
        if not clashes(place):
            continue
        movable = place if slots[place][0] not in repeated else place - 1
        if slots[movable][0] in repeated:
            continue
        around = [*range(place + 1, min(place + _LOOK_AHEAD, len(slots))), *range(place - 2, -1, -1)]
        for other in around:
            if slots[other][0] in repeated:
                continue
            slots[movable], slots[other] = slots[other], slots[movable]
            if not any(clashes(p) for p in (movable, movable + 1, other, other + 1)):
                break
            slots[movable], slots[other] = slots[other], slots[movable]
    return slots


def share(count: int, fraction: float, least: int = 0) -> int:
    """Return a fraction of ``count``, rounded up; at least ``least`` unless the fraction is zero."""
    return 0 if fraction <= 0 else max(least, math.ceil(round(count * fraction, 9)))
