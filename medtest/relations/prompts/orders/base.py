"""Base class of relations for orders: they change a prompt's own words, and only those that the change concerns.

The prompt is read (:func:`medtest.language.orders.read_order`), some of its words are replaced, and the result is read
again: it must say exactly the changed order, or the case is not applicable. The effect is the difference of the pools.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from medtest.core.cases import Params, PreparedSeed, Prompt
from medtest.core.errors import NotApplicable
from medtest.core.scenes import Pool
from medtest.language.captions import inflection
from medtest.language.orders import NotControlled, Order, OrderedFinding, OrderReading, order_pool, read_order
from medtest.language.orders.vocabulary import FindingWords, vocabulary
from medtest.relations.prompts.base import PromptRelation, prompt_of

_ARTICLE = re.compile(r"(?<!\S)(an?)\s+$", re.I)
"""Indefinite article at the end of the text before a replacement."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of the characters from ``start`` to ``end`` of a text."""

    start: int
    end: int
    text: str


class OrderRelation(PromptRelation):
    """Relation for orders; a subclass draws a change, words it and states the changed order."""

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the change and check that the changed prompt says it.

        Raises:
            NotApplicable: The prompt is no order in controlled English, or holds nothing that can change.
        """
        prompt = prompt_of(seed)
        params = self.draw(reading_of(prompt), rng)
        self.change(prompt, params)
        return params

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the prompt in the changed words, with the pool of the changed order.

        Raises:
            NotApplicable: The changed words say something else than the changed order.
        """
        reading = reading_of(prompt)
        text = edited(reading.text, self.edits(reading, params))
        try:
            order = read_order(text).order
        except NotControlled as error:
            raise NotApplicable(f"the changed prompt would not be clear: it {error}") from None
        if order != self.changed(reading.order, params):
            raise NotApplicable("the changed prompt would say something else as well")
        return Prompt(text=text, pool=order_pool(order))

    @abstractmethod
    def draw(self, reading: OrderReading, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the change, as JSON values.

        Raises:
            NotApplicable: The order holds nothing that can change.
        """

    @abstractmethod
    def edits(self, reading: OrderReading, params: Params) -> Sequence[Edit]:
        """Return the replacements of words, which do not overlap."""

    @abstractmethod
    def changed(self, order: Order, params: Params) -> Order:
        """Return the changed order."""


class FindingRelation(OrderRelation):
    """Relation that changes one ordered finding of equally likely ones; the effect is a difference of pools."""

    lacks: ClassVar[str] = ""
    """Reason why no finding can change, in a phrase."""

    def draw(self, reading: OrderReading, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the finding, ``{"finding": index}``, and the rest of the change.

        Raises:
            NotApplicable: No finding can change.
        """
        if reading.order.contradictions:
            raise NotApplicable("the prompt contradicts itself")
        able = self.able(reading)
        if not able:
            raise NotApplicable(self.lacks)
        at = able[int(rng.integers(len(able)))]
        return {"finding": at, **self.options(reading.order.findings[at], rng)}

    def changed(self, order: Order, params: Params) -> Order:
        """Return the order with the changed finding."""
        return with_finding(order, place(params), lambda finding: self.exchanged(finding, params))

    def able(self, reading: OrderReading) -> list[int]:
        """Return the indices of the findings that can change."""
        findings = enumerate(reading.order.findings)
        return [at for at, finding in findings if reading.items[at].alone and self.applies(finding, words_of(finding))]

    @abstractmethod
    def applies(self, finding: OrderedFinding, words: FindingWords) -> bool:
        """Return True if a finding can change."""

    def options(self, finding: OrderedFinding, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the rest of the change; nothing by default."""
        return {}

    @abstractmethod
    def exchanged(self, finding: OrderedFinding, params: Params) -> OrderedFinding:
        """Return the changed finding."""


def reading_of(prompt: Prompt) -> OrderReading:
    """Return the reading of a prompt.

    Raises:
        NotApplicable: It is not in controlled clinical English.
    """
    try:
        return read_order(prompt.text)
    except NotControlled as error:
        raise NotApplicable(f"the prompt is not in controlled clinical English: it {error}") from None


def is_order(prompt: Prompt) -> bool:
    """Return True if a prompt's words order a medical picture and its pool is that of the order."""
    return _pool_read(prompt.text) == prompt.pool


@lru_cache(maxsize=4096)
def _pool_read(text: str) -> Pool | None:
    try:
        return order_pool(read_order(text).order)
    except NotControlled:
        return None


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with the replacements made, each after the article that its first word takes."""
    articles = [article for edit in edits if (article := _article_before(text, edit)) is not None]
    replaced = [at for edit in edits for at in range(edit.start, edit.end)]
    edits = [*edits, *(article for article in articles if article.start not in replaced)]
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _article_before(text: str, edit: Edit) -> Edit | None:
    """Return the replacement of "a" or "an" directly before a replacement; None if there is none."""
    before = _ARTICLE.search(text, 0, edit.start)
    if before is None or not edit.text:
        return None
    article = inflection.article(edit.text)
    return Edit(*before.span(1), article.capitalize() if before[1][0].isupper() else article)


def like(word: str, old: str, start: int) -> str:
    """Return new words for old ones at a position, with a capital letter where the old ones begin the text with one."""
    return word[:1].upper() + word[1:] if start == 0 and old[:1].isupper() else word


def lowered(text: str, start: int) -> str:
    """Return words without the capital letter that begins a text; abbreviations keep it."""
    return text[:1].lower() + text[1:] if start == 0 and text[1:2].islower() else text


def place(params: Params) -> int:
    """Return the index of the drawn finding."""
    return int(params["finding"])  # type: ignore[arg-type]


def words_of(finding: OrderedFinding) -> FindingWords:
    """Return the vocabulary's entry of a finding."""
    return vocabulary().findings[finding.name]


def with_finding(order: Order, index: int, change: Callable[[OrderedFinding], OrderedFinding]) -> Order:
    """Return the order with one finding changed."""
    findings = [change(finding) if at == index else finding for at, finding in enumerate(order.findings)]
    return replace(order, findings=tuple(findings))
