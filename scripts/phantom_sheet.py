"""Contact sheet of the first twenty phantoms of suite polyp_seg, for the docs.

python scripts/phantom_sheet.py [docs/images/phantoms.jpg]
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as Pictures

from medtest.seeds.phantoms import Phantoms, PhantomSettings

SUITE_SEED = 20240
ROWS, COLUMNS = 4, 5
TILE = (216, 264)
"""Height and width of a tile."""


def main() -> None:
    """Draw the sheet."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/phantoms.jpg")
    source = Phantoms(
        dataset="phantoms", settings=PhantomSettings(count=ROWS * COLUMNS), root=None, suite_seed=SUITE_SEED
    )
    sheet = np.full((ROWS * (TILE[0] + 8) + 8, COLUMNS * (TILE[1] + 8) + 8, 3), 255, np.uint8)
    for index, ref in enumerate(source.refs()):
        image = source.load(ref).image
        scale = min(TILE[0] / image.shape[0], TILE[1] / image.shape[1])
        height, width = round(image.shape[0] * scale), round(image.shape[1] * scale)
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        top = 8 + (index // COLUMNS) * (TILE[0] + 8) + (TILE[0] - height) // 2
        left = 8 + (index % COLUMNS) * (TILE[1] + 8) + (TILE[1] - width) // 2
        sheet[top : top + height, left : left + width] = small
    target.parent.mkdir(parents=True, exist_ok=True)
    Pictures.fromarray(sheet).save(target, quality=88, optimize=True)
    print(f"{target}: {sheet.shape[1]} x {sheet.shape[0]} pixels, {target.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
