"""Packs of answers: named by content, few, whole or missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtest.runner.records.answers import AnswerStore, AnswerWriter, KeptAnswer, forget, packs_of, tidy


def answer(number: int, form: str = "compact") -> KeptAnswer:
    return KeptAnswer.of(f"answer {number}".encode(), form)


def wrote(folder: Path, *numbers: int, form: str = "compact") -> None:
    writer = AnswerWriter(folder)
    for number in numbers:
        writer.add(answer(number, form))
    writer.flush()


def names(*numbers: int) -> np.ndarray:
    return np.array([answer(number).sha256 for number in numbers], dtype="S64")


def test_answers_are_found_by_their_names(tmp_path: Path) -> None:
    wrote(tmp_path, 1, 2, 2, 3)
    wrote(tmp_path, 3, 4)
    store = AnswerStore(tmp_path)
    assert len(packs_of(tmp_path)) == 2
    assert store.holds(names(4, 9, 1), maps=False).tolist() == [True, False, True]
    assert not store.holds(np.array([b""], dtype="S64"), maps=False).any()
    assert [store.read(name) for name in names(1, 3, 9)] == [b"answer 1", b"answer 3", None]
    assert store.read(b"") is None and AnswerStore(tmp_path / "empty").read(names(1)[0]) is None


def test_an_answer_in_two_forms_has_maps(tmp_path: Path) -> None:
    wrote(tmp_path, 1, 2)
    wrote(tmp_path, 2, form="maps")
    assert AnswerStore(tmp_path).holds(names(1, 2), maps=True).tolist() == [False, True]


def test_a_whole_copy_replaces_an_altered_one(tmp_path: Path) -> None:
    wrote(tmp_path, 1)
    (pack,) = packs_of(tmp_path)
    table = pq.read_table(pack)
    pq.write_table(table.set_column(2, table.schema.field(2), pa.array([b"other"], pa.binary())), pack)
    assert AnswerStore(tmp_path).read(names(1)[0]) is None
    wrote(tmp_path, 1, 2)
    assert AnswerStore(tmp_path).read(names(1)[0]) == b"answer 1"
    wrote(tmp_path, 1)  # the pack of that name is overwritten
    forget_other = [path for path in packs_of(tmp_path) if path != pack]
    for path in forget_other:
        path.unlink()
    assert AnswerStore(tmp_path).read(names(1)[0]) == b"answer 1"


def test_many_packs_become_one_that_holds_what_records_name(tmp_path: Path) -> None:
    for number in range(9):
        wrote(tmp_path, number, number + 1)
    named = [name.decode() for name in names(*range(8))]
    pq.write_table(pa.table({"answer_sha256": [*named, "", None]}), tmp_path / "records.parquet")
    torn = tmp_path / "answers" / f"pack-{'0' * 24}.parquet"
    torn.write_bytes(b"PAR1 torn")
    tidy(tmp_path)
    assert torn.is_file() and len(packs_of(tmp_path)) == 2
    store = AnswerStore(tmp_path)
    assert store.holds(names(*range(10)), maps=False).tolist() == [True] * 8 + [False] * 2
    before = packs_of(tmp_path)
    tidy(tmp_path)
    assert packs_of(tmp_path) == before


def test_nothing_but_packs_is_forgotten(tmp_path: Path) -> None:
    wrote(tmp_path, 1)
    (tmp_path / "answers" / "mine.txt").write_text("kept")
    forget(tmp_path)
    assert [path.name for path in (tmp_path / "answers").iterdir()] == ["mine.txt"]
    forget(tmp_path / "elsewhere")
