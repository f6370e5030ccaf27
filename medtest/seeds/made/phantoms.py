"""Synthetic colonoscopy images: seeds without privacy restrictions and with exact ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from medtest.core.cases import Seed, SeedRef
from medtest.core.plugins import PartSettings
from medtest.phantoms.colon import REVISION, ColonPhantom, colon_rng, make_colon
from medtest.seeds.base import SeedSource
from medtest.seeds.made.base import settings_digest

FrameKind = Literal["none", "round", "octagonal", "rectangular", "cut_corners", "inset", "stepped"]
NEGATIVES = 0.06
"""Share of phantoms without polyp if the suite does not set it."""
Side = Annotated[int, Field(ge=64, le=4096)]


class PhantomSettings(PartSettings):
    """Settings of :class:`Phantoms`.

    Attributes:
        count: Number of phantoms, 1 to 100,000.
        polyps: Polyps on each, 0 to 3; None draws (most have one).
        negatives: Share without polyp, 0 to 1, drawn independently; None is 6 %, and at most one of each ten
            (the last). Requires ``polyps`` to be None.
        frames: Kinds of black frame to draw from; None is all, each at the generator's weight.
        size: Height and width in pixels, 64 to 4096; None draws from 384×288 to 1920×1072.
    """

    count: int = Field(default=20, ge=1, le=100_000)
    polyps: int | None = Field(default=None, ge=0, le=3)
    negatives: float | None = Field(default=None, ge=0.0, le=1.0)
    frames: Annotated[list[FrameKind], Field(min_length=1)] | None = None
    size: Annotated[list[Side], Field(min_length=2, max_length=2)] | None = None

    @model_validator(mode="after")
    def _check_polyp_counts(self) -> PhantomSettings:
        if self.polyps is not None and self.negatives is not None:
            raise ValueError("polyps and negatives both say how many polyps there are: leave one out")
        return self


class Phantoms(SeedSource):
    """Colon phantoms, generated when loaded.

    Phantom ``i`` depends on the suite's seed, the data set's id and ``i`` (see
    :func:`medtest.phantoms.colon.colon_rng`), and on the settings other than ``count``.
    """

    Settings: ClassVar[type[PartSettings]] = PhantomSettings
    revision: ClassVar[int] = REVISION
    phantom: ClassVar[bool] = True

    settings: PhantomSettings

    def refs(self) -> Sequence[SeedRef]:
        """Return ``phantom-0000``, ``phantom-0001``, …, each its own cluster."""
        return tuple(
            SeedRef(dataset=self.dataset, seed_id=f"phantom-{index:04d}", locator=str(index))
            for index in range(self.settings.count)
        )

    def make(self, ref: SeedRef) -> ColonPhantom:
        """Generate one phantom with its ground truth: true frame and ``info`` besides image and mask."""
        index, size = int(ref.locator), self.settings.size
        polyps, negatives = self.settings.polyps, self.settings.negatives
        if polyps is None and negatives is None:
            polyps, negatives = (0, None) if self._is_negative(index) else (None, 0.0)
        return make_colon(
            colon_rng(self.suite_seed, self.dataset, index),
            size=(size[0], size[1]) if size is not None else None,
            polyps=polyps,
            frame=self.settings.frames,
            negatives=negatives,
        )

    def _is_negative(self, index: int) -> bool:
        """Return True if a phantom has no polyp under the default share.

        Only the last of each ten may be negative, so at most n / 10 of the first n are: negatives cannot show a lost
        polyp, and few cases should be spent on them. The data set's name is marked with ``#``, which no id contains, to
        keep this draw independent of the phantoms' own.
        """
        last = index % 10 == 9
        return last and float(colon_rng(self.suite_seed, f"{self.dataset}#negatives", index).random()) < 10 * NEGATIVES

    def load(self, ref: SeedRef) -> Seed:
        """Generate one phantom."""
        phantom = self.make(ref)
        return Seed(ref=ref, image=phantom.image, expected=phantom.mask)

    def digest(self) -> str:
        """Return a SHA-256 over the generator's revision, the settings, the data set's id and the suite's seed."""
        return settings_digest(self, "colon")
