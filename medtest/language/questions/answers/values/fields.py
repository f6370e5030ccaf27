"""Answers in fields: JSON, tables, ``name: value`` and ``name=value``, reduced to the relevant part.

The value whose key answers the question is kept, at any depth. If every field states the presence of an object
(``true``, ``no``, ``0.94``), the objects present are the answer. Positions in the text are preserved: irrelevant parts
become spaces.
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
    """Layout of answers of one kind in fields and lists.

    Attributes:
        keys: Names of the fields that contain it, best first.
        flag_alone: True if a single field with only yes or no is the answer.
        flags_first: True if a statement of presence counts as much as any other value.
        grid: True if a row and a column form one answer.
        pair: True if a list of two numbers is an interval.
        points: True if the points of a list are counted.
        nothing: Meaning of ``null``.
        empty: Meaning of an empty text.
        summary: Answer for the number of objects present; None if their names are the answer.
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
    """Return a text of equal length with only the relevant value if it consists of fields, else the text.

    Args:
        text: An answer, or a part of one.
        fields: Layout of answers of the required kind.
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
    """Return the relevant part of the rows of a table, or of ``name: value`` and ``name=value``."""
    pairs = _pairs(text)
    if not pairs:
        return text
    names = [pair["name"] for pair in pairs]
    flags = [_flag(pair["value"]) for pair in pairs]
    relevant = _wanted(dict(zip(names, flags, strict=True)), fields)
    if len(pairs) == 1 and (not fields.flag_alone or flags[0] is None):
        return text
    if relevant:
        span = pairs[names.index(relevant[0])].span("value")
        return " " * span[0] + text[slice(*span)] + " " * (len(text) - span[1])
    if fields.grid and len(pairs) > 1 and {_grid_name(name) for name in names} <= _GRID:
        return _values_only(text, pairs)
    if None in flags:
        return text
    if fields.summary is not None:
        return fields.summary(sum(map(bool, flags))).ljust(len(text))
    if not any(flags):
        return "no".ljust(len(text))
    masked = " " * len(text)
    for pair, flag in zip(pairs, flags, strict=True):
        if flag:
            start, end = pair.span("name")
            masked = f"{masked[:start]}{text[start:end]},{masked[end + 1 :]}"
    return masked


def _grid_name(name: str) -> str:
    return re.sub(r"_?position|\W+", "", name.lower())


def _values_only(text: str, pairs: list[re.Match[str]]) -> str:
    masked = " " * len(text)
    for pair in pairs:
        start, end = pair.span("value")
        masked = masked[:start] + text[start:end] + masked[end:]
    return masked


def _pairs(text: str) -> list[re.Match[str]]:
    """Return the pairs in a text that consists only of pairs, except for a table's header and fences."""
    pairs: list[re.Match[str]] = []
    lines = [
        line_match
        for line_match in re.finditer(r"[^\n]+", text)
        if line_match[0].strip() and not line_match[0].strip().startswith("```")
    ]
    ruled = [number for number, line in enumerate(lines) if _RULE.fullmatch(line[0])]
    for number, line in enumerate(lines):
        if ruled and number <= ruled[0]:
            continue
        for part in re.finditer(r"(?:[^,;.]|\.(?=\d))+", line[0]) if not ruled else re.finditer(r".+", line[0]):
            pair = _PAIR.fullmatch(text, line.start() + part.start(), line.start() + part.end())
            if pair is None:
                return []
            pairs.append(pair)
    return pairs


def _wanted(names: dict[str, bool | None], fields: Fields) -> list[str]:
    """Return the names of fields with the answer, best first: values before statements of presence.

    Args:
        names: Names with the values of their fields, if these are only yes or no.
        fields: Layout of answers of the required kind.
    """
    by_name: dict[str, list[str]] = {}
    for name in names:
        plain = re.sub(r"\W+", "_", name.lower())
        for even in (plain, _DECORATION.sub("", plain)):
            by_name.setdefault(even, []).append(name)
    matching = dict.fromkeys(name for key in (*_KEYS, *fields.keys) for name in by_name.get(key, ()))
    return sorted(matching, key=lambda name: not fields.flags_first and names[name] is not None)


