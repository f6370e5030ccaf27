"""One text that answers several questions, cut into one answer each.

Understood are JSON objects by name, id or wording of the question, JSON lists of ``{QuestionID, Answer}`` as the
contest writes them, and numbered or labelled lines ("3. No", "polyps: 1"). What cannot be told apart stays away, and is
``unparsed`` further on: an answer is never given to a question it may not belong to.
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
    """Return each question's own answer by the question's name.

    Args:
        text: What the model gave for all of them.
        questions: The questions, in the order in which they were asked.
        numbered_from: First number of the list in which they were asked (0 or 1); None where they went by name or id,
            so that numbers are official ids.

    Returns:
        Name of the question to the text of its answer; questions without one are missing.
    """
    shown = text[: 4 * LONGEST]
    found = _json_of(shown)
    pairs = _pairs(found) if found is not None else [(one["key"], one["answer"]) for one in _LINE.finditer(shown)]
    known = _known(questions, numbered_from)
    answers: dict[str, str] = {}
    for key, answer in pairs:
        name = known.get(_even(key))
        said = _text(answer)
        if name is not None and said.strip():
            answers.setdefault(name, said.strip().strip("*").strip())
    return answers


def _known(questions: Sequence[Question], numbered_from: int | None) -> Mapping[str, str]:
    known: dict[str, str] = {}
    for place, question in enumerate(questions):
        number = question.id if numbered_from is None else place + numbered_from
        keys = [question.name, question.text, *question.spellings]
        if number is not None:
            keys += [str(number), f"q{number}", f"question {number}"]
        known |= {_even(key): question.name for key in keys}
    return known


def _even(key: object) -> str:
    return " ".join(re.findall(r"[^\W_]+", str(key).lower()))


def _json_of(text: str) -> Any:
    for opening in re.finditer(r"[{\[]", text):
        try:
            return json.JSONDecoder().raw_decode(text, opening.start())[0]
        except (ValueError, RecursionError):
            return None
    return None


def _pairs(found: Any) -> list[tuple[Any, Any]]:
    if isinstance(found, dict):
        for inner in ("answers", "questions", "results"):
            if isinstance(found.get(inner), dict | list):
                return _pairs(found[inner])
        return list(found.items())
    if not isinstance(found, list):
        return []
    pairs: list[tuple[Any, Any]] = []
    for entry in found:
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
        return ", ".join(_text(one) for one in answer) or "none"
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return "" if answer is None else str(answer)
