"""Fields of displacements: masks compared with analytic warps, points compared with masks, folds."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from medtest.core.cases import Effect, Mask
from medtest.core.oracles.moves import moved_mask, moved_points
from medtest.core.oracles.warps import folds, warp_effect, warp_points

SIDE = 160
ROWS, COLUMNS = np.mgrid[0:SIDE, 0:SIDE].astype(np.float64)


def swirl(
    turn: float, places: tuple[NDArray[np.float64], NDArray[np.float64]] = (COLUMNS, ROWS)
) -> NDArray[np.float64]:
    """Return displacements of a swirl: points turn about the centre, by ``turn`` radians there and less away from it.

    Its inverse is the swirl with the opposite turn, as the radius of a point stays.
    """
    x, y = places[0] - SIDE / 2, places[1] - SIDE / 2
    angle = turn * np.exp(-(x * x + y * y) / (2 * 30.0**2))
    return np.stack([x * np.cos(angle) - y * np.sin(angle) - x, x * np.sin(angle) + y * np.cos(angle) - y], axis=-1)


def disc(x: NDArray[np.float64], y: NDArray[np.float64]) -> Mask:
    return (x - 95) ** 2 / 24**2 + (y - 70) ** 2 / 15**2 <= 1


def dice(first: Mask, second: Mask) -> float:
    return 2 * np.count_nonzero(first & second) / (np.count_nonzero(first) + np.count_nonzero(second))


@pytest.mark.parametrize("turn", [-0.7, 0.3, 0.7])
def test_masks_agree_with_analytic_warps(turn: float) -> None:
    effect = warp_effect(swirl(turn))
    field = swirl(turn)
    truth = disc(COLUMNS + field[..., 0], ROWS + field[..., 1])
    assert dice(moved_mask(disc(COLUMNS, ROWS), effect), truth) >= 0.98
    x, y = (2 * axis[: SIDE // 2, : SIDE // 2] + 0.5 for axis in (COLUMNS, ROWS))  # pixel centres at half the size
    field = swirl(turn, (x, y))
    moved = moved_mask(disc(x, y), effect, prepared=(SIDE, SIDE))
    assert dice(moved, disc(x + field[..., 0], y + field[..., 1])) >= 0.96  # pixels are twice as large
    assert dice(disc(COLUMNS, ROWS), truth) < 0.9


@pytest.mark.parametrize("turn", [-0.7, 0.3, 0.7])
def test_points_move_by_the_inverse_of_the_field(turn: float) -> None:
    points = np.stack(np.meshgrid(np.arange(10.5, 150, 9), np.arange(10.0, 150, 9)), axis=-1)
    expected = points + swirl(-turn, (points[..., 0], points[..., 1]))
    effect = warp_effect(swirl(turn))
    np.testing.assert_allclose(moved_points(points, effect), expected, atol=0.1)
    halves = moved_points((points + 0.5) / 2 - 0.5, effect, size=(SIDE // 2, SIDE // 2), prepared=(SIDE, SIDE))
    np.testing.assert_allclose(halves, (expected + 0.5) / 2 - 0.5, atol=0.1)


def test_a_translation_moves_masks_and_points_as_its_matrix_does() -> None:
    field = np.zeros((SIDE, SIDE, 2))
    field[..., 0], field[..., 1] = -7.0, 3.0
    matrix = Effect(kind="move", data={"matrix": [[1, 0, 7], [0, 1, -3]]})
    warp = warp_effect(field)
    np.testing.assert_array_equal(moved_mask(disc(COLUMNS, ROWS), warp), moved_mask(disc(COLUMNS, ROWS), matrix))
    np.testing.assert_allclose(moved_points([[3.0, 8.0]], warp), moved_points([[3.0, 8.0]], matrix))


@pytest.mark.parametrize("size", [0.3, 0.8, 1.2, 3.0])
def test_folds_are_negative_determinants_of_neighbours_anywhere(size: float) -> None:
    answers = set()
    for draw in range(12):
        coarse = np.random.default_rng(draw).normal(0.0, size, (12, 12, 2)).astype(np.float32)
        field = np.asarray(cv2.resize(coarse, (SIDE, SIDE - 5), interpolation=cv2.INTER_CUBIC), np.float32) * 4
        across, down = (np.diff(field, axis=axis)[: SIDE - 6, : SIDE - 1] for axis in (1, 0))
        determinant = (1 + across[..., 0]) * (1 + down[..., 1]) - across[..., 1] * down[..., 0]
        assert folds(field) == bool((determinant <= 0).any())
        answers.add(folds(field))
    assert answers == {0.3: {False}, 3.0: {True}}.get(size, answers)


def test_a_field_is_rounded_to_the_nearest_float16_numbers() -> None:
    values = np.random.default_rng(0).normal(0.0, 0.05, (SIDE, SIDE, 2)).astype(np.float32)
    values[0, 0] = -0.0, 2.0**-25
    stored = warp_effect(values).displacements
    assert stored is not None and stored.tobytes() == values.astype(np.float16).tobytes()


def test_points_that_leave_the_picture_move_with_its_edge() -> None:
    field = np.full((20, 30, 2), -2.0, np.float16)
    np.testing.assert_allclose(warp_points([[29.0, 19.0], [60.0, -5.0]], field), [[31.0, 21.0], [62.0, -3.0]])


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (-2.0 * np.stack([COLUMNS, np.zeros_like(ROWS)], axis=-1), "folds"),  # mirrored
        (np.stack([-COLUMNS, np.zeros_like(ROWS)], axis=-1), "folds"),  # one column drawn out
        (np.zeros((SIDE, SIDE)), "H×W×2"),
        (np.full((SIDE, SIDE, 2), np.nan), "finite"),
        (np.full((SIDE, SIDE, 2), 1e6), "finite"),
    ],
)
def test_fields_that_are_no_warp_are_refused(field: NDArray[np.float64], words: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=words):
        warp_effect(field)


def test_a_swirl_without_folds_does_not_fold() -> None:
    assert not folds(swirl(0.7).astype(np.float16))


def test_the_data_of_an_effect_name_its_field() -> None:
    first, second = warp_effect(swirl(0.3)), warp_effect(swirl(0.4))
    assert first.data != second.data and first.data == warp_effect(swirl(0.3)).data
    assert first.displacements is not None and not first.displacements.flags.writeable
