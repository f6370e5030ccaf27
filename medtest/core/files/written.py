"""Record of the files that medtest wrote to a folder, so that it replaces and removes no others.

Each folder's list holds the SHA-256 of every file written there. It is updated before a file is put in place, so that a
file left by a killed process is not mistaken for the user's. A file that is not listed, has changed since, or is a link
belongs to the user.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from medtest.core.errors import typed_error
from medtest.core.files import file_sha256, read_object

LIST = ".medtest-written.json"
"""Name of a folder's list: an object that maps names to the SHA-256 of the file's present or possible content."""
_KEY = "files"
_ANY = ""
"""Mark of a file that is still being written: any content counts as medtest's."""


class WrittenFiles:
    """Files of one folder written by medtest.

    Args:
        folder: The folder; created with the first file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = read_object(folder / LIST).get(_KEY)
        self._known: dict[str, list[str]] = {
            str(name): [str(sha) for sha in marks]
            for name, marks in (listed if isinstance(listed, dict) else {}).items()
            if isinstance(marks, list)
        }

    def is_ours(self, name: str) -> bool:
        """Return True if a file is as medtest wrote it: listed, unchanged, and not a link."""
        path = self._folder / name
        if name not in self._known or path.is_symlink() or not path.is_file():
            return False
        try:
            return _ANY in self._known[name] or file_sha256(path) in self._known[name]
        except OSError:
            return False

    def is_foreign(self, name: str) -> bool:
        """Return True if a file exists that medtest did not write, or that has changed since."""
        return os.path.lexists(self._folder / name) and not self.is_ours(name)

    def check(self, names: Iterable[str], option: str) -> None:
        """Refuse to overwrite files that medtest did not write.

        Args:
            names: Files to be written.
            option: Option that chose their place, e.g. ``--out``.

        Raises:
            UserMistakes: One of the files exists and was not written by medtest.
        """
        if foreign := [name for name in names if self.is_foreign(name)]:
            suffix = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
            raise typed_error(
                option,
                f"{self._folder / foreign[0]}{suffix}, which medtest did not write, or which was changed since",
                "a name that is not taken, or a file that the same command wrote",
                f"move it away, or choose another {option}",
            )

    def write(self, files: Mapping[str, bytes], *, remove: Iterable[str] = ()) -> list[Path]:
        """Write files atomically, and remove some that medtest wrote before.

        Files in the way that are not medtest's are renamed to ``NAME.yours``; in a folder without a list these names
        belong to medtest.

        Args:
            files: Content by name.
            remove: Names of obsolete files; those not written by medtest stay.

        Returns:
            The files' paths.

        Raises:
            OSError: A file cannot be written.
        """
        obsolete = [name for name in remove if name not in files and self.is_ours(name)]
        marks = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear_way(marks)
        self._save_list({name: [mark, *self._known.get(name, ())] for name, mark in marks.items()})
        for name, content in files.items():
            _write_atomically(self._folder / name, content)
        for name in obsolete:
            (self._folder / name).unlink()
        self._save_list({name: [mark] for name, mark in marks.items()}, forget=obsolete)
        return [self._folder / name for name in files]

    def expect(self, names: Iterable[str]) -> None:
        """Announce files about to be written by other means; files in their way are handled as in :meth:`write`.

        Raises:
            OSError: A file cannot be renamed, or the list cannot be written.
        """
        names = list(names)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear_way(dict.fromkeys(names, _ANY))
        self._save_list({name: [_ANY] for name in names})

    def adopt(self, names: Iterable[str]) -> None:
        """Register files by name in a folder without a list: those named by an index."""
        self._known = self._known or {name: [_ANY] for name in names}

    def note(self, names: Iterable[str]) -> None:
        """Register files that were just written by other means.

        Raises:
            OSError: A file cannot be read, or the list cannot be written.
        """
        self._save_list({name: [file_sha256(self._folder / name)] for name in names})

    def remove(self, names: Iterable[str]) -> None:
        """Remove those of the files that medtest wrote.

        Raises:
            OSError: A file cannot be removed, or the list cannot be written.
        """
        removable = [name for name in names if self.is_ours(name)]
        for name in removable:
            (self._folder / name).unlink()
        if removable:
            self._save_list({}, forget=removable)

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

    def _save_list(self, marks: Mapping[str, list[str]], forget: Iterable[str] = ()) -> None:
        listed = {name: marks_of_name for name, marks_of_name in {**self._known, **marks}.items() if name not in forget}
        if listed == self._known and (self._folder / LIST).is_file():
            return
        self._known = listed
        if not listed:  # no file of medtest is left, so the list is removed too
            (self._folder / LIST).unlink(missing_ok=True)
            return
        text = json.dumps({_KEY: dict(sorted(listed.items()))}, indent=0, ensure_ascii=False)
        _write_atomically(self._folder / LIST, f"{text}\n".encode())


def written_in(folder: Path) -> list[Path]:
    """Return the files of a folder written by medtest, sorted by name; all files if the folder has no list."""
    files = [path for path in sorted(folder.glob("*")) if path.is_file() and path.name != LIST]
    if not (folder / LIST).is_file():
        return files
    ledger = WrittenFiles(folder)
    return [path for path in files if ledger.is_ours(path.name)]


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically; a full disk leaves no draft."""
    draft = path.with_name(f".{path.name.lstrip('.')}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def check_out(paths: Iterable[Path], option: str) -> None:
    """Refuse to overwrite files that medtest did not write; call it before computing anything.

    Args:
        paths: Files to be written.
        option: Option that chose their place, e.g. ``--out``.

    Raises:
        UserMistakes: One of the files exists and was not written by medtest.
    """
    for folder, names in _by_folder(paths).items():
        WrittenFiles(folder).check(names, option)


def note_out(paths: Iterable[Path]) -> None:
    """Register written files, so that the same command may overwrite them.

    Raises:
        OSError: A file cannot be read, or a list cannot be written.
    """
    for folder, names in _by_folder(paths).items():
        WrittenFiles(folder).note(names)


def _by_folder(paths: Iterable[Path]) -> dict[Path, list[str]]:
    folders: dict[Path, list[str]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path.name)
    return folders


def claim(folder: Path, option: str) -> None:
    """Claim a folder for medtest if it is new, empty, or was claimed before.

    Raises:
        UserMistakes: It holds something else, or is not a folder.
        OSError: It cannot be created.
    """
    listed = read_object(folder / LIST).get(_KEY)
    claimed = isinstance(listed, dict) and LIST in listed  # a claimed folder lists the list itself
    if os.path.lexists(folder) and not (folder.is_dir() and (claimed or not any(folder.iterdir()))):
        raise typed_error(
            option,
            f"{folder}, {'which holds something else' if folder.is_dir() else 'a file'}",
            "a new folder, an empty one, or one that the same command began",
            f"choose another {option}",
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not claimed:
        WrittenFiles(folder).expect([LIST])
