"""Readings of answers that the parser was not tuned on (``blind/README.md``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from medtest.language.questions.answer_files import OTHER, RIGHT, beside, read_answers
from medtest.readers.typed import ANSWERED, reading

SETS = sorted((Path(__file__).parent / "blind").glob("*.csv"))


@pytest.fixture(scope="module")
def results() -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for file in SETS:
        rows = read_answers(file)
        assert all(row.expected is not None for row in rows)
        read = [reading(row.answer, ANSWERED, row.question.kind.value, row.question.id) for row in rows]
        counts[file.stem] = Counter(
            beside(value, row.expected) for value, row in zip(read, rows, strict=True) if row.expected is not None
        )
    return counts


def test_two_in_a_hundred_are_read_as_another_value_at_most(results: dict[str, Counter[str]]) -> None:
    assert len(results) == 6
    total = sum(results.values(), Counter())
    assert total.total() == 660
    assert total[OTHER] <= 0.02 * total.total()


def test_sentences_as_models_mostly_give_them_are_read(results: dict[str, Counter[str]]) -> None:
    plain = results["two_plain"]
    assert plain[RIGHT] >= 0.9 * plain.total()
