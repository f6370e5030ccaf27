"""Drawing tools: coordinates, shapes and lines compared with geometry."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.phantoms.drawing import (
    Canvas,
    blob,
    curve,
    grain,
    noise,
    plane,
    portable_opencv,
    soften,
    to_bytes,
    unit,
    wander,
)


@given(
    size=st.integers(16, 300),
    zoom=st.floats(0.5, 2.0),
    x=st.floats(-0.5, 0.5),
    y=st.floats(-0.5, 0.5),
    reach=st.floats(0.01, 0.6),
)
def test_windows_hold_what_is_near(size: int, zoom: float, x: float, y: float, reach: float) -> None:
    whole = plane(size, zoom=zoom, shift=(0.1, -0.2))
    near = whole.around(x, y, reach)
    rows, columns = near.window
    assert near.shape == (rows.stop - rows.start, columns.stop - columns.start)
    np.testing.assert_array_equal(near.x[0], whole.x[0, columns])
    # No pixel outside the window is nearer than the reach, except for one that the rounding of the edge may cost.
    step = 2.0 / size / zoom
    outside = np.ones(size, np.bool_)
    outside[columns] = False
    assert not (np.abs(whole.x[0][outside] - x) < reach - step).any()


def test_plane_is_centred_on_pixels() -> None:
    whole = plane(4)
    np.testing.assert_allclose(whole.x[0], [-0.75, -0.25, 0.25, 0.75])
    moved = plane(4, zoom=2.0, shift=(0.5, 0.0))
    np.testing.assert_allclose(moved.x[0], [-0.625, -0.375, -0.125, 0.125])
    np.testing.assert_allclose(moved.y[:, 0], [-0.375, -0.125, 0.125, 0.375])


@pytest.mark.parametrize("size", [128, 512, 600])
@pytest.mark.parametrize(("zoom", "shift"), [(1.0, (0.0, 0.0)), (0.8, (0.1, -0.15))])
def test_canvas_and_plane_agree(size: int, zoom: float, shift: tuple[float, float]) -> None:
    """A disc on the canvas covers the pixels within its radius on the plane."""
    where = plane(size, zoom=zoom, shift=shift)
    canvas = Canvas.over(where)
    canvas.disc(0.2, -0.3, 0.4)
    drawn = canvas.field() > 0.5
    computed = blob(where, 0.2, -0.3, 0.4) > 0
    assert (drawn ^ computed).sum() < 0.03 * computed.sum()
    assert drawn.mean() == pytest.approx(math.pi * (0.4 * zoom) ** 2 / 4.0, rel=0.03)


def test_thin_lines_are_faint() -> None:
    def light(width: float) -> float:
        canvas = Canvas(128)
        canvas.line([(-0.5, 0.0), (0.5, 0.0)], width)
        return float(canvas.field().sum())

    assert light(0.002) < 0.4 * light(0.0078)
    assert light(0.0625) == pytest.approx(4.0 * light(0.0156), rel=0.35)


@given(points=st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3, max_size=8), closed=st.booleans())
def test_curves_pass_through_their_points(points: list[tuple[float, float]], closed: bool) -> None:
    line = curve(points, 5, closed=closed)
    for point in points:
        assert np.abs(line - np.array(point)).sum(axis=1).min() < 1e-9
    np.testing.assert_allclose(line[0], points[0], atol=1e-12)


def test_wander_takes_equal_steps() -> None:
    line = wander(np.random.default_rng(1), (0.1, 0.2), (0.6, 0.8), step=0.05, count=20, bend=0.4)
    assert line.shape == (21, 2)
    np.testing.assert_allclose(np.hypot(*np.diff(line, axis=0).T), 0.05, rtol=1e-9)
    straight = wander(np.random.default_rng(1), (0.0, 0.0), (1.0, 0.0), step=0.1, count=5, bend=0.0)
    np.testing.assert_allclose(straight, [[0.1 * k, 0.0] for k in range(6)], atol=1e-12)


@given(turns=st.floats(-2.0, 2.0))
def test_unit_is_a_unit_vector(turns: float) -> None:
    x, y = unit(turns)
    assert x * x + y * y == pytest.approx(1.0, abs=1e-8)
    assert (
        math.atan2(y, x) == pytest.approx(math.remainder(2 * math.pi * turns, 2 * math.pi), abs=1e-6)
        or abs(abs(math.atan2(y, x)) - math.pi) < 1e-6
    )


def interpolated_deviation(*, smooth: bool) -> float:
    """Return the deviation of unit noise after interpolation along both axes, from the kernel's formula.

    The cubic one is that of Keys (IEEE Trans Acoust Speech Signal Process 1981;29:1153) with a = -0.75, OpenCV's.
    """
    t = (np.arange(1000) + 0.5) / 1000
    a = -0.75
    if smooth:
        inner = [(a + 2) * s**3 - (a + 3) * s**2 + 1 for s in (t, 1 - t)]
        outer = [a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a for s in (1 + t, 2 - t)]
        weights = [*inner, *outer]
    else:
        weights = [1 - t, t]
    return float(np.mean(sum(w**2 for w in weights)))


def test_noises_have_the_stated_moments() -> None:
    rng = np.random.default_rng(3)
    fine = grain(rng, (300, 300))
    assert abs(float(fine.mean())) < 0.02
    assert float(fine.std()) == pytest.approx(1.0, abs=0.02)
    for smooth in (True, False):
        # Away from the rim: beyond it the outer cells are repeated.
        many = np.stack([noise(rng, (96, 96), 12, smooth=smooth)[16:-16, 16:-16] for _ in range(60)])
        assert abs(float(many.mean())) < 0.05
        assert float(many.std()) == pytest.approx(interpolated_deviation(smooth=smooth), abs=0.03)


def test_softening_keeps_the_mean() -> None:
    field = np.zeros((128, 128), np.float32)
    field[50:70, 40:90] = 1.0
    soft = soften(field, 0.1, 128)
    assert float(soft.sum()) == pytest.approx(1000.0, rel=1e-4)
    assert 0.0 < float(soft[48, 60]) < 1.0
    assert soften(field, 0.0, 128) is field


def test_bytes_are_rounded_and_clipped() -> None:
    np.testing.assert_array_equal(
        to_bytes(np.array([[-5.0, 0.4, 0.6, 254.6, 300.0]], np.float32)), [[0, 0, 1, 255, 255]]
    )


def test_opencv_s_setting_comes_back_after_an_error() -> None:
    before = cv2.ipp.useIPP()
    with pytest.raises(RuntimeError), portable_opencv():
        raise RuntimeError
    assert cv2.ipp.useIPP() == before
