"""Bystander: another age, sex or scanner, none of which changes the findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Params
from medtest.core.errors import NotApplicable
from medtest.language.orders import Order, OrderReading, vocabulary
from medtest.language.orders.lexicon import OrderKind, OrderPhrase
from medtest.language.orders.writing import patient_words
from medtest.relations.base import RelationSettings
from medtest.relations.prompts.base import PromptRelationSettings
from medtest.relations.prompts.orders.base import Edit, OrderRelation, like

What = Literal["age", "sex", "scanner"]
_AGES = tuple(range(25, 90, 5))
_APART = 15
"""Least difference of a new age, in years."""


class BystanderSettings(PromptRelationSettings):
    """Settings of ``bystander``.

    Attributes:
        among: What may change or be added: ``age``, ``sex``, ``scanner``.
    """

    among: list[What] = Field(default=["age", "sex", "scanner"], min_length=1)


class Bystander(OrderRelation):
    """Another age, sex or scanner, or one where the prompt names none; findings must stay, other things need not."""

    Settings: ClassVar[type[RelationSettings]] = BystanderSettings

    def draw(self, reading: OrderReading, rng: np.random.Generator) -> dict[str, Any]:
        """Draw what changes, and its new value: ``{"what": …, "value": …}``."""
        bystander = self.settings.among[int(rng.integers(len(self.settings.among)))]
        values = _VALUES[bystander](reading.order)
        return {"what": bystander, "value": values[int(rng.integers(len(values)))]}

    def changed(self, order: Order, params: Params) -> Order:
        """Return the order with the new value."""
        return replace(order, **{str(params["what"]): params["value"]})  # type: ignore[arg-type]

    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacement of the words that name the old value, or the addition of new ones."""
        kind = {"age": OrderKind.AGE, "sex": OrderKind.SEX, "scanner": OrderKind.SCANNER}[str(params["what"])]
        old = [phrase for phrase in reading.heads if phrase.kind is kind]
        if old:
            return [Edit(phrase.start, phrase.end, _worded(reading, phrase, params["value"])) for phrase in old]
        picture = reading.head(OrderKind.MODALITY)
        if picture is None:
            raise NotApplicable("the prompt names the kind of picture only with other words")
        return [_added(reading, picture, self.changed(reading.order, params), str(params["what"]))]


def _worded(reading: OrderReading, phrase: OrderPhrase, value: Any) -> str:
    """Return the wording of the new value, modelled on the old ("M" for "F", a scanner's name for a scanner's name)."""
    if phrase.kind is OrderKind.AGE:
        return str(value)
    words = vocabulary()
    table = words.sexes if phrase.kind is OrderKind.SEX else words.modalities[reading.order.modality].scanners
    spelt = [word.lower() for word in table[phrase.value]]
    at = spelt.index(phrase.text.lower()) if phrase.text.lower() in spelt else 0
    new = table[str(value)]
    return like(new[min(at, len(new) - 1)], phrase.text, phrase.start)


def _added(reading: OrderReading, picture: OrderPhrase, order: Order, bystander: str) -> Edit:
    """Return the words for a value that the prompt did not name: after the kind of picture, or before the sex."""
    sex, age = reading.head(OrderKind.SEX), reading.head(OrderKind.AGE)
    if bystander == "age" and sex is not None:
        return Edit(sex.start, sex.start, f"{order.age}-year-old ")
    if bystander == "sex" and age is not None:
        raise NotApplicable("the prompt names an age without a sex")
    if bystander != "scanner":
        return Edit(picture.end, picture.end, f" of {patient_words(order)}")
    scanner = vocabulary().modalities[order.modality].scanners[order.scanner][0]
    more = reading.text[picture.end :].lstrip()
    return Edit(picture.end, picture.end, f", {scanner}{',' if more[:1].isalpha() else ''}")


def _other_ages(order: Order) -> list[Any]:
    return [age for age in _AGES if order.age is None or abs(age - order.age) >= _APART]


def _other_sexes(order: Order) -> list[Any]:
    return [sex for sex in vocabulary().sexes if sex != order.sex]


def _other_scanners(order: Order) -> list[Any]:
    return [name for name in vocabulary().modalities[order.modality].scanners if name != order.scanner]


_VALUES = {"age": _other_ages, "sex": _other_sexes, "scanner": _other_scanners}
