"""Small pictures with artefacts of known numbers."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

MUCOSA, STOOL = (190, 110, 90), (180, 130, 50)


def disc(size: int, middle: tuple[float, float], radius: float) -> NDArray[np.bool_]:
    rows, columns = np.indices((size, size))
    return np.hypot(rows - middle[0], columns - middle[1]) <= radius


def picture(
    mask: NDArray[np.bool_], *, colour: tuple[int, int, int] = STOOL, blur: float = 0.0, noise: float = 0.0
) -> NDArray[np.uint8]:
    """Paint a mask on mucosa, with an edge that is a Gaussian's integral."""
    alpha = mask.astype(np.float64)
    if blur:
        alpha = cv2.GaussianBlur(alpha, (0, 0), blur)
    image = alpha[..., None] * np.array(colour) + (1 - alpha[..., None]) * np.array(MUCOSA)
    if noise:
        image = image + np.random.default_rng(1).normal(0, noise, mask.shape)[..., None]
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def write_real(folder: Path, count: int = 3, *, masks: bool = True, size: int = 128) -> Path:
    """Write pictures of discs of stool at the rim, with their masks."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        mask = disc(size, (size * 0.2, size * (0.3 + 0.1 * number)), size * (0.18 + 0.02 * number))
        Image.fromarray(picture(mask, blur=0.7, noise=3)).save(folder / f"case{number}.png")
        if masks:
            Image.fromarray(mask.astype(np.uint8) * 255).save(folder / f"case{number}_mask.png")
    return folder
