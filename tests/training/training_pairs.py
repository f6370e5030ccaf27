"""Files of image and mask pairs for tests of trainings."""

from __future__ import annotations

from pathlib import Path

import cv2

from medtest.training.segmentation.data import Pairs


def write_pairs(root: Path, pairs: Pairs) -> Path:
    """Write pairs as a folder of images and one of masks, and return the folder that holds both."""
    for name in ("images", "masks"):
        (root / name).mkdir(parents=True)
    for name, image, mask in zip(pairs.names, pairs.images, pairs.masks, strict=True):
        cv2.imwrite(str(root / "images" / f"{name}.png"), image)
        cv2.imwrite(str(root / "masks" / f"{name}.png"), mask)
    return root
