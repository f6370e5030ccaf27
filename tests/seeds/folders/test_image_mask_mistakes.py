"""Mistakes in folders of images and masks: messages and refusals."""

from __future__ import annotations

import os

import pytest
from layout_files import source
from pair_files import assert_pairs_are_right, mask, pairs, picture
from PIL import Image as Pillow
from pydantic import ValidationError

from medtest.core.errors import UserMistakes
from medtest.core.plugins import part
from medtest.seeds.folders.image_masks import ImageMaskFolders, ImageMaskFoldersSettings


def reported_mistakes(seeds):
    """Return file → reason of the only report."""
    with pytest.raises(UserMistakes) as caught:
        seeds.refs()
    return {mistake.where: mistake.found for mistake in caught.value.mistakes}


# ----------------------------------------------------------------------------------------------------- bad input


def test_everything_wrong_is_in_one_report(tmp_path):
    pairs(tmp_path, ["good1", "good2", "truncated", "text", "empty", "white", "black", "size", "large"])
    picture(tmp_path / "images" / "alone.png")
    mask(tmp_path / "masks" / "orphan.png")
    for name in ("twice.png", "twice.jpg"):
        picture(tmp_path / "images" / name)
    mask(tmp_path / "masks" / "twice.png")
    images, masks = tmp_path / "images", tmp_path / "masks"
    (images / "truncated.png").write_bytes((images / "truncated.png").read_bytes()[:60])
    (images / "text.png").write_text("this is no picture\n" * 9)
    (masks / "empty.png").write_bytes(b"")
    mask(masks / "white.png", 23, value=255)
    Pillow.new("L", (32, 24), 255).save(masks / "white.png")
    Pillow.new("L", (32, 24), 0).save(masks / "black.png")
    mask(masks / "size.png", size=(25, 32))
    Pillow.new("RGB", (300, 300)).save(images / "large.png")
    (images / "moving.gif").write_bytes(b"GIF89a")
    reasons = reported_mistakes(source(tmp_path, max_pixels=10_000))
    expected = {
        "images/alone.png": "has no mask",
        "masks/orphan.png": "mask without image",
        "images/twice.png": "same name as twice.jpg",
        "images/twice.jpg": "same name as twice.png",
        "images/truncated.png": "truncated",
        "images/text.png": "is text",
        "masks/empty.png": "0 bytes",
        "masks/white.png": "white all over",
        "masks/black.png": "negatives: true",
        "masks/size.png": "32×25, but its image is 32×24",
        "images/large.png": "bound is 0.01 Mpixel",
        "images/moving.gif": "not read",
    }
    assert set(reasons) == set(expected), "every bad file once, and nothing else"
    for name, reason in expected.items():
        assert reason in reasons[name]
    skipping = source(tmp_path, max_pixels=10_000, on_bad_seed="skip")
    assert [ref.seed_id for ref in skipping.refs()] == ["good1", "good2"]
    assert {problem.file for problem in skipping.problems()} == set(expected)
    assert_pairs_are_right(skipping)


def test_negatives_are_allowed_by_a_setting(tmp_path):
    pairs(tmp_path, ["1"])
    Pillow.new("L", (32, 24), 0).save(tmp_path / "masks" / "1.png")
    seeds = source(tmp_path, negatives=True)
    assert not seeds.load(seeds.refs()[0]).expected.any()


@pytest.mark.parametrize("linked", ["file", "folder", "images"])
def test_links_out_of_the_root_are_followed(tmp_path, linked):
    root, outside = tmp_path / "root", tmp_path / "outside"
    pairs(root, ["1", "2"])
    if linked == "file":
        outside.mkdir()
        (root / "images" / "1.png").rename(outside / "kept.png")
        (root / "images" / "1.png").symlink_to(outside / "kept.png")
    elif linked == "folder":
        for kind in ("images", "masks"):
            (root / kind).rename(outside.with_name(kind))
            (root / kind).mkdir()
            (root / kind / "more").symlink_to(outside.with_name(kind), target_is_directory=True)
    else:
        (root / "images").rename(outside)
        (root / "images").symlink_to(outside, target_is_directory=True)
    seeds = source(root)
    more = "more_" if linked == "folder" else ""
    assert [ref.seed_id for ref in seeds.refs()] == [f"{more}1", f"{more}2"]
    assert_pairs_are_right(seeds)


