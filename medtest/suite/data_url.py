"""Folders behind a URL (``s3://bucket/folder``): their files are fetched to a folder on this machine's disk, once.

fsspec is what speaks to the store, and each store's own package to it: s3fs, gcsfs, adlfs. Credentials come from the
environment, as those packages document, and from nowhere else: a URL that holds any is refused, and none is passed on
to another machine. What was fetched stays as long as the store names it with the same size and the same tag, and is
fetched anew otherwise; the disk holds so much of it and no more.
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
from medtest.core.errors import MedtestError, Mistake

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
"""Schemes that are read, and the package that each needs."""
_WHY_NOT: Mapping[str, str] = {
    "memory": "what memory:// holds lives in one process, and workers are others: put the files into a folder",
    "file": "type the path alone: data=/folder",
    "local": "type the path alone: data=/folder",
}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)")
_INDEX = ".fetched.json"
_DRAFT = ".part"
_MOST_FILES = 1_000_000
_MOST_NAME = 240
"""Bytes of one part of a path."""
_AT_ONCE = 8
_GIB = 1024**3


def is_url(text: str) -> bool:
    """Whether a text names a folder by a URL and not by a path."""
    return bool(_URL.match(text))


def url_mistake(text: str, key: str = "data") -> Mistake | None:
    """Return what is wrong with a URL, as far as that can be said without asking the store.

    Args:
        text: For which :func:`is_url` holds.
        key: The option that it was given for.
    """
    scheme = text.partition(":")[0].lower()
    shown = f"{scheme}://…" if "@" in text or "?" in text else redact(text)[:120]
    fix = _WHY_NOT.get(scheme, "")
    if "::" in text or scheme not in PACKAGES:
        return Mistake(
            where="command line",
            key=key,
            found=shown,
            allowed=f"a folder, or {', '.join(f'{name}://' for name in PACKAGES)}",
            fix=fix or "Copy the files to a folder or to such a store.",
        )
    try:
        parts = urlsplit(text)
        holds_more = bool(parts.password or parts.query or parts.fragment) or (
            scheme not in ("sftp", "abfs", "abfss") and bool(parts.username)
        )
    except ValueError:
        parts, holds_more = urlsplit(""), False
    if holds_more:
        fix = "Credentials come from the environment alone; take them out of the URL."
        return Mistake(where="command line", key=key, found=shown, allowed=f"{scheme}://PLACE/FOLDER", fix=fix)
    if not parts.netloc:
        return Mistake(where="command line", key=key, found=shown, allowed=f"{scheme}://PLACE/FOLDER")
    return None


@dataclass(frozen=True, slots=True)
class _Remote:
    """A file of the store: its name there, its bytes, and what changes with them."""

    name: str
    size: int
    tag: str


def fetched(url: str, folder: Path, *, most: int, key: str = "data") -> Path:
    """Fetch the files below a URL to a folder, those that are not there already.

    Args:
        url: The folder in the store.
        folder: Where they go, 0700; what it holds besides is removed.
        most: Bytes that it may hold.
        key: The option that the URL was given for.

    Returns:
        ``folder``.

    Raises:
        UserMistakes: The URL is none that is read, the store's package is not installed, nothing is there, the store
            refuses, or the files take more than ``most``.
        MedtestError: The store broke off, or the disk cannot be written.
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
    there = _listing(system, root, url, key)
    total = sum(one.size for one in there.values())
    if total > most:
        raise Mistake(
            where="command line",
            key=key,
            found=f"{url}: {len(there):,} files of {_shown(total)}",
            allowed=_shown(most),
            fix="Give the disk more: executor.cache_gb=N; or name a smaller folder, or one on a shared path.",
        ).as_error()
    known = _known(folder)
    wanted = {
        place: one
        for place, one in there.items()
        if known.get(place) != [one.size, one.tag] or not (folder / place).is_file()
    }
    _remove_others(folder, there)
    kept = {place: entry for place, entry in known.items() if place in there and place not in wanted}
    lock = threading.Lock()

    def fetch(item: tuple[str, _Remote]) -> None:
        place, one = item
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + _DRAFT)
        system.get_file(one.name, str(draft))
        size = draft.stat().st_size
        if size != one.size:
            raise MedtestError(f"{url}: {place} has {size:,} bytes, {one.size:,} were listed; call again.")
        draft.replace(path)
        with lock:
            kept[place] = [one.size, one.tag]

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(fetch, wanted.items()):
                pass
    except MedtestError:
        raise
    except Exception as error:
        raise _refused(url, error, key) from error
    finally:
        _write_index(folder, kept)


