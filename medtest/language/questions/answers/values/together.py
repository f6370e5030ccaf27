"""Splitting of one text that answers several questions.

Supported are JSON objects by name, id or wording of the question, JSON lists of ``{QuestionID, Answer}`` as in the
contest, and numbered or labelled lines ("3. No", "polyps: 1"). Ambiguous parts are dropped and later ``unparsed``: an
answer is never assigned to a question to which it may not belong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.language.questions.answers.plain import LONGEST

if TYPE_CHECKING:
    from medtest.language.questions.questions import Question

_LINE = re.compile(
    r"^[ \t*#>-]{0,12}+(?:Q(?:uestion)? ?)?(?P<key>[^:\s][^:\n]{0,159}?)[ \t*]{0,4}(?::"
    r"|[.)](?=\s))(?P<answer>[^\n]*)$",
    re.MULTILINE | re.IGNORECASE,
)
_ID_KEYS = ("questionid", "question_id", "id", "name", "question")
_ANSWER_KEYS = ("answer", "answers", "value")


def split(text: str, questions: Sequence[Question], *, numbered_from: int | None = None) -> Mapping[str, str]:
    """Return each question's answer by the question's name.

    Args:
        text: The model's answer to all questions.
        questions: The questions, in the order in which they were asked.
        numbered_from: First number of the list in which they were asked (0 or 1); None if they were identified by name
            or
            id, so that numbers are official ids.

    Returns:
        Text of the answer by name of the question; questions without one are missing.
    """
    excerpt = text[: 4 * LONGEST]
    content = _json_of(excerpt)
    pairs = (
        _pairs(content) if content is not None else [(line["key"], line["answer"]) for line in _LINE.finditer(excerpt)]
    )
    name_of = _known(questions, numbered_from)
    answers: dict[str, str] = {}
    for key, answer in pairs:
        name = name_of.get(_even(key))
        answer_text = _text(answer)
        if name is not None and answer_text.strip():
            answers.setdefault(name, answer_text.strip().strip("*").strip())
    return answers


def _known(questions: Sequence[Question], numbered_from: int | None) -> Mapping[str, str]:
    name_of: dict[str, str] = {}
    for place, question in enumerate(questions):
        number = question.id if numbered_from is None else place + numbered_from
        keys = [question.name, question.text, *question.spellings]
        if number is not None:
            keys += [str(number), f"q{number}", f"question {number}"]
        name_of |= {_even(key): question.name for key in keys}
    return name_of


def _even(key: object) -> str:
    return " ".join(re.findall(r"[^\W_]+", str(key).lower()))


def _json_of(text: str) -> Any:
    for opening in re.finditer(r"[{\[]", text):
        try:
            return json.JSONDecoder().raw_decode(text, opening.start())[0]
        except (ValueError, RecursionError):
            return None
    return None


def _pairs(content: Any) -> list[tuple[Any, Any]]:
    if isinstance(content, dict):
        for inner in ("answers", "questions", "results"):
            if isinstance(content.get(inner), dict | list):
                return _pairs(content[inner])
        return list(content.items())
    if not isinstance(content, list):
        return []
    pairs: list[tuple[Any, Any]] = []
    for entry in content:
        if isinstance(entry, dict):
            even = {str(key).lower(): value for key, value in entry.items()}
            answer = next((even[key] for key in _ANSWER_KEYS if key in even), None)
            pairs += [(even[key], answer) for key in _ID_KEYS if key in even]
    return pairs


def _text(answer: Any) -> str:
    if isinstance(answer, dict):
        even = {str(key).lower(): value for key, value in answer.items()}
        return _text(next((even[key] for key in _ANSWER_KEYS if key in even), None))
    if isinstance(answer, list):
        return ", ".join(_text(part) for part in answer) or "none"
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return "" if answer is None else str(answer)
