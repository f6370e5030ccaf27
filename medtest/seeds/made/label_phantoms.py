"""Synthetic labelled images: capsule frames, skin lesions, fundus photographs, chest films.

They exercise a suite without clinical images and are not clinical evidence.
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
"""Generator module and classes of each kind."""


class LabelPhantomSettings(NumberedSettings):
    """Settings of :class:`LabelPhantoms`; the default size is 320 for capsule and fundus, 256 for the others.

    Attributes:
        what: ``capsule``, ``dermoscopy``, ``fundus`` or ``chest``.
    """

    what: Literal["capsule", "dermoscopy", "fundus", "chest"]


class LabelPhantoms(NumberedPhantoms):
    """Labelled phantoms ``capsule-00000``, ``capsule-00001``, …, generated when loaded."""

    Settings: ClassVar[type[PartSettings]] = LabelPhantomSettings
    task: ClassVar[str] = "label"

    settings: LabelPhantomSettings

    def classes(self) -> Classes:
        """Return the classes of the kind."""
        return KINDS[self.settings.what][1]

    def generator_name(self) -> str:
        """Return the generator module of the kind."""
        return KINDS[self.settings.what][0]

    def named(self) -> str:
        """Return the kind."""
        return self.settings.what

    def facts(self) -> dict[str, Any]:
        """Return the kind."""
        return {"generator": self.settings.what}

    def load(self, ref: SeedRef) -> Seed:
        """Draw one phantom."""
        phantom = self.make(ref)
        return Seed(
            ref=ref,
            image=phantom.image,
            expected=phantom.mask,
            kind="label",
            classes=self.classes(),
            labels=phantom.labels,
        )
