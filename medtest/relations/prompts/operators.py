"""ACTesting's operators on entity-relation pools (section 3.1): EC, ER_R, ER_A, EC with the others, and SS.

Each draws JSON parameters and then applies them; the follow-up's words are generated from the changed pool by templates
(section 3.2, text synthesizing), and its effect is the difference of the two pools.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import Params, PreparedSeed, Prompt
from medtest.core.errors import Mistake, NotApplicable, did_you_mean
from medtest.core.files import file_sha256
from medtest.core.plugins import TRUSTED, wrong_at
from medtest.core.scenes import Pool
from medtest.language.orders.vocabulary import vocabulary
from medtest.relations.base import RelationSettings
from medtest.relations.prompts import wording
from medtest.relations.prompts.base import PromptRelation, PromptRelationSettings, prompt_of
from medtest.relations.prompts.captions import CaptionContent
from medtest.relations.prompts.orders.base import is_order
from medtest.relations.prompts.orders.content import OrderContent
from medtest.relations.prompts.worlds import World, WorldName, world_of

_MOST_DRAWS = 8
"""Most draws of a change of own words, of which the first that fits them is taken."""
Content: TypeAlias = CaptionContent | OrderContent
TEXT = "text"
"""Parameter with the follow-up's words if a model added some."""


class OperatorSettings(PromptRelationSettings):
    """Settings shared by all operators.

    Attributes:
        enrich: Folder of a masked language model that adds words to the templates'; "" for none. Trusted suites only.
        enrich_words: Most words added to one prompt.
    """

    enrich: str = Field(default="", json_schema_extra=TRUSTED)
    enrich_words: int = Field(default=1, ge=1, le=20)


class NewEntitySettings(OperatorSettings):
    """Settings of operators that introduce a new class.

    Attributes:
        world: ``photographs``: Visual Genome's 150 classes, and triples that captions of photographs say; ``drawn``:
            what drawn scenes show.
        among: Classes of that world, or findings for orders, that may be introduced; empty for all.
        plausible: Whether EC prefers classes with the same predicates attested.
    """

    world: WorldName = "photographs"
    among: list[str] = []
    plausible: bool = True

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        classes = (*world_of(self.world).classes, *vocabulary().findings)
        unknown = [name for name in self.among if name not in classes]
        if unknown:
            meant = did_you_mean(unknown[0], classes)
            allowed = f"classes of the world {self.world} or findings of orders"
            raise wrong_at("among", f"{allowed}, not {unknown[0]!r}{meant}")
        return self

    def chosen(self) -> World:
        """Return the world selected by these settings."""
        return world_of(self.world).among(self.among)


