"""Made images with labels: capsule frames, skin lesions, fundus photographs, chest films.

They exercise a suite where no clinical images are at hand, and never stand for clinical evidence.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from medtest.cases import Classes, Seed, SeedRef
from medtest.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.phantoms.labelled import MAX_SIZE, MIN_SIZE, LabelledPhantom
from medtest.plugins import PartSettings
from medtest.seeds.base import SeedSource

KINDS: dict[str, tuple[str, Classes]] = {
    "capsule": ("medtest.phantoms.capsule", CAPSULE),
    "dermoscopy": ("medtest.phantoms.skin", DERMOSCOPY),
    "fundus": ("medtest.phantoms.fundus", FUNDUS),
    "chest": ("medtest.phantoms.chest", CHEST),
}
"""Where each kind's generator stands, and its classes. Generators load where they are used."""


class LabelPhantomSettings(PartSettings):
    """What a suite may set.

    Attributes:
        what: ``capsule``, ``dermoscopy``, ``fundus`` or ``chest``.
        count: How many, 1 to 100,000.
        start: Number of the first, so that two data sets of one suite share none.
        size: Pixels a side, 128 to 1024; None for the kind's own (capsule and fundus 320, the others 256).
    """

    what: Literal["capsule", "dermoscopy", "fundus", "chest"]
    count: int = Field(default=24, ge=1, le=100_000)
    start: int = Field(default=0, ge=0, le=10_000_000)
    size: int | None = Field(default=None, ge=MIN_SIZE, le=MAX_SIZE)


class LabelPhantoms(SeedSource):
    """Phantoms with labels, made when they are loaded.

    Phantom ``i`` depends on the suite's seed, ``what``, ``size`` and ``i`` alone, however many are made. Each is a
    cluster of its own.
    """

    Settings: ClassVar[type[PartSettings]] = LabelPhantomSettings
    task: ClassVar[str] = "label"
    phantom: ClassVar[bool] = True

    settings: LabelPhantomSettings

    def classes(self) -> Classes:
        """Return the classes of the kind."""
        return KINDS[self.settings.what][1]

    def refs(self) -> Sequence[SeedRef]:
        """Return ``capsule-00000``, ``capsule-00001``, … from ``start`` on."""
        first, what = self.settings.start, self.settings.what
        return tuple(
            SeedRef(dataset=self.dataset, seed_id=f"{what}-{index:05d}", locator=str(index))
            for index in range(first, first + self.settings.count)
        )

    def make(self, ref: SeedRef) -> LabelledPhantom:
        """Draw one phantom with all that is known about it."""
        generator = self._generator()
        size = generator.SIZE if self.settings.size is None else self.settings.size
        made: LabelledPhantom = generator.make(int(ref.locator), self.suite_seed, size=size)
        return made

    def load(self, ref: SeedRef) -> Seed:
        """Draw one phantom."""
        made = self.make(ref)
        return Seed(
            ref=ref, image=made.image, expected=made.mask, kind="label", classes=self.classes(), labels=made.labels
        )

    def digest(self) -> str:
        """Return a SHA-256 over the generator's revision, the kind, which phantoms, their size, the suite's seed."""
        generator = self._generator()
        content: dict[str, Any] = {
            "generator": self.settings.what,
            "revision": generator.REVISION,
            "first": self.settings.start,
            "count": self.settings.count,
            "size": generator.SIZE if self.settings.size is None else self.settings.size,
            "suite_seed": self.suite_seed,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _generator(self) -> Any:
        return importlib.import_module(KINDS[self.settings.what][0])
