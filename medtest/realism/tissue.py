"""Libraries of cut-outs that show mucosa instead of an object, for the seam test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as Pillow

from medtest.core.cases import Mask, PreparedSeed
from medtest.realism.measures import highlights_of
from medtest.relations.objects.build import BuildOptions, build_library
from medtest.results.cube.resampling import generator

PIECES = 3
"""Pieces of tissue from each picture."""
RADII = (0.07, 0.13)
"""Mean radius of a lobed piece, as fraction of the picture's height."""
STRIP = (0.16, 0.40)
"""Width and length of a strip that begins at the border of the field, as fractions of the picture's height."""
MARKER = (0, 255, 255)
"""Colour that no tissue has: pasted in place of the tissue, it shows the outline on tissue of any colour."""


def tissue_library(seed: PreparedSeed, kind: str, scratch: Path) -> tuple[Path, Path]:
    """Cut mucosa out of a picture as ``medtest objects build`` does.

    Args:
        seed: The picture.
        kind: feces or instrument.
        scratch: New folder.

    Returns:
        The library, and the same library with :data:`MARKER` as its colour.

    Raises:
        UserMistakes: Nothing could be cut.
    """
    for below in ("images", "masks"):
        (scratch / below).mkdir(parents=True)
    rng = generator("realism", "tissue", seed.ref.dataset, seed.ref.seed_id)
    Pillow.fromarray(seed.image).save(scratch / "images" / "tissue.png")
    Pillow.fromarray(SHAPES[kind](seed, rng).astype(np.uint8) * 255).save(scratch / "masks" / "tissue.png")
    options = BuildOptions(kind=kind, source="seam test", licence="not kept", smallest=0.0005)
    build_library("masks", scratch, scratch / "tissue", options)
    shutil.copytree(scratch / "tissue", scratch / "marker")
    for path in (scratch / "marker").rglob("*.png"):
        if not path.stem.endswith(".surface"):
            with Pillow.open(path) as opened:
                pixels = np.array(opened)
            pixels[..., :3] = MARKER
            if pixels.shape[2] == 4:
                pixels[pixels[..., 3] == 0] = 0
            Pillow.fromarray(pixels).save(path)
    return scratch / "tissue", scratch / "marker"


def turned(seed: PreparedSeed) -> PreparedSeed:
    """Return a picture turned by 180°, whose light still falls from the middle."""
    return replace(
        seed,
        image=np.ascontiguousarray(seed.image[::-1, ::-1]),
        mask=None if seed.mask is None else np.ascontiguousarray(seed.mask[::-1, ::-1]),
        frame=np.ascontiguousarray(seed.frame[::-1, ::-1]),
        grey=np.ascontiguousarray(seed.grey[::-1, ::-1]),
        avoid=None,
        _memo={},
    )


def lobed_pieces(seed: PreparedSeed, rng: np.random.Generator) -> Mask:
    """Return up to :data:`PIECES` lobed pieces of mucosa, bool H×W."""
    free = _mucosa(seed)
    pieces = np.zeros(free.shape, np.bool_)
    rows, columns = np.indices(free.shape)
    for _ in range(PIECES):
        room = cv2.distanceTransform(np.pad(free, 1).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)[1:-1, 1:-1]
        radius = rng.uniform(*RADII) * seed.height
        places = np.argwhere(room > 1.3 * radius + 4)
        if not len(places):
            continue
        row, column = places[int(rng.integers(len(places)))]
        turn = np.arctan2(rows - row, columns - column)
        lobes = np.zeros(free.shape)
        for order, phase in zip((2, 3, 5), rng.uniform(0, 2 * np.pi, 3), strict=True):
            lobes += 0.1 * np.cos(order * turn + phase)
        distance = np.hypot(rows - row, columns - column)
        pieces |= distance < radius * (1 + lobes)
        free &= distance > 1.3 * radius + 8
    return pieces


def strip(seed: PreparedSeed, rng: np.random.Generator) -> Mask:
    """Return a strip of mucosa from the border of the field towards its middle, bool H×W."""
    field = ~seed.frame
    rows, columns = np.nonzero(field)
    middle = np.array([rows.mean(), columns.mean()])
    down, across = np.indices(field.shape)
    for _ in range(12):
        turn = rng.uniform(0, 2 * np.pi)
        inwards = -np.array([np.sin(turn), np.cos(turn)])
        reach = float(((np.stack([rows, columns], axis=1) - middle) @ -inwards).max())
        along = (down - middle[0]) * inwards[0] + (across - middle[1]) * inwards[1] + reach
        beside = (down - middle[0]) * inwards[1] - (across - middle[1]) * inwards[0]
        piece = field & (np.abs(beside) < STRIP[0] / 2 * seed.height) & (along < STRIP[1] * seed.height)
        if np.count_nonzero(piece & ~_mucosa(seed)) < 0.02 * np.count_nonzero(piece):
            return np.asarray(piece, np.bool_)
    return np.zeros(field.shape, np.bool_)


SHAPES: Mapping[str, Callable[[PreparedSeed, np.random.Generator], Mask]] = {
    "feces": lobed_pieces,
    "instrument": strip,
}
"""Shapes of the pieces by kind of object. Blood absorbs light, so tissue cannot replace it."""


def _mucosa(seed: PreparedSeed) -> Mask:
    """Return the field without lesion and large highlights, bool H×W."""
    spots = cv2.morphologyEx(highlights_of(seed.image).astype(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    free = ~seed.frame & (spots == 0)
    return np.asarray(free if seed.mask is None else free & ~seed.mask, np.bool_)
