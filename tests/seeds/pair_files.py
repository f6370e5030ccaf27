"""Tiny images with masks: pixels encode a picture's number, the area a mask's."""

from __future__ import annotations

import numpy as np
from PIL import Image as Pillow


def picture(path, number=0, size=(24, 32), exif=None):
    """Write an image whose pixels encode its number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.full((*size, 3), 10 * number + 5, np.uint8)
    Pillow.fromarray(array).save(path, **({"exif": exif} if exif else {}))


def mask(path, number=0, size=(24, 32), value=255):
    """Write a mask whose area encodes its number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.zeros(size, np.uint8)
    array[: number + 1, :5] = value
    Pillow.fromarray(array).save(path)


def pairs(root, names, *, images="images", masks="masks", suffix=".png", mask_name="{}"):
    for number, name in enumerate(names):
        picture(root / images / f"{name}{suffix}", number)
        mask(root / masks / f"{mask_name.format(name)}{suffix}", number)


def number_of(seed):
    return int(seed.image[0, 0, 0]) // 10


def assert_pairs_are_right(seeds):
    for ref in seeds.refs():
        seed = seeds.load(ref)
        assert np.count_nonzero(seed.expected) == 5 * (number_of(seed) + 1)
