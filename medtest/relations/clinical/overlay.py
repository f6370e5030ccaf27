"""Text overlays as printed by endoscopes (MedTest report, section 3.5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypedDict, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Effect, FollowUp, Image, Json, Mask, Params, PreparedSeed
from medtest.core.errors import NotApplicable
from medtest.core.recent import per_seed
from medtest.relations.base import Relation
from medtest.relations.clinical.overlay_text import draw_lines, line_width, set_block
from medtest.relations.levels import Level, PublishedRanges, RangedSettings, number
from medtest.relations.placement import FreePlaces, draw_place, grid_shares, keep_out

STEP = 4
"""Grid spacing of candidate positions, in pixels."""
SPREAD = 0.04
"""Spread of blocks around their anchor, as fraction of the image's height."""
HALO = 0.5
"""Darkening of the rim around the letters, which real overlays get from sharpening."""
RIM = 2
"""Width in pixels of the rim around the letters that may change."""
SMALLEST_LINE = 8
"""Line height in pixels below which digits are illegible."""

ANCHORS: tuple[tuple[float, float], ...] = ((0.16, 0.01), (0.62, 0.01), (0.80, 0.99), (0.03, 0.99), (0.03, 0.01))
"""Usual positions as fractions of the free height and width: left margin, lower left, right corners, top left."""
ANCHOR_WEIGHTS: tuple[float, ...] = (0.45, 0.20, 0.15, 0.10, 0.10)
INKS: tuple[tuple[int, int, int], ...] = ((236, 236, 236), (224, 230, 236), (214, 222, 210), (240, 236, 196))
"""White, bluish, greenish and yellowish white, as seen on colonoscopy images."""


class TextBlock(TypedDict):
    """Block of lines: row and column of its top-left pixel, and the text."""

    row: int
    column: int
    lines: list[str]


class TextLevel(Level):
    """One severity.

    Attributes:
        lines: Lines printed.
        size: Height of a line as fraction of the image's height.
    """

    lines: int = Field(ge=1, le=40)
    size: float = Field(gt=0.0, le=0.12)

    @property
    def scale(self) -> float:
        """Total height of all lines, image height = 1."""
        return self.lines * self.size


class TextRange(PublishedRanges):
    """Ranges of lines and size in published mode.

    Attributes:
        lines_low: Fewest lines.
        lines_high: Most lines.
        size_low: Smallest height of a line, as fraction of the image's height.
        size_high: Largest height of a line, as fraction of the image's height.
    """

    lines_low: int = Field(ge=1, le=40)
    lines_high: int = Field(ge=1, le=40)
    size_low: float = Field(gt=0.0, le=0.12)
    size_high: float = Field(gt=0.0, le=0.12)


class TextSettings(RangedSettings[TextLevel]):
    """Settings of ``text``.

    Attributes:
        margin: Least distance from the lesion, as fraction of the image's height.
        on_frame: Probability that a block is put on the black frame if there is room.
        published: Ranges of published mode. The report gives no figures, so these are ours.
    """

    margin: float = Field(default=0.02, ge=0.0, le=0.25)
    on_frame: float = Field(default=0.35, ge=0.0, le=1.0)
    published: TextRange


