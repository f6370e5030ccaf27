"""ACTesting's operators on entity-relation pools (section 3.1): EC, ER_R, ER_A, EC with the others, and SS.

Each draws what it does as JSON parameters and then does it; the follow-up's words are made from the changed pool by
templates (section 3.2, text synthesizing), and its effect is the difference of the two pools.
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
from medtest.relations.prompts import wording
from medtest.relations.prompts.base import PromptRelation, prompt_of
from medtest.relations.prompts.draws import Addition, Exchange, draw_addition, draw_exchange
from medtest.relations.prompts.pools import only_held_by, renamed, with_one_more, without
from medtest.relations.prompts.worlds import World, WorldName, world_of

TEXT = "text"
"""Parameter that holds a follow-up's words where a model added some."""


class OperatorSettings(RelationSettings):
    """What a suite may set of every operator.

    Attributes:
        severities: There is one, 0.
        enrich: Folder of a masked language model that adds words to the templates'; "" for none. Not a suite's to say.
        enrich_words: Most words that it adds to one prompt.
    """

    known_severities: ClassVar[tuple[int, ...]] = (0,)

    severities: list[int] = [0]
    enrich: str = Field(default="", json_schema_extra=TRUSTED)
    enrich_words: int = Field(default=1, ge=1, le=20)


class NewEntitySettings(OperatorSettings):
    """What a suite may set of operators that name a class that the prompt did not.

    Attributes:
        world: ``photographs``: Visual Genome's 150 classes, and triples that captions of photographs say; ``drawn``:
            what made scenes show.
        among: Classes of that world that may be named anew; empty for all.
        plausible: Whether EC prefers classes of which the same predicates are attested.
    """

    world: WorldName = "photographs"
    among: list[str] = []
    plausible: bool = True

    @model_validator(mode="after")
    def _known(self) -> Self:
        there = world_of(self.world).classes
        unknown = [name for name in self.among if name not in there]
        if unknown:
            meant = did_you_mean(unknown[0], there)
            raise wrong_at("among", f"classes of the world {self.world}, not {unknown[0]!r}{meant}")
        return self

    def chosen(self) -> World:
        """Return the world that these settings name."""
        return world_of(self.world).among(self.among)


