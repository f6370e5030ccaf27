"""ZIP files built to do harm, or damaged on the way, are refused before a byte is unpacked."""

from __future__ import annotations

import io
import shutil
import stat
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtest.core.files.zips import BoundedZip, RefusedZip, ZipBounds, clashing, name_refused, write_zip

SMALL = ZipBounds(entries=8, total=1 << 20, entry=1 << 19, slack=1 << 10)
Names = list[tuple[str, bytes]]


def python_zip(path: Path, files: Names, change: Callable[[zipfile.ZipInfo], None] = lambda entry: None) -> Path:
    """Write a ZIP file with Python's own writer; ``change`` gets every entry before it is written."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            change(entry)
            archive.writestr(entry, content)
    return path


def all_of(path: Path, bounds: ZipBounds = SMALL) -> dict[str, bytes]:
    with BoundedZip(path, bounds) as archive:
        return {name: b"".join(archive.chunks(name)) for name in archive.names}


def written(path: Path, files: dict[str, bytes], below: Path, bounds: ZipBounds = SMALL) -> Path:
    for name, content in files.items():
        (below / name).parent.mkdir(parents=True, exist_ok=True)
        (below / name).write_bytes(content)
    with path.open("wb") as target:
        write_zip(target, [(name, below / name) for name in files], bounds)
    return path


def refused(path: Path, words: str, bounds: ZipBounds = SMALL) -> None:
    with pytest.raises(RefusedZip, match=words):
        all_of(path, bounds)


def test_written_files_are_read_back_and_are_the_same_each_time(tmp_path: Path) -> None:
    files = {"b/ü.txt": b"two" * 99, "a.csv": b"one", "b/c/empty": b""}
    first = written(tmp_path / "1.zip", files, tmp_path / "one")
    (tmp_path / "one" / "a.csv").chmod(0o600)
    second = written(tmp_path / "2.zip", dict(reversed(files.items())), tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    assert all_of(first) == files
    with zipfile.ZipFile(first) as archive:  # another reader finds no fault either
        assert archive.testzip() is None
        assert archive.namelist() == sorted(files)
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-qq", "-t", str(first)], check=True)


def test_content_that_shrinks_beyond_the_bound_is_stored_uncompressed(tmp_path: Path) -> None:
    bounds = ZipBounds(times=10, slack=100)
    path = written(tmp_path / "z.zip", {"zeros": bytes(100_000)}, tmp_path / "f", bounds)
    assert all_of(path, bounds) == {"zeros": bytes(100_000)}
    assert path.stat().st_size > 100_000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../out.txt", "out of its folder"),
        ("a/../../out.txt", "out of its folder"),
        ("/etc/passwd", "absolute"),
        ("C:/windows", "absolute"),
        ("a\\b.txt", "signs"),
        ("a//b.txt", "no name"),
        ("./../out.txt", "out of its folder"),
        ("././a.txt", "no name"),
        ("a/ /b", "no name"),
        ("nul.csv", "no name of a file everywhere"),
        ("a/COM1", "no name of a file everywhere"),
        ("end. ", "no name of a file everywhere"),
        ("line\nfeed", "signs"),
        ("right\u202eleft.txt", "signs"),
        ("what?", "signs"),
        ("x" * 201, "too long"),
        ("/".join("abcdefghi" * 8), "too long|twice|damaged"),
    ],
)
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str, words: str) -> None:
    path = python_zip(tmp_path / "z.zip", [("good.txt", b"x"), (name, b"harm")])
    if name_refused(name):
        refused(path, words)
        with pytest.raises(RefusedZip, match="would hold the name"), (tmp_path / "own.zip").open("wb") as target:
            write_zip(target, [(name, tmp_path / "z.zip")])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a.txt", "a.txt"], "twice"),
        (["A.txt", "a.TXT"], "one name to many systems"),
        (["\u00e4.txt", "a\u0308.txt"], "one name to many systems"),
        (["a", "a/b.txt"], "below a file"),
        (["a.txt", "./a.txt"], "twice"),
        (["./a", "./A/b.txt"], "below a file"),
        (["a/b.txt", "A"], "below a file"),
        (["stra\u00dfe", "STRASSE"], "one name to many systems"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_equal_on_some_systems_are_refused(tmp_path: Path, names: list[str], words: str) -> None:
    refused(python_zip(tmp_path / "z.zip", [(name, b"x") for name in names]), words)


def test_links_devices_and_encrypted_entries_are_refused(tmp_path: Path) -> None:
    def linked(entry: zipfile.ZipInfo) -> None:
        entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16

    def pipe(entry: zipfile.ZipInfo) -> None:
        entry.create_system, entry.external_attr = 3, (stat.S_IFIFO | 0o666) << 16

    refused(python_zip(tmp_path / "link.zip", [("a", b"/etc/passwd")], linked), "a link or device")
    refused(python_zip(tmp_path / "pipe.zip", [("a", b"")], pipe), "a link or device")
    plain = python_zip(tmp_path / "plain.zip", [("a", b"secret")]).read_bytes()
    at = plain.index(b"PK\x01\x02") + 8
    (tmp_path / "locked.zip").write_bytes(plain[:at] + b"\x01\x00" + plain[at + 2 :])
    refused(tmp_path / "locked.zip", "encrypted")


def test_other_ways_of_packing_are_refused(tmp_path: Path) -> None:
    def bzip2(entry: zipfile.ZipInfo) -> None:
        entry.compress_type = zipfile.ZIP_BZIP2

    refused(python_zip(tmp_path / "z.zip", [("a", b"x" * 50)], bzip2), "method 12")


def test_archives_that_swell_are_refused_by_their_declared_size(tmp_path: Path) -> None:
    refused(python_zip(tmp_path / "bomb.zip", [("a", bytes(1 << 18))]), "made to swell")
    large = b"".join(i.to_bytes(4, "big") for i in range(1 << 17))
    refused(python_zip(tmp_path / "large.zip", [("a", large + b"x")]), "of 524,289 bytes")
    refused(python_zip(tmp_path / "total.zip", [(str(n), large) for n in range(3)]), "GB unpacked")
    refused(python_zip(tmp_path / "many.zip", [(str(n), b"") for n in range(9)]), "9 entries")


def test_an_entry_that_declares_less_than_it_holds_is_refused(tmp_path: Path) -> None:
    """The sizes in the directory are lowered: a reader that trusts the longer stream would swell."""
    content = python_zip(tmp_path / "z.zip", [("a", b"0123456789" * 30)]).read_bytes()
    declared = struct.pack("<L", 300)
    assert content.count(declared) == 2
    (tmp_path / "less.zip").write_bytes(content.replace(declared, struct.pack("<L", 30)))
    refused(tmp_path / "less.zip", "damaged")
    (tmp_path / "more.zip").write_bytes(content.replace(declared, struct.pack("<L", 310)))
    refused(tmp_path / "more.zip", "damaged")


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """D. Fifield's way of making a small file swell without nesting: many names for one stream."""
    content = python_zip(tmp_path / "z.zip", [("a", b"x" * 300), ("b", b"y" * 300)]).read_bytes()
    start = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", start + 4)
    at = second + 42  # offset of the second entry's local header
    (tmp_path / "shared.zip").write_bytes(content[:at] + struct.pack("<L", 0) + content[at + 4 :])
    refused(tmp_path / "shared.zip", "shares its bytes")


