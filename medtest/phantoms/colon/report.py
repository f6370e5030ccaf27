"""Description of polyps and lumen in a phantom's ``info``, in terms used by questions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Json
from medtest.phantoms.colon.placing import PlacedPolyp, windows
from medtest.phantoms.colon.tissue import Tissue

PARIS: dict[str, str] = {"pedunculated": "0-Ip", "sessile": "0-Is", "flat": "0-IIa"}
"""Paris classification of superficial lesions (Gastrointest Endosc 2003;58(6 Suppl):S3–43)."""
SIZE_CLASSES: tuple[tuple[str, float], ...] = (("small", 0.05), ("medium", 0.15), ("large", 1.0))
"""Name and largest share of the field of each size class."""


def location(x: float, y: float) -> str:
    """Return the cell of a 3×3 grid over the field for x and y in units of its half side, from the field's centre."""
    third = 1.0 / 3.0
    across = "left" if x < -third else "right" if x > third else ""
    down = "upper" if y < -third else "lower" if y > third else ""
    return " ".join(word for word in (down, across) if word) or "centre"


def describe_polyp(
    item: PlacedPolyp, field: NDArray[np.uint8], centre_x: float, centre_y: float, half: float
) -> dict[str, Json]:
    """Return the ground truth of a polyp.

    Args:
        item: The polyp.
        field: uint8 h×w, the field of view at working size.
        centre_x: Column of the field's centre at working size.
        centre_y: Row of the field's centre.
        half: Half the short side of the field at working size.

    Returns:
        ``type``, ``paris``, ``colour``, ``surface``, ``low_contrast``, ``lobes``, ``area`` (share of the field),
        ``size_class``, ``location``, ``centre`` (x, y) and ``box`` (left, top, right, bottom) as shares of width and
        height.
    """
    height, width = field.shape
    outer, inner = windows(item.patch, (height, width))
    inside = (item.patch.height[inner] > 0) & (field[outer] > 127)
    area = float(inside.sum()) / float(max(1, int((field > 127).sum())))
    rows, columns = np.nonzero(inside)
    box: list[Json] = [
        round(float(outer[1].start + columns.min()) / width, 4),
        round(float(outer[0].start + rows.min()) / height, 4),
        round(float(outer[1].start + columns.max() + 1) / width, 4),
        round(float(outer[0].start + rows.max() + 1) / height, 4),
    ]
    x, y = item.centre
    return {
        "type": item.look.kind,
        "paris": PARIS[item.look.kind],
        "colour": item.look.colour,
        "surface": item.look.surface,
        "low_contrast": item.look.low_contrast,
        "lobes": len(item.shape.lobes),
        "area": round(area, 5),
        "size_class": next(name for name, most in SIZE_CLASSES if area <= most),
        "location": location((x - centre_x) / half, (y - centre_y) / half),
        "centre": [round(x / width, 4), round(y / height, 4)],
        "box": box,
    }


def describe_lumen(
    tissue: Tissue, field: NDArray[np.uint8], centre_x: float, centre_y: float, half: float
) -> list[Json] | None:
    """Return the lumen's centre as shares of width and height; None if it is outside the field."""
    if tissue.lumen is None:
        return None
    x, y = centre_x + tissue.lumen[0] * half, centre_y + tissue.lumen[1] * half
    height, width = field.shape
    if not (0 <= x < width and 0 <= y < height and field[int(y), int(x)] > 127):
        return None
    return [round(x / width, 4), round(y / height, 4)]
