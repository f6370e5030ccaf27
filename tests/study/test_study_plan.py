"""Plans of studies: items and their order for each annotator."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.cases import Address
from medtest.study.plan import REPEAT_GAP, arrange, assign, generator, preferred, share

sizes = st.lists(st.integers(0, 12), min_size=1, max_size=5)


def _groups(counts: list[int]) -> dict[str, list[int]]:
    numbers = iter(range(1, 1000))
    return {f"r{index}": [next(numbers) for _ in range(count)] for index, count in enumerate(counts)}


@given(counts=sizes, annotators=st.integers(1, 9), raters=st.integers(1, 9), seed=st.integers(0, 99))
def test_loads_are_balanced(counts: list[int], annotators: int, raters: int, seed: int) -> None:
    raters = min(raters, annotators)
    groups = _groups(counts)
    lists = assign(groups, annotators=annotators, raters=raters, rng=np.random.default_rng(seed))
    counted = Counter(item for own in lists for items in own.values() for item in items)
    assert all(counted[item] == raters for items in groups.values() for item in items)
    for own in lists:
        assert all(len(set(items)) == len(items) for items in own.values())
    for name in groups:
        loads = [len(own[name]) for own in lists]
        assert max(loads) - min(loads) <= 1
    totals = [sum(map(len, own.values())) for own in lists]
    assert max(totals) - min(totals) <= 1


@given(counts=sizes, catches=st.integers(0, 4), repeats=st.integers(0, 6), seed=st.integers(0, 99))
def test_lists_hold_everything_once_and_repeats_later(counts: list[int], catches: int, repeats: int, seed: int) -> None:
    groups = _groups(counts)
    hidden = list(range(900, 900 + catches))
    sources = {n: f"s{n % 7}" for n in [*(i for g in groups.values() for i in g), *hidden]}
    slots = arrange(groups, catches=hidden, repeats=repeats, sources=sources, rng=np.random.default_rng(seed))
    first = [item for item, showing in slots if showing == 1]
    assert sorted(first) == sorted(sources)
    again = [item for item, showing in slots if showing == 2]
    assert len(set(again)) == len(again) <= repeats
    assert not set(again) & set(hidden)
    for item in again:
        places = [(showing, place) for place, (listed, showing) in enumerate(slots) if listed == item]
        assert dict(places)[1] < dict(places)[2]


def test_repeats_come_much_later_and_relations_are_spread() -> None:
    groups = {name: list(range(start, start + 40)) for name, start in (("a", 0), ("b", 100), ("c", 200))}
    sources = {n: f"s{n % 37}" for items in groups.values() for n in items}
    slots = arrange(groups, catches=[], repeats=12, sources=sources, rng=np.random.default_rng(3))
    assert sum(showing == 2 for _, showing in slots) == 12
    place = {slot: index for index, slot in enumerate(slots)}
    for item, showing in place:
        if showing == 2:
            assert place[item, 2] - place[item, 1] > 0.5 * REPEAT_GAP * len(slots)
    third = [item // 100 for item, showing in slots[: len(slots) // 3] if showing == 1]
    assert max(Counter(third).values()) - min(Counter(third).values()) <= 4
    neighbours = [sources[a] == sources[b] for (a, _), (b, _) in zip(slots, slots[1:], strict=False)]
    assert sum(neighbours) == 0


def test_orders_differ_between_annotators_and_are_the_same_again() -> None:
    groups = {"a": list(range(30))}
    sources = {n: str(n) for n in range(30)}
    orders = [
        arrange(groups, catches=[], repeats=0, sources=sources, rng=generator(7, "order", number))
        for number in (1, 2, 1)
    ]
    assert orders[0] == orders[2] != orders[1]


def test_drawing_takes_severities_and_seeds_in_turn() -> None:
    cases = [
        Address(dataset="d", seed_id=f"s{seed}", relation="blur", severity=severity)
        for seed in range(10)
        for severity in (1, 2, 3, 4, 5)
    ]
    drawn = [address for address, _ in zip(preferred(cases, generator(1, "x")), range(10), strict=False)]
    assert Counter(a.severity for a in drawn) == {1: 2, 2: 2, 3: 2, 4: 2, 5: 2}
    assert len({a.seed_id for a in drawn}) == 10
    assert sorted(map(str, preferred(cases, generator(1, "x")))) == sorted(map(str, cases))


def test_share_rounds_up() -> None:
    assert [share(10, 0.1), share(11, 0.1), share(3, 0.05, least=2), share(3, 0.0, least=2)] == [1, 2, 2, 0]
