"""Synthetic prepared seeds for the tests of relations, made by hand and independent of preparation and phantoms."""

from __future__ import annotations

import cv2
import numpy as np

from medtest.cases import PreparedSeed, SeedRef

SUITE_SEED = 20261121


def synthetic_seed(
    number: int = 0,
    *,
    height: int = 96,
    width: int = 128,
    labelled: bool = True,
    framed: bool = True,
    avoid: bool = False,
    seed_id: str | None = None,
) -> PreparedSeed:
    """Return a small reddish field with a lesion, highlights and a black frame with cut corners; integer arithmetic."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.int64)
    wave = (rows * 5 + columns * 3 + number * 37) % 64
    light = 120 + (60 * columns) // width - (50 * rows) // height
    image = np.stack([light + 50 + wave // 4, light - 30 + wave // 3, light - 50 + wave // 5], axis=2)
    mask = np.zeros((height, width), np.uint8)
    centre = (width // 2 + (number * 7) % 11, height // 2 - (number * 5) % 9)
    cv2.ellipse(mask, centre, (width // 9, height // 7), 20.0, 0.0, 360.0, 1, cv2.FILLED)
    image[mask > 0] += np.array([25, -10, -12])
    for x, y in ((20, 30), (23, 32), (90, 70), (93, 69), (70, 20)):
        cv2.circle(image_part := image.astype(np.int32), (x + number % 5, y), 2, (250, 248, 246), cv2.FILLED)
        image = image_part.astype(np.int64)
    image = np.clip(image, 0, 255).astype(np.uint8)
    frame = np.zeros((height, width), bool)
    if framed:
        frame[:4], frame[-3:], frame[:, :6], frame[:, -5:] = True, True, True, True
        frame |= (rows + columns < 30) | (rows + (width - 1 - columns) < 25)
        frame[height - 24 :, :30] = True
        # Frames of real images are nearly black: JPEG leaves a few grey levels.
        image[frame] = ((rows + columns) % 3)[frame][:, None]
    luma = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (0, 0), 5).astype(np.float32)
    grey = (1.0 / (1.0 + np.exp(-(luma - 90.0) / 25.0))).astype(np.float32)
    grey[frame] = 0.0
    rough = np.zeros((height, width), bool)
    rough[height // 3 : height // 2, width // 3 : width // 2] = True
    seed = PreparedSeed(
        ref=SeedRef(dataset="synthetic", seed_id=seed_id or f"s{number}"),
        image=np.ascontiguousarray(image),
        mask=mask.astype(bool) if labelled else None,
        original_mask=mask.astype(bool) if labelled else None,
        frame=frame,
        grey=grey,
        avoid=rough if avoid else None,
    )
    for array in (seed.image, seed.mask, seed.original_mask, seed.frame, seed.grey, seed.avoid):
        if array is not None:
            array.setflags(write=False)
    return seed
