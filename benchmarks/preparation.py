"""Milliseconds of preparation: resizing, black frame and grey mask of one seed, and looking at a folder of pairs.

Process CPU time on one core, the best of several rounds. ``python benchmarks/preparation.py``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as Pillow

from benchmarks._sizes import options
from medtest.core.cases import Seed, SeedRef
from medtest.phantoms.colon import colon_rng, make_colon
from medtest.preparation import grey_mask, prepare, resize_image, resize_mask
from medtest.preparation.frame import fit_field
from medtest.seeds.folders.image_masks import ImageMaskFolders, ImageMaskFoldersSettings

SIZES = ((288, 384), (531, 622), (1072, 1920))
TARGET_MS = 20.0
ROUNDS = 15


def best_ms(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least CPU time of some rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def phantoms(size: tuple[int, int], count: int = 6) -> list[Seed]:
    """Return phantoms of one size with different frames."""
    ref = SeedRef(dataset="benchmark", seed_id="phantom")
    made = [make_colon(colon_rng(1, "benchmark", i), size=size) for i in range(count)]
    return [Seed(ref=ref, image=phantom.image, expected=phantom.mask) for phantom in made]


def folder_seconds(pairs: int) -> tuple[float, float]:
    """Return wall and CPU seconds of looking at a folder of JPEG images with JPEG masks."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for part in ("images", "masks"):
            (root / part).mkdir()
        seeds = phantoms((531, 622), 4)
        for index in range(pairs):
            seed = seeds[index % len(seeds)]
            lesion = np.zeros(seed.image.shape[:2], np.uint8)
            cv2.circle(lesion, (300, 250), 40 + index % 90, 255, -1)
            Pillow.fromarray(seed.image).save(root / "images" / f"{index}.jpg", quality=90)
            Pillow.fromarray(lesion).save(root / "masks" / f"{index}.jpg", quality=90)
        source = ImageMaskFolders(dataset="b", settings=ImageMaskFoldersSettings(), root=root, suite_seed=0)
        wall, cpu = time.perf_counter(), time.process_time()
        source.refs()
        return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300, help="of the folder that is checked")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many sizes of images")
    chosen = options(parser, pairs=4, sizes=1)
    cv2.setNumThreads(1)
    print(f"{'size':>10} {'prepare':>9} {'of target':>10}   resize  mask  frame  grey  (ms, 512×512)")
    for size in SIZES[: chosen.sizes]:
        seeds = phantoms(size)
        prepared = [prepare(seed, size=512) for seed in seeds]
        aspect = size[1] / size[0]

        def each(work: Callable[[int], object], count: int = len(seeds)) -> float:
            return best_ms(lambda: [work(i) for i in range(count)]) / count

        whole = each(lambda i, s=seeds: prepare(s[i], size=512))  # type: ignore[misc]
        parts = (
            each(lambda i, s=seeds: resize_image(s[i].image, 512)),  # type: ignore[misc]
            each(lambda i, s=seeds: resize_mask(s[i].expected, 512)),  # type: ignore[misc]
            each(lambda i, p=prepared, a=aspect: fit_field(p[i].image, a)),  # type: ignore[misc]
            each(lambda i, p=prepared: grey_mask(p[i].image, p[i].frame)),  # type: ignore[misc]
        )
        numbers = "  ".join(f"{part:5.2f}" for part in parts)
        print(f"{size[1]}×{size[0]:<5} {whole:9.2f} {whole / TARGET_MS:9.2f}×   {numbers}")
    pairs = chosen.pairs
    wall, cpu = folder_seconds(pairs)
    print(f"folder check: {pairs} pairs in {wall:.2f} s wall, {cpu:.2f} s CPU: {1e3 * cpu / pairs:.2f} ms a pair")


if __name__ == "__main__":
    main()
