"""Outlines of artefacts: the area that a relation changed, and stool in real pictures without a mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.realism.measures import Floats, highlights_of, lab_of, pieces_only, scaled

Bytes: TypeAlias = NDArray[np.uint8]

CHANGED = 8
"""Least change of any channel, in grey levels, by which a pixel belongs to the changed area."""
HALF = 0.5
"""Share of the change beside it that a pixel of the changed area's rim keeps, so that the outline lies midway."""
SOFT_RIM = 4
"""Width in pixels of the rim that is compared with the change beside it."""

STOOL_HUE = (56.0, 66.0)
"""Bounds of the hue (CIELAB, degrees) above which tissue is stool; Otsu's threshold chooses between them."""
DARKEST_STOOL = 25.0
"""Lightness below which hues are not reliable."""
SMALLEST_STOOL = 0.005
"""Smallest piece of stool as share of the field."""


def changed_area(before: Image, after: Image, field: Mask) -> Mask:
    """Return the area in which a follow-up differs from its source, bool H×W.

    Holes that the change encloses belong to it if they are smaller than :data:`SMALLEST_STOOL` of the field: an object
    may have the colour of the tissue in places. The soft rim is cut midway.

    Args:
        before: The source, uint8 H×W×3.
        after: The follow-up, uint8 H×W×3.
        field: The field of view, bool H×W.
    """
    red, green, blue = cv2.split(cv2.absdiff(before, after))
    change = cv2.max(cv2.max(red, green), blue)
    closed = cv2.morphologyEx(((change >= CHANGED) & field).astype(np.uint8), cv2.MORPH_CLOSE, _disc(2))
    area = _filled(np.asarray(closed, np.uint8), field)
    core = cv2.erode(area, _disc(SOFT_RIM), borderValue=1) > 0
    beside = cv2.dilate(change, _disc(SOFT_RIM + 1)).astype(np.float32)
    faint = ~core & (change < HALF * beside)
    return pieces_only(np.asarray((area > 0) & ~faint, np.bool_))


def stool(image: Image, field: Mask) -> Mask | None:
    """Return the stool of a real picture, bool H×W; None if no piece of it is large enough.

    Stool is yellower than mucosa: its hue is above Otsu's threshold, held between the bounds of :data:`STOOL_HUE`.
    Highlights and dark places, whose hues are not reliable, are left out. Thin residue is not found.

    Args:
        image: uint8 H×W×3 RGB.
        field: The field of view, bool H×W.
    """
    small, (view,) = scaled(image, field)
    spots = cv2.dilate(highlights_of(small).astype(np.uint8), _disc(2)) > 0
    lab = cv2.GaussianBlur(lab_of(small), (0, 0), 2.0)
    usable = view & ~spots & (lab[:, :, 0] >= DARKEST_STOOL)
    if not usable.any():
        return None
    hue = np.degrees(np.arctan2(lab[:, :, 2], lab[:, :, 1]))
    limit = float(np.clip(_otsu(hue[usable]), *STOOL_HUE))
    yellow = cv2.morphologyEx(((hue > limit) & usable).astype(np.uint8), cv2.MORPH_OPEN, _disc(4))
    closed = cv2.morphologyEx(yellow, cv2.MORPH_CLOSE, _disc(6))
    shining = spots & (cv2.dilate(closed, _disc(3)) > 0)
    area = _filled(((closed > 0) | shining).astype(np.uint8), view)
    outlined = pieces_only(area > 0, SMALLEST_STOOL * np.count_nonzero(view))
    if not outlined.any():
        return None
    return np.asarray(
        cv2.resize(outlined.astype(np.uint8), image.shape[1::-1], interpolation=cv2.INTER_NEAREST_EXACT) > 0, np.bool_
    )


RULES: Mapping[str, Callable[[Image, Mask], Mask | None]] = {"feces": stool}
"""Rules that outline an artefact in a picture without a mask, by the relation that makes it."""


def _disc(radius: int) -> Bytes:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), np.uint8)


def _filled(area: Bytes, field: Mask) -> Bytes:
    """Return an area with its small holes filled."""
    holes = field & (area == 0)
    small = holes & ~pieces_only(holes, SMALLEST_STOOL * np.count_nonzero(field), connectivity=4)
    return np.asarray(area | small.astype(np.uint8), np.uint8)


def _otsu(values: Floats) -> float:
    """Return Otsu's threshold of some values (IEEE Transactions on Systems, Man, and Cybernetics 9, 1979)."""
    counts, edges = np.histogram(values, 256)
    centres = (edges[:-1] + edges[1:]) / 2
    below, weighted = np.cumsum(counts), np.cumsum(counts * centres)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = (weighted[-1] * below / below[-1] - weighted) ** 2 / (below * (below[-1] - below))
    return float(centres[np.nanargmax(between[:-1])])
