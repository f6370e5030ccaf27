"""Keys and pictures never reach a message, a log line, a traceback or a file: everything that is shown passes here.

What is taken out: data URLs, long runs of base64, bearer tokens, words shaped like vendors' keys, and the values of the
environment variables that the run named as holding keys, as they stand and as JSON or a URL would write them.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import traceback
from typing import Any
from urllib.parse import quote

HIDDEN = "[hidden]"
_LEAST_KEY = 6
"""Values shorter than this are not taken out: they would stain ordinary words."""

_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)[^,\s\"']{0,80},[A-Za-z0-9+/=_%\\-]*", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{160,}={0,2}")
_BEARER = re.compile(r"(bearer\s+)[^\s\"',;)}\]]+", re.IGNORECASE)
_HEADER = re.compile(r"((?:x-)?api[-_]key[\"']?\s*[:=,]\s*b?[\"']?)[^\s\"',;)}\]]+", re.IGNORECASE)
_SHAPED = re.compile(r"\b(?:sk|pk|rk|key|gsk|hf|AIza)[-_]?(?:[A-Za-z0-9*]+[-_])*[A-Za-z0-9*]{16,}\b")

_names: set[str] = set()
_lock = threading.Lock()
_LOGGERS = ("openai", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "hpack", "asyncio", "medtest")


def guard(variable: str) -> None:
    """Take the value of this environment variable out of everything that is shown from now on."""
    if variable:
        with _lock:
            _names.add(variable)


def redact(text: object) -> str:
    """Return ``str(text)`` without keys and pictures.

    The values of guarded variables are looked up now and kept nowhere.
    """
    clean = str(text)
    for name in tuple(_names):
        value = os.environ.get(name, "").strip()
        if len(value) >= _LEAST_KEY:
            for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
                clean = clean.replace(form, HIDDEN)
    clean = _DATA_URL.sub(rf"data:\1,{HIDDEN}", clean)
    clean = _BEARER.sub(rf"\1{HIDDEN}", clean)
    clean = _HEADER.sub(rf"\1{HIDDEN}", clean)
    clean = _SHAPED.sub(HIDDEN, clean)
    return _BASE64.sub(HIDDEN, clean)


def reason_of(error: BaseException, most: int = 300) -> str:
    """Return one redacted line that says what an exception was."""
    text = str(error).strip() or type(error).__name__
    # Cut after redacting: half a key is still half a key.
    return " ".join(redact(text).split())[:most]


def _cleaned(record: logging.LogRecord) -> logging.LogRecord:
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - a broken log call must not break the run, and may not leak either
        message = str(record.msg)
    record.msg, record.args = redact(message), None
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        record.exc_info = None
    if record.stack_info:
        record.stack_info = redact(record.stack_info)
    return record


def guard_logs() -> None:
    """Redact the log records of the HTTP libraries, of asyncio and of medtest where they are made.

    A filter on a handler would miss handlers that are added later; the record factory misses none. Idempotent.
    """
    inner = logging.getLogRecordFactory()
    if getattr(inner, "guards_medtest", False):
        return

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = inner(*args, **kwargs)
        return _cleaned(record) if record.name.split(".")[0] in _LOGGERS else record

    factory.guards_medtest = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(factory)
