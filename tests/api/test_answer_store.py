"""Stored answers that were damaged, exchanged, or written by the previous version."""

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
    outcome = _answer(number)
    return (
        store.outcome(outcome.address, outcome.key)
        if isinstance(store, Ledger)
        else store.get(outcome.key, outcome.address)
    )


def _change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


STORES: list[tuple[type[Any], str]] = [(Ledger, "outcomes"), (Cache, "answers")]


@pytest.fixture(params=STORES, ids=["ledger", "cache"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Callable[[], Any], Path, str]:
    """Return the call that opens a store, its file with answers in it, and the name of its table."""
    kind, table = request.param
    path = tmp_path / "answers.sqlite"
    with kind(path) as opened:
        _fill(opened)
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
def test_a_file_that_is_no_database_is_set_aside(store: Any, content: bytes) -> None:
    make, path, _ = store
    path.write_bytes(content)
    with make() as opened:
        assert bool(opened.set_aside) == bool(content)
        assert _get(opened, 1) is None
        _fill(opened)
        assert _get(opened, 1) is not None
    asides = [aside for aside in path.parent.glob("*.aside-*") if aside.name[-1].isdigit()]
    assert [aside.read_bytes()[:20] for aside in asides] == ([content[:20]] if content else [])


def test_no_damaged_byte_gives_a_wrong_answer(store: Any) -> None:
    make, path, _ = store
    content, draw = path.read_bytes(), random.Random(7)
    for at in [*range(0, 100, 3), *draw.sample(range(len(content)), 60)]:
        path.write_bytes(content[:at] + bytes([content[at] ^ draw.randrange(1, 256)]) + content[at + 1 :])
        # Damage that is only found during use is one message, and the next run sets the file aside.
        with suppress(OutputProblem), make() as opened:
            for number in range(0, COUNT, 7):
                outcome = _get(opened, number)
                assert outcome is None or outcome.text == f"{number} polyps."
            if isinstance(opened, Ledger):
                opened.totals()
        for file in path.parent.glob("answers.sqlite*"):
            file.unlink()