def test_links_inside_the_root_are_followed(tmp_path):
    pairs(tmp_path, ["1"])
    (tmp_path / "store").mkdir()
    (tmp_path / "images" / "1.png").rename(tmp_path / "store" / "1.png")
    (tmp_path / "images" / "1.png").symlink_to(tmp_path / "store" / "1.png")
    assert len(source(tmp_path).refs()) == 1


def test_a_link_that_broke_later_is_a_mistake(tmp_path):
    pairs(tmp_path / "root", ["1"])
    seeds = source(tmp_path / "root")
    ref = seeds.refs()[0]
    (tmp_path / "root" / "images" / "1.png").unlink()
    (tmp_path / "root" / "images" / "1.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(UserMistakes, match=r"images/1.png[\s\S]*is a broken link"):
        seeds.load(ref)


def test_ambiguous_names_are_not_guessed(tmp_path):
    for number, name in enumerate(["1", "2", "p1", "p2"]):
        picture(tmp_path / "images" / f"{name}.png", number)
    mask(tmp_path / "masks" / "p1.png", 0)
    mask(tmp_path / "masks" / "p2.png", 1)
    assert "two ways" in next(iter(reported_mistakes(source(tmp_path)).values()))


def test_names_that_would_become_one_id_get_different_ids(tmp_path):
    pairs(tmp_path, ["a b", "a+b"])
    seeds = source(tmp_path)
    assert len({ref.seed_id for ref in seeds.refs()}) == 2
    assert all(ref.seed_id.startswith("a_b-") for ref in seeds.refs())


def test_unrelated_names_are_one_mistake(tmp_path):
    for number in range(5):
        picture(tmp_path / "images" / f"x{number}.png")
        mask(tmp_path / "masks" / f"y{number}.png")
    with pytest.raises(UserMistakes, match=r"none of the 5 images in images has a mask .*x0.png.*y0.png"):
        source(tmp_path).refs()


def test_missing_root_and_folders(tmp_path):
    with pytest.raises(UserMistakes, match="add data=PATH"):
        source(None).refs()
    with pytest.raises(UserMistakes, match="does not exist"):
        source(tmp_path / "no").refs()
    (tmp_path / "file").touch()
    with pytest.raises(UserMistakes, match="is a file"):
        source(tmp_path / "file").refs()
    with pytest.raises(UserMistakes, match="images/ and masks/"):
        source(tmp_path).refs()
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    with pytest.raises(UserMistakes, match="no images"):
        source(tmp_path).refs()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_unreadable_folder(tmp_path):
    pairs(tmp_path, ["1"])
    (tmp_path / "images" / "closed").mkdir(mode=0o000)
    assert "cannot be read" in reported_mistakes(source(tmp_path))["images/closed"]


@pytest.mark.parametrize("value", ["../x", "/etc", "a/../../b", "~/x", "C:\\x", "a\\..\\..\\b"])
@pytest.mark.parametrize("key", ["images", "masks", "metadata"])
def test_settings_cannot_climb(key, value):
    with pytest.raises(ValidationError):
        ImageMaskFoldersSettings(**{key: value})


def test_avoid_comes_only_from_trusted_places():
    schema = ImageMaskFoldersSettings.model_json_schema()
    assert schema["properties"]["avoid"]["trusted"] is True
    assert "trusted" not in schema["properties"]["images"]


def test_the_defaults_in_yaml_are_valid_and_the_part_is_found():
    info = part("seeds", "image_mask_folders")
    assert info.load() is ImageMaskFolders
    assert ImageMaskFoldersSettings(**info.defaults) == ImageMaskFoldersSettings()
