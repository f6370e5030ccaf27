"""Answers as fields: JSON, tables, ``name: value`` and ``name=value``, reduced to the part that answers the question.

The value whose key answers the question is kept, wherever it lies. Where every field says of a thing whether it is
there (``true``, ``no``, ``0.94``), the things that are there are what is said. Places in the text stay as they are:
what does not count becomes blanks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from medtest.language.questions.answers.states import refusals

_KEYS: tuple[str, ...] = (
    "answer",
    "answers",
    "final_answer",
    "value",
    "result",
    "response",
    "prediction",
    "label",
    "labels",
)
_GRID = frozenset(
    ("row", "column", "col", "x", "y", "vertical", "horizontal", "vertical_position", "horizontal_position")
)
_DECORATION = re.compile(r"\A(?:n|num|no|number_of|has|is|the|number)_|_(?:count|present|class|mm|type|name)\Z")
_PAIR = re.compile(
    r"\s*[-*|]*\s*[\"']?(?P<name>[^\W\d][\w /-]{0,40}?)[\"'*]*\s*[:=|][\s*]*(?P<value>[^:=|]{1,200}?)[\s|*]*"
)
_RULE = re.compile(r"\s*\|[\s:|-]+\|?\s*")
_FLAGS = {
    "none": False,
    "nil": False,
    "negative": False,
    "positive": True,
    "detected": True,
    "not detected": False,
    "not seen": False,
    "not present": False,
    "not visible": False,
    "seen": True,
    "visible": True,
    "yes": True,
    "no": False,
    "true": True,
    "false": False,
    "present": True,
    "absent": False,
    "1": True,
    "0": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """How an answer of one kind lies in fields and lists.

    Attributes:
        keys: Names of the fields that hold it, best first.
        flag_alone: Whether one field that says no more than yes or no is the answer.
        flags_first: Whether what a field says of presence counts as much as any other value.
        grid: Whether a row and a column make one answer.
        pair: Whether a list of two numbers is an interval.
        points: Whether the points of a list are counted.
        nothing: What ``null`` says.
        empty: What an empty text says.
        summary: What the number of things that are there says; None where their names are the answer.
    """

    keys: tuple[str, ...] = ()
    flag_alone: bool = False
    flags_first: bool = False
    grid: bool = False
    pair: bool = False
    points: bool = False
    nothing: str = "n/a"
    empty: str = ""
    summary: Callable[[int], str] | None = None


def answering(text: str, fields: Fields) -> str:
    """Return as many characters with only the value that answers where a text is made of fields, else the text.

    Args:
        text: An answer, or a part of one.
        fields: How an answer of the kind that is asked for lies in them.
    """
    opening = re.search(r"[\[{]", text)
    if opening is not None:
        try:
            content, end = json.JSONDecoder().raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, dict | list):
            return _from_json(text, opening.start(), content, end, fields)
    return _from_pairs(text, fields)


def _from_pairs(text: str, fields: Fields) -> str:
    """Return only what answers of a table's rows, or of ``name: value`` and ``name=value``."""
    pairs = _pairs(text)
    if not pairs:
        return text
    names = [one["name"] for one in pairs]
    flags = [_flag(one["value"]) for one in pairs]
    wanted = _wanted(dict(zip(names, flags, strict=True)), fields)
    if len(pairs) == 1 and (not fields.flag_alone or flags[0] is None):
        return text
    if wanted:
        kept = pairs[names.index(wanted[0])].span("value")
        return " " * kept[0] + text[slice(*kept)] + " " * (len(text) - kept[1])
    if fields.grid and len(pairs) > 1 and {_grid_name(name) for name in names} <= _GRID:
        return _values_only(text, pairs)
    if None in flags:
        return text
    if fields.summary is not None:
        return fields.summary(sum(map(bool, flags))).ljust(len(text))
    if not any(flags):
        return "no".ljust(len(text))
    shown = " " * len(text)
    for one, flag in zip(pairs, flags, strict=True):
        if flag:
            start, end = one.span("name")
            shown = f"{shown[:start]}{text[start:end]},{shown[end + 1 :]}"
    return shown


def _grid_name(name: str) -> str:
    return re.sub(r"_?position|\W+", "", name.lower())


def _values_only(text: str, pairs: list[re.Match[str]]) -> str:
    shown = " " * len(text)
    for one in pairs:
        start, end = one.span("value")
        shown = shown[:start] + text[start:end] + shown[end:]
    return shown


def _pairs(text: str) -> list[re.Match[str]]:
    """Return the pairs of a text that is made of nothing else, but for a table's head and what it is fenced with."""
    found: list[re.Match[str]] = []
    lines = [one for one in re.finditer(r"[^\n]+", text) if one[0].strip() and not one[0].strip().startswith("```")]
    ruled = [number for number, one in enumerate(lines) if _RULE.fullmatch(one[0])]
    for number, line in enumerate(lines):
        if ruled and number <= ruled[0]:
            continue
        for part in re.finditer(r"(?:[^,;.]|\.(?=\d))+", line[0]) if not ruled else re.finditer(r".+", line[0]):
            one = _PAIR.fullmatch(text, line.start() + part.start(), line.start() + part.end())
            if one is None:
                return []
            found.append(one)
    return found