class Text(Relation):
    """Date, time, device settings and identifiers in free space (report 3.5.1, MR4-1).

    Letters keep a margin from the lesion and prefer the left margin, the corners and the black frame; no other relation
    may print on the frame. A block without room is split.
    """

    Settings = TextSettings
    group: ClassVar[str] = "non_objects"
    effects: ClassVar[frozenset[str]] = frozenset({"insert_text"})
    scale_unit: ClassVar[str] = "height of all lines together (image height = 1)"
    published_status: ClassVar[str] = "assumed"
    touches_frame: ClassVar[bool] = True

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Invent the lines and place each block.

        Raises:
            NotApplicable: A line has no room outside the lesion.
        """
        settings: TextSettings = self.settings
        level = settings.level(severity, rng)
        height = max(SMALLEST_LINE, round(level.size * seed.height))
        ink = INKS[int(rng.choice(len(INKS), p=(0.7, 0.1, 0.1, 0.1)))]
        blocks: list[TextBlock] = []
        pending = draw_lines(level.lines, rng)
        while pending:
            lines = pending.pop(0)
            try:
                blocks.append(_placed_block(seed, rng, settings, lines, height, blocks))
            except NotApplicable:
                if len(lines) == 1:
                    raise
                middle = (len(lines) + 1) // 2
                pending[:0] = [lines[:middle], lines[middle:]]
        return {"line_height": height, "ink": list(ink), "blocks": blocks, "scale": level.scale}

    def apply(self, seed: PreparedSeed, params: Params) -> FollowUp:
        """Print the stored lines."""
        image = seed.image.copy()
        height = int(number(params, "line_height"))
        ink = np.array(cast("list[int]", params["ink"]), dtype=np.float32)
        touched = np.zeros(image.shape[:2], np.uint8)
        blocks = cast("list[TextBlock]", params["blocks"])
        for block in blocks:
            _print_block(image, block, height, ink, touched)
        data: dict[str, Json] = {"what": "text", "count": len(blocks), "grid": grid_shares(touched)}
        return FollowUp(image=image, params=params, scale=number(params, "scale"), effect=Effect(kind="add", data=data))


def _placed_block(
    seed: PreparedSeed, rng: np.random.Generator, settings: TextSettings, lines: list[str], height: int,
    others: Sequence[TextBlock],
) -> TextBlock:  # fmt: skip
    """Place a block of lines ``height`` pixels high beside other blocks.

    Raises:
        NotApplicable: There is no room.
    """
    tall, wide = _extent(lines, height)
    anchor = ANCHORS[int(rng.choice(len(ANCHORS), p=ANCHOR_WEIGHTS))]
    wants_frame = float(rng.random()) < settings.on_frame
    margin = round(settings.margin * seed.height)

    def free_corners(*, frame_only: bool) -> Mask:
        free = _places(seed, margin, frame_only=frame_only).of_box(tall, wide, step=STEP)
        for block in others:
            top, left = block["row"] - RIM, block["column"] - RIM
            down, across = _extent(block["lines"], height)
            rows = slice(max(0, top - tall) // STEP + (top >= tall), -(-(top + down) // STEP))
            columns = slice(max(0, left - wide) // STEP + (left >= wide), -(-(left + across) // STEP))
            free[rows, columns] = False
        return free

    free = free_corners(frame_only=False)
    if wants_frame:
        on_frame = free_corners(frame_only=True)
        free = on_frame if on_frame.any() else free
    near = (anchor[0] * (seed.height - tall), anchor[1] * (seed.width - wide))
    row, column = draw_place(free, rng, label="a line of text", step=STEP, near=near, spread=SPREAD * seed.height)
    return {"row": row + RIM, "column": column + RIM, "lines": lines}


def _extent(lines: list[str], height: int) -> tuple[int, int]:
    """Return height and width of a block with its rim in pixels."""
    return len(lines) * height + 2 * RIM, max(line_width(line, height) for line in lines) + 2 * RIM


@per_seed
def _places(seed: PreparedSeed, margin: int, *, frame_only: bool) -> FreePlaces:
    blocked = keep_out(seed, margin=margin)
    return FreePlaces(np.logical_or(blocked, ~seed.frame) if frame_only else blocked)


def _print_block(image: Image, block: TextBlock, height: int, ink: Any, touched: NDArray[np.uint8]) -> None:
    """Print one block into ``image``, processing only the box around it, and mark letters in ``touched``."""
    inner = set_block(block["lines"], height)
    cover = cv2.copyMakeBorder(inner, RIM, RIM, RIM, RIM, cv2.BORDER_CONSTANT, value=0)
    rim = cv2.dilate(cover, np.ones((3, 3), np.uint8))
    top, left = block["row"] - RIM, block["column"] - RIM
    part = image[top : top + cover.shape[0], left : left + cover.shape[1]]
    opaque = cover.astype(np.float32)[:, :, None] / np.float32(255.0)
    transparency = np.float32(1.0) - np.maximum(opaque, rim.astype(np.float32)[:, :, None] * np.float32(HALO / 255.0))
    lettered = touched[top : top + cover.shape[0], left : left + cover.shape[1]]
    lettered[np.asarray(cover) > 0] = 1
    part[:] = np.rint(part * transparency + ink * opaque).astype(np.uint8)
