"""The database: tokens, durable answers, images by opaque id."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from medtest.core.errors import OutputProblem, UserMistakes
from medtest.study.model import NewAnswer
from medtest.study.store import DATABASE, IMAGES, StudyStore


def test_tokens_are_kept_only_as_hashes(store: StudyStore) -> None:
    first, second = store.new_tokens([1])[0], store.new_tokens([2])[0]
    assert len(first) >= 43
    assert first != second
    assert store.annotator_of(first) == 1
    assert store.annotator_of(second) == 2
    assert store.annotator_of("") is None
    assert store.annotator_of(first[:-1]) is None
    for file in store.folder.iterdir():
        if file.is_file():
            assert first.encode() not in file.read_bytes()
    newer = store.new_tokens([1])[0]
    assert store.annotator_of(first) is None
    assert store.annotator_of(newer) == 1
    assert store.seal(1, first) != store.seal(1, newer) != store.seal(2, second)
    with pytest.raises(UserMistakes, match="1 to 3"):
        store.new_tokens([9])


def test_new_links_are_given_to_all_or_to_none(store: StudyStore) -> None:
    """A link is printed once: if one of several numbers is wrong, no old link may end."""
    old = store.new_tokens([1])[0]
    with pytest.raises(UserMistakes) as caught:
        store.new_tokens([1, 9, 12])
    assert [mistake.found for mistake in caught.value.mistakes] == ["9", "12"]
    assert store.annotator_of(old) == 1


def test_answers_are_durable_settings(store: StudyStore) -> None:
    connection = store._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_the_newest_answer_counts_and_all_are_kept(store: StudyStore) -> None:
    store.save(1, "main", 1, NewAnswer(diagnosis=5, realism=4, request="request-1", elapsed_ms=900))
    store.save(1, "main", 1, NewAnswer(diagnosis=2, realism=4, request="request-2", comment="no"))
    again = store.save(1, "main", 1, NewAnswer(diagnosis=2, realism=4, request="request-2", comment="no"))
    newest = store.answer(1, "main", 1)
    assert newest == again
    assert newest is not None
    assert (newest.diagnosis, newest.comment) == (2, "no")
    assert len(store.answers()) == 1
    assert [a.diagnosis for a in store.answers(history=True)] == [5, 2]
    with StudyStore(store.folder) as other:
        assert other.answers() == store.answers()
    assert store.progress(1, "main")[1] == [1]
    assert store.progress(2, "main")[1] == []


def test_an_answer_to_an_unknown_place_is_refused(store: StudyStore) -> None:
    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.save(1, "main", 5000, NewAnswer(diagnosis=5, realism=4, request="request-1"))


def test_image_ids_are_opaque_and_everyones_own(store: StudyStore) -> None:
    places = store.places()
    keys = [key for place in places for key in (place.source_key, place.followup_key)]
    assert len(set(keys)) == len(keys)
    names = {path.name for path in (store.folder / IMAGES).iterdir()}
    first = places[0]
    path = store.picture(first.annotator, first.source_key)
    assert path is not None
    assert path.name in names
    assert path.is_file()
    assert store.picture(first.annotator + 1, first.source_key) is None
    assert all(
        item.seed_id not in name and item.followup_sha256[:8] not in name for item in store.items() for name in names
    )


def test_names_of_images_do_not_leave_the_folder(store: StudyStore) -> None:
    """A study's folder may be untrusted."""
    place = store.places()[0]
    with store._connection:
        store._connection.execute("UPDATE items SET source_file = '../study.db' WHERE id = ?", (place.item,))
    assert store.picture(1, place.source_key) is None
    with pytest.raises(OutputProblem, match="no image of a study"):
        store.items()


def test_only_the_owner_reads_the_folder(store: StudyStore) -> None:
    assert store.folder.stat().st_mode & 0o077 == 0
    assert (store.folder / DATABASE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"no database at all, but text" * 40, b"", None])
def test_an_invalid_study_file(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        with sqlite3.connect(tmp_path / DATABASE) as connection:
            connection.execute("CREATE TABLE other (x)")
        connection.close()
    else:
        (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(OutputProblem, match="cannot be read"):
        StudyStore(tmp_path)


def test_no_study(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UserMistakes, match="holds no study"):
        StudyStore(tmp_path)
    with sqlite3.connect(folder / DATABASE) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.close()
    with pytest.raises(UserMistakes, match="format 99"):
        StudyStore(folder)
