"""Contact sheets: one seed, its frame and grey mask, and every relation at every severity.

They show before a run whether a relation hides the lesion or looks implausible to a clinician.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from medtest.core.cases import Address, Effect, FollowUp, Mask, PreparedSeed
from medtest.core.errors import NotApplicable, OutputProblem
from medtest.core.probes import Need
from medtest.core.tasks.base import task_of
from medtest.relations.base import Relation
from medtest.relations.series import follow_up
from medtest.suite.plan import Step

_PAPER = (255, 255, 255)
_INK = (28, 30, 34)
_FAINT = (120, 124, 130)
_LESION = (0, 230, 118)
_FRAME = (66, 135, 245)
_GAP = 6
_LABEL_WIDTH = 132
_LABEL_HEIGHT = 20
_REPEATS = 5
"""Number of draws shown for a relation in published mode."""

Picture = NDArray[np.uint8]
Cell: TypeAlias = "tuple[Picture | None, str]"
"""A picture of the sheet, or None, and its caption."""
Crafted = Callable[[Address], FollowUp]
"""Returns a follow-up kept by a run; raises NotApplicable if there is none."""


def draw_sheet(
    seed: PreparedSeed,
    relations: Mapping[str, Relation],
    *,
    suite_seed: int,
    cell: int = 192,
    crafted: Crafted | None = None,
) -> Picture:
    """Draw the sheet of one seed.

    Args:
        seed: The prepared source case.
        relations: Relations by id, one row each.
        suite_seed: The suite's seed, so that the pictures match those of a run.
        cell: Side of a picture in pixels.
        crafted: Returns a kept case of a relation that is crafted on a system, or raises NotApplicable.

    Returns:
        uint8 RGB picture, rows of cells with labels at their left and captions below.
    """
    rows: list[tuple[str, list[Cell]]] = [(f"{seed.ref.dataset}\n{seed.ref.seed_id}", _source_cells(seed, cell))]
    rows += [
        (
            f"{name}\n{_plain(relation.scale_unit)}",
            _relation_cells(seed, name, relation, suite_seed, cell, crafted),
        )
        for name, relation in relations.items()
    ]
    return _compose(rows, cell)


def _fit(image: NDArray[np.uint8], cell: int) -> Picture:
    scale = cell / max(image.shape[:2])
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small if small.ndim == 3 else cv2.cvtColor(small, cv2.COLOR_GRAY2RGB), dtype=np.uint8)


def _outline(image: NDArray[np.uint8], mask: Mask | None, colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    drawn = np.array(image)
    if mask is not None and mask.any():
        contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        cv2.drawContours(drawn, contours, -1, colour, max(2, image.shape[0] // 170))
    return drawn


def _source_cells(seed: PreparedSeed, cell: int) -> list[Cell]:
    task = task_of(seed.kind)
    region = task.drawing.expected_region(seed, Effect())
    if task.series:
        shown = task.drawing.view(seed, seed.image, region)
        truth = _fit(_outline(shown.image, shown.region, _LESION), cell)
        source = (_fit(shown.image, cell), "source")
        expected = (truth, task.drawing.expected_words(seed))
        return [source] if shown.region is None else [source, expected]
    frame = np.array(seed.image)
    frame[seed.frame] = (0.35 * frame[seed.frame] + 0.65 * np.asarray(_FRAME)).astype(np.uint8)
    grey = np.round(seed.grey * 255).astype(np.uint8)
    expected = (_fit(_outline(seed.image, region, _LESION), cell), task.drawing.expected_words(seed))
    return [
        (_fit(seed.image, cell), "source"),
        *([expected] if region is not None or task.labels else []),
        (_fit(frame, cell), "black frame (blue)"),
        (_fit(grey, cell), "grey mask"),
    ]


def _draws(relation: Relation) -> list[tuple[int, int, int]]:
    """Return severity, repeat and frame of the shown cases: for a sequence, the frames of its highest severity."""
    if relation.frames() > 1:
        return [(relation.severities()[-1], 0, frame) for frame in range(relation.frames())]
    draws = [(s, r, 0) for s in relation.severities() for r in range(relation.repeats())]
    if len(draws) == 1 and relation.severities() == (0,) and relation.group != "floor":
        return [(0, r, 0) for r in range(_REPEATS)]
    return draws


def _relation_cells(
    seed: PreparedSeed,
    name: str,
    relation: Relation,
    suite_seed: int,
    cell: int,
    crafted: Crafted | None,
) -> list[Cell]:
    cells: list[Cell] = []
    for severity, repeat, frame in _draws(relation)[:10]:
        step = Step(name, severity, repeat, frame)
        address = step.address(seed.ref)
        label = f"{severity}" if severity else f"draw {repeat}"
        label = f"frame {frame}" if relation.frames() > 1 else label
        try:
            if relation.needs is not Need.NOTHING and crafted is not None:
                case = crafted(address)
            else:
                case = follow_up(relation, seed, address, suite_seed)
        except NotApplicable as reason:
            cells.append((None, f"{label}: {reason}"))
            continue
        shown = task_of(seed.kind).drawing.view(seed, case.image).image
        cells.append((_fit(shown, cell), f"{label} · scale {case.scale:.3g}"))
    return cells


def _compose(rows: list[tuple[str, list[Cell]]], cell: int) -> Picture:
    columns = max(len(cells) for _, cells in rows)
    heights = [
        max([picture.shape[0] for picture, _ in cells if picture is not None] or [cell // 2]) for _, cells in rows
    ]
    width = _LABEL_WIDTH + columns * (cell + _GAP) + _GAP
    height = sum(heights) + len(rows) * (_LABEL_HEIGHT + _GAP) + _GAP
    page = PillowImage.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(page)
    bold, small = ImageFont.load_default(14), ImageFont.load_default(11)
    top = _GAP
    for (label, cells), row_height in zip(rows, heights, strict=True):
        title, _, note = label.partition("\n")
        lines = _wrap(title, 15)
        draw.multiline_text((_GAP, top + 4), lines, fill=_INK, font=bold)
        below = top + 10 + 18 * (lines.count("\n") + 1)
        draw.multiline_text((_GAP, below), textwrap.fill(note, 20), fill=_FAINT, font=small)
        for column, (picture, caption) in enumerate(cells):
            left = _LABEL_WIDTH + column * (cell + _GAP)
            if picture is None:
                draw.rectangle((left, top, left + cell, top + row_height), outline=_FAINT)
                draw.multiline_text((left + 6, top + 6), _wrap(caption, cell // 7), fill=_FAINT, font=small)
            else:
                page.paste(PillowImage.fromarray(picture), (left, top))
                draw.text((left, top + row_height + 3), caption[: cell // 5], fill=_FAINT, font=small)
        top += row_height + _LABEL_HEIGHT + _GAP
    return np.asarray(page)


def _plain(text: str) -> str:
    """Return text in characters of Pillow's bundled font."""
    spelt = text.replace("σ", "sigma").replace("λ", "lambda").replace("π", "pi").replace("²", "^2").replace("·", "x")
    return spelt.encode("latin-1", "replace").decode("latin-1")


def _wrap(text: str, width: int) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        lines += [line[i : i + width] for i in range(0, len(line), width)] or [""]
    return "\n".join(lines)


def save_sheet(picture: Picture, path: Path) -> None:
    """Write the sheet; the suffix chooses PNG or JPEG.

    Raises:
        OutputProblem: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        PillowImage.fromarray(picture).save(path, quality=88)
    except (OSError, ValueError) as error:
        raise OutputProblem(f"{path}: cannot be written ({error}); choose another --out (.png or .jpg)") from None
