"""Drawn artefacts compared with real ones: quartiles, shares, ratios, verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from medtest.realism.compared import PictureStatistics, StatisticRow, compare
from medtest.realism.measures import STATISTICS


def _samples(values: dict[str, list[float]], count: int, groups: int = 0) -> list[PictureStatistics]:
    return [
        PictureStatistics(
            name=f"{number}",
            group=f"{number % groups if groups else number}",
            values={name: values[name][number] if name in values else math.nan for name in STATISTICS},
        )
        for number in range(count)
    ]


def _rows(real: dict[str, list[float]], drawn: dict[str, list[float]], part: str = "feces") -> dict[str, StatisticRow]:
    sides = [_samples(side, len(next(iter(side.values())))) for side in (real, drawn)]
    return {row.statistic: row for row in compare("relation", part, *sides)}


def test_figures_are_those_of_numpy():
    rng = np.random.default_rng(0)
    real, drawn = rng.normal(0, 2, 25), rng.normal(0.5, 3, 40)
    row = _rows({"gradient": real.tolist()}, {"gradient": drawn.tolist()})["gradient"]
    assert row.real == pytest.approx(tuple(np.quantile(real, [0.25, 0.5, 0.75])))
    assert row.made == pytest.approx(tuple(np.quantile(drawn, [0.25, 0.5, 0.75])))
    low, high = np.quantile(real, [0.05, 0.95])
    assert row.inside == pytest.approx(((drawn >= low) & (drawn <= high)).mean())
    assert row.ratio == pytest.approx((row.made[2] - row.made[0]) / (row.real[2] - row.real[0]))
    assert row.ratio_interval[0] < row.ratio < row.ratio_interval[1]
    assert row.made_median[0] < row.made[1] < row.made_median[1]


def test_only_statistics_of_real_pictures_are_compared():
    assert set(_rows({"noise": [1.0] * 12}, {"noise": [1.0] * 3, "entry": [2.0] * 3})) == {"noise"}


@pytest.mark.parametrize(
    ("shift", "scale", "verdict"), [(0.0, 1.0, "met"), (3.0, 1.0, "missed"), (0.0, 4.0, "missed"), (0.0, 0.2, "missed")]
)
def test_targets_are_the_real_quartiles_and_half_to_twice_their_range(shift: float, scale: float, verdict: str):
    values = np.linspace(-2, 2, 21)
    row = _rows({"noise": values.tolist()}, {"noise": (shift + scale * values).tolist()})["noise"]
    assert row.verdict == verdict


def test_few_real_pictures_are_weak_and_area_and_shapes_of_blood_have_no_target():
    few, many = list(np.linspace(0, 1, 9)), list(np.linspace(0, 1, 10))
    assert _rows({"noise": few}, {"noise": few})["noise"].verdict == "weak"
    assert _rows({"area": many}, {"area": many})["area"].verdict == "no target"
    assert _rows({"solidity": many}, {"solidity": many}, "blood")["solidity"].verdict == "no target"
    assert _rows({"solidity": many}, {"solidity": many})["solidity"].verdict == "met"


def test_hours_near_twelve_are_neighbours():
    real = [11.6, 11.8, 11.9, 12.0, 0.1, 0.2, 0.3, 0.4, 11.7, 0.0]
    row = _rows({"entry": real}, {"entry": [0.05, 11.95, 12.0]})["entry"]
    assert row.real[2] - row.real[0] < 1
    assert row.inside == 1
    assert row.median_inside


def test_real_ones_without_spread_set_no_target_for_it():
    row = _rows({"pieces": [1.0] * 12}, {"pieces": [1.0] * 5})["pieces"]
    assert math.isnan(row.ratio)
    assert row.verdict == "met"


def test_groups_widen_intervals():
    rng = np.random.default_rng(0)
    values = {"noise": np.repeat(rng.normal(size=6), 10).tolist()}
    widths = []
    for groups in (0, 6):
        ordered = {"noise": np.array(values["noise"]).reshape(6, 10).T.ravel().tolist()}
        drawn = _samples(ordered, 60, groups)
        (row,) = compare("relation", "feces", _samples(values, 60), drawn)
        widths.append(row.made_median[1] - row.made_median[0])
    assert widths[1] > 1.5 * widths[0]