class PoolOperator(PromptRelation):
    """Base class of operators: drawn parameters change the pool, and templates or the prompt's own words say it."""

    Settings: ClassVar[type[RelationSettings]] = OperatorSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the change of the pool and check that it can be worded.

        Raises:
            NotApplicable: The operator does not apply, or no words say the changed pool.
        """
        prompt = prompt_of(seed)
        params, changed = self._drawn(prompt, rng)
        folder = self.settings.enrich
        if folder:  # a model's arithmetic differs between machines, so its words are stored and replayed
            model = wording.enricher(folder)
            params[TEXT] = model.enrich(changed.text, seed=int(rng.integers(2**31)), words=self.settings.enrich_words)
        return params

    def _drawn(self, prompt: Prompt, rng: np.random.Generator) -> tuple[dict[str, Any], Prompt]:
        """Return drawn parameters and the changed prompt; of own words, the first of several draws that fits."""
        content = content_of(prompt)
        for remaining in range(_MOST_DRAWS - 1 if content.keeps_words(prompt) else 0, -1, -1):
            try:
                params = self.draw(content, prompt, rng)
                return params, self.change(prompt, params)
            except NotApplicable:
                if not remaining:
                    raise
        raise AssertionError("unreachable")

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the changed pool worded by templates, in own words, or with the stored words of a model."""
        content = content_of(prompt)
        pool = self.changed(content, prompt, params)
        stored = params.get(TEXT)
        if stored is not None:
            text = str(stored)
        elif content.keeps_words(prompt):
            text = self.own_words(content, prompt, params, pool)
        else:
            text = wording.said(pool, prompt)
        return Prompt(text=text, pool=pool, own=prompt.own)

    def fingerprint(self) -> dict[str, Any]:
        """Return the SHA-256 of every file in the folder of the model that adds words.

        Raises:
            UserMistakes: There is no such folder.
        """
        folder = self.settings.enrich
        if not folder:
            return {}
        where = Path(folder).expanduser()
        if not where.is_dir():
            problem = f"{folder} (there is no such folder)"
            allowed = "a folder with a masked language model of transformers"
            raise Mistake(where="relation", key="enrich", found=problem, allowed=allowed).as_error()
        files = sorted(path for path in where.iterdir() if path.is_file())
        return {"enrich": {path.name: file_sha256(path) for path in files}}

    @abstractmethod
    def draw(self, content: Content, prompt: Prompt, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the change, as JSON values.

        Raises:
            NotApplicable: The operator does not apply.
        """

    @abstractmethod
    def changed(self, content: Content, prompt: Prompt, params: Params) -> Pool:
        """Return the changed pool."""

    @abstractmethod
    def own_words(self, content: Content, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the prompt's own words with the changed phrase.

        Args:
            content: The kind of content of the prompt.
            prompt: The source prompt.
            params: Drawn parameters.
            pool: The changed pool.

        Raises:
            NotApplicable: No text is read as the changed pool.
        """


class EntityChanging(PoolOperator):
    """EC: the class of exactly one entity changes.

    The new class is never a synonym, a kind or a superordinate of the old one or of any entity of the prompt. Number,
    attributes and relations stay. An entity without known class is never changed. In an order a finding becomes another
    one that can have its side, size, number and colour.
    """

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, content: Content, prompt: Prompt, rng: np.random.Generator) -> dict[str, Any]:
        """Draw an entity and its new class: ``{"entity": index, "name": class, "attested": …}``."""
        return content.draw_exchange(prompt, self.settings, rng)

    def changed(self, content: Content, prompt: Prompt, params: Params) -> Pool:
        """Return the pool with the entity renamed."""
        return content.exchanged(prompt.pool, params)

    def own_words(self, content: Content, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with another noun."""
        return content.word_exchange(prompt, params, self.settings).text


class TripleRemoval(PoolOperator):
    """ER_R: remove one triple and the entities held only by it; needs two or more. In an order one finding goes."""

    def draw(self, content: Content, prompt: Prompt, rng: np.random.Generator) -> dict[str, Any]:
        """Draw a triple, ``{"triple": index}``, or an order's finding, ``{"entity": index}``."""
        return content.draw_removal(prompt, rng)

    def changed(self, content: Content, prompt: Prompt, params: Params) -> Pool:
        """Return the pool without the triple."""
        return content.reduced(prompt.pool, params)

    def own_words(self, content: Content, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words without a phrase."""
        return content.word_removal(prompt, pool, params)


class TripleAddition(PoolOperator):
    """ER_A: add one attested triple with one new entity. In an order a finding comes, or an instrument."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, content: Content, prompt: Prompt, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the new entity, ``{"name": class, …}``, and what relates it to the others."""
        return content.draw_addition(prompt, self.settings, rng)

    def changed(self, content: Content, prompt: Prompt, params: Params) -> Pool:
        """Return the pool with the new entity."""
        return content.extended(prompt.pool, params)

    def own_words(self, content: Content, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with a further phrase."""
        return content.word_addition(prompt, pool, params, self.settings)


class ChangingAndRemoval(PoolOperator):
    """EC+ER_R: change the class of one entity and remove a triple that does not hold it alone."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, content: Content, prompt: Prompt, rng: np.random.Generator) -> dict[str, Any]:
        """Draw both: ``{"ec": …, "er_r": …}``, the triple or finding by its index in the source's pool."""
        content.check_removable(prompt.pool)
        exchange = content.draw_exchange(prompt, self.settings, rng)
        return {"ec": exchange, "er_r": content.draw_removal(prompt, rng, keep=exchange["entity"])}

    def changed(self, content: Content, prompt: Prompt, params: Params) -> Pool:
        """Return the pool after both changes."""
        return content.reduced(content.exchanged(prompt.pool, params["ec"]), params["er_r"])

    def own_words(self, content: Content, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with another noun and without a phrase."""
        return content.word_removal(content.word_exchange(prompt, params["ec"], self.settings), pool, params["er_r"])


class ChangingAndAddition(PoolOperator):
    """EC+ER_A: change the class of one entity and add a triple with a new entity unrelated to the old class."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, content: Content, prompt: Prompt, rng: np.random.Generator) -> dict[str, Any]:
        """Draw both: ``{"ec": …, "er_a": …}``."""
        exchange = content.draw_exchange(prompt, self.settings, rng)
        between = replace(prompt, pool=content.exchanged(prompt.pool, exchange))
        replaced = prompt.pool.entities[exchange["entity"]].name
        return {"ec": exchange, "er_a": content.draw_addition(between, self.settings, rng, never=(replaced,))}

    def changed(self, content: Content, prompt: Prompt, params: Params) -> Pool:
        """Return the pool after both changes."""
        return content.extended(content.exchanged(prompt.pool, params["ec"]), params["er_a"])

    def own_words(self, content: Content, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with another noun and a further phrase."""
        exchanged = content.word_exchange(prompt, params["ec"], self.settings)
        return content.word_addition(exchanged, pool, params["er_a"], self.settings)


# ---------------------------------------------------------------------------------------------------------- synonyms


class SynonymSettings(PromptRelationSettings):
    """Settings of SS.

    Attributes:
        words: Replace the word of ``one`` class, or of ``all`` with a synonym.
    """

    words: Literal["one", "all"] = "one"


class SynonymSubstitution(PromptRelation):
    """SS, the baseline: replace words by synonyms; the pool and all other words stay."""

    Settings: ClassVar[type[RelationSettings]] = SynonymSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw words: ``{"words": [[class, word]]}``.

        Raises:
            NotApplicable: No word for a class in the prompt has a synonym.
        """
        prompt = prompt_of(seed)
        others = content_of(prompt).synonyms(prompt)
        if not others:
            raise NotApplicable("no word of the prompt has a synonym")
        names = sorted(others)
        chosen = names if self.settings.words == "all" else [names[int(rng.integers(len(names)))]]
        return {"words": [[name, others[name][int(rng.integers(len(others[name])))]] for name in chosen]}

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the prompt in other words with the same pool."""
        pairs: Any = params["words"]
        words = {str(name): str(word) for name, word in pairs}
        return Prompt(text=content_of(prompt).reworded(prompt, words), pool=prompt.pool, own=prompt.own)


_CAPTIONS, _ORDERS = CaptionContent(), OrderContent()


def content_of(prompt: Prompt) -> Content:
    """Return the kind of content that a prompt has: an order of a medical picture, or a caption."""
    return _ORDERS if is_order(prompt) else _CAPTIONS
