"""Colours, as sets of the twelve base colours of Kvasir-VQA."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon import words as lexicon
from medtest.language.questions.answers.lexicon.texts import texts
from medtest.language.questions.answers.values.readings import Found, without
from medtest.language.questions.values import names

_TEXTS = texts(__file__)
_NOT_A_COLOUR = re.compile(_TEXTS["not_a_colour"])
_OF_SOMETHING_ELSE = re.compile(_TEXTS["of_something_else"])
_SURROUND = re.compile(_TEXTS["surround"])
_NO_REDNESS = re.compile(r"\bno (?:significant |obvious )?(?:redness|colou?r)")


_OF_MUCOSA = re.compile(r"\A(?:[ -]+\w+)?[ -]+mucosa(?!l)\b")
LANDMARK = 6
"""Question about a landmark's colour (official id), which is that of its mucosa."""


def colour(low: str, item: int | None = None) -> Found | None:
    """Return the colours that a text states for the subject of the question.

    Args:
        low: The plain text in lower case.
        item: Official id of the question.
    """
    masked = _NOT_A_COLOUR.sub(lambda match: " " * len(match[0]), without(_NO_REDNESS, low))
    mentions = [
        mention
        for mention in lexicon.affirmed("colour", masked)
        if not (
            _OF_SOMETHING_ELSE.match(low[mention[2] :])
            and not (item == LANDMARK and _OF_MUCOSA.match(low[mention[2] :]))
        )
        and not _SURROUND.search(low[max(0, mention[1] - 120) : mention[1]])
    ]
    if not mentions:
        return None
    return names(*(name for name, _, _ in mentions)), mentions[0][1], mentions[-1][2]