class PoolOperator(PromptRelation):
    """An operator: what was drawn changes the pool, and templates say it."""

    Settings: ClassVar[type[RelationSettings]] = OperatorSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw what is done to the pool, and see that it can be said.

        Raises:
            NotApplicable: There is nothing to do it to, or no template says the changed pool.
        """
        prompt = prompt_of(seed)
        params = self.draw(prompt.pool, rng)
        made = self.change(prompt, params)
        folder = self.settings.enrich
        if folder:  # a model's arithmetic differs between machines: its words are kept, and replayed from there
            model = wording.enricher(folder)
            params[TEXT] = model.enrich(made.text, seed=int(rng.integers(2**31)), words=self.settings.enrich_words)
        return params

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the changed pool in the words of templates, with those that a model added."""
        pool = self.changed(prompt.pool, params)
        given = params.get(TEXT)
        return Prompt(text=wording.said(pool, prompt) if given is None else str(given), pool=pool)

    def fingerprint(self) -> dict[str, Any]:
        """Return the SHA-256 of every file of the folder of the model that adds words.

        Raises:
            UserMistakes: There is no such folder.
        """
        folder = self.settings.enrich
        if not folder:
            return {}
        where = Path(folder).expanduser()
        if not where.is_dir():
            found = f"{folder} (there is no such folder)"
            allowed = "a folder with a masked language model of transformers"
            raise Mistake(where="relation", key="enrich", found=found, allowed=allowed).as_error()
        files = sorted(path for path in where.iterdir() if path.is_file())
        return {"enrich": {path.name: file_sha256(path) for path in files}}

    @abstractmethod
    def draw(self, pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
        """Draw what is done, JSON values.

        Raises:
            NotApplicable: There is nothing to do it to.
        """

    @abstractmethod
    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool after it."""


class EntityChanging(PoolOperator):
    """EC: exactly one entity becomes another class.

    The new class is never a synonym, a kind or a superordinate of the old one or of any entity of the prompt. Number,
    attributes and relations stay. An entity that no class stands for is left alone.
    """

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
        """Draw an entity and its new class: ``{"entity": index, "name": class, "attested": …}``."""
        return exchange_params(draw_exchange(pool, self.settings.chosen(), rng, plausible=self.settings.plausible))

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool with the entity renamed."""
        return _exchanged(pool, params)


class TripleRemoval(PoolOperator):
    """ER_R: one triple goes, and with it the entities that no other triple holds; it takes two triples or more."""

    def draw(self, pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
        """Draw a triple: ``{"triple": index}``."""
        return {"triple": draw_removal(pool, rng)}

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool without the triple."""
        return without(pool, _index(params["triple"]))


class TripleAddition(PoolOperator):
    """ER_A: one triple more, with one new entity; (subject, predicate, object) is attested."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
        """Draw where and what: ``{"anchor": index, "predicate": …, "name": class, "subject": whether it is that}``."""
        return addition_params(draw_addition(pool, self.settings.chosen(), rng))

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool with the triple."""
        return _added(pool, params)


class ChangingAndRemoval(PoolOperator):
    """EC+ER_R: one entity becomes another class, and a triple goes that does not take it along."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
        """Draw both: ``{"ec": …, "er_r": …}``, the triple by its index in the source's pool."""
        if len(pool.triples) < 2:
            raise NotApplicable(_TOO_FEW)
        found = draw_exchange(pool, self.settings.chosen(), rng, plausible=self.settings.plausible)
        triple = draw_removal(pool, rng, keep=found.entity)
        return {"ec": exchange_params(found), "er_r": {"triple": triple}}

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool after both."""
        return without(_exchanged(pool, _of(params, "ec")), _index(_of(params, "er_r")["triple"]))


class ChangingAndAddition(PoolOperator):
    """EC+ER_A: one entity becomes another class, and one triple with a new entity is added, of no class that left."""

    Settings: ClassVar[type[RelationSettings]] = NewEntitySettings

    def draw(self, pool: Pool, rng: np.random.Generator) -> dict[str, Any]:
        """Draw both: ``{"ec": …, "er_a": …}``."""
        world = self.settings.chosen()
        found = draw_exchange(pool, world, rng, plausible=self.settings.plausible)
        left = pool.entities[found.entity].name
        added = draw_addition(renamed(pool, found.entity, found.name), world, rng, never=(left,))
        return {"ec": exchange_params(found), "er_a": addition_params(added)}

    def changed(self, pool: Pool, params: Params) -> Pool:
        """Return the pool after both."""
        return _added(_exchanged(pool, _of(params, "ec")), _of(params, "er_a"))


# ---------------------------------------------------------------------------------------------------------- synonyms


class SynonymSettings(RelationSettings):
    """What a suite may set of SS.

    Attributes:
        severities: There is one, 0.
        words: ``one`` class gets another word, or ``all`` that have one.
    """

    known_severities: ClassVar[tuple[int, ...]] = (0,)

    severities: list[int] = [0]
    words: Literal["one", "all"] = "one"


class SynonymSubstitution(PromptRelation):
    """SS, the baseline: other words for the same classes. The pool stays as it is, and so does every other word."""

    Settings: ClassVar[type[RelationSettings]] = SynonymSettings

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw words: ``{"words": [[class, word]]}``.

        Raises:
            NotApplicable: The prompt names no class by a word that has a synonym.
        """
        prompt = prompt_of(seed)
        others = {name: words for name in sorted(prompt.pool.names()) if (words := _others(prompt, name))}
        if not others:
            raise NotApplicable("no word of the prompt has a synonym")
        names = sorted(others)
        chosen = names if self.settings.words == "all" else [names[int(rng.integers(len(names)))]]
        return {"words": [[name, others[name][int(rng.integers(len(others[name])))]] for name in chosen]}

    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the prompt in other words; its pool is the same."""
        given: Any = params["words"]
        words = {str(name): str(word) for name, word in given}
        return Prompt(text=wording.reworded(prompt, words), pool=prompt.pool)


def _others(prompt: Prompt, name: str) -> tuple[str, ...]:
    """Return the other words for a class that may stand for the one that a prompt uses; none where two share a word."""
    known = vg150()
    word = wording.named_in(prompt.text, name)
    if word is None or any(other != name and f" {word} " in f" {other} " for other in prompt.pool.names()):
        return ()
    return tuple(one for one in known.synonyms(name) if one != word and known.class_of(one) == name)


# ------------------------------------------------------------------------------------------------------- what is drawn

_TOO_FEW = "removing a triple takes a prompt of two or more"


def draw_removal(pool: Pool, rng: np.random.Generator, *, keep: int | None = None) -> int:
    """Draw the index of a triple whose removal leaves the others.

    Args:
        pool: The pool.
        rng: The case's generator.
        keep: An entity that must stay.

    Raises:
        NotApplicable: It has fewer than two.
    """
    if len(pool.triples) < 2:
        raise NotApplicable(_TOO_FEW)
    there = [at for at in range(len(pool.triples)) if keep is None or keep not in only_held_by(pool, at)]
    return there[int(rng.integers(len(there)))]


def exchange_params(found: Exchange) -> dict[str, Any]:
    """Return an exchange as parameters."""
    return {"entity": found.entity, "name": found.name, "attested": found.attested}


def addition_params(found: Addition) -> dict[str, Any]:
    """Return an addition as parameters."""
    return {
        "anchor": found.anchor,
        "predicate": found.predicate,
        "name": found.name,
        "subject": found.is_subject,
    }


def _exchanged(pool: Pool, params: Params) -> Pool:
    return renamed(pool, _index(params["entity"]), str(params["name"]))


def _added(pool: Pool, params: Params) -> Pool:
    name = str(params["name"])
    entity = Entity(name=name, count=1 if vg150().counted(name) else None)
    return with_one_more(
        pool, _index(params["anchor"]), str(params["predicate"]), entity, is_subject=bool(params["subject"])
    )


def _of(params: Params, name: str) -> dict[str, Any]:
    """Return the parameters of one of two operators."""
    found: Any = params[name]
    return dict(found)


def _index(value: Any) -> int:
    return int(value)
