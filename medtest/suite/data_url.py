"""Data folders behind a URL (``s3://bucket/folder``), downloaded once to a local folder.

fsspec accesses the store through the store's own package: s3fs, gcsfs, adlfs. Credentials come only from the
environment, as documented by those packages: a URL that contains any is refused, and none is passed on to another
machine. A downloaded file is kept while the store lists it with the same size and tag, and is downloaded again
otherwise; the disk space is bounded.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from medtest.api.redact import redact
from medtest.core.errors import MedtestError, Mistake, typed_error, typed_mistake
from medtest.core.files import read_object

PACKAGES: Mapping[str, str] = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "sftp": "paramiko",
}
"""Supported schemes, with the package that each needs."""
_WHY_NOT: Mapping[str, str] = {
    "memory": "memory:// is not shared with worker processes; copy the files to a folder",
    "file": "type the path alone: data=/folder",
    "local": "type the path alone: data=/folder",
}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)")
_INDEX = ".fetched.json"
_DRAFT = ".part"
_MOST_FILES = 1_000_000
_MOST_NAME = 240
"""Byte limit for one part of a path."""
_AT_ONCE = 8
_GIB = 1024**3


def is_url(text: str) -> bool:
    """Return True if a text is a URL and not a path."""
    return bool(_URL.match(text))


def url_mistake(text: str, key: str = "data") -> Mistake | None:
    """Return the mistake in a URL, as far as the text itself shows it.

    Args:
        text: Text for which :func:`is_url` is True.
        key: The option that holds it.
    """
    scheme = text.partition(":")[0].lower()
    shown_url = f"{scheme}://…" if "@" in text or "?" in text else redact(text)[:120]
    fix = _WHY_NOT.get(scheme, "")
    if "::" in text or scheme not in PACKAGES:
        return typed_mistake(
            key,
            shown_url,
            f"a folder, or {', '.join(f'{name}://' for name in PACKAGES)}",
            fix or "Copy the files to a folder or to such a store.",
        )
    try:
        parts = urlsplit(text)
        has_extras = bool(parts.password or parts.query or parts.fragment) or (
            scheme not in ("sftp", "abfs", "abfss") and bool(parts.username)
        )
    except ValueError:
        parts, has_extras = urlsplit(""), False
    if has_extras:
        fix = "Remove the credentials from the URL; they are read from the environment only."
        return typed_mistake(key, shown_url, f"{scheme}://PLACE/FOLDER", fix)
    if not parts.netloc:
        return typed_mistake(key, shown_url, f"{scheme}://PLACE/FOLDER")
    return None


@dataclass(frozen=True, slots=True)
class _Remote:
    """File of the store: its name there, its bytes, and a tag that changes with them."""

    name: str
    size: int
    tag: str


def fetched(url: str, folder: Path, *, most: int, key: str = "data") -> Path:
    """Download the missing files below a URL to a folder.

    Args:
        url: The folder in the store.
        folder: Target folder, 0700; other content is removed.
        most: Limit in bytes.
        key: The option that holds the URL.

    Returns:
        ``folder``.

    Raises:
        UserMistakes: The URL is unsupported, the store's package is not installed, the folder is empty, the store
            refuses, or the files exceed ``most``.
        MedtestError: The connection broke, or the disk cannot be written.
    """
    mistake = url_mistake(url, key)
    if mistake is not None:
        raise mistake.as_error()
    from filelock import FileLock

    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            _fetch(url, folder, most, key)
    except OSError as error:
        raise MedtestError(f"{key}={url} cannot be fetched to this machine: {redact(str(error))[:300]}") from error
    return folder


def _fetch(url: str, folder: Path, most: int, key: str) -> None:
    system, root = _store(url, key)
    remote_files = _listing(system, root, url, key)
    total = sum(remote.size for remote in remote_files.values())
    if total > most:
        raise typed_error(
            key,
            f"{url}: {len(remote_files):,} files of {_format_size(total)}",
            _format_size(most),
            "Raise executor.cache_gb=N, or use a smaller folder or a shared path.",
        )
    index = read_object(folder / _INDEX)
    outdated = {
        place: remote
        for place, remote in remote_files.items()
        if index.get(place) != [remote.size, remote.tag] or not (folder / place).is_file()
    }
    _remove_others(folder, remote_files)
    new_index = {place: entry for place, entry in index.items() if place in remote_files and place not in outdated}
    lock = threading.Lock()

    def fetch(item: tuple[str, _Remote]) -> None:
        place, remote = item
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + _DRAFT)
        system.get_file(remote.name, str(draft))
        size = draft.stat().st_size
        if size != remote.size:
            raise MedtestError(f"{url}: {place} has {size:,} of {remote.size:,} bytes; run the command again.")
        draft.replace(path)
        with lock:
            new_index[place] = [remote.size, remote.tag]

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(fetch, outdated.items()):
                pass
    except MedtestError:
        raise
    except Exception as error:
        raise _refusal(url, error, key) from error
    finally:
        _write_index(folder, new_index)


def _format_size(size: int) -> str:
    return f"{size / _GIB:.1f} GiB" if size >= _GIB / 10 else f"{size:,} bytes"


def _store(url: str, key: str) -> tuple[Any, str]:
    scheme = url.partition(":")[0].lower()
    import fsspec

    try:
        store: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise typed_error(
            key, f"{scheme}://, for which a package is not installed", fix=f"pip install {PACKAGES[scheme]}"
        ) from error
    except Exception as error:
        raise _refusal(url, error, key) from error
    return store


def _listing(system: Any, root: str, url: str, key: str) -> dict[str, _Remote]:
    """Return the files below a folder of the store by their relative paths."""
    try:
        listed = system.find(root, detail=True)
    except Exception as error:
        raise _refusal(url, error, key) from error
    files: dict[str, _Remote] = {}
    head = root.rstrip("/") + "/"
    for name, facts in listed.items():
        if facts.get("type") != "file" or name.endswith("/"):
            continue
        place = name.removeprefix(head)
        if place == name or not _is_plain(place):
            raise MedtestError(f"{key}={url}: {place[:200]!r} is not a valid file name here.")
        tag = facts.get("ETag") or facts.get("etag") or facts.get("md5Hash") or facts.get("LastModified")
        tag = tag or facts.get("last_modified") or facts.get("mtime") or ""
        files[place] = _Remote(name, int(facts.get("size") or 0), str(tag))
        if len(files) > _MOST_FILES:
            raise MedtestError(f"{key}={url} has more than {_MOST_FILES:,} files.")
    if not files:
        raise typed_error(key, f"{url}, which holds no file", "a folder with files")
    return files


def _is_plain(place: str) -> bool:
    path = PurePosixPath(place)
    parts = place.split("/")
    return (
        not path.is_absolute()
        and "\\" not in place
        and place.isprintable()
        and not place.endswith(_DRAFT)
        and place != _INDEX
        and all(part not in ("", ".", "..") and len(os.fsencode(part)) <= _MOST_NAME for part in parts)
    )


def _refusal(url: str, error: Exception, key: str) -> MedtestError:
    text = redact(next((line.strip() for line in str(error).splitlines() if line.strip()), ""))[:300]
    scheme = url.partition(":")[0].lower()
    variables = {
        "s3fs": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or AWS_PROFILE, AWS_ENDPOINT_URL",
        "gcsfs": "GOOGLE_APPLICATION_CREDENTIALS",
        "adlfs": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
    }.get(PACKAGES[scheme], "")
    return typed_error(
        key,
        f"{url}: {type(error).__name__}: {text}",
        "a readable folder of a store",
        f"Check that it exists and that the credentials are set and not expired ({variables})." if variables else "",
    )


def _write_index(folder: Path, index: Mapping[str, list[Any]]) -> None:
    draft = folder / f"{_INDEX}{_DRAFT}"
    draft.write_text(json.dumps(index), encoding="utf-8")
    draft.replace(folder / _INDEX)


def _remove_others(folder: Path, remote_files: Mapping[str, _Remote]) -> None:
    """Remove files that the store no longer has."""
    for path in sorted(folder.rglob("*"), reverse=True):
        place = path.relative_to(folder).as_posix()
        if place == _INDEX or place in remote_files:
            continue
        with suppress(OSError):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
