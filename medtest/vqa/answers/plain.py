"""An answer's text without its wrapping: markdown, JSON, thoughts before the answer, "Final answer:".

Every step keeps the length of the text, so that places in it stay places in the original: what does not count becomes
blanks. Lengths are bounded: a longer answer is cut, since what matters stands near its beginning or after its last
"answer:".
"""

from __future__ import annotations

import json
import re
from typing import Any

from medtest.vqa.values import Kind

LISTED = "\u25aa"
"""What a bullet becomes where things are counted."""

LONGEST = 20_000
"""Characters of an answer that are looked through for its answer proper."""

MOST_TYPED = 4_000
"""Characters of the answer proper that are typed."""

_SAME = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
        "\u00d7": "x",
        "\u00a0": " ",
        "\u202f": " ",
        "\u2265": "\u2265",
        "\uff0c": ",",
        "\u3002": ".",
        "\uff1a": ":",
        "\uff1b": ";",
        "\u2022": " ",
        "\r": "\n",
        "\t": " ",
        "*": " ",
        "`": " ",
        "#": " ",
        "_": " ",
        "|": ",",
    }
)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_MARK = re.compile(
    r"\b(?:final answer|answer|respuesta|antwort|r\u00e9ponse|resposta)\b\s*(?:\bis\b\s*:?|:|=|\n)\s*"
    r"|\u7b54\u6848\s*[:\u662f]?\s*"
)
_BULLET = re.compile(r"(?m)^[ ]*(?:[-+]\s|\(?[a-z]\)\s)")
_BOX_BEFORE = r"(?m)(?:^[ ]*(?:[-*+\u2022][ ]+|\d{1,2}[.)][ ]+)?)"
_TICKED = re.compile(_BOX_BEFORE + r"(?P<box>\[[xX\u2713\u2714]\])(?=[ ]+\S)|(?P<sign>[\u2611\u2705\u2714\u2713])")
_UNTICKED = re.compile(_BOX_BEFORE + r"(?P<box>\[ \])(?=[ ]+\S)|(?P<sign>[\u2610\u274c\u2717\u2718])")
_SHORT = re.compile(
    r"\b(?:approx|ca|circa|resp|vs|max|min|diam|e\.g|i\.e|z\.b|d\.h|aprox|env|p\.ej)(?P<point>\.)", re.IGNORECASE
)
"""Abbreviations, whose point ends no sentence."""
_POINT = re.compile(r"(?m)^[ ]*[-+*\u2022][ ]+(?=\S)")
_OPTION = re.compile(r"\A\s*\(?[a-f][).]\s+")

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
_KIND_KEYS: dict[Kind, tuple[str, ...]] = {
    Kind.YES_NO: ("present", "visible", "detected", "yes_no"),
    Kind.FINDINGS: (
        "abnormalities",
        "abnormality",
        "findings",
        "finding",
        "landmarks",
        "landmark",
        "instruments",
        "instrument",
    ),
    Kind.COUNT: ("count", "number", "total", "findings", "polyps", "instruments"),
    Kind.SIZE: ("size_mm", "size", "polyp_size"),
    Kind.COLOUR: ("colour", "color", "colours", "colors"),
    Kind.PLACE: ("location", "locations", "position", "place", "where"),
    Kind.POLYP_TYPE: ("type", "polyp_type", "paris", "paris_classification"),
    Kind.PROCEDURE: ("procedure", "procedure_type", "type"),
    Kind.TEXT: (),
}


