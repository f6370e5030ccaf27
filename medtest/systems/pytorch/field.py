"""Field of view of classifiers: the whole prepared image, or the crop of the network's own configuration.

Systems of one suite are compared, so they should see the same. If a suite prepares images to a square (``prepare:
{size: 224, resize: 256}`` crops them as in network tests), ``input: auto`` passes the whole square to the network. If
it leaves images unchanged, ``auto`` follows the network's own configuration. A network whose configuration crops
nothing sees the same either way, and keeps its own resizing.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from medtest.core.cases import Json
from medtest.systems.base import System

Input: TypeAlias = Literal["auto", "official", "as_is"]
"""``official``: the network's own configuration, crop included; ``as_is``: the image is the input."""


class CroppingSystem(System):
    """Classifier with a setting ``input``.

    Attributes:
        crops_image: Whether the network's own configuration crops images.
    """

    settings: Any
    crops_image: bool = False

    @property
    def input(self) -> Literal["official", "as_is"]:
        """Resolved way of preparing images."""
        setting: Input = self.settings.input
        if setting != "auto":
            return setting
        return "as_is" if self.squared and self.crops_image else "official"

    def resolved(self) -> dict[str, Json]:
        """Return the resolved way of preparing images."""
        return {"input": self.input}

    def notice(self) -> str:
        """Return a notice that includes a warning if prepared images are cropped again."""
        crops = self.settings.input == "official" and self.squared and self.crops_image
        return "; ".join(text for text in (super().notice(), self.crop_notice if crops else "") if text)

    @property
    def crop_notice(self) -> str:
        """Warning that prepared images are cropped again."""
        return (
            f"{self.name}: input: official crops images that the suite has prepared, so this system sees less of them"
            f" than the others; systems.{self.name}.input=auto uses the whole image"
        )
