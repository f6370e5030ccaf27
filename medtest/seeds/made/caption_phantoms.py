"""Synthetic prompts: pools of what drawn scenes show, worded by templates.

They exercise a suite without captions; simulated services can draw them and the bundled reader can check them.
"""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from medtest.core.plugins import PartSettings, wrong_at
from medtest.seeds.captions.base import Candidate, Prompts, PromptSeedSettings, PromptSource


class CaptionPhantomSettings(PromptSeedSettings):
    """Settings of :class:`CaptionPhantoms`.

    Attributes:
        count: Number of prompts, 1 to 100,000, before filtering and sampling.
        start: Number of the first, so that two data sets of one suite share none.
        fewest: Least number of entities, 1 to 8.
        most: Greatest number of entities; all numbers between are equally likely.
        related: Probability that an entity after the first is related to an earlier one.
    """

    count: int = Field(default=24, ge=1, le=100_000)
    start: int = Field(default=0, ge=0, le=10_000_000)
    fewest: int = Field(default=1, ge=1, le=8)
    most: int = Field(default=5, ge=1, le=8)
    related: float = Field(default=1.0, ge=0, le=1)

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.fewest > self.most:
            raise wrong_at("fewest", f"at most {self.most}, as most says")
        return self


class CaptionPhantoms(PromptSource):
    """Synthetic prompts ``caption-00000``, ``caption-00001``, …; each is its own cluster."""

    Settings: ClassVar[type[PartSettings]] = CaptionPhantomSettings
    phantom: ClassVar[bool] = True

    settings: CaptionPhantomSettings

    def _look(self, listing: Prompts) -> None:
        from medtest.phantoms import prompts

        settings = self.settings
        for index in range(settings.start, settings.start + settings.count):
            pool = prompts.make(
                index, self.suite_seed, fewest=settings.fewest, most=settings.most, related=settings.related
            )
            listing.candidates.append(Candidate(seed_id=f"caption-{index:05d}", text="", pool=pool))
