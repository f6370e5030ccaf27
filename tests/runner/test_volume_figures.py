"""Pictures of segmented volumes are drawn, of the right size, with outlines where they belong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from medtest.runner.pictures.volume_figures import draw_volume_figures, slices_figure


def ball(radius: float, shift: int = 0) -> np.ndarray:
    z, y, x = np.indices((24, 30, 36))
    return (z - 12) ** 2 + (y - 15) ** 2 + (x - 18 - shift) ** 2 < radius**2


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_two_files_are_written_and_stay_the_same(tmp_path: Path, suffix: str) -> None:
    volume = np.where(ball(9), 100.0, 0.0)
    arguments = (volume, ball(9), {"a": ball(8), "nothing": np.zeros_like(ball(9))}, (3.0, 2.0, 2.0))
    first = draw_volume_figures(tmp_path / "one", "ball", *arguments, title="liver-00", suffix=suffix)
    second = draw_volume_figures(tmp_path / "two", "ball", *arguments, title="liver-00", suffix=suffix)
    assert [path.name for path in first] == [f"ball-slices.{suffix}", f"ball-surfaces.{suffix}"]
    for path_1, path_2 in zip(first, second, strict=True):
        assert path_1.stat().st_size > 5_000
        assert path_1.read_bytes() == path_2.read_bytes()
    if suffix == "pdf":
        assert b"/Type3" not in first[0].read_bytes()  # fonts are embedded as their own outlines


def test_outlines_lie_where_the_masks_do() -> None:
    """Two balls, one shifted by four voxels in x: the outlines on the axial slice are too, in millimetres."""
    figure = slices_figure(np.zeros((24, 30, 36)), ball(7), {"shifted": ball(7, 4)}, (3.0, 2.0, 2.0))
    axis = figure.axes[1]
    middles = [float(np.concatenate([p.vertices for p in c.get_paths()])[:, 0].mean()) for c in axis.collections]
    assert middles[1] - middles[0] == pytest.approx(8.0, abs=0.5)
    assert "Dice" in figure.legends[0].get_texts()[1].get_text()
