"""Acceptance of the operators on orders: defects are found by their operators, and a sound product by none."""

from __future__ import annotations

from types import ModuleType

import pytest

from medtest.simlab.drawing.clinical.defects import CLINICAL, ClinicalDefects


@pytest.fixture(scope="module")
def method() -> ModuleType:
    from benchmarks import orders

    return orders


def test_a_sound_product_and_a_perfect_reader_have_no_net_error(method: ModuleType) -> None:
    outcome = method.campaign(0, ClinicalDefects(), 40, dict.fromkeys(method.READER, 0.0))
    assert set(outcome.mean.values()) == {0.0}
    assert {refused for refused, _ in outcome.refused.values()} == {0}
    assert set(outcome.mean) == set(method.OPERATORS)


@pytest.mark.slow
def test_swapped_sides_give_the_net_that_their_rate_implies(method: ModuleType) -> None:
    # A pair is right if neither side is swapped: steady swaps at p break 1 - (1 - p)² of the pairs, and no repeat.
    perfect = dict.fromkeys(method.READER, 0.0)
    nets = [
        method.campaign(number, ClinicalDefects(sides_swapped=0.3), 40, perfect).mean["side"] for number in range(30)
    ]
    pairs = sum(case.address.relation == "side" for order in method.cases(40) for case in order)
    implied, spread = 1 - 0.7**2, (0.51 * 0.49 / (30 * pairs)) ** 0.5
    assert sum(nets) / len(nets) == pytest.approx(implied, abs=4 * spread)


def test_every_defect_has_its_operator(method: ModuleType) -> None:
    assert set(method.FINDS) == set(CLINICAL)
    assert set(method.FINDS.values()) <= set(method.OPERATORS)


@pytest.mark.slow
def test_every_defect_is_found_and_a_sound_product_is_not_accused(method: ModuleType) -> None:
    lines = [method.line_of((defect, 0.3, 10, 240)) for defect in ("", *CLINICAL)]
    # At 93 of 100 fewer than 7 of 10 happen once in 300, at 80 of 100 fewer than 5 once in 150.
    assert lines[0].right >= 7, lines[0]
    assert all(line.right >= 5 for line in lines[1:]), lines
