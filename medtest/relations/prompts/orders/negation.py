"""Negation: a finding that is ordered shall not be there, or the reverse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from medtest.core.cases import Params
from medtest.language.orders import OrderedFinding, OrderReading
from medtest.language.orders.findings import is_whole
from medtest.language.orders.vocabulary import FindingWords
from medtest.language.orders.writing import Wording, finding_words
from medtest.relations.prompts.orders.base import Edit, FindingRelation, like, place, words_of

_AND = re.compile(r"\s*,?\s*(?:and\s+)?(?:with\s+)?")


class Negation(FindingRelation):
    """One ordered finding becomes "no …", without its attributes; without any, a negated one becomes ordered."""

    lacks: ClassVar[str] = "no finding is ordered or negated by itself"

    def able(self, reading: OrderReading) -> list[int]:
        """Return the ordered findings; without any, those that are negated as a whole."""
        able = super().able(reading)
        ordered = [at for at in able if reading.order.findings[at].presence == "ordered"]
        return ordered or able

    def applies(self, finding: OrderedFinding, words: FindingWords) -> bool:
        """Return True for an ordered finding, and for a negation of a whole class."""
        return finding.presence == "ordered" or (finding.presence == "negated" and is_whole(finding))

    def exchanged(self, finding: OrderedFinding, params: Params) -> OrderedFinding:
        """Return the negated finding without attributes, or the ordered one: a single one if it is counted."""
        if finding.presence == "ordered":
            return OrderedFinding(name=finding.name, presence="negated")
        return replace(finding, presence="ordered", count=1 if words_of(finding).counted else None)

    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacement of the finding's words, and of a following "and", which would stretch a negation."""
        at = place(params)
        item, finding = reading.items[at], reading.order.findings[at]
        new = self.exchanged(finding, params)
        words = finding_words(new, Wording(nouns={finding.name: item.noun}))
        if new.presence == "ordered" and len(reading.text[: item.start].rstrip()) in {
            head.end for head in reading.heads
        }:
            words = f"with {words}"  # "chest film without effusion"
        edits = [Edit(item.start, item.end, like(words, reading.text[item.start :], item.start))]
        if new.presence == "negated" and at + 1 < len(reading.items):
            following = reading.items[at + 1]
            between = reading.text[item.end : following.start]
            if reading.order.findings[at + 1].presence == "ordered" and _AND.fullmatch(between):
                edits.append(Edit(item.end, following.start, " but with "))
        return edits
