"""The published figures: pools that the report prints, rebuilt from its cells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from medtest.results.published import reference

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[2].parent / "shared"))


@pytest.mark.parametrize(
    ("model", "everything", "outside"),
    [("PraNet", 4.38, 6.41), ("SANet", 1.70, 3.37), ("TGANet", 15.69, 17.49), ("SSFormer", 1.47, 3.57)],
)
def test_pools_of_the_report(model, everything, outside):
    assert reference.overall(model, score="dice", threshold=0.25) == pytest.approx(everything, abs=0.005)
    cells = reference.overall_cells(model, score="dice", threshold=0.25, datasets=reference.OUTSIDE_TRAINING)
    assert cells == pytest.approx(outside, abs=0.005)


@pytest.mark.parametrize(("model", "rate"), [("PraNet", 8.56), ("SANet", 5.43)])
def test_colondb_alone(model, rate):
    percent = reference.overall(model, score="dice", threshold=0.25, datasets=("CVC-ColonDB",))
    assert percent == pytest.approx(rate, abs=0.005)


def test_every_cell_is_there_and_belongs_to_a_relation():
    cells = reference.cells()
    assert len(cells) == 4 * 2 * 4 * 9 * 2
    assert len({(c.model, c.threshold, c.dataset, c.relation, c.score) for c in cells}) == len(cells)
    assert reference.relation_rate("PraNet", "specularity", score="dice", threshold=0.5) == pytest.approx(
        (0 * 60 + 0.2 * 612 + 1.8 * 380 + 0.1 * 1000) / 2052
    )
    assert reference.relation_rate("PraNet", "unchanged", score="dice", threshold=0.5) is None
    with pytest.raises(KeyError):
        reference.overall("PraNet", score="dice", threshold=0.3)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared folder with the documents' tables is not there")
def test_the_copy_is_the_shared_table():
    assert reference.FILE.read_text() == (SHARED / "reference" / "medtest_efr.csv").read_text()
