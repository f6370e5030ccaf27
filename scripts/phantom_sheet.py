"""Contact sheets of phantoms for the docs.

python scripts/phantom_sheet.py [polyps | capsule | skin | fundus | chest | questions | scenes] [target.jpg]
python scripts/phantom_sheet.py all

Polyps are the first twenty phantoms of suite polyp_seg, pictures with questions those of suite medvqa; the others the
first twenty of their kind (scenes: with one to three things). Classes, or what there is to be asked about, are written
below; every second row shows the outline of the mask.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pictures

from medtest.phantoms import questions
from medtest.phantoms.labelled import LabelledPhantom
from medtest.phantoms.scenes import draw_scene
from medtest.seeds.made.phantoms import Phantoms, PhantomSettings
from medtest.training.scenes.layouts import random_layout

SUITE_SEED = 20240
QUESTION_SEED = 20250
SCENES_SEED = 20260
ROWS, COLUMNS = 4, 5
TILE = (216, 264)
"""Height and width of a tile of polyps."""
SIDE, CAPTION = 176, 20
"""Side of a tile of the others, and height of the line below it."""
LABELLED = ("capsule", "skin", "fundus", "chest")
GREEN = (60, 230, 90)


def _polyps() -> Iterator[NDArray[np.uint8]]:
    source = Phantoms(
        dataset="phantoms", settings=PhantomSettings(count=ROWS * COLUMNS), root=None, suite_seed=SUITE_SEED
    )
    for ref in source.refs():
        image = source.load(ref).image
        scale = min(TILE[0] / image.shape[0], TILE[1] / image.shape[1])
        height, width = round(image.shape[0] * scale), round(image.shape[1] * scale)
        tile = np.full((*TILE, 3), 255, np.uint8)
        top, left = (TILE[0] - height) // 2, (TILE[1] - width) // 2
        tile[top : top + height, left : left + width] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        yield tile


def _labelled(kind: str) -> Iterator[NDArray[np.uint8]]:
    module = import_module(f"medtest.phantoms.{kind}")
    for index in range(ROWS * COLUMNS):
        yield _captioned(module.make(index, SUITE_SEED), outlined=(index // COLUMNS) % 2 == 1)


def _questions() -> Iterator[NDArray[np.uint8]]:
    for index in range(ROWS * COLUMNS):
        made = questions.make(index, QUESTION_SEED)
        names = ("abnormalities", "landmarks", "instruments")
        shown = [one for name in names for one in made.answers[name] if one != "No"]
        count = made.answers["polyps"][0]
        shown += [f"{count} polyps"] if count in ("Two", "Three") else []
        shown += ["polyp removed"] if made.answers["all_removed"] == ("Yes",) else []
        words = ", ".join(shown).lower() or made.answers["procedure"][0].lower()
        yield _tile(made.image, made.mask if (index // COLUMNS) % 2 == 1 else None, words)


def _scenes() -> Iterator[NDArray[np.uint8]]:
    for index in range(ROWS * COLUMNS):
        placed = []
        tries = 0
        while len(placed) != 1 + index // 7:
            placed = random_layout(
                np.random.Generator(np.random.PCG64([SCENES_SEED, index, tries])), most=1 + index // 4
            )
            tries += 1
        picture = draw_scene(placed, rng=np.random.Generator(np.random.PCG64([SCENES_SEED, index])))
        yield _tile(picture, None, ", ".join(f"{one.colour} {one.name}" for one in placed))


def _captioned(made: LabelledPhantom, *, outlined: bool) -> NDArray[np.uint8]:
    words = ", ".join(made.labels).replace("_", " ") or "no finding"
    return _tile(made.image, made.mask if outlined else None, words)


def _tile(image: NDArray[np.uint8], mask: NDArray[np.bool_] | None, words: str) -> NDArray[np.uint8]:
    image = image.copy()
    if mask is not None:
        lines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        cv2.drawContours(image, lines, -1, GREEN, max(1, image.shape[0] // 200))
    tile = np.full((SIDE + CAPTION, SIDE, 3), 255, np.uint8)
    tile[:SIDE] = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    scale = min(0.42, 0.42 * 26 / max(1, len(words)))
    cv2.putText(tile, words, (2, SIDE + 14), cv2.FONT_HERSHEY_SIMPLEX, scale, (30, 30, 30), 1, cv2.LINE_AA)
    return tile


def draw(kind: str, target: Path) -> None:
    """Draw one sheet."""
    own = {"polyps": _polyps, "questions": _questions, "scenes": _scenes}
    tiles = list(own[kind]() if kind in own else _labelled(kind))
    height, width = tiles[0].shape[:2]
    sheet = np.full((ROWS * (height + 8) + 8, COLUMNS * (width + 8) + 8, 3), 255, np.uint8)
    for index, tile in enumerate(tiles):
        top = 8 + (index // COLUMNS) * (height + 8)
        left = 8 + (index % COLUMNS) * (width + 8)
        sheet[top : top + height, left : left + width] = tile
    target.parent.mkdir(parents=True, exist_ok=True)
    Pictures.fromarray(sheet).save(target, quality=88, optimize=True)
    print(f"{target}: {sheet.shape[1]} x {sheet.shape[0]} pixels, {target.stat().st_size // 1024} KB")


def main() -> None:
    """Draw the sheets that are asked for."""
    asked = sys.argv[1] if len(sys.argv) > 1 else "polyps"
    kinds = ("polyps", *LABELLED, "questions", "scenes")
    if asked != "all" and asked not in kinds:
        raise SystemExit(f"{asked}: one of {', '.join(kinds)} or all")
    for kind in kinds if asked == "all" else (asked,):
        name = "phantoms.jpg" if kind == "polyps" else f"phantoms_{kind}.jpg"
        given = len(sys.argv) > 2 and asked != "all"
        draw(kind, Path(sys.argv[2] if given else f"docs/images/{name}"))


if __name__ == "__main__":
    main()
