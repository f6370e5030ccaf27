"""Kinds of prompt that operators change: draws of changes, changed pools, and their words.

Captions of things and relations are in :mod:`medtest.relations.prompts.captions`, orders of medical pictures in
:mod:`medtest.relations.prompts.orders.content`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medtest.core.cases import Prompt
from medtest.core.scenes import Pool


class PromptContent(ABC):
    """A kind of prompt. Parameters are JSON values; ``settings`` are those of the operator.

    Draws raise :class:`~medtest.core.errors.NotApplicable` where nothing can change, wordings where no text is read as
    the changed pool.
    """

    @abstractmethod
    def draw_exchange(self, prompt: Prompt, settings: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Draw an entity and its new class: ``{"entity": index, "name": class, "attested": …}``."""

    @abstractmethod
    def check_removable(self, pool: Pool) -> None:
        """Check that something would be left after a removal."""

    @abstractmethod
    def draw_removal(self, prompt: Prompt, rng: np.random.Generator, *, keep: int | None = None) -> dict[str, Any]:
        """Draw what goes, which never takes the entity ``keep``."""

    @abstractmethod
    def draw_addition(
        self, prompt: Prompt, settings: Any, rng: np.random.Generator, *, never: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Draw what comes, unrelated to the classes ``never``."""

    @abstractmethod
    def exchanged(self, pool: Pool, params: Any) -> Pool:
        """Return the pool after an exchange."""

    @abstractmethod
    def reduced(self, pool: Pool, params: Any) -> Pool:
        """Return the pool after a removal."""

    @abstractmethod
    def extended(self, pool: Pool, params: Any) -> Pool:
        """Return the pool after an addition."""

    @abstractmethod
    def keeps_words(self, prompt: Prompt) -> bool:
        """Return True if follow-ups keep the prompt's words, instead of being worded by templates."""

    @abstractmethod
    def word_exchange(self, prompt: Prompt, params: Any, settings: Any) -> Prompt:
        """Return the prompt in its own words with another noun."""

    @abstractmethod
    def word_removal(self, prompt: Prompt, pool: Pool, params: Any) -> str:
        """Return the prompt's own words for the pool after a removal."""

    @abstractmethod
    def word_addition(self, prompt: Prompt, pool: Pool, params: Any, settings: Any) -> str:
        """Return the prompt's own words for the pool after an addition."""

    @abstractmethod
    def synonyms(self, prompt: Prompt) -> dict[str, tuple[str, ...]]:
        """Return other words for the classes that a prompt names, of those that have any."""

    @abstractmethod
    def reworded(self, prompt: Prompt, words: Mapping[str, str]) -> str:
        """Return the prompt's words with other words for some classes."""
