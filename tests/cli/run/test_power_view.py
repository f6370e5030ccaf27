"""Differences that two runs can show, as a plan prints them."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from medtest.cli.run.power_view import power_view
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation
from medtest.suite.reading.outline import outline
from medtest.suite.schema import PowerBlock

sys.path.insert(0, str(Path(__file__).parents[1]))
from frozen_folders import DATA, copied


def test_a_margin_of_zero_is_called_impossible_for_any_number_of_seeds(tmp_path: Path) -> None:
    folder = copied(DATA / "golden" / "records", "polyp_seg", tmp_path)[0]
    gate = f"gates=[{{no_worse_than: polyp_seg/{folder.parent.name}, margin_percent: 0}}]"
    suite = load_suite("polyp_seg", ["model=pranet", gate])
    shown = power_view(outline(suite, Invocation(home=tmp_path)), PowerBlock(), tmp_path)
    assert shown is not None
    console = Console(width=200, record=True, file=sys.stderr)
    console.print(shown)
    assert "a margin of 0 cannot pass" in console.export_text()
