"""Which files of a folder medtest wrote, so that it replaces and removes those and no others.

A folder's list holds the SHA-256 of each file that was written there. It is drafted before a file is put in place, so
that a process that is killed in between is no reason to take its file for somebody else's. A file that is not on the
list, that was changed since, or that is a link is the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from medtest.core.errors import Mistake
from medtest.core.files import file_sha256, read_object

LIST = ".medtest-written.json"
"""Name of a folder's list: an object of names, each with the SHA-256 of what the file holds, or may hold."""
_KEY = "files"
_ANY = ""
"""Stands in a list for a file that is being drawn: whatever it holds is medtest's."""


class WrittenFiles:
    """The files of one folder that medtest wrote.

    Args:
        folder: The folder; made with the first file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = read_object(folder / LIST).get(_KEY)
        self._known: dict[str, list[str]] = {
            str(name): [str(sha) for sha in marks]
            for name, marks in (kept if isinstance(kept, dict) else {}).items()
            if isinstance(marks, list)
        }

    def is_ours(self, name: str) -> bool:
        """Return True if a file is there as medtest wrote it: listed, unchanged, and no link."""
        path = self._folder / name
        if name not in self._known or path.is_symlink() or not path.is_file():
            return False
        try:
            return _ANY in self._known[name] or file_sha256(path) in self._known[name]
        except OSError:
            return False

    def is_foreign(self, name: str) -> bool:
        """Return True if something is there that medtest did not write, or that was changed since."""
        return os.path.lexists(self._folder / name) and not self.is_ours(name)

    def check(self, names: Iterable[str], option: str) -> None:
        """Refuse to write over what medtest did not write.

        Args:
            names: Files that are to be written.
            option: What was typed to choose their place, as ``--out``.

        Raises:
            UserMistakes: One is there, and is not medtest's.
        """
        if foreign := [name for name in names if self.is_foreign(name)]:
            more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
            raise Mistake(
                where="command line",
                key=option,
                found=f"{self._folder / foreign[0]}{more}, which medtest did not write, or which was changed since",
                allowed="a name that is not taken, or a file that the same command wrote",
                fix=f"move it away, or choose another {option}",
            ).as_error()

    def write(self, files: Mapping[str, bytes], *, remove: Iterable[str] = ()) -> list[Path]:
        """Write files, each whole or not at all, and remove some of those that medtest wrote before.

        What is in the way of a file and is not medtest's is renamed to ``NAME.yours``; in a folder without a list
        these names are medtest's.

        Args:
            files: Content by name.
            remove: Names of files that are no longer wanted; those that are not medtest's stay.

        Returns:
            The files' paths.

        Raises:
            OSError: One cannot be written.
        """
        gone = [name for name in remove if name not in files and self.is_ours(name)]
        marks = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear_way(marks)
        self._keep({name: [mark, *self._known.get(name, ())] for name, mark in marks.items()})
        for name, content in files.items():
            _put(self._folder / name, content)
        for name in gone:
            (self._folder / name).unlink()
        self._keep({name: [mark] for name, mark in marks.items()}, forget=gone)
        return [self._folder / name for name in files]

    def expect(self, names: Iterable[str]) -> None:
        """Note files that are about to be written by other means; what is in their way is handled as by :meth:`write`.

        Raises:
            OSError: A file cannot be renamed, or the list not be written.
        """
        names = list(names)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear_way(dict.fromkeys(names, _ANY))
        self._keep({name: [_ANY] for name in names})

    def adopt(self, names: Iterable[str]) -> None:
        """Take files for medtest's by their names alone, in a folder without a list: those that an index names."""
        self._known = self._known or {name: [_ANY] for name in names}

    def note(self, names: Iterable[str]) -> None:
        """Note files that were just written by other means.

        Raises:
            OSError: One cannot be read, or the list not be written.
        """
        self._keep({name: [file_sha256(self._folder / name)] for name in names})

    def remove(self, names: Iterable[str]) -> None:
        """Remove those of some files that are medtest's.

        Raises:
            OSError: One cannot be removed, or the list not be written.
        """
        gone = [name for name in names if self.is_ours(name)]
        for name in gone:
            (self._folder / name).unlink()
        if gone:
            self._keep({}, forget=gone)

    def _clear_way(self, marks: Mapping[str, str]) -> None:
        if not self._known:
            return
        for name in (name for name in marks if self.is_foreign(name)):
            path, number = self._folder / name, 1
            if path.is_file() and not path.is_symlink() and file_sha256(path) == marks[name]:
                continue
            while os.path.lexists(aside := self._folder / f"{name}.yours{f'-{number}' * (number > 1)}"):
                number += 1
            path.rename(aside)

    def _keep(self, marks: Mapping[str, list[str]], forget: Iterable[str] = ()) -> None:
        known = {name: kept for name, kept in {**self._known, **marks}.items() if name not in forget}
        if known == self._known and (self._folder / LIST).is_file():
            return
        self._known = known
        if not known:  # nothing here is medtest's any more, not even a list of names
            (self._folder / LIST).unlink(missing_ok=True)
            return
        text = json.dumps({_KEY: dict(sorted(known.items()))}, indent=0, ensure_ascii=False)
        _put(self._folder / LIST, f"{text}\n".encode())


def written_in(folder: Path) -> list[Path]:
    """Return the files of a folder that medtest wrote, in order of their names; all of them where it has no list."""
    files = [path for path in sorted(folder.glob("*")) if path.is_file() and path.name != LIST]
    if not (folder / LIST).is_file():
        return files
    written = WrittenFiles(folder)
    return [path for path in files if written.is_ours(path.name)]


def _put(path: Path, content: bytes) -> None:
    """Write a file that is whole or not there; a full disk leaves no draft."""
    draft = path.with_name(f".{path.name.lstrip('.')}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def check_out(paths: Iterable[Path], option: str) -> None:
    """Refuse to write over files that medtest did not write; call it before anything is made.

    Args:
        paths: Files that are to be written.
        option: What was typed to choose their place, as ``--out``.

    Raises:
        UserMistakes: One is there, and is not medtest's.
    """
    for folder, names in _by_folder(paths).items():
        WrittenFiles(folder).check(names, option)


def note_out(paths: Iterable[Path]) -> None:
    """Note that files were written, so that the same command may write them again.

    Raises:
        OSError: One cannot be read, or a list not be written.
    """
    for folder, names in _by_folder(paths).items():
        WrittenFiles(folder).note(names)


def _by_folder(paths: Iterable[Path]) -> dict[Path, list[str]]:
    folders: dict[Path, list[str]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path.name)
    return folders


def claim(folder: Path, option: str) -> None:
    """Make a folder medtest's own, where it is new, empty, or was claimed before.

    Raises:
        UserMistakes: It holds something else, or is none.
        OSError: It cannot be made.
    """
    known = read_object(folder / LIST).get(_KEY)
    claimed = isinstance(known, dict) and LIST in known  # not merely a folder with some file of medtest's
    if os.path.lexists(folder) and not (folder.is_dir() and (claimed or not any(folder.iterdir()))):
        raise Mistake(
            where="command line",
            key=option,
            found=f"{folder}, {'which holds something else' if folder.is_dir() else 'a file'}",
            allowed="a new folder, an empty one, or one that the same command began",
            fix=f"choose another {option}",
        ).as_error()
    folder.mkdir(parents=True, exist_ok=True)
    if not claimed:
        WrittenFiles(folder).expect([LIST])
