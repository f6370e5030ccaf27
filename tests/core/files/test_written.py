"""Only files that medtest wrote, unchanged since, are replaced or removed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from medtest.core.errors import UserMistakes
from medtest.core.files.written import LIST, WrittenFiles, claim


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != LIST)


def test_written_files_are_replaced_and_removed(tmp_path: Path) -> None:
    WrittenFiles(tmp_path).write({"a.csv": b"1", "b.csv": b"2"})
    WrittenFiles(tmp_path).write({"a.csv": b"3"}, remove=names(tmp_path))
    assert names(tmp_path) == ["a.csv"] and (tmp_path / "a.csv").read_bytes() == b"3"


def test_a_users_files_stay(tmp_path: Path) -> None:
    WrittenFiles(tmp_path).write({"a.csv": b"1", "b.csv": b"2", "c.csv": b"3", "d.csv": b"4"})
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "b.csv").write_text("changed")
    (tmp_path / "c.csv").unlink()
    (tmp_path / "c.csv").symlink_to(tmp_path / "mine.csv")
    (tmp_path / "d.csv").unlink()
    (tmp_path / "d.csv").mkdir()
    WrittenFiles(tmp_path).write({"a.csv": b"1"}, remove=names(tmp_path))
    assert names(tmp_path) == ["a.csv", "b.csv", "c.csv", "d.csv", "mine.csv"]
    assert (tmp_path / "c.csv").is_symlink() and (tmp_path / "mine.csv").read_text() == "mine"


def test_a_file_in_the_way_keeps_its_content_under_another_name(tmp_path: Path) -> None:
    WrittenFiles(tmp_path).write({"a.csv": b"1"})
    for number in range(2):
        (tmp_path / "a.csv").write_text(f"changed {number}")
        WrittenFiles(tmp_path).write({"a.csv": b"2", "b.csv": b"b"})
    assert (tmp_path / "a.csv").read_bytes() == b"2"
    assert (tmp_path / "a.csv.yours").read_text() == "changed 0"
    assert (tmp_path / "a.csv.yours-2").read_text() == "changed 1"
    (tmp_path / "b.csv").write_bytes(b"c")
    WrittenFiles(tmp_path).write({"b.csv": b"c"})  # a file that is written anyway is in no one's way
    assert "b.csv.yours" not in names(tmp_path)


@pytest.mark.parametrize("moment", range(1, 6))
def test_a_process_killed_in_between_leaves_nothing_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """After any end, its own files are known as medtest's: they can be replaced and removed."""
    WrittenFiles(tmp_path).write({"a.csv": b"1", "b.csv": b"2"})

    calls: list[Path] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == moment:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with contextlib.suppress(KeyboardInterrupt):
            WrittenFiles(tmp_path).write({"a.csv": b"3", "c.csv": b"4"}, remove=["b.csv"])
    written = WrittenFiles(tmp_path)
    assert all(written.is_ours(name) for name in names(tmp_path) if name.endswith("csv"))
    written.write({"d.csv": b"5"}, remove=names(tmp_path))
    assert [name for name in names(tmp_path) if name.endswith("csv")] == ["d.csv"]


def test_an_option_that_names_a_users_file_is_refused(tmp_path: Path) -> None:
    WrittenFiles(tmp_path).write({"ours.png": b"1"})
    (tmp_path / "mine.png").write_bytes(b"2")
    WrittenFiles(tmp_path).check(["ours.png", "new.png"], "--out")
    with pytest.raises(UserMistakes, match="mine.png, which medtest did not write"):
        WrittenFiles(tmp_path).check(["ours.png", "mine.png"], "--out")
    os.symlink(tmp_path / "nowhere", tmp_path / "link.png")
    with pytest.raises(UserMistakes, match="link.png"):
        WrittenFiles(tmp_path).check(["link.png"], "--out")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"files": {"a": 3}}'])
def test_a_damaged_list_makes_every_file_a_users(tmp_path: Path, text: str) -> None:
    WrittenFiles(tmp_path).write({"a.csv": b"1"})
    (tmp_path / LIST).write_text(text)
    WrittenFiles(tmp_path).write({}, remove=["a.csv"])
    assert names(tmp_path) == ["a.csv"]


def test_announced_files_are_medtests_with_any_content(tmp_path: Path) -> None:
    (tmp_path / "mine.png").write_bytes(b"mine")
    WrittenFiles(tmp_path).expect(["strip.png"])
    (tmp_path / "strip.png").write_bytes(b"half")
    WrittenFiles(tmp_path).remove(["strip.png", "mine.png"])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]  # and there is no list of earlier files


def test_a_folder_is_claimed_once_and_not_from_a_user(tmp_path: Path) -> None:
    claim(tmp_path / "new", "out")
    (tmp_path / "new" / "state").write_text("ours")
    claim(tmp_path / "new", "out")
    WrittenFiles(tmp_path / "theirs").write({"sheet.png": b"1"})  # one file of medtest in a folder of the user
    (tmp_path / "file").write_text("mine")
    for name in ("theirs", "file"):
        with pytest.raises(UserMistakes, match="which holds something else|a file"):
            claim(tmp_path / name, "out")
