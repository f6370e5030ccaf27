"""One image with its answers per relation, changes marked: the slides' illustration, as the report shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtest.language.questions.wording import plain_value
from medtest.report.pages.words import question_words
from medtest.tasks.ask.tables.worst import GivenAnswer, Illustration

_MOST_WORDS = 90
_STATES = {"not_relevant": "not relevant", "refusal": "refused", "unparsed": "not read"}
_CUT = {"length": "cut off", "malformed": "malformed"}


def illustration(one: Illustration, pictures: Sequence[str]) -> dict[str, Any]:
    """Return one image: its pictures across, its questions down, what was answered in the cells.

    Args:
        one: The image.
        pictures: ``data:`` addresses of its pictures, in order; none where none may be shown.
    """
    heads = [
        {
            "name": "source" if number == 0 else shown.relation.replace("_", " "),
            "level": f"severity {shown.severity}" if shown.severity else "",
            "address": one.address(shown),
            "picture": pictures[number] if number < len(pictures) else "",
        }
        for number, shown in enumerate(one.pictures)
    ]
    rows: list[dict[str, Any]] = [
        {
            "name": question_words(item),
            "words": words,
            "truth": plain_value(truth, kind),
            "cells": [_cell(said, kind, row[0], first=number == 0) for number, said in enumerate(row)],
        }
        for (item, words), kind, truth, row in zip(one.questions, one.kinds, one.truths, one.said, strict=True)
    ]
    flipped = [row for row in rows if any(cell["flipped"] for cell in row["cells"])]
    return {
        "address": f"{one.dataset}/{one.seed_id}",
        "flips": _flips(one, sum(cell["flipped"] for row in rows for cell in row["cells"])),
        "heads": heads,
        "rows": flipped,
        "steady": ", ".join(row["name"] for row in rows if row not in flipped),
    }


def _flips(one: Illustration, marked: int) -> str:
    """Return how many answers flipped, and how many of them are in the table where it has no room for all."""
    words = f"{one.flips:,} of {one.judged:,} answers flipped"
    return words if marked == one.flips else f"{words}; {marked:,} of them under the follow-ups shown here"


def _cell(said: GivenAnswer | None, of: str, source: GivenAnswer | None, *, first: bool) -> dict[str, Any]:
    if said is None:
        return {"value": "", "words": "", "kind": "none", "flipped": False, "mark": "", "title": "not asked"}
    value = _CUT.get(said.why) or _STATES.get(said.state) or plain_value(said.value, of)
    flipped = bool(said.flipped)
    kind = "flip" if flipped else "open" if said.flipped is None and not first else ""
    value = "" if flipped and said.state == "refusal" else value
    wanted = plain_value(said.wanted, of)
    mark = ""
    if flipped:
        before = "" if source is None else source.value or _STATES.get(source.state, "")
        must_become = wanted and source is not None and said.wanted != before
        mark = "refused" if said.state == "refusal" else f"should be {wanted}" if must_become else "flip"
    right = "" if said.right is None else "right" if said.right else "wrong"
    why = said.why if kind == "open" else ""
    title = "; ".join(part for part in (f"should say: {wanted}" if flipped and wanted else "", right, why) if part)
    words = said.words if len(said.words) <= _MOST_WORDS else f"{said.words[: _MOST_WORDS - 1].rstrip()}…"
    return {
        "value": value,
        "words": words,
        "kind": kind,
        "flipped": flipped,
        "mark": mark,
        "right": right,
        "title": title,
    }
