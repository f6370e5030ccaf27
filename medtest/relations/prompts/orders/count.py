"""Count: another number of one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import Params
from medtest.language.orders import OrderedFinding, OrderReading, vocabulary
from medtest.language.orders.lexicon import OrderKind
from medtest.language.orders.vocabulary import FindingWords
from medtest.relations.base import RelationSettings
from medtest.relations.prompts.base import PromptRelationSettings
from medtest.relations.prompts.orders.base import (
    Edit,
    FindingRelation,
    like,
    lowered,
    place,
    words_of,
)

_NUMBERS = frozenset((OrderKind.NUMBER, OrderKind.ARTICLE, OrderKind.SINGLE))


class CountSettings(PromptRelationSettings):
    """Settings of ``count``.

    Attributes:
        most: Greatest new number.
    """

    most: int = Field(default=3, ge=2, le=10)


class CountChange(FindingRelation):
    """One ordered finding with a stated number gets another, from 1 to ``most``, all equally likely."""

    Settings: ClassVar[type[RelationSettings]] = CountSettings
    lacks: ClassVar[str] = "no ordered finding has a number"

    def applies(self, finding: OrderedFinding, words: FindingWords) -> bool:
        """Return True for an ordered finding whose instances are counted and numbered."""
        return finding.presence == "ordered" and words.counted and finding.count is not None

    def options(self, finding: OrderedFinding, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the new number: ``{"count": number}``."""
        others = [number for number in range(1, self.settings.most + 1) if number != finding.count]
        return {"count": others[int(rng.integers(len(others)))]}

    def exchanged(self, finding: OrderedFinding, params: Params) -> OrderedFinding:
        """Return the finding with the new number."""
        return replace(finding, count=int(params["count"]))  # type: ignore[arg-type]

    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacements of number or article, and of the noun by its plural or singular."""
        item = reading.items[place(params)]
        number = int(params["count"])  # type: ignore[arg-type]
        word = vocabulary().numbers[number]
        words = words_of(reading.order.findings[place(params)])
        edits = []
        old = [phrase for phrase in item.phrases if phrase.kind in _NUMBERS]
        for phrase in old[:1]:
            edits.append(Edit(phrase.start, phrase.end, like(word, phrase.text, phrase.start)))
        for phrase in old[1:]:  # "a single"
            edits.append(Edit(phrase.start, phrase.end + 1, ""))
        first = min(item.phrases, key=lambda phrase: phrase.start)
        for phrase in item.phrases:
            text = phrase.text
            if phrase.kind is OrderKind.FINDING:
                text = words.plural(item.noun) if number != 1 else item.noun
            if phrase is first and not old:  # "red polyp"
                text = like(f"{word} {lowered(text, phrase.start)}", phrase.text, phrase.start)
            if text != phrase.text and phrase not in old:
                edits.append(Edit(phrase.start, phrase.end, text))
        return edits