def _wanted(names: dict[str, bool | None], fields: Fields) -> list[str]:
    """Return the names of fields that hold the answer, best first: what is said before whether anything is.

    Args:
        names: Each with what its field says, where that is no more than yes or no.
        fields: How an answer of the kind that is asked for lies in them.
    """
    by_name: dict[str, list[str]] = {}
    for name in names:
        plain = re.sub(r"\W+", "_", name.lower())
        for even in (plain, _DECORATION.sub("", plain)):
            by_name.setdefault(even, []).append(name)
    found = dict.fromkeys(name for key in (*_KEYS, *fields.keys) for name in by_name.get(key, ()))
    return sorted(found, key=lambda name: not fields.flags_first and names[name] is not None)


def _from_json(text: str, start: int, content: Any, end: int, fields: Fields) -> str:
    if isinstance(content, dict):
        if fields.grid and len({str(key).lower() for key in content} & _GRID) > 1:
            inside = re.sub(r'"[^"]*"\s*:|\W', lambda one: " " * len(one[0]), text[start:end])
            return " " * start + inside + " " * (len(text) - end)
        reasons = [value for value in content.values() if isinstance(value, str) and refusals(value.lower())]
        place = _value_of(text, start, end, content, fields)
        if place is not None:
            if place[0] is None and reasons:
                return text
            content, start, end = place
        elif not _said(content):
            return text
    if (things := _said(content)) is not None:
        there = [name for name, present in things if present]
        if fields.summary is None:
            return _only(text, start, end, [name for name, present in things if not present], some=bool(there))
        return " " * start + fields.summary(len(there)).ljust(end - start) + " " * (len(text) - end)
    kept = " " * start + _shown(text[start:end], content, fields) + " " * (len(text) - end)
    return kept if len(kept) == len(text) else text


_PRESENT = ("present", "visible", "detected", "seen", "value")


def _said(content: Any) -> list[tuple[str, bool]] | None:
    """Return what a JSON object or list says of things by name, whether each is there; None where it does not."""
    if isinstance(content, dict) and content:
        flags = {str(name): _flag(one) for name, one in content.items()}
        return None if None in flags.values() else [(name, bool(one)) for name, one in flags.items()]
    if not isinstance(content, list) or not content or not all(isinstance(one, dict) for one in content):
        return None
    found: list[tuple[str, bool]] = []
    for one in content:
        even = {str(key).lower(): value for key, value in one.items()}
        name = next((str(value) for value in even.values() if isinstance(value, str)), "")
        flag = next((_flag(even[key]) for key in _PRESENT if key in even), None)
        found.append((name, flag is not False))
    return found


def _flag(value: Any) -> bool | None:
    """Return whether a field says that something is there, None where it says something else; a share is one half."""
    if isinstance(value, bool | int | float):
        return value >= 0.5 if 0 <= value <= 1 else None
    said = value.strip().strip("\"'").lower() if isinstance(value, str) else ""
    if re.fullmatch(r"[01]?\.\d+|[01]\.0*", said):
        return float(said) >= 0.5
    return _FLAGS.get(said)


def _only(text: str, start: int, end: int, absent: list[str], *, some: bool) -> str:
    """Return a JSON object's names without those that it says are not there; "no" where none is."""
    if not some:
        return " " * start + "no".ljust(end - start) + " " * (len(text) - end)
    inside = text[start:end]
    for name in absent:
        written = json.dumps(name, ensure_ascii=False)
        inside = inside.replace(written, " " * len(written))
    inside = re.sub(
        r"\b(?:true|false|null|yes|no|present|absent|[01](?:\.\d+)?)\b|[{}\[\]\"]",
        lambda one: " " * len(one[0]),
        inside,
    )
    return " " * start + inside + " " * (len(text) - end)


def _value_of(text: str, start: int, end: int, content: dict[str, Any], fields: Fields) -> tuple[Any, int, int] | None:
    """Return the value that answers, with its place in the text."""
    wanted = _wanted({str(key): _flag(value) for key, value in content.items()}, fields)
    if not wanted and len(content) == 1 and (fields.flag_alone or not _said(content)):
        wanted = [str(key) for key in content]
    for key in wanted:
        found = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:\s*").search(text, start, end)
        if found is None:
            continue
        value, stop = json.JSONDecoder().raw_decode(text, found.end())
        if isinstance(value, dict):
            inner = _value_of(text, found.end(), stop, value, fields)
            return inner or ((value, found.end(), stop) if _said(value) else None)
        return value, found.end(), stop
    return None


def _shown(raw: str, content: Any, fields: Fields) -> str:
    """Return a JSON value as words of the same length."""
    for empty, word in ((None, fields.nothing), ([], "no"), ("", fields.empty)):
        if content == empty and isinstance(content, type(empty)):
            return word.ljust(len(raw))[: len(raw)]
    if content is True:
        return "yes ".ljust(len(raw))
    if content is False:
        return "no".ljust(len(raw))
    if fields.pair and isinstance(content, list) and len(content) == 2:
        raw = raw.replace(",", "-")  # two numbers of one thing
    return re.sub(r'[\[\]{}"]', " ", raw.replace("\\n", "\n "))
