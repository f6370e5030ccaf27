"""ACTesting's operators on entity-relation pools (section 3.1): EC, ER_R, ER_A, EC with the others, and SS.

Each draws JSON parameters and then applies them; the follow-up's words are generated from the changed pool by templates
(section 3.2, text synthesizing), and its effect is the difference of the two pools.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import Params, PreparedSeed, Prompt
from medtest.core.errors import Mistake, NotApplicable, did_you_mean
from medtest.core.files import file_sha256
from medtest.core.plugins import TRUSTED, wrong_at
from medtest.core.scenes import Entity, Pool
from medtest.language.captions.vocabulary import vg150
from medtest.relations.base import RelationSettings
from medtest.relations.levels import number
from medtest.relations.prompts import fitting, own, wording
from medtest.relations.prompts.base import PromptRelation, PromptRelationSettings, prompt_of
from medtest.relations.prompts.draws import draw_addition, draw_exchange
from medtest.relations.prompts.pools import only_held_by, renamed, with_one_more, without
from medtest.relations.prompts.worlds import World, WorldName, world_of

_MOST_DRAWS = 8
"""Most draws of a change of own words, of which the first that fits them is taken."""
TEXT = "text"
"""Parameter with the follow-up's words if a model added some."""


class OperatorSettings(PromptRelationSettings):
    """Settings shared by all operators.

    Attributes:
        severities: Only 0 exists.
        enrich: Folder of a masked language model that adds words to the templates'; "" for none. Trusted suites only.
        enrich_words: Most words added to one prompt.
    """

    known_severities: ClassVar[tuple[int, ...]] = (0,)

    severities: list[int] = [0]
    enrich: str = Field(default="", json_schema_extra=TRUSTED)
    enrich_words: int = Field(default=1, ge=1, le=20)


class NewEntitySettings(OperatorSettings):
    """Settings of operators that introduce a new class.

    Attributes:
        world: ``photographs``: Visual Genome's 150 classes, and triples that captions of photographs say; ``drawn``:
            what drawn scenes show.
        among: Classes of that world that may be introduced; empty for all.
        plausible: Whether EC prefers classes with the same predicates attested.
    """

    world: WorldName = "photographs"
    among: list[str] = []
    plausible: bool = True

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        classes = world_of(self.world).classes
        unknown = [name for name in self.among if name not in classes]
        if unknown:
            meant = did_you_mean(unknown[0], classes)
            raise wrong_at("among", f"classes of the world {self.world}, not {unknown[0]!r}{meant}")
        return self

    def chosen(self) -> World:
        """Return the world selected by these settings."""
        return world_of(self.world).among(self.among)


