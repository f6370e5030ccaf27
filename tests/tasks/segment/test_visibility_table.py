"""The table and section of visibility, counted by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from medtest.tasks.segment.tables import MaskReport, MaskTables

NAN = float("nan")
CASES = [
    # relation, severity, reason_code, visibility, source_visibility, scale_applied
    ("contrast", 1, "", 3.0, 4.0, NAN),
    ("contrast", 1, "", 0.5, 0.6, NAN),  # a faint source, 83 % of it
    ("contrast", 2, "", 0.9, 2.0, 0.4),
    ("contrast", 2, "", 0.7, 1.0, NAN),  # below 0.8
    ("contrast", 2, "", 1.0, 4.0, NAN),  # below 35 %
    ("contrast", 2, "lesion_invisible", NAN, NAN, NAN),
    ("contrast", 2, "not_applicable", NAN, NAN, NAN),
    ("blur", 1, "", 2.0, 2.0, NAN),
    ("unchanged", 0, "", 2.0, 2.0, NAN),
]


def records(cases: list[tuple[Any, ...]] = CASES) -> Any:
    names = ("relation", "severity", "reason_code", "visibility", "source_visibility", "scale_applied")
    followups = pd.DataFrame(cases, columns=list(names)).assign(dataset="d")
    for name in ("dataset", "relation", "reason_code"):
        followups[name] = followups[name].astype("category")
    return SimpleNamespace(followups=followups, sources=followups.iloc[:0])


def test_every_case_is_counted_once_by_severity_and_once_over_all() -> None:
    table = MaskTables().frames(records())["visibility.csv"].set_index(["relation", "severity"])
    assert list(table.index) == [("contrast", "1"), ("contrast", "2"), ("contrast", "all"), ("blur", "1")]
    counts = table[["cases", "weakened", "skipped", "below_floors", "faint_source"]]
    assert counts.loc[("contrast", "1")].tolist() == [2, 0, 0, 0, 1]
    assert counts.loc[("contrast", "2")].tolist() == [3, 1, 1, 2, 0]
    assert counts.loc[("contrast", "all")].tolist() == [5, 1, 1, 2, 1]
    assert counts.loc[("blur", "1")].tolist() == [1, 0, 0, 0, 0]
    assert table.loc[("contrast", "2"), "median"] == pytest.approx(0.9)
    assert table.loc[("contrast", "2"), "source_median"] == pytest.approx(2.0)


def test_the_section_shows_the_table() -> None:
    (section,) = MaskReport().sections(MaskTables().frames(records()))
    assert section.rows[1] == ("d", "contrast", "2", "3", "0.90", "2.00", "1", "1", "2", "0")


def test_a_level_at_which_every_case_was_skipped_has_no_median() -> None:
    table = MaskTables().frames(records([*CASES, ("blur", 5, "lesion_invisible", NAN, NAN, NAN)]))
    (section,) = MaskReport().sections(table)
    assert section.rows[-2] == ("d", "blur", "5", "0", "–", "–", "0", "1", "0", "0")


def test_records_without_visibility_give_no_table() -> None:
    without = [(*case[:3], NAN, NAN, NAN) for case in CASES]
    assert not MaskTables().frames(records(without))
    dropped = records()
    dropped.followups = dropped.followups.drop(columns="visibility")
    assert not MaskTables().frames(dropped)
