"""Side: a finding moves to the patient's other side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from medtest.core.cases import Params
from medtest.language.orders import OrderedFinding, OrderReading
from medtest.language.orders.lexicon import OrderKind
from medtest.language.orders.vocabulary import FindingWords
from medtest.relations.prompts.orders.base import Edit, FindingRelation, place

_OTHER = {"left": "right", "right": "left", "l": "r", "r": "l"}
_WORD = re.compile(r"\b(?:left|right|[lr])\b", re.I)


class SideSwap(FindingRelation):
    """One ordered finding with a left or right side moves to the other; midline and bilateral ones are SKIP."""

    lacks: ClassVar[str] = "no ordered finding is on one side alone"

    def applies(self, finding: OrderedFinding, words: FindingWords) -> bool:
        """Return True for an ordered finding on the left or the right."""
        return finding.presence == "ordered" and finding.side in ("left", "right")

    def exchanged(self, finding: OrderedFinding, params: Params) -> OrderedFinding:
        """Return the finding on the other side."""
        return replace(finding, side="left" if finding.side == "right" else "right")

    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacement of every word for the side."""
        phrases = [phrase for phrase in reading.items[place(params)].phrases if phrase.kind is OrderKind.SIDE]
        return [
            Edit(phrase.start, phrase.end, _WORD.sub(lambda match: _other(match.group()), phrase.text))
            for phrase in phrases
        ]


def _other(word: str) -> str:
    """Return the word for the other side, in capitals where the old one is."""
    other = _OTHER[word.lower()]
    return other.upper() if word.isupper() else other.capitalize() if word.istitle() else other
