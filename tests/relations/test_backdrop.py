"""Matter as a camera records it: sharp brightness, coarse colour, no change around it."""

from __future__ import annotations

import cv2
import numpy as np

from medtest.core.cases import Image
from medtest.relations.objects.matter.backdrop import Backdrop, backdrop_of
from medtest.relations.objects.scene import scene_of
from medtest.testing import synthetic_seed

CELLS = 64
PLACE = (slice(0, 2 * CELLS), slice(0, 2 * CELLS))


def exposed(light: Image, through: int, matter: Image, barred: Image) -> tuple[Image, Image]:
    """Return a brown picture, and the same picture with matter and without noise."""
    image = np.full((2 * CELLS, 2 * CELLS, 3), (150, 90, 60), np.uint8)
    plain = np.ones((2 * CELLS, 2 * CELLS), np.float32)
    backdrop = Backdrop(
        small=image[::2, ::2].copy(), luma=cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), grain=plain, open=255 - barred
    )
    shown = image.copy()
    backdrop.expose(shown, PLACE, backdrop.small, light, np.full_like(light, through), matter)
    return image, shown


def test_only_open_places_near_matter_change() -> None:
    light = np.zeros((CELLS, CELLS, 3), np.uint8)
    matter = np.zeros((CELLS, CELLS), np.uint8)
    light[20:40, 20:40], matter[20:40, 20:40] = (90, 70, 20), 255
    barred = np.zeros((2 * CELLS, 2 * CELLS), np.uint8)
    barred[50:60] = 255
    image, shown = exposed(light, 255, matter, barred)
    changed = (image != shown).any(axis=2)
    assert changed[42:48, 42:78].all()
    assert not changed[50:60].any()
    rows, columns = np.nonzero(changed)
    assert min(rows.min(), columns.min()) >= 2 * 18
    assert max(rows.max(), columns.max()) < 2 * 42


def test_tissue_seen_through_clear_matter_keeps_its_colour() -> None:
    nothing = np.zeros((CELLS, CELLS, 3), np.uint8)
    every = np.full((CELLS, CELLS), 255, np.uint8)
    image, shown = exposed(nothing, 255, every, np.zeros((2 * CELLS, 2 * CELLS), np.uint8))
    assert np.abs(image.astype(int) - shown).max() <= 2


def test_stripes_of_brightness_stay_and_stripes_of_colour_blend() -> None:
    every, none = np.full((CELLS, CELLS), 255, np.uint8), np.zeros((2 * CELLS, 2 * CELLS), np.uint8)
    bright, coloured = (np.zeros((CELLS, CELLS, 3), np.uint8) for _ in range(2))
    bright[:, ::2], bright[:, 1::2] = 180, 90
    coloured[:, ::2], coloured[:, 1::2] = (200, 100, 50), (50, 150, 200)
    spread = []
    for light in (bright, coloured):
        luma, red, blue = cv2.split(cv2.cvtColor(exposed(light, 0, every, none)[1], cv2.COLOR_RGB2YCrCb))
        spread.append((np.ptp(luma[16:-16, 16:-16]), max(np.ptp(part[16:-16, 16:-16]) for part in (red, blue))))
    assert spread[0][0] >= 40
    assert spread[0][1] <= 2
    assert spread[1][1] <= 4, "one colour for two by two cells"


def test_the_black_frame_does_not_darken_the_picture_below() -> None:
    seed = synthetic_seed(0)
    scene = scene_of(seed)
    backdrop = backdrop_of(seed.image, seed.frame, scene, seed.frame)
    assert not backdrop.open[seed.frame].any()
    beside = cv2.dilate(scene.field.view(np.uint8), np.ones((3, 3), np.uint8)).astype(bool) & ~scene.field
    assert backdrop.small[beside].max(axis=1).min() > 30
    assert np.array_equal(backdrop.luma, cv2.cvtColor(seed.image, cv2.COLOR_RGB2GRAY))


def test_matter_has_the_noise_of_each_place_and_no_edge_of_what_it_hides() -> None:
    seed = synthetic_seed(0)
    scene = scene_of(seed)
    image = np.full_like(seed.image, 120)
    noisy = image[:, seed.width // 2 :]
    noisy += np.random.default_rng(0).integers(0, 7, (*noisy.shape[:2], 1)).astype(np.uint8)
    image[-20:-16] = 250
    grain = backdrop_of(image, np.zeros_like(seed.frame), scene, seed.frame).grain
    top = seed.height // 2
    assert grain[:top, : seed.width // 2 - 4].std() < 1e-6
    assert 0.004 < grain[:top, seed.width // 2 + 4 :].std() < 0.02
    assert np.abs(grain - 1).max() <= 0.251
