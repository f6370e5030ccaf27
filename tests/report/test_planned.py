"""The plan of a gate that compares with a finished run: never fewer seeds than a run without losses needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtest.report.compared.planned import gate_lines
from medtest.results.cube.power import PairedShares
from medtest.results.rates.expected import ExpectedDifferences
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation
from medtest.suite.reading.outline import outline


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (2, "needs 189 seeds to pass in 80 % of runs that are no worse; the plan has 100, which is too few."),
        (5, "needs 73 seeds to pass in 80 % of runs that are no worse; the plan has 100, which is enough."),
        (0, "a margin of 0 cannot pass with any number of seeds, even if the runs agree."),
    ],
)
def test_a_gate_needs_as_many_seeds_as_runs_without_losses(margin: int, words: str, tmp_path: Path) -> None:
    """Many violations of independent cases would be shown by far fewer: sources that fail would not."""
    gate = f"gates=[{{no_worse_than: polyp_seg/pranet, margin_percent: {margin}}}]"
    suite = load_suite("polyp_seg", ["model=pranet", "seeds.phantoms.count=100", gate])
    expected = ExpectedDifferences(overall=PairedShares(discordant=0.05, clustering=0.0))
    (line,) = gate_lines(outline(suite, Invocation(home=tmp_path)), expected)
    assert line.endswith(words), line
