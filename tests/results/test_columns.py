"""Columns of tables: each module that makes a table has a list of its columns, without duplicates."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import medtest
from medtest.results.columns import columns_in

PACKAGE = Path(medtest.__file__).parent
_CALL = re.compile(r'columns_in\(\s*__file__,\s*"(\w+)"')


def test_every_table_has_its_columns_beside_the_module_that_makes_it() -> None:
    pairs = {(path, table) for path in PACKAGE.rglob("*.py") for table in _CALL.findall(path.read_text("utf-8"))}
    assert len(pairs) > 30
    for path, table in sorted(pairs):
        columns = columns_in(str(path), table)
        assert columns and len(set(columns)) == len(columns), (path, table)


def test_no_list_names_a_column_twice() -> None:
    for file in (PACKAGE / "results").rglob("columns.yaml"):
        for table, columns in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            assert len(set(columns.split())) == len(columns.split()), (file, table)
