"""``medtest reference``: every figure whole, however narrow the terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from medtest.cli.reference import print_reference
from medtest.results import reference


def test_no_figure_is_cut_at_eighty_columns() -> None:
    out = io.StringIO()
    print_reference(model="TGANet", dataset="", threshold=0.25, console=Console(file=out, width=80))
    shown = out.getvalue()
    assert "…" not in shown
    for relation in {cell.relation for cell in reference.cells()}:
        (line,) = (line for line in shown.splitlines() if line.startswith(relation))
        cells = [c for c in reference.cells() if (c.model, c.threshold, c.relation) == ("TGANet", 0.25, relation)]
        assert sorted(re.findall(r"\d+\.\d", line)) == sorted(f"{c.efr_percent:.1f}" for c in cells)
        assert len(cells) == 8
