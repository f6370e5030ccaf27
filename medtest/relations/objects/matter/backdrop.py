"""Matter as a camera records it: sharp and noisy brightness, colour for 2 × 2 pixels (4:2:0), interpolated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.relations.objects.scene import Floats, SceneEstimate

COLOUR = 2
"""Work cells along a side of a cell of colour."""
AROUND = np.ones((5, 5), np.uint8)
"""Work cells around matter whose colour is coarse too, so that none ends at the rim."""
BESIDE = (9, 9)
"""Work cells of the field whose mean colour a cell on the frame has."""
NOISE = (3, 3)
"""Cells of two pixels that are averaged by binomial weights; what they leave out is a picture's noise."""
CLIPPED, USUAL = 4.0, 107.0
"""Multiple of the noise above which detail is an edge and cut off, and the brightness at which noise was measured."""
FAINTEST, STRONGEST = 0.03, 0.25
"""Bounds of what is cut off, as share of brightness."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Backdrop:
    """Layers of a seed's image below matter; arrays are uint8, read-only.

    Attributes:
        small: The image on the work grid, RGB.
        luma: Brightness of the image.
        grain: float32, its finest detail, as factor on the brightness of matter.
        open: 255 where matter may be seen, else 0.
    """

    small: Image
    luma: Bytes
    grain: Floats
    open: Bytes

    def expose(
        self,
        image: Image,
        place: tuple[slice, slice],
        small: Image,
        light: Image,
        through: Image,
        matter: Bytes,
        share: float = 1.0,
    ) -> None:
        """Draw matter into a part of an image.

        Args:
            image: uint8 H×W×3, changed in place.
            place: The part that holds all matter.
            small: The image's part on the work grid, like the rest below.
            light: Light that matter adds.
            through: Share of tissue that is seen through it, in 255ths.
            matter: 255 on matter, else 0.
            share: Share of the picture's noise that it takes.
        """
        part = image[place]
        size = (part.shape[1], part.shape[0])
        below = cv2.multiply(small, through, scale=1 / 255)
        before, after, added = (cv2.cvtColor(layer, cv2.COLOR_RGB2GRAY) for layer in (small, below, light))
        # Colour is that of the whole, on cells of its own.
        colours = cv2.split(cv2.cvtColor(cv2.add(below, light), cv2.COLOR_RGB2YCrCb))[1:]
        half = (-(-small.shape[1] // COLOUR), -(-small.shape[0] // COLOUR))
        coarse = (cv2.resize(colour, half, interpolation=cv2.INTER_AREA) for colour in colours)
        shares = cv2.max(cv2.divide(after, before, scale=255), cv2.inRange(before, 0, 0))
        # Brightness is rounded once: several roundings would be noise that a smooth picture does not have.
        keep, lit, red, blue = (
            cv2.resize(layer, size, interpolation=cv2.INTER_LINEAR)
            for layer in (shares, added.astype(np.float32), *coarse)
        )
        rough = np.asarray(cv2.multiply(lit, self.grain[place]), np.float32)
        if share < 1:
            rough *= np.float32(share)
            rough += np.float32(1.0 - share) * lit
        lit = rough
        below = cv2.multiply(self.luma[place], keep, scale=1 / 255, dtype=cv2.CV_32F)
        luma = cv2.add(lit, below, dtype=cv2.CV_8U)
        near = cv2.resize(cv2.dilate(matter, AROUND), size, interpolation=cv2.INTER_NEAREST)
        exposed = cv2.cvtColor(cv2.merge([luma, red, blue]), cv2.COLOR_YCrCb2RGB)
        cv2.copyTo(exposed, cv2.bitwise_and(near, self.open[place]), part)


def backdrop_of(image: Image, frame: Mask, scene: SceneEstimate, barred: Mask) -> Backdrop:
    """Return the backdrop of an image, uint8 H×W×3, with its frame; ``barred`` is True where matter is never seen."""
    height, width = barred.shape
    rows, columns = scene.shape
    small = _filled(image, frame, (columns, rows))
    luma = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    # Noise reaches over some pixels, since cameras interpolate and compress: cells are of two pixels, or of the work
    # grid if those are larger.
    coarse = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    if scene.cell < 2:
        coarse = cv2.resize(luma, (-(-width // 2), -(-height // 2)), interpolation=cv2.INTER_AREA)
    coarse = cv2.GaussianBlur(coarse.astype(np.float32), NOISE, 0)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    unit, most = np.float32(1), min(max(CLIPPED * scene.noise / USUAL, FAINTEST), STRONGEST)
    grain = luma / np.maximum(smooth, unit)
    np.clip(grain, np.float32(1 - most), np.float32(1 + most), out=grain)
    return Backdrop(
        small=small,
        luma=luma,
        grain=np.asarray(grain, np.float32),
        open=(~barred).view(np.uint8) * np.uint8(255),
    )


def _filled(image: Image, frame: Mask, size: tuple[int, int]) -> Image:
    """Return the image on the work grid; cells on the frame beside the field have its colour, not black."""
    field = (~frame).view(np.uint8)
    light, share = (
        cv2.resize(layer, size, interpolation=cv2.INTER_AREA)
        for layer in (cv2.bitwise_and(image, image, mask=field), field * np.uint8(255))
    )
    wide, wide_share = (cv2.blur(layer, BESIDE) for layer in (light, share))
    filled = cv2.divide(wide, cv2.merge([wide_share] * 3), scale=255)
    cv2.copyTo(light, cv2.inRange(share, 255, 255), filled)
    return np.asarray(filled, np.uint8)


@lru_cache(maxsize=4)
def grain_of(height: int, width: int) -> Floats:
    """Return noise of standard deviation 1, correlated over a pixel, as a camera's after demosaicking."""
    rng = np.random.Generator(np.random.PCG64(26))
    raw = rng.integers(-100, 101, size=(height + 1, width + 1), dtype=np.int16)
    total = 2 * raw[:-1, :-1] + raw[1:, :-1] + raw[:-1, 1:]
    return np.asarray(total / np.float32(142.0), np.float32)
