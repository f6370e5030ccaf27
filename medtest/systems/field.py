"""How much of an image a classifier sees: all that the suite prepared, or what its own configuration cuts out of it.

Systems of one suite are compared, so that they see the same. Where a suite prepares images to a square (``prepare:
{size: 224, resize: 256}`` crops them as networks are tested), that square is what there is to see, and ``input: auto``
brings the whole of it to the network. Where it leaves images as they are, ``auto`` is what the network's own
configuration says. A network whose configuration crops nothing sees the same either way, and keeps its own resizing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Input: TypeAlias = Literal["auto", "official", "as_is"]
"""``official``: as the network's own configuration says, crop included; ``as_is``: the image is the input."""


def resolved_input(asked: Input, *, squared: bool, crops: bool) -> Literal["official", "as_is"]:
    """Return how images become inputs.

    Args:
        asked: The setting.
        squared: Whether the suite has prepared images to a square.
        crops: Whether the network's own configuration cuts something off.
    """
    if asked != "auto":
        return asked
    return "as_is" if squared and crops else "official"


def crop_notice(name: str, asked: Input, *, squared: bool, crops: bool) -> str:
    """Return what a user reads who crops prepared images once more, or ""."""
    if asked != "official" or not squared or not crops:
        return ""
    return (
        f"{name}: input: official cuts the middle out of images that the suite has prepared, so that it sees less than "
        f"other systems; systems.{name}.input=auto shows it the whole"
    )
