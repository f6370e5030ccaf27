"""Arguments that the shell split at spaces: ``model=[pranet, ssformer]`` and ``suite = polyp_seg`` without quotes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from medtest.api.redact import redact, without_users
from medtest.core.errors import Mistake, typed_mistake
from medtest.suite.reading.safety import short

_KEY = re.compile(r"(?:\+\+|\+|~)?[A-Za-z_][\w./@-]*")
_NAME = re.compile(r"[\w-]+")
_SPACE_AFTER = re.compile(r"([,:])\s+")
_OPENING, _CLOSING = "[{(", "]})"


def split_by_spaces(tokens: Sequence[str], hides: Callable[[str], bool]) -> tuple[list[str], list[Mistake]]:
    """Separate arguments split at spaces from a command line.

    Args:
        tokens: The arguments from the shell.
        hides: Returns True for a token whose value may be a secret key, which is not repeated.

    Returns:
        The complete tokens, and one mistake for each group of words that belong together.
    """
    whole: list[str] = []
    mistakes: list[Mistake] = []
    start = 0
    while start < len(tokens):
        count = _around_equals(tokens[start : start + 3]) or _inside_value(tokens[start:])
        if count > 1:
            mistakes.append(_mistake(tokens[start : start + count], hides))
        else:
            whole.append(tokens[start])
        start += max(1, count)
    return whole, mistakes


def _around_equals(words: Sequence[str]) -> int:
    """Return the number of words in a leading ``KEY = VALUE``, 0 if there is none."""
    first, *others = words
    if not others:
        return 0
    if _KEY.fullmatch(first) and others[0].startswith("="):
        return 3 if others[0] == "=" and len(others) > 1 and "=" not in others[1] else 2
    follows = bool(others[0]) and "=" not in others[0] and not others[0].startswith("-")
    return 2 if first.endswith("=") and _KEY.fullmatch(first[:-1]) and follows else 0


def _inside_value(words: Sequence[str]) -> int:
    """Return the number of words in a leading ``KEY=[VALUE, VALUE]``, 0 without an open bracket that closes later."""
    key, equals, value = words[0].partition("=")
    if not equals or not _KEY.fullmatch(key):
        return 0
    depth = _depth(value)
    if depth <= 0:
        return 2 if value.endswith(",") and len(words) > 1 and _NAME.fullmatch(words[1]) else 0
    for count, word in enumerate(words[1:], 2):
        if _KEY.fullmatch(word.partition("=")[0]) and "=" in word:
            return 0
        depth += _depth(word)
        if depth <= 0:
            return count
    return 0


def _depth(text: str) -> int:
    """Return the number of brackets outside of quotes that a text opens minus those it closes."""
    depth, inside = 0, ""
    for sign in text:
        if inside:
            inside = "" if sign == inside else inside
        elif sign in "'\"":
            inside = sign
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING)
    return depth


def _mistake(words: Sequence[str], hides: Callable[[str], bool]) -> Mistake:
    joined = " ".join(words)
    key, _, value = joined.partition("=")
    key, value = key.strip(), value.strip()
    token = f"{key}=…" if hides(joined) else redact(without_users(f"{key}={value}", "…@"))
    closed = _SPACE_AFTER.sub(r"\1", token)
    fix = f"remove the space{'s' * (len(words) > 2)}: {shlex.quote(closed) if ' ' in closed else closed}"
    if " " in value:
        fix += f", or put the whole in quotes: {shlex.quote(token)}"
    hidden = token != f"{key}={value}"
    return typed_mistake(
        key.lstrip("+~"),
        short(token if hidden else joined) + ", which the shell splits at spaces",
        "KEY=VALUE without spaces, or in quotes",
        fix,
    )
