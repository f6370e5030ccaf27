"""Files that systems read: path resolution, checks and fingerprints."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.files import file_sha256
from medtest.core.files.walk import files_below


def user_path(text: str) -> Path:
    """Return a path typed by the user: ``~`` is expanded, relative paths start at the working directory."""
    return Path(text).expanduser()


def file_mistakes(text: str, *, where: str, key: str, suffixes: tuple[str, ...] = ()) -> list[Mistake]:
    """Return the problems of a file named by the user: missing, a folder, empty, an unexpected suffix."""
    if not text:
        return [Mistake(where=where, key=key, found="nothing", allowed="the path of a file", fix=f"add {key}=PATH")]
    path = user_path(text)
    allowed = f"a file ({', '.join(suffixes)})" if suffixes else "a file"
    if path.is_dir():
        return [Mistake(where=where, key=key, found=f"{text} (a folder)", allowed=allowed)]
    if not path.is_file():
        missing = f"{text} (there is no such file)"
        return [Mistake(where=where, key=key, found=missing, allowed=allowed, nearest=_near(path))]
    if suffixes and path.suffix.lower() not in suffixes:
        return [Mistake(where=where, key=key, found=text, allowed=allowed)]
    if path.stat().st_size == 0:
        return [Mistake(where=where, key=key, found=f"{text} (an empty file)", allowed=allowed)]
    return []


def folder_mistakes(text: str, *, where: str, key: str) -> list[Mistake]:
    """Return the problems of a folder named by the user."""
    if not text:
        return [Mistake(where=where, key=key, found="nothing", allowed="a folder", fix=f"add {key}=PATH")]
    path = user_path(text)
    if path.is_dir():
        return []
    reason = "a file" if path.exists() else "there is no such folder"
    return [Mistake(where=where, key=key, found=f"{text} ({reason})", allowed="a folder", nearest=_near(path))]


def _near(path: Path) -> str | None:
    """Return the sibling of a missing path with the most similar name."""
    if not path.parent.is_dir():
        return None
    names = sorted(entry.name for entry in path.parent.iterdir())[:10_000]
    return nearest_name(path.name, names)


def cached_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal; cached until the file changes.

    Raises:
        MedtestError: The file cannot be read.
    """
    try:
        status = path.stat()
        return _sha256_at(str(path.resolve()), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise MedtestError(f"{path.name}: cannot be read: {error.strerror}") from error


@lru_cache(maxsize=64)
def _sha256_at(path: str, _modified: int, _size: int) -> str:
    return file_sha256(Path(path))


def folder_sha256(folder: Path, suffixes: frozenset[str]) -> str:
    """Return a SHA-256 over the relative name and content of every file with these suffixes below a folder.

    Raises:
        MedtestError: A file cannot be read.
    """
    digest = hashlib.sha256()
    files = [path for path in files_below(folder) if path.suffix.lower() in suffixes]
    for path in sorted(files, key=lambda p: p.relative_to(folder).as_posix()):
        digest.update(path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape"))
        digest.update(bytes.fromhex(cached_sha256(path)))
    return digest.hexdigest()
