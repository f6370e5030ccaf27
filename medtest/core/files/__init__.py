"""File helpers: SHA-256 of files and JSON values, JSON objects, text in any Unicode encoding."""

from __future__ import annotations

import codecs
import hashlib
import json
from pathlib import Path
from typing import Any

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks and their encodings; of two with a common beginning the longer comes first."""


def json_sha256(value: object) -> str:
    """Return the SHA-256 of JSON values with sorted keys, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal, as printed by ``sha256sum``.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_object(path: Path) -> dict[str, Any]:
    """Return a file's JSON object, or an empty dict if there is no readable one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def encoding_of(content: bytes) -> str:
    """Return the encoding named by a byte order mark; UTF-8 without one."""
    return next((name for mark, name in BOMS if content.startswith(mark)), "utf-8")


def decoded(content: bytes) -> str:
    """Decode a file's text: UTF-8 with or without byte order mark, UTF-16 and UTF-32 with one.

    Raises:
        ValueError: It is not text; the message continues the file's name ("is not UTF-8 (byte 17)").
    """
    name = encoding_of(content)
    try:
        text = content.decode(name)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not {name.removesuffix('-sig').upper()} (byte {error.start})") from error
    if "\0" in text:
        raise ValueError("holds zero bytes: it is UTF-16 without a byte order mark, or not text")
    return text


def manifest_line(digest: str, name: str) -> str:
    """Return a line of a list of SHA-256 in the format of ``sha256sum``."""
    # sha256sum marks lines whose name contains a backslash or a line feed, and escapes them
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n"
