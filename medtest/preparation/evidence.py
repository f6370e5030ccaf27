"""Evidence for field and frame from the pixels of a small copy, and for sharp edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image

Floats = NDArray[np.float64]
Votes = NDArray[np.float32]
Light = NDArray[np.uint8]

WORKING_SIDE = 256
"""Longer side of the small copy in pixels; the shape is fitted to fractions of a pixel, so more adds little."""

MAX_BLACK = 26
"""Largest grey level of a frame (brightest channel)."""

MARGIN = (3, 8)
"""Least and largest distance above the frame's grey level at which field and frame are equally likely.

JPEG noise stays below it; an underexposed image has less noise, and its field is closer.
"""

DARK_VOTE = 1.0
"""Weight of a black pixel against the field; small, because a lumen may be black."""

BRIGHT_VOTE = 3.0
"""Weight of a bright pixel for the field; large, because only text is bright on a frame."""

RISE = (6, 16)
"""Least and largest rise above that threshold at which a pixel counts fully, in grey levels."""

WELL_LIT = 100
"""Grey level reached by bright parts of a well-exposed image; darker images get narrower steps."""

EDGE_SHIFT = 0.4
"""Pixels by which a fitted shape is too large: a pixel with a tenth of tissue's light already votes for field."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Evidence from an image's small copy.

    Attributes:
        light: uint8 h×w, the brightest channel.
        votes: float32 h×w in [-DARK_VOTE, BRIGHT_VOTE], positive for field.
        rgb: uint8 h×w×3.
    """

    light: Light
    votes: Votes
    rgb: Image

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.light.shape[0], self.light.shape[1]


def gather(image: Image, aspect: float | None = None) -> Evidence:
    """Return the evidence of an image, uint8 H×W×3, with the true aspect ratio ``aspect`` (None: its own)."""
    height, width = image.shape[:2]
    ratio = width / height if aspect is None else aspect
    across = WORKING_SIDE if ratio >= 1 else max(16, round(WORKING_SIDE * ratio))
    down = WORKING_SIDE if ratio <= 1 else max(16, round(WORKING_SIDE / ratio))
    while image.shape[0] >= 2 * down and image.shape[1] >= 2 * across and not any(n % 2 for n in image.shape[:2]):
        # Halving is exact and much faster than OpenCV's fractional averaging.
        image = cv2.resize(image, (image.shape[1] // 2, image.shape[0] // 2), interpolation=cv2.INTER_AREA)
    rgb = cv2.resize(image, (across, down), interpolation=cv2.INTER_AREA)
    red, green, blue = cv2.split(rgb)
    light = cast(Light, cv2.max(cv2.max(red, green), blue))
    return Evidence(light=light, votes=vote(light), rgb=rgb)


def vote(light: Light) -> Votes:
    """Return each pixel's vote, from a table over the 256 grey levels."""
    counts = np.bincount(light.reshape(-1), minlength=256)
    below = counts.cumsum() / light.size
    exposure = min(1.0, float(np.searchsorted(below, 0.9)) / WELL_LIT)
    margin = max(MARGIN[0], MARGIN[1] * exposure)
    rise = max(RISE[0], RISE[1] * exposure)
    # The frame's level is the most common one near the darkest, because a dark field may have a more common one.
    darkest = int(np.searchsorted(below, 0.003))
    black = darkest + int(np.argmax(counts[darkest : darkest + MARGIN[1]])) if darkest <= MAX_BLACK else -MARGIN[1]
    above = (np.arange(256) - black - margin).astype(np.float32)
    table = np.clip(above / rise, 0, 1) * BRIGHT_VOTE - np.clip(-above / (margin / 2), 0, 1) * DARK_VOTE
    votes: Votes = table.astype(np.float32)[light]
    return votes


def sharp_fraction(votes: Votes, points: Floats, inward: Floats, *, reach: float = 2.5) -> tuple[float, int]:
    """Measure how well a curve follows a sharp edge from frame to field.

    A point counts if the field a little farther inside is bright enough to show an edge. It is sharp if the image rises
    from black to field within twice ``reach``.

    Args:
        votes: float32 h×w, cleaned of text and displays; 0 for pixels to ignore.
        points: N×2 (x, y) on the curve, in pixels of the small copy.
        inward: N×2 unit vectors into the field.
        reach: Distance of the samples on both sides.

    Returns:
        The sharp fraction of the counted points (0 without any), and their number.
    """
    height, width = votes.shape
    visible = np.ones(len(points), np.bool_)
    samples = []
    for distance in (-reach, reach, 2.5 * reach):
        at = np.floor(points + distance * inward).astype(np.intp)
        x, y = at[:, 0], at[:, 1]
        visible &= (x >= 0) & (x < width) & (y >= 0) & (y < height)
        samples.append(votes[y.clip(0, height - 1), x.clip(0, width - 1)])
    outside, near, deep = samples
    informative = visible & (deep >= 0.6 * BRIGHT_VOTE) & (outside != 0)
    count = int(np.count_nonzero(informative))
    if not count:
        return 0.0, 0
    sharp = informative & (outside <= -DARK_VOTE / 2) & (near >= 0.4 * BRIGHT_VOTE)
    return float(np.count_nonzero(sharp)) / count, count


def shrink(votes: Votes, factor: int) -> Votes:
    """Return the votes averaged over blocks, at least one pixel a side."""
    height, width = votes.shape
    size = (max(1, width // factor), max(1, height // factor))
    return cast(Votes, cv2.resize(votes, size, interpolation=cv2.INTER_AREA))