def _from_json(text: str, start: int, content: Any, end: int, fields: Fields) -> str:
    if isinstance(content, dict):
        if fields.grid and len({str(key).lower() for key in content} & _GRID) > 1:
            inside = re.sub(r'"[^"]*"\s*:|\W', lambda match: " " * len(match[0]), text[start:end])
            return " " * start + inside + " " * (len(text) - end)
        reasons = [value for value in content.values() if isinstance(value, str) and refusals(value.lower())]
        place = _value_of(text, start, end, content, fields)
        if place is not None:
            if place[0] is None and reasons:
                return text
            content, start, end = place
        elif not _said(content):
            return text
    if (presence := _said(content)) is not None:
        present_names = [name for name, present in presence if present]
        if fields.summary is None:
            return _only(
                text, start, end, [name for name, present in presence if not present], some=bool(present_names)
            )
        return " " * start + fields.summary(len(present_names)).ljust(end - start) + " " * (len(text) - end)
    result = " " * start + _shown(text[start:end], content, fields) + " " * (len(text) - end)
    return result if len(result) == len(text) else text


_PRESENT = ("present", "visible", "detected", "seen", "value")


def _said(content: Any) -> list[tuple[str, bool]] | None:
    """Return the objects in a JSON object or list and whether each is present; None if it has another meaning."""
    if isinstance(content, dict) and content:
        flags = {str(name): _flag(value) for name, value in content.items()}
        return None if None in flags.values() else [(name, bool(flag)) for name, flag in flags.items()]
    if not isinstance(content, list) or not content or not all(isinstance(entry, dict) for entry in content):
        return None
    presence: list[tuple[str, bool]] = []
    for entry in content:
        even = {str(key).lower(): value for key, value in entry.items()}
        name = next((str(value) for value in even.values() if isinstance(value, str)), "")
        flag = next((_flag(even[key]) for key in _PRESENT if key in even), None)
        presence.append((name, flag is not False))
    return presence


def _flag(value: Any) -> bool | None:
    """Return whether a field states presence, None for other values; a share counts from one half."""
    if isinstance(value, bool | int | float):
        return value >= 0.5 if 0 <= value <= 1 else None
    word = value.strip().strip("\"'").lower() if isinstance(value, str) else ""
    if re.fullmatch(r"[01]?\.\d+|[01]\.0*", word):
        return float(word) >= 0.5
    return _FLAGS.get(word)


def _only(text: str, start: int, end: int, absent: list[str], *, some: bool) -> str:
    """Return the names in a JSON object without those of absent objects; "no" if none is present."""
    if not some:
        return " " * start + "no".ljust(end - start) + " " * (len(text) - end)
    inside = text[start:end]
    for name in absent:
        quoted = json.dumps(name, ensure_ascii=False)
        inside = inside.replace(quoted, " " * len(quoted))
    inside = re.sub(
        r"\b(?:true|false|null|yes|no|present|absent|[01](?:\.\d+)?)\b|[{}\[\]\"]",
        lambda match: " " * len(match[0]),
        inside,
    )
    return " " * start + inside + " " * (len(text) - end)


def _value_of(text: str, start: int, end: int, content: dict[str, Any], fields: Fields) -> tuple[Any, int, int] | None:
    """Return the relevant value with its span in the text."""
    relevant = _wanted({str(key): _flag(value) for key, value in content.items()}, fields)
    if not relevant and len(content) == 1 and (fields.flag_alone or not _said(content)):
        relevant = [str(key) for key in content]
    for key in relevant:
        match = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:\s*").search(text, start, end)
        if match is None:
            continue
        value, stop = json.JSONDecoder().raw_decode(text, match.end())
        if isinstance(value, dict):
            inner = _value_of(text, match.end(), stop, value, fields)
            return inner or ((value, match.end(), stop) if _said(value) else None)
        return value, match.end(), stop
    return None


def _shown(raw: str, content: Any, fields: Fields) -> str:
    """Return a JSON value as text of the same length."""
    for empty, word in ((None, fields.nothing), ([], "no"), ("", fields.empty)):
        if content == empty and isinstance(content, type(empty)):
            return word.ljust(len(raw))[: len(raw)]
    if content is True:
        return "yes ".ljust(len(raw))
    if content is False:
        return "no".ljust(len(raw))
    if fields.pair and isinstance(content, list) and len(content) == 2:
        raw = raw.replace(",", "-")  # two numbers form one interval
    return re.sub(r'[\[\]{}"]', " ", raw.replace("\\n", "\n "))
