"""Answers on disk that were damaged, exchanged, or written by the version before."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from medtest.api.calls.request import CallState, Outcome
from medtest.api.store.cache import Cache
from medtest.api.store.ledger import Ledger
from medtest.core.errors import OutputProblem

COUNT = 40


def _answer(number: int) -> Outcome:
    return Outcome(address=f"case/{number}", key=f"{number:064x}", state=CallState.ANSWERED, text=f"{number} polyps.")


def _fill(store: Ledger | Cache) -> None:
    for number in range(COUNT):
        store.keep(_answer(number)) if isinstance(store, Ledger) else store.put(_answer(number))


def _get(store: Ledger | Cache, number: int) -> Outcome | None:
    one = _answer(number)
    return store.outcome(one.address, one.key) if isinstance(store, Ledger) else store.get(one.key, one.address)


def _change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


STORES: list[tuple[type[Any], str]] = [(Ledger, "outcomes"), (Cache, "answers")]


@pytest.fixture(params=STORES, ids=["ledger", "cache"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Callable[[], Any], Path, str]:
    """How a store is opened, its file with answers in it, and the name of their table."""
    kind, table = request.param
    path = tmp_path / "answers.sqlite"
    with kind(path) as made:
        _fill(made)
    _change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    return lambda: kind(path), path, table


def test_answers_that_were_exchanged_are_not_given_out(store: Any) -> None:
    make, path, table = store
    keys = [_answer(number).key for number in (1, 2)]
    with closing(sqlite3.connect(path)) as db, db:
        lines = [db.execute(f"SELECT outcome FROM {table} WHERE key=?", (key,)).fetchone()[0] for key in keys]  # noqa: S608
        for key, line in zip(keys, reversed(lines), strict=True):
            db.execute(f"UPDATE {table} SET outcome=? WHERE key=?", (line, key))  # noqa: S608
    with make() as opened:
        assert [_get(opened, number) is None for number in range(4)] == [False, True, True, False]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00" + bytes(84), b"no database at all" * 300])
def test_a_file_that_is_none_is_set_aside(store: Any, content: bytes) -> None:
    make, path, _ = store
    path.write_bytes(content)
    with make() as opened:
        assert bool(opened.set_aside) == bool(content)
        assert _get(opened, 1) is None
        _fill(opened)
        assert _get(opened, 1) is not None
    asides = [one for one in path.parent.glob("*.aside-*") if one.name[-1].isdigit()]
    assert [one.read_bytes()[:20] for one in asides] == ([content[:20]] if content else [])


def test_whatever_byte_is_hit_no_wrong_answer_comes_back(store: Any) -> None:
    make, path, _ = store
    content, draw = path.read_bytes(), random.Random(7)
    for at in [*range(0, 100, 3), *draw.sample(range(len(content)), 60)]:
        path.write_bytes(content[:at] + bytes([content[at] ^ draw.randrange(1, 256)]) + content[at + 1 :])
        # What is only found while it is used is one message, and set aside by the next run.
        with suppress(OutputProblem), make() as opened:
            for number in range(0, COUNT, 7):
                found = _get(opened, number)
                assert found is None or found.text == f"{number} polyps."
            if isinstance(opened, Ledger):
                opened.totals()
        for left in path.parent.glob("answers.sqlite*"):
            left.unlink()
