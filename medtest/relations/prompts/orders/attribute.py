"""Attribute: another size, colour or Paris type of one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Params
from medtest.language.orders import OrderedFinding, OrderReading, vocabulary
from medtest.language.orders.contents import size_class
from medtest.language.orders.lexicon import OrderKind, OrderPhrase
from medtest.language.orders.vocabulary import FindingWords
from medtest.language.orders.writing import size_words
from medtest.relations.base import RelationSettings
from medtest.relations.prompts.base import PromptRelationSettings
from medtest.relations.prompts.orders.base import (
    Edit,
    FindingRelation,
    like,
    place,
    words_of,
)

What = Literal["size", "colour", "paris"]
_SIZES = (4.0, 8.0, 15.0, 24.0)
"""New diameters in millimetres, one well inside each class of size."""
_KINDS = {"size": OrderKind.SIZE, "colour": OrderKind.COLOUR, "paris": OrderKind.PARIS}


class AttributeSettings(PromptRelationSettings):
    """Settings of ``attribute``.

    Attributes:
        among: Attributes that may change: ``size``, ``colour``, ``paris``.
    """

    among: list[What] = Field(default=["size", "colour", "paris"], min_length=1)


class AttributeChange(FindingRelation):
    """One stated attribute of one ordered finding becomes another; a size changes to another class of size."""

    Settings: ClassVar[type[RelationSettings]] = AttributeSettings
    lacks: ClassVar[str] = "no ordered finding has a size, colour or Paris type that can change"

    def applies(self, finding: OrderedFinding, words: FindingWords) -> bool:
        """Return True for an ordered finding with an attribute that can change."""
        return finding.presence == "ordered" and bool(self._able(finding))

    def _able(self, finding: OrderedFinding) -> list[tuple[str, list[Any]]]:
        """Return the attributes of a finding that can change, with their new values."""
        able = [(attribute, _others(finding, attribute)) for attribute in self.settings.among]
        return [(attribute, values) for attribute, values in able if values]

    def options(self, finding: OrderedFinding, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the attribute, and its new value: ``{"what": …, "value": …}``."""
        able = self._able(finding)
        attribute, values = able[int(rng.integers(len(able)))]
        return {"what": attribute, "value": values[int(rng.integers(len(values)))]}

    def exchanged(self, finding: OrderedFinding, params: Params) -> OrderedFinding:
        """Return the finding with the new value."""
        value: Any = params["value"]
        if params["what"] == "size":
            return replace(finding, size_mm=float(value))
        if params["what"] == "colour":
            return replace(finding, colour=str(value))
        return replace(finding, paris=str(value))

    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacement of every phrase for the attribute."""
        kind = _KINDS[str(params["what"])]
        phrases = [phrase for phrase in reading.items[place(params)].phrases if phrase.kind is kind]
        return [Edit(phrase.start, phrase.end, _worded(phrase, params["value"])) for phrase in phrases]


def _others(finding: OrderedFinding, attribute: str) -> list[Any]:
    """Return the values that may replace a stated one; none if the attribute is not stated."""
    if attribute == "size":
        bounds = words_of(finding).millimetres
        if finding.size_mm is None or bounds is None:
            return []
        own = size_class(finding.size_mm)
        return [size for size in _SIZES if size_class(size) != own and bounds[0] <= size <= bounds[1]]
    if attribute == "colour":
        return [colour for colour in vocabulary().lists["colours"] if finding.colour and colour != finding.colour]
    return [paris for paris in vocabulary().paris if finding.paris and paris != finding.paris]


def _worded(phrase: OrderPhrase, value: Any) -> str:
    """Return the wording of the new value, modelled on the old: the same unit, the same way to name a Paris type."""
    if phrase.kind is OrderKind.SIZE:
        return size_words(float(value), "cm" if phrase.text.lower().endswith("cm") else "mm")
    if phrase.kind is OrderKind.COLOUR:
        return like(str(value), phrase.text, phrase.start)
    paris = vocabulary().paris
    spelt = [words.lower().replace("-", " ") for words in paris[phrase.value]]
    at = spelt.index(" ".join(phrase.text.lower().replace("-", " ").split()))
    return like(paris[str(value)][min(at, len(paris[str(value)]) - 1)], phrase.text, phrase.start)
