"""The columns of records and tables of drawn pictures are described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import medtest.tasks.depict.tables as tables
from medtest.results.columns import columns_in
from medtest.tasks.depict.oracle import Scenes

PAGE = Path(__file__).parents[3] / "docs" / "read-the-results.md"
COMMON = {"relation", "rule", "against", "kind", "rate", "ci", "ci_method", "by", "name"}
SAID_ELSEWHERE = {"content_filter", "refusal", "malformed", "errors", "entities", "relations"}


def described_columns() -> set[str]:
    """Return the words that the page's section sets in code."""
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("\n## Pictures drawn from prompts\n") : page.index("\n## Flip probability\n")]
    return set(re.findall(r"`([a-z_0-9]+)`", section))


def test_every_column_of_records_is_described() -> None:
    assert {*Scenes.texts, *Scenes.measures, *Scenes.scores} <= described_columns()


@pytest.mark.parametrize(
    "table",
    [
        *("actesting", "actesting_net", "actesting_miss", "refusals"),
        *("depiction_questions", "depiction_classes", "depiction_costs", "findings"),
    ],
)
def test_every_column_of_tables_is_described(table: str) -> None:
    columns = columns_in(tables.__file__ or "", table)
    plain = {re.sub(r"(_corrected)?_(low|high)$|_method$|_corrected$", "", name) or name for name in columns} - COMMON
    documented = described_columns() | SAID_ELSEWHERE
    assert {name for name in plain if name not in documented and name.removesuffix("_rate") not in documented} == set()