def test_a_wrong_checksum_is_reported(tmp_path: Path) -> None:
    content = python_zip(tmp_path / "z.zip", [("a", b"figures")]).read_bytes()
    right = struct.pack("<L", zlib.crc32(b"figures"))
    (tmp_path / "crc.zip").write_bytes(content.replace(right, struct.pack("<L", 1)))
    refused(tmp_path / "crc.zip", "CRC")


def test_no_truncated_file_is_read(tmp_path: Path) -> None:
    content = python_zip(tmp_path / "z.zip", [("a", b"first" * 40), ("b", b"second" * 40)]).read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "cut.zip").write_bytes(content[:length])
        refused(tmp_path / "cut.zip", "ZIP file|damaged")


@given(at=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_changed_byte_gives_the_same_files_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    files = {"a": b"first" * 40, "b": b"second" * 40}
    content = bytearray(python_zip(folder / "z.zip", list(files.items())).read_bytes())
    content[at % len(content)] = value
    (folder / "c.zip").write_bytes(content)
    try:
        files_read = all_of(folder / "c.zip")
    except RefusedZip:
        return
    assert sorted(files_read.values()) == sorted(files.values())  # a name may have changed; content never


def test_content_before_or_after_the_archive_is_refused(tmp_path: Path) -> None:
    content = python_zip(tmp_path / "z.zip", [("a", b"x")]).read_bytes()
    (tmp_path / "before.zip").write_bytes(b"#!/bin/sh\n" + content)
    refused(tmp_path / "before.zip", "before its beginning")
    (tmp_path / "behind.zip").write_bytes(content + b"more")
    refused(tmp_path / "behind.zip", "behind its end")
    (tmp_path / "text.zip").write_bytes(b"no archive at all")
    refused(tmp_path / "text.zip", "is not a ZIP file")
    refused(tmp_path / "nowhere.zip", "cannot be read")


def test_a_directory_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    content = bytearray(python_zip(tmp_path / "z.zip", [("a", b"x")]).read_bytes())
    tail = content.rindex(b"PK\x05\x06")
    for entries, length, words in ((7, 0xFFFFFF0, "a directory of"), (0xFFFF, 10, "larger than"), (9, 10, "9 entries")):
        changed = bytearray(content)
        struct.pack_into("<HHL", changed, tail + 8, entries, entries, length)
        (tmp_path / "d.zip").write_bytes(changed)
        refused(tmp_path / "d.zip", words)


def test_zip_files_of_other_tools_are_read(tmp_path: Path) -> None:
    (tmp_path / "f" / "sub").mkdir(parents=True)
    (tmp_path / "f" / "a.txt").write_text("one")
    (tmp_path / "f" / "sub" / "b.txt").write_text("two" * 100)
    expected = {"a.txt": b"one", "sub/b.txt": b"two" * 100}
    shutil.make_archive(str(tmp_path / "python"), "zip", tmp_path / "f")
    assert all_of(tmp_path / "python.zip") == expected
    if shutil.which("zip"):
        subprocess.run(["zip", "-q", "-r", str(tmp_path / "zip.zip"), "."], cwd=tmp_path / "f", check=True)
        assert all_of(tmp_path / "zip.zip") == expected
    if shutil.which("bsdtar"):
        command = ["bsdtar", "--format", "zip", "-cf", str(tmp_path / "bsd.zip"), "."]
        subprocess.run(command, cwd=tmp_path / "f", check=True)
        assert all_of(tmp_path / "bsd.zip") == expected
    if shutil.which("7z"):
        subprocess.run(["7z", "a", str(tmp_path / "7z.zip"), "."], cwd=tmp_path / "f", check=True, capture_output=True)
        assert all_of(tmp_path / "7z.zip") == expected


def test_names_that_begin_with_a_dot_are_read(tmp_path: Path) -> None:
    """Libarchive writes such names for ``bsdtar -cf FILE.zip --format zip .``."""
    files = [("./", b""), ("./sub/", b""), ("./a.txt", b"one"), ("./sub/b.txt", b"two")]
    assert all_of(python_zip(tmp_path / "z.zip", files)) == {"a.txt": b"one", "sub/b.txt": b"two"}


def test_a_zip_file_written_without_seeking_is_read(tmp_path: Path) -> None:
    """Sizes then follow the content, as with pipes."""

    class Pipe(io.RawIOBase):
        def __init__(self, path: Path) -> None:
            self.file = path.open("wb")

        def writable(self) -> bool:
            return True

        def write(self, part: object) -> int:
            return self.file.write(part)  # type: ignore[call-overload]

    pipe = Pipe(tmp_path / "z.zip")
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"x" * 500)
    pipe.file.close()
    assert all_of(tmp_path / "z.zip") == {"a": b"x" * 500}


def test_names_that_clash_are_found() -> None:
    assert clashing(["a", "b", "a"]) is None
    assert clashing(["a/X", "b", "A/x"]) == ("a/X", "A/x")
