"""Redaction of external text at its entry: replies, exceptions, output of tools, model names.

Keys and pictures are removed: data URLs, long runs of base64, values of ``Authorization`` headers and of fields named
like keys, credentials in addresses, bearer tokens and words with the prefixes of vendors' keys if they look random, and
the values of the environment variables that the run declared as keys, verbatim and as written in JSON or a URL.
Ordinary words stay, such as answers about "bearers of the gene".

Non-printable characters are escaped: halves of surrogate pairs, which UTF-8 cannot encode, control characters, which a
terminal interprets, and direction overrides, which disguise a line. Printable characters of every script stay.
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
"""Shorter values are not removed, because they would match ordinary words."""

_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)[^,\s\"']{0,80},[A-Za-z0-9+/=_%\\-]*", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{160,}={0,2}")
_AUTHORIZATION = re.compile(
    r"(authorization[\"']?\s*[:=]\s*(?:b?[\"'])?)((?:bearer|basic|token)\s+)?(?!\[hidden\])([^\s\"',;)}\]]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(bearer\s+)([A-Za-z0-9._~+/=*-]+)", re.IGNORECASE)  # RFC 6750 section 2.1, and masks
_FIELD = re.compile(
    r"((?:api[-_]?key|secret[-_]?(?:access[-_]?)?key|(?:access|auth|refresh|id)[-_]?token|client[-_]?secret"
    r"|passw(?:or)?d)[\"']?\s*)([:=,]\s*b?[\"']?)(?!\[hidden\])([^\s\"',;&)}\]]+)",
    re.IGNORECASE,
)
_QUERY = re.compile(r"([?&](?:key|token|sig|signature|code)=)(?!\[hidden\])[^&#\s\"'<>)]+", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(://)[^/\s:@\"']*:[^/\s@\"']+@")
_USERS = re.compile(r"//[^@\s]+@(?:[^@\s,]*@)*")
"""User information before the host of an address; a password may hold ``@`` or a slash, commas separate addresses."""
_SHAPED = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|key|gsk|hf|xai|nvapi|AIza|gh[pousr]_|github_pat_|glpat-|xox[a-z]-)[A-Za-z0-9*_-]{16,}"
)
_AMAZON = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")
_WEB_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")  # RFC 7519
SECRET_NAMES = re.compile(
    r"api[-_]?key|authorization|bearer|credential|passw|secret|(?:auth|access|api)[-_]?token|^token$", re.IGNORECASE
)
"""Names of fields and options with keys; others end with ``key`` or ``tokens`` and hold none."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]{0,13}(?:_[A-Z0-9]{1,14}){0,7}")
_PREFIX = re.compile(r"(?:sk|pk|rk|gsk|hf|xai|nvapi)[-_]|gh[pousr]_|github_pat_|glpat-|xox[a-z]-")
_NO_SIGN = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""A carriage return within a line, other controls (C0 without tab and line feed, DEL, C1), embeddings, overrides and
isolates of direction, surrogates.
"""
_MOST_OF_ERROR = 20_000
"""Characters of an exception that are processed; far fewer are shown."""
_RUN = re.compile(r"[A-Za-z0-9*]+")
_LEAST_RUN, _LEAST_MIXED, _LEAST_LETTERS = 8, 16, 32
"""Minimum lengths of letter-digit runs that are not words: with a digit, in mixed case, in one case."""

_names: set[str] = set()
_lock = threading.Lock()
_LOGGERS = ("openai", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "hpack", "asyncio", "medtest")


def guard(variable: str) -> None:
    """Redact the value of this environment variable from now on."""
    if variable:
        with _lock:
            _names.add(variable)


def names_variable(text: str) -> bool:
    """Return True if a text may be shown as the name of a key's variable: in capitals, and not like a key itself."""
    return bool(_VARIABLE.fullmatch(text)) and not looks_random(text)