class PoolOperator(PromptRelation):
    """Base class of operators: drawn parameters change the pool, and templates word it."""

    Settings: ClassVar[type[RelationSettings]] = OperatorSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the change of the pool and check that it can be worded.

        Raises:
            NotApplicable: The operator does not apply, or no template can word the changed pool.
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
        for remaining in range(_MOST_DRAWS - 1 if prompt.own else 0, -1, -1):
            try:
                params = self.draw(prompt.pool, rng, careful=prompt.own)
                return params, self.change(prompt, params)
            except NotApplicable:
                if not remaining:
                    raise
        raise AssertionError("unreachable")

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the changed pool worded by templates, in own words, or with the stored words of a model."""
        pool = self.changed(prompt.pool, params)
        stored = params.get(TEXT)
        if prompt.own:
            text = self.own_words(prompt, params, pool) if stored is None else str(stored)
            return Prompt(text=text, pool=pool, own=True)
        return Prompt(text=wording.said(pool, prompt) if stored is None else str(stored), pool=pool)

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
    def draw(self, pool: Pool, rng: np.random.Generator, *, careful: bool = False) -> dict[str, Any]:
        """Draw the change, as JSON values.

        Args:
            pool: The pool.
            rng: The case's generator.
            careful: Whether classes must fit attributes and relations, as in prompts that a person wrote.

        Raises:
            NotApplicable: The operator does not apply.
        """

    @abstractmethod
    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the changed pool."""

    @abstractmethod
    def own_words(self, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the prompt's own words with the changed phrase.

        Args:
            prompt: The source prompt.
            params: Drawn parameters.
            pool: The changed pool.

        Raises:
            NotApplicable: No text is read as the changed pool.
        """


class EntityChanging(PoolOperator):
    """EC: the class of exactly one entity changes.

    The new class is never a synonym, a kind or a superordinate of the old one or of any entity of the prompt. Number,
    attributes and relations stay. An entity without known class is never changed.
    """

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator, *, careful: bool = False) -> dict[str, Any]:
        """Draw an entity and its new class: ``{"entity": index, "name": class, "attested": …}``."""
        return draw_exchange(pool, self.settings.chosen(), rng, plausible=self.settings.plausible, careful=careful)

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool with the entity renamed."""
        return _exchanged(pool, params)

    def own_words(self, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with another noun."""
        return _exchanged_in(prompt, params, self.settings.world).text


class TripleRemoval(PoolOperator):
    """ER_R: remove one triple and the entities held only by it; needs two triples or more."""

    def draw(self, pool: Pool, rng: np.random.Generator, *, careful: bool = False) -> dict[str, Any]:
        """Draw a triple: ``{"triple": index}``."""
        return {"triple": draw_removal(pool, rng)}

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool without the triple."""
        return without(pool, int(number(params, "triple")))

    def own_words(self, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words without a phrase."""
        return own.shortened(prompt, pool)


class TripleAddition(PoolOperator):
    """ER_A: add one triple with one new entity, such that (subject, predicate, object) is attested."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator, *, careful: bool = False) -> dict[str, Any]:
        """Draw the addition: ``{"anchor": index, "predicate": …, "name": class, "subject": whether it is that}``."""
        return draw_addition(pool, self.settings.chosen(), rng, careful=careful)

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool with the new triple."""
        return _add_entity(pool, params)

    def own_words(self, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with a further phrase."""
        return _extended(prompt, params, pool, self.settings.world)


class ChangingAndRemoval(PoolOperator):
    """EC+ER_R: change the class of one entity and remove a triple that does not hold it alone."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator, *, careful: bool = False) -> dict[str, Any]:
        """Draw both: ``{"ec": …, "er_r": …}``, the triple by its index in the source's pool."""
        if len(pool.triples) < 2:
            raise NotApplicable(_TOO_FEW)
        exchange = draw_exchange(pool, self.settings.chosen(), rng, plausible=self.settings.plausible, careful=careful)
        return {"ec": exchange, "er_r": {"triple": draw_removal(pool, rng, keep=exchange["entity"])}}

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool after both changes."""
        removed: Any = params["er_r"]
        return without(_exchanged(pool, params["ec"]), removed["triple"])

    def own_words(self, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with another noun and without a phrase."""
        return own.shortened(_exchanged_in(prompt, params["ec"], self.settings.world), pool)


class ChangingAndAddition(PoolOperator):
    """EC+ER_A: change the class of one entity and add a triple with a new entity unrelated to the old class."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator, *, careful: bool = False) -> dict[str, Any]:
        """Draw both: ``{"ec": …, "er_a": …}``."""
        world = self.settings.chosen()
        exchange = draw_exchange(pool, world, rng, plausible=self.settings.plausible, careful=careful)
        replaced = pool.entities[exchange["entity"]].name
        return {
            "ec": exchange,
            "er_a": draw_addition(_exchanged(pool, exchange), world, rng, never=(replaced,), careful=careful),
        }

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool after both changes."""
        return _add_entity(_exchanged(pool, params["ec"]), params["er_a"])

    def own_words(self, prompt: Prompt, params: Params, pool: Pool) -> str:
        """Return the words with another noun and a further phrase."""
        exchanged = _exchanged_in(prompt, params["ec"], self.settings.world)
        return _extended(exchanged, params["er_a"], pool, self.settings.world)


# ---------------------------------------------------------------------------------------------------------- synonyms


class SynonymSettings(PromptRelationSettings):
    """Settings of SS.

    Attributes:
        severities: Only 0 exists.
        words: Replace the word of ``one`` class, or of ``all`` with a synonym.
    """

    known_severities: ClassVar[tuple[int, ...]] = (0,)

    severities: list[int] = [0]
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
        others = {name: words for name in sorted(prompt.pool.names()) if (words := _others(prompt, name))}
        if not others:
            raise NotApplicable("no word of the prompt has a synonym")
        names = sorted(others)
        chosen = names if self.settings.words == "all" else [names[int(rng.integers(len(names)))]]
        return {"words": [[name, others[name][int(rng.integers(len(others[name])))]] for name in chosen]}

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the prompt in other words with the same pool."""
        pairs: Any = params["words"]
        words = {str(name): str(word) for name, word in pairs}
        return Prompt(text=wording.reworded(prompt, words), pool=prompt.pool, own=prompt.own)


def _others(prompt: Prompt, name: str) -> tuple[str, ...]:
    """Return the synonyms that may replace a prompt's word for a class; none if two classes share a word."""
    vocabulary = vg150()
    word = wording.named_in(prompt.text, name)
    if word is None or any(other != name and f" {word} " in f" {other} " for other in prompt.pool.names()):
        return ()
    return tuple(
        synonym for synonym in vocabulary.synonyms(name) if synonym != word and vocabulary.class_of(synonym) == name
    )


# -------------------------------------------------------------------------------------------------------------- draws

_TOO_FEW = "the prompt needs two or more triples to remove one"


def draw_removal(pool: Pool, rng: np.random.Generator, *, keep: int | None = None) -> int:
    """Draw the index of a triple whose removal leaves the others.

    Args:
        pool: The pool.
        rng: The case's generator.
        keep: An entity that must stay.

    Raises:
        NotApplicable: The pool has fewer than two triples.
    """
    if len(pool.triples) < 2:
        raise NotApplicable(_TOO_FEW)
    removable = [at for at in range(len(pool.triples)) if keep is None or keep not in only_held_by(pool, at)]
    return removable[int(rng.integers(len(removable)))]


def _exchanged(pool: Pool, params: Any) -> Pool:
    return renamed(pool, int(params["entity"]), str(params["name"]))


def _exchanged_in(prompt: Prompt, params: Any, world: WorldName) -> Prompt:
    """Return a prompt in its own words with another noun."""
    pool = _exchanged(prompt.pool, params)
    if world == "photographs":
        fitting.check_exchange(prompt.text, prompt.pool.entities[int(params["entity"])].name)
    text = own.exchanged(prompt, pool, int(params["entity"]), str(params["name"]))
    return Prompt(text=text, pool=pool, own=True)


def _extended(prompt: Prompt, params: Any, pool: Pool, world: WorldName) -> str:
    """Return a prompt's own words with a further phrase."""
    if world == "photographs":
        anchor = prompt.pool.entities[int(params["anchor"])].name
        fitting.check_addition(prompt.text, anchor, str(params["predicate"]), str(params["name"]))
    return own.extended(prompt, pool)


def _add_entity(pool: Pool, params: Any) -> Pool:
    name = str(params["name"])
    entity = Entity(name=name, count=1 if vg150().counted(name) else None)
    return with_one_more(pool, int(params["anchor"]), str(params["predicate"]), entity, is_subject=params["subject"])
