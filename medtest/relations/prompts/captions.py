"""Captions: entities with relations, which operators change by attested triples.

Orders of medical pictures have the same methods, in :mod:`medtest.relations.prompts.orders.content`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medtest.core.cases import Prompt
from medtest.core.errors import NotApplicable
from medtest.core.scenes import Entity, Pool
from medtest.language.captions.vocabulary import vg150
from medtest.relations.prompts import fitting, own, wording
from medtest.relations.prompts.draws import draw_addition, draw_exchange
from medtest.relations.prompts.pools import only_held_by, renamed, with_one_more, without


class CaptionContent:
    """Captions; ``settings`` are those of the operator and name the world of classes.

    Draws are JSON values, and raise :class:`~medtest.core.errors.NotApplicable` where nothing can change; wordings
    raise it where no text is read as the changed pool.
    """

    def draw_exchange(self, prompt: Prompt, settings: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Draw an entity and its new class: ``{"entity": index, "name": class, "attested": …}``."""
        return draw_exchange(prompt.pool, settings.chosen(), rng, plausible=settings.plausible, careful=prompt.own)

    def check_removable(self, pool: Pool) -> None:
        """Check that there are two triples."""
        if len(pool.triples) < 2:
            raise NotApplicable("the prompt needs two or more triples to remove one")

    def draw_removal(self, prompt: Prompt, rng: np.random.Generator, *, keep: int | None = None) -> dict[str, Any]:
        """Draw a triple whose removal leaves the others and the entity ``keep``: ``{"triple": index}``."""
        pool = prompt.pool
        self.check_removable(pool)
        removable = [at for at in range(len(pool.triples)) if keep is None or keep not in only_held_by(pool, at)]
        return {"triple": removable[int(rng.integers(len(removable)))]}

    def draw_addition(
        self, prompt: Prompt, settings: Any, rng: np.random.Generator, *, never: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Draw ``{"anchor": index, "predicate": …, "name": class, "subject": whether the new entity is that}``.

        It is unrelated to the classes ``never``.
        """
        return draw_addition(prompt.pool, settings.chosen(), rng, never=never, careful=prompt.own)

    def exchanged(self, pool: Pool, params: Any) -> Pool:
        """Return the pool with the entity renamed."""
        return renamed(pool, int(params["entity"]), str(params["name"]))

    def reduced(self, pool: Pool, params: Any) -> Pool:
        """Return the pool without the triple."""
        return without(pool, int(params["triple"]))

    def extended(self, pool: Pool, params: Any) -> Pool:
        """Return the pool with the new triple."""
        name = str(params["name"])
        entity = Entity(name=name, count=1 if vg150().counted(name) else None)
        return with_one_more(
            pool, int(params["anchor"]), str(params["predicate"]), entity, is_subject=params["subject"]
        )

    def keeps_words(self, prompt: Prompt) -> bool:
        """Return True for prompts in their author's words; templates word the others."""
        return prompt.own

    def word_exchange(self, prompt: Prompt, params: Any, settings: Any) -> Prompt:
        """Return a prompt in its own words with another noun."""
        pool = self.exchanged(prompt.pool, params)
        if settings.world == "photographs":
            fitting.check_exchange(prompt.text, prompt.pool.entities[int(params["entity"])].name)
        text = own.exchanged(prompt, pool, int(params["entity"]), str(params["name"]))
        return Prompt(text=text, pool=pool, own=True)

    def word_removal(self, prompt: Prompt, pool: Pool, params: Any) -> str:
        """Return a prompt's own words without a phrase."""
        return own.shortened(prompt, pool)

    def word_addition(self, prompt: Prompt, pool: Pool, params: Any, settings: Any) -> str:
        """Return a prompt's own words with a further phrase."""
        if settings.world == "photographs":
            anchor = prompt.pool.entities[int(params["anchor"])].name
            fitting.check_addition(prompt.text, anchor, str(params["predicate"]), str(params["name"]))
        return own.extended(prompt, pool)

    def synonyms(self, prompt: Prompt) -> dict[str, tuple[str, ...]]:
        """Return true synonyms by class; none for a class that shares a word with another one of the prompt."""
        names = sorted(prompt.pool.names())
        return {name: words for name in names if (words := _others(prompt, name))}

    def reworded(self, prompt: Prompt, words: Mapping[str, str]) -> str:
        """Return the prompt's text with other words for some classes."""
        return wording.reworded(prompt, words)


def _others(prompt: Prompt, name: str) -> tuple[str, ...]:
    """Return the synonyms that may replace a prompt's word for a class; none if two classes share a word."""
    vocabulary = vg150()
    word = wording.named_in(prompt.text, name)
    if word is None or any(other != name and f" {word} " in f" {other} " for other in prompt.pool.names()):
        return ()
    return tuple(
        synonym for synonym in vocabulary.synonyms(name) if synonym != word and vocabulary.class_of(synonym) == name
    )
