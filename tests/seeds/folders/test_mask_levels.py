"""Masks of image and mask folders: which levels and colours are lesion, and oddities."""

from __future__ import annotations

import hashlib
import json

import imageio
import numpy as np
import pytest
import tifffile
from layout_files import source
from PIL import Image as Pillow

from medtest.core.errors import UserMistakes


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _disc(path, *levels, size=(60, 100)):
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.zeros((*size, *np.shape(levels[0])), np.uint8)
    for number, level in enumerate(levels):
        array[20:40, 20 + 30 * number : 40 + 30 * number] = level
    imageio.v3.imwrite(path, array)
    return array


def _image(path, size=(60, 100), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.fromarray(np.full((*size, 3), 90, np.uint8)).save(path, **options)


def test_clinicdbs_tiffs_are_read(tmp_path):
    pixels = np.arange(60 * 100 * 3, dtype=np.uint32).reshape(60, 100, 3).astype(np.uint8)
    for number in (1, 2):
        for folder, array in (("Original", pixels), ("Ground Truth", np.repeat(pixels[..., :1] // 128 * 255, 3, 2))):
            path = tmp_path / "CVC-ClinicDB" / folder / f"{number}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            tifffile.imwrite(path, array, photometric="minisblack", planarconfig="contig")
    seeds = source(tmp_path)
    assert len(seeds.refs()) == 2
    seed = seeds.load(seeds.refs()[0])
    assert (seed.image == pixels).all() and (seed.expected == (pixels[..., 0] > 127)).all()


def test_levels_are_refused_with_the_setting_that_reads_them(tmp_path):
    _image(tmp_path / "images" / "a.png")
    levels = _disc(tmp_path / "masks" / "a.png", 100, 200)
    for negatives in (False, True):
        with pytest.raises(UserMistakes, match=r"several levels .*label_values"):
            source(tmp_path, negatives=negatives).refs()
    seeds = source(tmp_path, label_values=[100])
    assert (seeds.load(seeds.refs()[0]).expected == (levels == 100)).all()
    with pytest.raises(UserMistakes, match="no value of label_values"):
        source(tmp_path, label_values=[7]).refs()


@pytest.mark.parametrize("values", [[[255, 0, 0]], ["#ff0000"], ["FF0000"]])
def test_colours_are_named_in_either_way(tmp_path, values):
    _image(tmp_path / "images" / "a.png")
    colours = _disc(tmp_path / "masks" / "a.png", (255, 0, 0), (0, 255, 0))
    seeds = source(tmp_path, label_values=values)
    assert (seeds.load(seeds.refs()[0]).expected == (colours[..., 0] > 0)).all()


@pytest.mark.parametrize("values", [[255, 0, 0], ["red"], [[1, 2]], [-1], [[300, 0, 0]]])
def test_impossible_values_are_mistakes(values):
    with pytest.raises(ValueError, match="colour|level"):
        source(None, label_values=values)


def test_oddities_of_masks_are_notices(tmp_path):
    for name in ("large", "specks", "turned", "plain"):
        _image(tmp_path / "images" / f"{name}.png")
        _disc(tmp_path / "masks" / f"{name}.png", 255)
    inverted = np.full((60, 100), 255, np.uint8)
    inverted[20:40, 20:40] = 0
    Pillow.fromarray(inverted).save(tmp_path / "masks" / "large.png")
    noise = (np.random.default_rng(2).random((60, 100)) < 0.05).astype(np.uint8)
    Pillow.fromarray(noise).save(tmp_path / "masks" / "specks.png")
    exif = Pillow.Exif()
    exif[274] = 3
    (tmp_path / "images" / "turned.png").unlink()
    _image(tmp_path / "images" / "turned.jpg", exif=exif)
    seeds = source(tmp_path, negatives=True)
    assert len(seeds.refs()) == 4
    notices = " ".join(seeds.notices())
    assert "1 mask marks more than 60 % of the image as lesion (masks/large.png)" in notices
    assert "1 mask holds single pixels of low values and nothing else (masks/specks.png)" in notices
    assert "1 pair has an orientation in the file of image or mask alone (masks/turned.png)" in notices
    assert "plain" not in notices


def test_digests_of_ordinary_masks_stay_and_those_of_other_levels_change(tmp_path):
    _image(tmp_path / "images" / "a.png")
    _disc(tmp_path / "masks" / "a.png", 255)
    plain = source(tmp_path)
    head, sums = ["image_mask_folders", 2], [sha256_of(tmp_path / folder / "a.png") for folder in ("images", "masks")]
    line = ["mine", "a", "a", [], [*sums, ""]]
    expected = hashlib.sha256(json.dumps(head).encode() + json.dumps(line).encode() + b"\n").hexdigest()
    assert plain.digest() == expected
    (tmp_path / "masks" / "a.png").unlink()
    _disc(tmp_path / "masks" / "a.png", 100)  # empty, and refused, before; lesion now
    sums = [sums[0], sha256_of(tmp_path / "masks" / "a.png")]
    other = json.dumps(["mine", "a", "a", [], [*sums, ""]]).encode()
    assert source(tmp_path).digest() != hashlib.sha256(json.dumps(head).encode() + other + b"\n").hexdigest()
