"""Acceptance of the oracle of pictures: intervals cover the implied effects of defects, and no other effects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from medtest.readers.pictures.bundled.reader import Bundled

FOLDER = Path(__file__).parents[2] / "benchmarks"
PROMPTS = 50


@pytest.fixture(scope="module")
def method() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    try:
        import drawing

        yield drawing
    finally:
        sys.path.remove(str(FOLDER))


def test_without_defects_no_rule_finds_anything_net_of_repeats(method: ModuleType) -> None:
    for operator in ("er_r", "er_a"):
        cells = method.cells(method.pairs_of(operator, 12), [method.Artist(drawings=method.SHARED)])
        assert {name: cell.mean for name, cell in cells.items()} == dict.fromkeys(method.COLUMNS, 0.0)


@pytest.mark.slow
def test_two_steady_swaps_differ_with_2p_1_minus_p_and_random_ones_cancel(method: ModuleType) -> None:
    swaps = next(experiment for experiment in method.EXPERIMENTS if experiment.defect == "sides_swapped")
    steady = {cell.what: cell for cell in method.coverage(swaps, 0.3, anew=False, campaigns=20, prompts=40)}
    anew = {cell.what: cell for cell in method.coverage(swaps, 0.3, anew=True, campaigns=20, prompts=40)}
    assert steady["net"].implied == pytest.approx(2 * 0.3 * 0.7)
    assert anew["net"].implied == 0
    for cell in (*steady.values(), *anew.values()):
        assert cell.covered >= 14, cell  # at 95 % fewer happen once in thirty thousand
    # The comparison can fail: a net of p is not covered by a net of 2p(1 - p).
    wrong = replace(swaps, pair=lambda _, p: p / 2)
    net = method.coverage(wrong, 0.3, anew=False, campaigns=20, prompts=40)[1]
    assert net.covered < 13
    assert net.p() < 1e-4


def test_tables_have_a_row_for_each_defect_and_none_of_zeros(method: ModuleType) -> None:
    """Each row of coverages holds truth and net at all rates; a table of findings leaves out rows without a finding."""
    columns = [("truth", 0.05, 0.05, 0.06), ("net", 0.05, 0.1, 0.1), ("truth", 0.4, 0.4, 0.4), ("net", 0.4, 0.5, 0.5)]
    coverages = [
        method.Coverage(
            name="`swaps`",
            anew=False,
            rate=rate,
            what=figure,
            implied=implied,
            campaigns=20,
            covered=19,
            total=20 * mean,
        )
        for figure, rate, implied, mean in columns
    ]
    lines, accepted = method.coverage_table(coverages)
    assert accepted
    assert lines[0] == "| defect (operator, errors) | drawn | truth, 0.05 | truth, 0.4 | net, 0.05 | net, 0.4 |"
    assert lines[2:4] == ["| `swaps` | steady | 95.0 (0.050) | 95.0 (0.400) | 95.0 (0.100) | 95.0 (0.500) |", ""]
    assert "0.010" in lines[4]  # the furthest mean
    shares = method.shares_table([*coverages, replace(coverages[0], covered=18)])
    assert (
        shares[0] == "| defect (operator, errors) | truth, steady | truth, each time | net, steady | net, each time |"
    )
    assert shares[2:] == ["| `swaps` | 90.0 to 95.0 | - | 95.0 | - |"]
    cell = method.Cell(mean=0.3, found=1.0)
    nothing = dict.fromkeys(method.COLUMNS, method.Cell(mean=0.0, found=0.0))
    by_operator = dict.fromkeys(method.OPERATORS, nothing) | {"ss": {**nothing, "strict": cell}}
    rows = method.detection_table({"": dict.fromkeys(method.OPERATORS, nothing), "swaps": by_operator})[2:]
    assert rows == ["| `swaps` | strict | 0 | 0 | 0 | **30** | 0 | 0 |"]
    assert method.detection_table({"swaps": by_operator}, (method.TRUTH,))[2:] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_defect_is_covered_and_found(method: ModuleType) -> None:
    coverages = []
    for experiment in method.EXPERIMENTS:
        for anew in (False, True):
            coverages += method.coverage(experiment, 0.3, anew=anew, campaigns=20, prompts=PROMPTS)
    lines, accepted = method.coverage_table([replace(coverage, rate=method.RATES[0]) for coverage in coverages])
    assert accepted, "\n".join(lines)
    operators = {experiment.defect: experiment.operator for experiment in method.EXPERIMENTS}
    assert set(operators) == set(method.DEFECTS)
    for defect, operator in operators.items():
        defects = method.DrawingDefects(**{defect: method.FOUND_AT}, most_entities=method.MOST, cap=method.CAP)
        artists = [method.Artist(number, defects, method.SHARED) for number in range(5)]
        cells = method.cells(method.pairs_of(operator, PROMPTS), artists)
        assert max(cell.found for cell in cells.values()) >= method.FOUND_IN, (defect, cells)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_swaps_are_found_in_pixels_and_a_sound_product_has_no_error(method: ModuleType) -> None:
    if not Bundled("bundled", Bundled.Settings()).weights():
        pytest.skip("the weights of the bundled reader are absent")
    seen = {defect: (implied, low, high) for defect, implied, _, low, high in method.seen_in_pixels(40)}
    assert seen[""][1] <= 0 <= seen[""][2]
    implied, low, high = seen["sides_swapped"]
    assert 0 < low <= implied <= high
