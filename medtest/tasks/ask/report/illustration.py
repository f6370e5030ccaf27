"""One image with its answers under each relation, changes marked, as in the slides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtest.language.questions.wording import plain_value
from medtest.report.pages.words import question_words
from medtest.tasks.ask.tables.worst import GivenAnswer, Illustration

_MOST_WORDS = 90
_STATES = {"not_relevant": "not relevant", "refusal": "refused", "unparsed": "not read"}
_CUT = {"length": "cut off", "malformed": "malformed"}


def illustration(image: Illustration, pictures: Sequence[str]) -> dict[str, Any]:
    """Return one image as a table: columns of pictures, rows of questions, cells with answers.

    Args:
        image: The image.
        pictures: ``data:`` addresses of its pictures, in order; empty if none may be shown.
    """
    heads = [
        {
            "name": "source" if number == 0 else picture.relation.replace("_", " "),
            "level": f"severity {picture.severity}" if picture.severity else "",
            "address": str(picture),
            "picture": pictures[number] if number < len(pictures) else "",
        }
        for number, picture in enumerate(image.pictures)
    ]
    rows: list[dict[str, Any]] = [
        {
            "name": question_words(item),
            "words": words,
            "truth": plain_value(truth, kind),
            "cells": [_cell(answer, kind, row[0], first=number == 0) for number, answer in enumerate(row)],
        }
        for (item, words), kind, truth, row in zip(image.questions, image.kinds, image.truths, image.said, strict=True)
    ]
    flipped = [row for row in rows if any(cell["flipped"] for cell in row["cells"])]
    return {
        "address": f"{image.pictures[0].dataset}/{image.pictures[0].seed_id}",
        "flips": _flips(image, sum(cell["flipped"] for row in rows for cell in row["cells"])),
        "heads": heads,
        "rows": flipped,
        "steady": ", ".join(row["name"] for row in rows if row not in flipped),
    }


def _flips(image: Illustration, marked: int) -> str:
    """Return the number of flipped answers, and how many of them the table includes if not all."""
    words = f"{image.flips:,} of {image.judged:,} answers flipped"
    return words if marked == image.flips else f"{words}; {marked:,} of them under the follow-ups shown here"


def _cell(answer: GivenAnswer | None, of: str, source: GivenAnswer | None, *, first: bool) -> dict[str, Any]:
    if answer is None:
        return {"value": "", "words": "", "kind": "none", "flipped": False, "mark": "", "title": "not asked"}
    value = _CUT.get(answer.why) or _STATES.get(answer.state) or plain_value(answer.value, of)
    flipped = bool(answer.flipped)
    kind = "flip" if flipped else "open" if answer.flipped is None and not first else ""
    value = "" if flipped and answer.state == "refusal" else value
    expected = plain_value(answer.wanted, of)
    mark = ""
    if flipped:
        source_value = "" if source is None else source.value or _STATES.get(source.state, "")
        must_become = expected and source is not None and answer.wanted != source_value
        mark = "refused" if answer.state == "refusal" else f"should be {expected}" if must_become else "flip"
    right = "" if answer.right is None else "right" if answer.right else "wrong"
    why = answer.why if kind == "open" else ""
    title = "; ".join(part for part in (f"should say: {expected}" if flipped and expected else "", right, why) if part)
    words = answer.words if len(answer.words) <= _MOST_WORDS else f"{answer.words[: _MOST_WORDS - 1].rstrip()}…"
    return {
        "value": value,
        "words": words,
        "kind": kind,
        "flipped": flipped,
        "mark": mark,
        "right": right,
        "title": title,
    }
