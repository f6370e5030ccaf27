"""Tiny images in the layouts of public downloads, for tests; the pixels of a picture encode its number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from medtest.core.errors import Mistake, UserMistakes
from medtest.seeds.base import SeedSource
from medtest.seeds.folders.image_masks import ImageMaskFolders, ImageMaskFoldersSettings

SIZE = (24, 32)


def source(root: Path | None, **settings: Any) -> ImageMaskFolders:
    """Return the seeds of a folder of images and masks."""
    return ImageMaskFolders(dataset="mine", settings=ImageMaskFoldersSettings(**settings), root=root, suite_seed=1)


def mistakes_of(seeds: SeedSource) -> list[Mistake]:
    """Return the mistakes in a folder's only report."""
    with pytest.raises(UserMistakes) as caught:
        seeds.refs()
    return list(caught.value.mistakes)


def picture(path: Path, number: int = 0, size: tuple[int, int] = SIZE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.full((*size, 3), 5 + number % 250, np.uint8)
    array[0, 0] = (number // 250, 0, 0)
    Pillow.fromarray(array).save(path)


def mask(path: Path, number: int = 0, size: tuple[int, int] = SIZE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.zeros(size, np.uint8)
    array.ravel()[: number % 300 + 2] = 255
    Pillow.fromarray(array).save(path)


def number_of(seed) -> int:
    low, high = int(seed.image[1, 1, 0]) - 5, int(seed.image[0, 0, 0])
    return 250 * high + low


def is_right(seed) -> bool:
    return int(np.count_nonzero(seed.expected)) == number_of(seed) % 300 + 2


def pairs(
    images: Path, masks: Path, names: list[str], *, image: str = "{}.png", truth: str = "{}.png", size=SIZE, first=0
) -> None:
    for number, name in enumerate(names, start=first):
        picture(images / image.format(name), number, size)
        mask(masks / truth.format(name), number, size)


def numbers(count: int, first: int = 1) -> list[str]:
    return [str(n) for n in range(first, first + count)]


def kvasir_names(count: int, first: int = 0) -> list[str]:
    return [f"cju{n:022d}" for n in range(first, first + count)]


def kvasir_archive(root: Path, count: int = 3) -> None:
    names = kvasir_names(count)
    pairs(root / "images", root / "masks", names, image="{}.jpg", truth="{}.jpg")
    # JPEG noise would move single pixels; the real archive has such noise, these tests want exact areas.
    for number, name in enumerate(names):
        picture_png(root / "images" / f"{name}.jpg", number)
        mask_png(root / "masks" / f"{name}.jpg", number)
    (root / "kavsir_bboxes.json").write_text("{}")


def picture_png(path: Path, number: int) -> None:
    picture(path.with_suffix(".png"), number)
    path.with_suffix(".png").replace(path)


def mask_png(path: Path, number: int) -> None:
    mask(path.with_suffix(".png"), number)
    path.with_suffix(".png").replace(path)


def clinicdb_archive(root: Path, count: int = 3) -> None:
    for suffix in ("PNG", "TIF"):
        kind = suffix.lower()
        pairs(
            root / suffix / "Original",
            root / suffix / "Ground Truth",
            numbers(count),
            image=f"{{}}.{kind}",
            truth=f"{{}}.{kind}",
        )


def etis_archive(root: Path, count: int = 3) -> None:
    pairs(root / "ETIS-LaribPolypDB", root / "Ground Truth", numbers(count), image="{}.tif", truth="p{}.tif")


def colondb_archive(root: Path, count: int = 3) -> None:
    pairs(root, root, numbers(count), image="{}.bmp", truth="p{}.bmp")
    for number in range(1, count + 1):
        mask(root / f"s{number}.bmp", number + 5)
        mask(root / f"c{number}.bmp", number + 7)


def endoscene_archive(root: Path, counts: tuple[int, int] = (2, 3)) -> None:
    for name, count, suffix in (("CVC-300", counts[0], "bmp"), ("CVC-612", counts[1], "tif")):
        base = root / name
        pairs(base / "bbdd", base / "gtpolyp", numbers(count), image="{}.bmp", truth=f"{{}}.{suffix}")
        for other in ("gtlumen", "gtspecular", "border", "void"):
            for number in numbers(count):
                mask(base / other / f"{number}.bmp", 9)


def pranet_test(root: Path, counts: dict[str, int] | None = None) -> None:
    counts = counts or {"CVC-300": 2, "CVC-ClinicDB": 2, "CVC-ColonDB": 3, "ETIS-LaribPolypDB": 2, "Kvasir": 2}
    for name, count in counts.items():
        names = kvasir_names(count) if name == "Kvasir" else numbers(count)
        base = root / "TestDataset" / name
        pairs(base / "images", base / "masks", names)


def pranet_train(root: Path, kvasir: int = 4, clinic: int = 3) -> None:
    base = root / "TrainDataset"
    pairs(base / "image", base / "mask", kvasir_names(kvasir, first=1000))
    pairs(base / "image", base / "mask", numbers(clinic, first=100), first=50)


def junk(folder: Path) -> int:
    """Write files of operating systems; return the number of skipped entries."""
    for name in ("Thumbs.db", ".DS_Store", "._1.png", "desktop.ini", "thumb_1.png", "1_thumb.jpg"):
        (folder / name).write_bytes(b"x")
    for name in ("__MACOSX", "thumbnails"):
        (folder / name).mkdir()
        (folder / name / "1.png").write_bytes(b"x")
    return 8
