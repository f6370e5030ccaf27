"""The columns of the tables on attacks, and of their records, are described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import medtest.results.attacks as attacks
import medtest.tasks.classify.tables as labels
from medtest.core.records import CRAFTING_COLUMNS
from medtest.results.attacks.checking import found
from medtest.results.columns import columns_in

PAGE = Path(__file__).parents[3] / "docs" / "read-the-results.md"
COMMON = {"dataset", "relation", "group", "severity", "cases", "errors", "skipped", "score", "threshold", "against"}
COMMON |= {"violations", "efr_percent", "ci_method", "clusters", "loss_before", "loss_after", "zero_gradient"}


def described_columns() -> set[str]:
    """Return the words that the page's section, or its part on other tables, sets in code."""
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("\n## Attacks\n") : page.index("\n## Corruption error\n")]
    return set(re.findall(r"`([a-z_0-9]+)`", section))


@pytest.mark.parametrize("table", ["attack_checks", "attacks", "efr_at_ssim", "smallest_epsilon", "transfer"])
def test_every_column_is_described(table):
    names = set(columns_in(attacks.__file__, table))
    plain = {re.sub(r"_(low|high)$", "", name) for name in names} - COMMON - {"ci"}
    assert plain <= described_columns() | {"accuracy", "fooling", "auroc"}


def test_every_column_of_labels_under_attack_is_described():
    names = columns_in(labels.__file__, "attack_labels")
    assert {re.sub(r"_(low|high)$", "", name) for name in names} - COMMON <= described_columns()


def test_every_column_of_records_and_every_check_is_described():
    assert {name for name, _ in CRAFTING_COLUMNS} <= described_columns()
    assert set(found.TITLES) <= described_columns()


def test_every_table_is_listed_once():
    listed = yaml.safe_load((Path(attacks.__file__).parent / "columns.yaml").read_text(encoding="utf-8"))
    for name, columns in listed.items():
        assert len(set(columns.split())) == len(columns.split()), name