def looks_random(token: str) -> bool:
    """Return True if a token looks like a key rather than words.

    It has a letter-digit run that no word has: 8 or more with a digit or a mask's asterisk among them, 16 or more in
    mixed case (beyond an initial capital), 32 or more of letters alone. "HLA-B27-positive" is none.
    """
    for run in _RUN.findall(token.strip("*")):  # **bold** is not a mask
        if len(run) >= _LEAST_RUN and any(sign.isdigit() or sign == "*" for sign in run):
            return True
        if len(run) >= _LEAST_MIXED and not (run[1:].islower() or run.isupper()):
            return True
        if len(run) >= _LEAST_LETTERS:
            return True
    return False


def _without_header(match: re.Match[str]) -> str:
    scheme = match[2] or ""
    return match[1] + scheme + HIDDEN if scheme or looks_random(match[3]) else match[0]


def _without_bearer(match: re.Match[str]) -> str:
    return match[1] + HIDDEN if looks_random(match[2]) else match[0]


def _without_value(match: re.Match[str]) -> str:
    # "password: none given" is a sentence, password=opensesame a setting
    plain = "key" in match[1].lower() or "=" in match[2] or looks_random(match[3])
    return match[1] + match[2] + HIDDEN if plain else match[0]


def _without_shape(match: re.Match[str]) -> str:
    runs = _RUN.findall(match[0])
    long = bool(_PREFIX.match(match[0])) and any(len(run) >= _LEAST_MIXED for run in runs)
    return HIDDEN if long or looks_random(match[0]) else match[0]


def visible(text: str) -> str:
    r"""Return a text with non-printable characters escaped: ``\x1b``, ``\u202e``, ``\ud83d``.

    Tabs and line ends stay. The result can be encoded as UTF-8, shown on a terminal, and read as intended.
    """
    return _NO_SIGN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def redact(text: object) -> str:
    """Return ``str(text)`` without keys and pictures, and :func:`visible`.

    The values of guarded variables are looked up now and not stored. Idempotent.
    """
    clean = str(text)
    for name in tuple(_names):
        value = os.environ.get(name, "").strip()
        if len(value) >= _LEAST_KEY:
            for form in {value, json.dumps(value)[1:-1], quote(value, safe="")}:
                clean = clean.replace(form, HIDDEN)
    clean = _DATA_URL.sub(rf"data:\1,{HIDDEN}", clean)
    clean = _AUTHORIZATION.sub(_without_header, clean)
    clean = _BEARER.sub(_without_bearer, clean)
    clean = _FIELD.sub(_without_value, clean)
    clean = _QUERY.sub(rf"\1{HIDDEN}", clean)
    clean = _CREDENTIALS.sub(rf"\1{HIDDEN}@", clean)
    clean = _SHAPED.sub(_without_shape, clean)
    clean = _WEB_TOKEN.sub(HIDDEN, _AMAZON.sub(HIDDEN, clean))
    return visible(_BASE64.sub(HIDDEN, clean))


def without_users(text: str, instead: str = "") -> str:
    """Return a text without user information, with or without password, before the host of its addresses.

    It hides more than :func:`redact`, which leaves an ``@`` in external text alone.

    Args:
        text: A command, or a message about an address that the user gave.
        instead: Replacement.
    """
    return _USERS.sub(f"//{instead}", text)


def redacted(value: Any) -> Any:
    """Return a JSON value with every string in it, field names included, redacted by :func:`redact`."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): redacted(item) for key, item in value.items()}
    return value


def reason_of(error: BaseException, most: int = 300) -> str:
    """Return one redacted line that describes an exception; never raises."""
    try:
        text = str(error)[:_MOST_OF_ERROR].strip()
    except Exception:  # noqa: BLE001 - str() of a third-party exception may raise
        text = ""
    # Cut after redacting, because half a key is still half a key.
    return " ".join(redact(text or type(error).__name__).split())[:most]


def _cleaned(record: logging.LogRecord) -> logging.LogRecord:
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - a broken log call must neither break the run nor leak
        message = str(record.msg)
    record.msg, record.args = redact(message), None
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip())
        record.exc_info = None
    if record.stack_info:
        record.stack_info = redact(record.stack_info)
    return record


def guard_logs() -> None:
    """Redact the log records of the HTTP libraries, of asyncio and of medtest at their creation.

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