def lowered(text: str) -> str:
    """Return a text in lower case with as many characters."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def plain(text: str, kind: Kind) -> str:
    """Return as many characters with only what answers the question, case kept.

    Args:
        text: An answer as the model gave it.
        kind: Type of answer asked for; it tells which key of a JSON object holds it.
    """
    shown = text[:LONGEST]
    shown = _THOUGHTS.sub(lambda found: " " * len(found[0]), shown)
    shown = _ticked(shown)
    if kind == Kind.COUNT:
        shown = _POINT.sub(lambda found: LISTED.ljust(len(found[0])), shown)
    shown = _from_json(shown, kind)
    shown = shown.translate(_SAME)
    shown = _SHORT.sub(lambda found: found[0][:-1].replace(".", " ") + " ", shown)
    shown = _after_mark(shown)
    shown = _OPTION.sub(lambda found: " " * len(found[0]), shown)
    shown = _BULLET.sub(lambda found: "\n".ljust(len(found[0])) if "\n" in found[0] else " " * len(found[0]), shown)
    end = len(shown) - len(shown.lstrip()) + MOST_TYPED
    return blanked(shown, end, len(shown)) if end < len(shown) else shown


def _ticked(text: str) -> str:
    """Return a list to be ticked off with "no" in place of empty boxes; of signs, only lines that are ticked."""
    some = _TICKED.search(text) is not None
    if not some and _UNTICKED.search(text) is None:
        return text
    shown = _TICKED.sub(lambda found: " " * len(found[0]), text)
    return "\n".join(_unticked(line, some) for line in shown.split("\n"))


def _unticked(line: str, some: bool) -> str:
    found = _UNTICKED.search(line)
    if found is None:
        return line
    if found["box"] is not None:
        return line[: found.start("box")] + "no".ljust(len(found["box"])) + line[found.end("box") :]
    return " " * len(line) if some else line.replace(found["sign"], " ")


def blanked(text: str, start: int, end: int) -> str:
    """Return a text of which a part became blanks."""
    return text[:start] + " " * (end - start) + text[end:]


def _after_mark(text: str) -> str:
    marks = [found for found in _MARK.finditer(lowered(text)) if text[found.end() :].strip()]
    return " " * marks[-1].end() + text[marks[-1].end() :] if marks else text


def _from_json(text: str, kind: Kind) -> str:
    """Return only the answer's value where the text holds a JSON object or list."""
    opening = re.search(r"[\[{]", text)
    if opening is None:
        return text
    try:
        content, end = json.JSONDecoder().raw_decode(text, opening.start())
    except (ValueError, RecursionError):
        return text
    start = opening.start()
    if isinstance(content, dict):
        place = _value_of(text, start, end, content, kind)
        if place is not None:
            content, start, end = place
        elif not _said(content):
            return text
    if (things := _said(content)) is not None:
        there = [name for name, present in things if present]
        if kind == Kind.YES_NO:
            content = bool(there)
        elif kind == Kind.COUNT:
            return " " * start + str(len(there)).ljust(end - start) + " " * (len(text) - end)  # of described things
        else:
            return _only(text, start, end, [name for name, present in things if not present], some=bool(there))
    kept = " " * start + _shown(text[start:end], content) + " " * (len(text) - end)
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
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    return {"yes": True, "no": False, "true": True, "false": False, "present": True, "absent": False}.get(
        value.strip().lower() if isinstance(value, str) else ""
    )


def _only(text: str, start: int, end: int, absent: list[str], *, some: bool) -> str:
    """Return a JSON object's names without those that it says are not there; "no" where none is."""
    if not some:
        return " " * start + "no".ljust(end - start) + " " * (len(text) - end)
    inside = text[start:end]
    for name in absent:
        written = json.dumps(name, ensure_ascii=False)
        inside = inside.replace(written, " " * len(written))
    inside = re.sub(
        r"\b(?:true|false|null|yes|no|present|absent|0|1)\b|[{}\[\]\"]", lambda one: " " * len(one[0]), inside
    )
    return " " * start + inside + " " * (len(text) - end)


def _value_of(text: str, start: int, end: int, content: dict[str, Any], kind: Kind) -> tuple[Any, int, int] | None:
    """Return the value that answers, with its place in the text."""
    by_name = {re.sub(r"[\s-]+", "_", str(key).lower()): str(key) for key in content}
    wanted = [by_name[name] for name in (*_KEYS, *_KIND_KEYS[kind]) if name in by_name]
    if not wanted and len(content) == 1 and (kind == Kind.YES_NO or not _said(content)):
        wanted = [str(key) for key in content]
    for key in wanted:
        found = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:\s*").search(text, start, end)
        if found is None:
            continue
        value, stop = json.JSONDecoder().raw_decode(text, found.end())
        if isinstance(value, dict):
            inner = _value_of(text, found.end(), stop, value, kind)
            return inner or ((value, found.end(), stop) if _said(value) else None)
        return value, found.end(), stop
    return None


def _shown(raw: str, content: Any) -> str:
    """Return a JSON value as words of the same length."""
    for empty, word in ((None, "n/a"), ([], "no"), ("", "")):
        if content == empty and isinstance(content, type(empty)):
            return word.ljust(len(raw))[: len(raw)]
    if content is True:
        return "yes ".ljust(len(raw))
    if content is False:
        return "no".ljust(len(raw))
    return re.sub(r'[\[\]{}"]', " ", raw.replace("\\n", "\n "))
