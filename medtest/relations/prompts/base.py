"""Base class of relations for prompts; the effect of a follow-up is the difference of the pools."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from medtest.core.cases import NO_IMAGE, Address, Effect, FollowUp, Params, PreparedSeed, Prompt
from medtest.core.errors import NotApplicable
from medtest.core.scenes import difference
from medtest.core.tasks.base import PROMPT
from medtest.relations.base import Relation, RelationSettings


class PromptRelationSettings(RelationSettings):
    """Settings of relations for prompts.

    Attributes:
        severities: Only 0 exists.
        pictures: Pictures of every changed prompt, each a case of its own that is compared with the source's picture.
    """

    known_severities: ClassVar[tuple[int, ...]] = (0,)

    severities: list[int] = [0]
    pictures: int = Field(default=1, ge=1, le=100)

    def counted(self) -> dict[str, Any]:
        """Return the settings that enter digests, without the usual single picture."""
        counted = super().counted()
        return counted if self.pictures > 1 else {key: value for key, value in counted.items() if key != "pictures"}


class PromptRelation(Relation):
    """Relation for prompts; a subclass implements :meth:`change` on words and pool.

    It has no levels: its cases have severity 0.
    """

    Settings: ClassVar[type[RelationSettings]] = PromptRelationSettings
    group: ClassVar[str] = "prompts"
    takes: ClassVar[frozenset[str]] = frozenset({PROMPT})

    def severities(self) -> tuple[int, ...]:
        """Return ``(0,)``."""
        return (0,)

    def pictures(self) -> int:
        """Return the number of consecutive repeats that share one changed prompt."""
        return int(getattr(self.settings, "pictures", 1))

    def repeats(self) -> int:
        """Return the number of cases for each prompt: draws of a change, times the pictures of each."""
        return super().repeats() * self.pictures()

    def generator(self, address: Address, suite_seed: int) -> np.random.Generator:
        """Return the random generator of a case; the pictures of one changed prompt share it."""
        return super().generator(replace(address, repeat=address.repeat // self.pictures()), suite_seed)

    @abstractmethod
    def change(self, prompt: Prompt, params: Params) -> Prompt:
        """Return the changed prompt, deterministically: its words and its pool.

        Args:
            prompt: The source prompt.
            params: Parameters from :meth:`sample`.
        """

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Return the follow-up of :meth:`change`; its scale is 1."""
        return prompted(seed, self.change(prompt_of(seed), params), params, scale=1.0)


def prompt_of(seed: PreparedSeed) -> Prompt:
    """Return a seed's prompt.

    Raises:
        NotApplicable: The seed has no prompt.
    """
    if seed.prompt is None:
        raise NotApplicable("it changes prompts; this case is an image")
    return seed.prompt


def prompted(seed: PreparedSeed, prompt: Prompt, params: Params, *, scale: float) -> FollowUp:
    """Return a follow-up that is a prompt, with the difference of the pools as its effect."""
    effect = Effect(kind="scene", data=difference(prompt_of(seed).pool, prompt.pool))
    return FollowUp(image=NO_IMAGE, prompt=prompt, params=dict(params), scale=scale, effect=effect)
