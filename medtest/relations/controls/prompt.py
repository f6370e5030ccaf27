"""Control for pictures from prompts: the prompt says nothing, or what another one says."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import NO_IMAGE, FollowUp, Params, PreparedSeed, Prompt
from medtest.core.errors import NotApplicable
from medtest.core.plugins import PartSettings
from medtest.core.tasks.base import PROMPT
from medtest.relations.base import RelationSettings
from medtest.relations.controls.base import ControlRelation, other_case, removal, strangers
from medtest.relations.prompts.base import prompt_of

EMPTY, OTHER_PROMPT = "prompt", "other prompt"


class Emptying(PartSettings):
    """Level of ``prompt_emptied``.

    Attributes:
        fill: ``empty`` (:attr:`PromptEmptiedSettings.words`) or ``other`` (another case's prompt).
    """

    fill: Literal["empty", "other"]


class PromptEmptiedSettings(RelationSettings):
    """Settings of ``prompt_emptied``.

    Attributes:
        levels: What each severity says.
        severities: Severities to run.
        words: Words that name nothing; most services refuse a prompt without any.
    """

    levels: dict[int, Emptying] = Field(min_length=1)
    severities: list[int] = [1, 2]
    words: str = Field(default="A picture.", min_length=1, max_length=200, pattern=r"\S")


class PromptEmptied(ControlRelation):
    """Prompt that names nothing, or another case's prompt: what was drawn before must be gone."""

    Settings: ClassVar[type[RelationSettings]] = PromptEmptiedSettings
    takes: ClassVar[frozenset[str]] = frozenset({PROMPT})

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the other case.

        Raises:
            NotApplicable: The data set has no other case, or the case is an image.
        """
        prompt_of(seed)
        fill = self.settings.levels[severity].fill
        return {"fill": fill, "case": int(strangers(seed, rng)[0])} if fill == "other" else {"fill": fill}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Return the prompt that is sent."""
        prompt_of(seed)
        if params["fill"] == "empty":
            prompt, effect = Prompt(text=self.settings.words), removal(EMPTY)
        else:
            other = other_case(seed, params)
            if other.prompt is None:
                raise NotApplicable("the other case is an image")
            prompt, effect = other.prompt, removal(OTHER_PROMPT, other)
        return FollowUp(image=NO_IMAGE, prompt=prompt, params=dict(params), scale=1.0, effect=effect)
