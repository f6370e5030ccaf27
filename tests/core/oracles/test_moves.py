"""Movements of relations: masks and points by one matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from medtest.core.cases import Effect
from medtest.core.oracles.moves import move_mask, move_points, moved_mask

SIDE = 120
near = st.floats(-0.02, 0.02)


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    """Draw matrices that keep the middle of a picture in it: turned, sheared, stretched, shifted, slightly tilted."""
    linear = np.array([[1 + draw(near) * 8, draw(near) * 10], [draw(near) * 10, 1 + draw(near) * 8]])
    middle = np.array([SIDE / 2, SIDE / 2])
    shift = middle - linear @ middle + [draw(near) * 400, draw(near) * 400]
    affine = np.column_stack([linear, shift])
    if draw(st.booleans()):
        return affine
    return np.vstack([affine, [draw(near) / 100, draw(near) / 100, 1.0]])


@settings(max_examples=60, deadline=None)
@given(matrix=matrices(), x=st.integers(45, 75), y=st.integers(45, 75))
def test_the_middle_of_a_moved_disc_is_the_moved_point(matrix: np.ndarray, x: int, y: int) -> None:
    rows, columns = np.mgrid[:SIDE, :SIDE]
    disc = (columns - x) ** 2 + (rows - y) ** 2 <= 25
    moved = move_mask(disc, matrix.tolist())
    middle = [columns[moved].mean(), rows[moved].mean()]
    np.testing.assert_allclose(move_points([(x, y)], matrix.tolist())[0], middle, atol=1.0)


@settings(max_examples=30, deadline=None)
@given(matrix=matrices())
def test_points_of_any_shape_move_as_each_of_them_and_back(matrix: np.ndarray) -> None:
    points = np.array([[[10.0, 20.5], [60, 60]], [[-3, 4], [119, 0]]])
    moved = move_points(points, matrix)
    assert moved.shape == points.shape
    np.testing.assert_array_equal(moved[1, 0], move_points(points[1, 0], matrix))
    whole = np.vstack([matrix, [0, 0, 1]])[:3]
    np.testing.assert_allclose(move_points(moved, np.linalg.inv(whole)), points, atol=1e-6)


def test_points_at_another_size_than_the_prepared_one_move_as_its_mask_does() -> None:
    mask = np.zeros((60, 60), np.bool_)
    mask[20:25, 30:35] = True  # its middle is (32, 22)
    matrix = [[1, 0, 24], [0, 1, -16]]  # pixels of the prepared 120 × 120
    moved = move_mask(mask, matrix, prepared=(120, 120))
    middle = np.argwhere(moved).mean(axis=0)[::-1]
    points = move_points([(32, 22)], matrix, size=(60, 60), prepared=(120, 120))
    np.testing.assert_allclose(points, [middle], atol=1e-9)


def test_an_effect_that_moves_nothing_leaves_the_mask() -> None:
    mask = np.eye(5, dtype=np.bool_)
    assert moved_mask(mask, Effect()) is mask and moved_mask(mask, Effect(kind="add")) is mask
    one_right = Effect(kind="move", data={"matrix": [[1, 0, 1], [0, 1, 0]]})
    np.testing.assert_array_equal(moved_mask(mask, one_right), np.eye(5, k=1, dtype=np.bool_))