def _shown(size: int) -> str:
    return f"{size / _GIB:.1f} GiB" if size >= _GIB / 10 else f"{size:,} bytes"


def _store(url: str, key: str) -> tuple[Any, str]:
    scheme = url.partition(":")[0].lower()
    import fsspec

    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise Mistake(
            where="command line",
            key=key,
            found=f"{scheme}://, for which a package is not installed",
            fix=f"pip install {PACKAGES[scheme]}",
        ).as_error() from error
    except Exception as error:
        raise _refused(url, error, key) from error
    return found


def _listing(system: Any, root: str, url: str, key: str) -> dict[str, _Remote]:
    """Return the files below a folder of the store by their place in it."""
    try:
        listed = system.find(root, detail=True)
    except Exception as error:
        raise _refused(url, error, key) from error
    found: dict[str, _Remote] = {}
    head = root.rstrip("/") + "/"
    for name, facts in listed.items():
        if facts.get("type") != "file" or name.endswith("/"):
            continue
        place = name.removeprefix(head)
        if place == name or not _is_plain(place):
            raise MedtestError(f"{key}={url}: {place[:200]!r} cannot be the name of a file here.")
        tag = facts.get("ETag") or facts.get("etag") or facts.get("md5Hash") or facts.get("LastModified")
        tag = tag or facts.get("last_modified") or facts.get("mtime") or ""
        found[place] = _Remote(name, int(facts.get("size") or 0), str(tag))
        if len(found) > _MOST_FILES:
            raise MedtestError(f"{key}={url} has more than {_MOST_FILES:,} files.")
    if not found:
        raise Mistake(
            where="command line", key=key, found=f"{url}, where no file is", allowed="a folder with files"
        ).as_error()
    return found


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


def _refused(url: str, error: Exception, key: str) -> MedtestError:
    text = redact(next((line.strip() for line in str(error).splitlines() if line.strip()), ""))[:300]
    scheme = url.partition(":")[0].lower()
    how = {
        "s3fs": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or AWS_PROFILE, AWS_ENDPOINT_URL",
        "gcsfs": "GOOGLE_APPLICATION_CREDENTIALS",
        "adlfs": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
    }.get(PACKAGES[scheme], "")
    return Mistake(
        where="command line",
        key=key,
        found=f"{url}: {type(error).__name__}: {text}",
        allowed="a folder of a store that answers and lets you read",
        fix=f"Look whether it is there, and whether the credentials are there and not expired ({how})." if how else "",
    ).as_error()


def _known(folder: Path) -> dict[str, list[Any]]:
    try:
        content = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_index(folder: Path, kept: Mapping[str, list[Any]]) -> None:
    draft = folder / f"{_INDEX}{_DRAFT}"
    draft.write_text(json.dumps(kept), encoding="utf-8")
    draft.replace(folder / _INDEX)


def _remove_others(folder: Path, there: Mapping[str, _Remote]) -> None:
    """Remove what the store has no more, so that the folder is what the store holds."""
    for path in sorted(folder.rglob("*"), reverse=True):
        place = path.relative_to(folder).as_posix()
        if place == _INDEX or place in there:
            continue
        with suppress(OSError):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
