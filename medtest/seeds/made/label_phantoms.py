"""Made images with labels: capsule frames, skin lesions, fundus photographs, chest films.

They exercise a suite where no clinical images are at hand, and never stand for clinical evidence.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from medtest.core.cases import Classes, Seed, SeedRef
from medtest.core.plugins import PartSettings
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.seeds.made.base import NumberedPhantoms, NumberedSettings

KINDS: dict[str, tuple[str, Classes]] = {
    "capsule": ("medtest.phantoms.capsule", CAPSULE),
    "dermoscopy": ("medtest.phantoms.skin", DERMOSCOPY),
    "fundus": ("medtest.phantoms.fundus", FUNDUS),
    "chest": ("medtest.phantoms.chest", CHEST),
}
"""Where each kind's generator stands, and its classes."""


class LabelPhantomSettings(NumberedSettings):
    """What a suite may set; the size of their own is 320 for capsule and fundus, 256 for the others.

    Attributes:
        what: ``capsule``, ``dermoscopy``, ``fundus`` or ``chest``.
    """

    what: Literal["capsule", "dermoscopy", "fundus", "chest"]


class LabelPhantoms(NumberedPhantoms):
    """Phantoms with labels, made when they are loaded: ``capsule-00000``, ``capsule-00001``, …."""

    Settings: ClassVar[type[PartSettings]] = LabelPhantomSettings
    task: ClassVar[str] = "label"

    settings: LabelPhantomSettings

    def classes(self) -> Classes:
        """Return the classes of the kind."""
        return KINDS[self.settings.what][1]

    def generator_name(self) -> str:
        """Return the module of the kind's generator."""
        return KINDS[self.settings.what][0]

    def named(self) -> str:
        """Return the kind."""
        return self.settings.what

    def facts(self) -> dict[str, Any]:
        """Return the kind."""
        return {"generator": self.settings.what}

    def load(self, ref: SeedRef) -> Seed:
        """Draw one phantom."""
        made = self.make(ref)
        return Seed(
            ref=ref, image=made.image, expected=made.mask, kind="label", classes=self.classes(), labels=made.labels
        )
