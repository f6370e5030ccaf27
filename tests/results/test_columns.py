"""Tables find their columns: a module that makes one has their list beside it, and no list names a column twice."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import medtest
from medtest.results.columns import columns_in

PACKAGE = Path(medtest.__file__).parent
_CALL = re.compile(r'columns_in\(\s*__file__,\s*"(\w+)"')


def test_every_table_has_its_columns_beside_the_module_that_makes_it() -> None:
    asked = {(path, table) for path in PACKAGE.rglob("*.py") for table in _CALL.findall(path.read_text("utf-8"))}
    assert len(asked) > 30
    for path, table in sorted(asked):
        columns = columns_in(str(path), table)
        assert columns and len(set(columns)) == len(columns), (path, table)


def test_no_list_names_a_column_twice() -> None:
    for file in (PACKAGE / "results").rglob("columns.yaml"):
        for table, columns in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            assert len(set(columns.split())) == len(columns.split()), (file, table)
