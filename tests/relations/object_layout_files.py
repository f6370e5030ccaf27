"""Folders of images and masks in the layouts that ``medtest objects build`` reads."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Rgb = NDArray[np.uint8]
Grey = NDArray[np.uint8]
SIDE = (240, 320)
FRAME = 20


def scene(number: int = 0) -> Rgb:
    """Return a reddish field with a black frame of 20 pixels all around, uint8 240×320×3 RGB."""
    rng = np.random.default_rng(number)
    picture = np.full((*SIDE, 3), (170, 96, 80), np.float64)
    picture += cv2.resize(rng.normal(0, 12, (12, 16)), SIDE[::-1], interpolation=cv2.INTER_CUBIC)[..., None]
    whole = np.zeros((*SIDE, 3), np.uint8)
    inner = np.s_[FRAME:-FRAME, FRAME:-FRAME]
    whole[inner] = np.clip(picture, 20, 250).astype(np.uint8)[inner]
    return whole


def paint(picture: Rgb, shape: Grey, colour: tuple[int, int, int]) -> Rgb:
    picture = picture.copy()
    picture[(shape > 0) & (picture.sum(axis=2) > 0)] = colour
    return picture


def shaft() -> Grey:
    """Return a bar from the middle (tip at about (150, 130)) to the right border of the field, 24 pixels wide."""
    mask = np.zeros(SIDE, np.uint8)
    cv2.rectangle(mask, (150, 118), (SIDE[1] - FRAME - 1, 141), 255, cv2.FILLED)
    return mask


def corner() -> Grey:
    """Return a square in the lower right corner of the field."""
    mask = np.zeros(SIDE, np.uint8)
    mask[170 : SIDE[0] - FRAME, 240 : SIDE[1] - FRAME] = 255
    return mask


def blob(x: int, y: int, radius: int) -> Grey:
    mask = np.zeros(SIDE, np.uint8)
    cv2.circle(mask, (x, y), radius, 255, cv2.FILLED)
    return mask


def save(path: Path, picture: NDArray[np.uint8]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)
    return path


def save_pages(path: Path, pages: list[Grey]) -> Path:
    """Write a TIFF of several pages, like the masks of EAD2020."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = [Image.fromarray(page) for page in pages]
    first.save(path, save_all=True, append_images=rest)
    return path


def kvasir_instrument(root: Path) -> Path:
    """Write two images with instruments (the second one in the corner), and one without mask."""
    for name, shape in (("a1", shaft()), ("b2", corner())):
        save(root / "images" / f"{name}.jpg", paint(scene(), shape, (225, 225, 232)))
        save(root / "masks" / f"{name}.png", shape)
    save(root / "images" / "c3.jpg", scene(3))
    return root


def ead2020(root: Path) -> Path:
    """Write an instrument in a five-page mask, blood in a separate mask, blood in a box, and an empty last image."""
    empty = np.zeros(SIDE, np.uint8)
    save(root / "originalImages" / "i1.png", paint(scene(), shaft(), (225, 225, 232)))
    save_pages(root / "semantic_masks" / "i1_mask.tif", [shaft(), blob(60, 60, 8), empty, empty, empty])
    save(root / "originalImages" / "b1.png", paint(scene(1), blob(120, 120, 26), (120, 10, 14)))
    save(root / "semantic_masks" / "b1_blood.tif", blob(120, 120, 26))
    save(root / "originalImages" / "b2.png", paint(scene(2), blob(200, 100, 30), (112, 8, 12)))
    box = [200 / SIDE[1], 100 / SIDE[0], 84 / SIDE[1], 84 / SIDE[0]]
    (root / "bbox").mkdir(parents=True, exist_ok=True)
    (root / "bbox" / "b2.txt").write_text("7 " + " ".join(f"{v:.6f}" for v in box) + "\n3 0.5 0.5 0.2 0.2\nrubbish\n")
    save(root / "originalImages" / "n1.png", scene(4))
    save_pages(root / "semantic_masks" / "n1_mask.tif", [empty] * 5)
    return root
