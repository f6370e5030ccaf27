"""Leaks of training pictures into test seeds, detected by pixels under any file name, format or stored size."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from further_parts import write_folder

from medtest.core.cases import SeedRef
from medtest.core.errors import UserMistakes
from medtest.runner.units.parts import Parts
from medtest.suite.compose import load
from medtest.training.further.leak import SHOWN, print_of, prints_of, refuse_shared, shared_images
from medtest.training.further.material import training_prints, training_suite


def _suite(*overrides: str):
    return load("polyp_seg_folder", ["model=pranet", *overrides]).suite


def _prints(root: Path, suite):
    return training_prints(Parts(training_suite(suite), root, 8))


def test_shared_pictures_are_found_under_other_names_and_formats(tmp_path):
    train = write_folder(tmp_path / "train", 6, random=1)
    test = write_folder(tmp_path / "test", 4, random=2)
    suite = _suite()
    sources = suite.build_seeds(test)
    assert shared_images(_prints(train, suite), prints_of(sources, size=512)) == []
    copied = cv2.imread(str(train / "images" / "p1-3.png"))
    cv2.imwrite(str(test / "images" / "other name.bmp"), copied)
    mask = cv2.imread(str(train / "masks" / "p1-3.png"))
    cv2.imwrite(str(test / "masks" / "other name.png"), mask)
    shared = shared_images(_prints(train, suite), prints_of(suite.build_seeds(test), size=512))
    assert [name for name, _ in shared] == ["training/p1-3"]
    assert shared[0][1].endswith("other_name")
    with pytest.raises(UserMistakes) as caught:
        refuse_shared(shared)
    words = str(caught.value)
    assert "1 training picture is a test seed; nothing was trained" in words
    assert "training/p1-3" in words and "other_name" in words


def test_a_copy_at_the_prepared_size_is_the_same_picture():
    image = np.random.default_rng(0).integers(0, 255, (300, 400, 3)).astype(np.uint8)
    from medtest.preparation.prepare import resize_image

    stored = resize_image(image, 512)
    assert print_of(image, 512).native != print_of(stored, 512).native
    tested = [(SeedRef(dataset="test", seed_id="a"), print_of(stored, 512))]
    assert shared_images({"training/x": print_of(image, 512)}, tested) == [("training/x", "test/a")]
    assert shared_images({"training/x": print_of(image[::-1], 512)}, tested) == []


def test_the_crop_of_a_suite_is_the_same_picture():
    """The crop is computed here with OpenCV alone: shorter side 256, area averages, the middle 224."""
    image = np.random.default_rng(0).integers(0, 255, (300, 512, 3)).astype(np.uint8)
    wide = cv2.resize(image, (256 * 512 // 300, 256), interpolation=cv2.INTER_AREA)
    top, first_column = 16, (wide.shape[1] - 224) // 2
    crop = np.ascontiguousarray(wide[top : top + 224, first_column : first_column + 224])
    whole, cut = print_of(image, 224, 256), print_of(crop, 224, 256)
    ref = SeedRef(dataset="test", seed_id="a")
    assert shared_images({"training/crop": cut}, [(ref, whole)]) == [("training/crop", "test/a")]
    assert shared_images({"training/whole": whole}, [(ref, cut)]) == [("training/whole", "test/a")]
    # What is not seen: the same crop one pixel aside.
    aside = print_of(np.ascontiguousarray(wide[top : top + 224, first_column + 1 : first_column + 225]), 224, 256)
    assert shared_images({"training/aside": aside}, [(ref, whole)]) == []


def test_every_shared_picture_is_named():
    shared = [(f"training/{i}", f"test/{i}") for i in range(SHOWN + 7)]
    with pytest.raises(UserMistakes) as caught:
        refuse_shared(shared)
    words = str(caught.value)
    assert all(f"test/{i}\n" in words for i in range(SHOWN)) and "7 further pictures" in words
    refuse_shared([])
