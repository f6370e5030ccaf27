"""How much of an image a classifier sees: all that the suite prepared, or what its own configuration cuts out of it.

Systems of one suite are compared, so that they see the same. Where a suite prepares images to a square (``prepare:
{size: 224, resize: 256}`` crops them as networks are tested), that square is what there is to see, and ``input: auto``
brings the whole of it to the network. Where it leaves images as they are, ``auto`` is what the network's own
configuration says. A network whose configuration crops nothing sees the same either way, and keeps its own resizing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from medtest.core.cases import Json
from medtest.systems.base import System

Input: TypeAlias = Literal["auto", "official", "as_is"]
"""``official``: as the network's own configuration says, crop included; ``as_is``: the image is the input."""


class CroppingSystem(System):
    """A classifier with a setting ``input``.

    Attributes:
        crops_image: Whether the network's own configuration cuts something off.
    """

    crops_image: bool = False

    @property
    def input(self) -> Literal["official", "as_is"]:
        """How images become inputs."""
        asked: Input = self.settings.input
        if asked != "auto":
            return asked
        return "as_is" if self.squared and self.crops_image else "official"

    def resolved(self) -> dict[str, Json]:
        """Return how images become inputs."""
        return {"input": self.input}

    def notice(self) -> str:
        """Return beside other notices what a user reads who crops prepared images once more."""
        crops = self.settings.input == "official" and self.squared and self.crops_image
        return "; ".join(text for text in (super().notice(), self.crop_notice if crops else "") if text)

    @property
    def crop_notice(self) -> str:
        """What a user reads who crops prepared images once more."""
        return (
            f"{self.name}: input: official cuts the middle out of images that the suite has prepared, so that it sees "
            f"less than other systems; systems.{self.name}.input=auto shows it the whole"
        )
