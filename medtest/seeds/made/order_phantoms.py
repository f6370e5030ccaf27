"""Synthetic orders of medical pictures in controlled clinical English.

They exercise a suite without a user's prompts; the simulated service can draw them.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from medtest.core.plugins import PartSettings
from medtest.seeds.captions.base import Prompts
from medtest.seeds.captions.orders import OrderSeedSettings, OrderSource


class OrderPhantomSettings(OrderSeedSettings):
    """Settings of :class:`OrderPhantoms`.

    Attributes:
        count: Number of prompts, 1 to 100,000, before sampling.
        start: Number of the first, so that two data sets of one suite share none.
        modalities: Kinds of pictures, in turn; one may be named several times.
        special: Whether some orders are uncertain, normal or contradictory.
    """

    count: int = Field(default=24, ge=1, le=100_000)
    start: int = Field(default=0, ge=0, le=10_000_000)
    modalities: list[Literal["chest film", "endoscopy", "capsule"]] = Field(
        default=["chest film", "endoscopy", "chest film", "endoscopy", "capsule"], min_length=1, max_length=12
    )
    special: bool = True


class OrderPhantoms(OrderSource):
    """Synthetic orders ``order-00000``, ``order-00001``, …; each is its own cluster."""

    Settings: ClassVar[type[PartSettings]] = OrderPhantomSettings
    phantom: ClassVar[bool] = True

    settings: OrderPhantomSettings

    def _look(self, listing: Prompts) -> None:
        from medtest.language.orders import made

        settings = self.settings
        for index in range(settings.start, settings.start + settings.count):
            text = made.make(index, self.suite_seed, modalities=tuple(settings.modalities), special=settings.special)
            listing.candidates.append(self._candidate(f"order-{index:05d}", text))
