"""Control for questions: a question about something that is not in the picture."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, field_validator

from medtest.core.cases import Ask, FollowUp, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.relations.base import RelationSettings
from medtest.relations.controls.base import ControlRelation, ControlSettings, removal

PREMISE = "premise"
_OPEN = re.compile(r"^\s*(?:where|what|which|how many|how (?:large|big))\b", re.IGNORECASE)
_NOUN = re.compile(
    r"\b(?:anatomical\s+)?(?P<noun>polyp|finding|abnormalit|lesion|nodule|instrument|landmark|tumou?r|mass)"
    r"(?P<many>s|es|ies)?(?P<y>y)?\b",
    re.IGNORECASE,
)
_MOST_LETTERS = 60


class FalsePremiseSettings(ControlSettings):
    """Settings of ``false_premise``.

    Attributes:
        things: Things that are in none of the pictures, in the singular; each case draws one.
    """

    things: list[str] = Field(
        default=["hip prosthesis", "dental implant", "wedding ring"], min_length=1, max_length=100
    )

    @field_validator("things")
    @classmethod
    def _check_things(cls, things: list[str]) -> list[str]:
        for thing in things:
            if not re.fullmatch(r"[A-Za-z][A-Za-z -]*[A-Za-z]", thing) or len(thing) > _MOST_LETTERS:
                raise ValueError(f"a thing is words of letters, at most {_MOST_LETTERS}; not {thing[:80]!r}")
        return things


class FalsePremise(ControlRelation):
    """Question that presumes something absent: "Where is the polyp?" becomes "Where is the hip prosthesis?".

    Only open questions are asked ("where", "what", "how many"), which presume the thing; the answer must deny it.
    """

    Settings: ClassVar[type[RelationSettings]] = FalsePremiseSettings
    takes: ClassVar[frozenset[str]] = frozenset({"answer"})
    effects: ClassVar[frozenset[str]] = frozenset({"false_premise"})

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the thing.

        Raises:
            NotApplicable: No question presumes a thing.
        """
        things = self.settings.things
        thing = things[int(rng.integers(len(things)))]
        if not asks_about(thing, seed.asks):
            raise NotApplicable("no question presumes a finding, an instrument or a landmark")
        return {"thing": thing}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Return the picture with the changed questions."""
        asks = asks_about(str(params["thing"]), seed.asks)
        return FollowUp(image=seed.image.copy(), params=dict(params), scale=1.0, effect=removal(PREMISE), asks=asks)


def asks_about(noun: str, asks: tuple[Ask, ...]) -> dict[str, Ask]:
    """Return the questions that presume a noun, about another one, by item.

    Args:
        noun: The other noun, in the singular.
        asks: The questions.
    """
    changed: dict[str, Ask] = {}
    for ask in asks:
        if _OPEN.match(ask.text) and _NOUN.search(ask.text):
            changed[ask.item] = replace(ask, text=_NOUN.sub(lambda match: _named(noun, match), ask.text))
    return changed


def _named(noun: str, match: re.Match[str]) -> str:
    if match["many"] is None:
        return noun
    if noun.endswith("sis"):
        return f"{noun[:-2]}es"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
