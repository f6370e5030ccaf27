"""Folders of images and masks: the layouts people have, and every way in which one can be wrong."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow
from pydantic import ValidationError

from medtest.cases import ID_PATTERN
from medtest.errors import UserMistakes
from medtest.plugins import part
from medtest.seeds.folder_layout import Pair, dataset_id, natural_key
from medtest.seeds.image_mask_folders import ImageMaskFolders, ImageMaskFoldersSettings, seed_identifier

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[2].parent / "shared"))
REAL = SHARED / "data" / "polyp" / "kvasir_seg"


def source(root, **given_settings):
    return ImageMaskFolders(
        dataset="mine", settings=ImageMaskFoldersSettings(**given_settings), root=root, suite_seed=1
    )


def picture(path, number=0, size=(24, 32), exif=None):
    """An image whose number can be told from its pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.full((*size, 3), 10 * number + 5, np.uint8)
    Pillow.fromarray(array).save(path, **({"exif": exif} if exif else {}))


def mask(path, number=0, size=(24, 32), value=255):
    """A mask whose number can be told from its area."""
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


def reported(seeds):
    """Return file → reason of the one report."""
    with pytest.raises(UserMistakes) as caught:
        seeds.refs()
    return {mistake.where: mistake.found for mistake in caught.value.mistakes}


# ------------------------------------------------------------------------------------------------------- layouts


def test_images_and_masks_in_natural_order(tmp_path):
    pairs(tmp_path, ["img10", "img2", "img1"])
    seeds = source(tmp_path)
    assert [ref.seed_id for ref in seeds.refs()] == ["img1", "img2", "img10"]
    assert {ref.dataset for ref in seeds.refs()} == {"mine"}
    assert_pairs_are_right(seeds)


@pytest.mark.parametrize("suffix", [".tif", ".bmp"])
def test_original_and_ground_truth(tmp_path, suffix):
    pairs(tmp_path, ["1", "2", "10"], images="Original", masks="Ground Truth", suffix=suffix)
    assert [ref.seed_id for ref in source(tmp_path).refs()] == ["1", "2", "10"]
    assert_pairs_are_right(source(tmp_path, layout="original_ground_truth"))


def test_folder_names_in_any_case(tmp_path):
    pairs(tmp_path, ["a"], images="IMAGES", masks="Masks")
    assert len(source(tmp_path).refs()) == 1


@pytest.mark.parametrize("below", ["", "TestDataset"])
def test_several_data_sets_from_one_root(tmp_path, below):
    for name in ("CVC-300", "CVC-ClinicDB", "ETIS-LaribPolypDB", "Kvasir"):
        pairs(tmp_path / below / name, ["1", "2"])
    if below:
        pairs(tmp_path / "TrainDataset", ["9"], images="image")
    seeds = source(tmp_path)
    datasets = list(dict.fromkeys(ref.dataset for ref in seeds.refs()))
    assert datasets == ["cvc-300", "cvc-clinicdb", "etis-laribpolypdb", "kvasir"]
    assert len(seeds.refs()) == 8
    assert_pairs_are_right(seeds)
    chosen = source(tmp_path, sets=["kvasir"])
    assert {ref.dataset for ref in chosen.refs()} == {"kvasir"}


def test_unknown_set_is_named_with_the_nearest(tmp_path):
    pairs(tmp_path / "CVC-300", ["1"])
    with pytest.raises(UserMistakes, match="did you mean: cvc-300"):
        source(tmp_path, sets=["cvc300"]).refs()


@pytest.mark.parametrize(
    "mask_name", ["{}", "{}_mask", "mask_{}", "p{}", "{}_gt", "{}_segmentation", "{}-mask", "{}_Mask"]
)
def test_ways_to_name_masks(tmp_path, mask_name):
    pairs(tmp_path, ["1", "2", "11", "12"], mask_name=mask_name)
    seeds = source(tmp_path)
    assert len(seeds.refs()) == 4
    assert_pairs_are_right(seeds)


@pytest.mark.parametrize("mask_name", ["{}_mask", "p{}"])
def test_masks_beside_images(tmp_path, mask_name):
    pairs(tmp_path, ["1", "2", "3"], images=".", masks=".", mask_name=mask_name)
    seeds = source(tmp_path)
    assert [ref.seed_id for ref in seeds.refs()] == ["1", "2", "3"]
    assert_pairs_are_right(seeds)


def test_other_suffix_and_other_case_of_the_mask(tmp_path):
    picture(tmp_path / "images" / "Polyp_A.JPG", 0)
    mask(tmp_path / "masks" / "polyp_a.png", 0)
    seeds = source(tmp_path)
    assert [ref.seed_id for ref in seeds.refs()] == ["Polyp_A"]
    assert_pairs_are_right(seeds)


def test_sub_folders_join_by_their_path(tmp_path):
    for number, name in enumerate(["seq1/1", "seq1/2", "seq2/1"]):
        picture(tmp_path / "images" / f"{name}.png", number)
        mask(tmp_path / "masks" / f"{name}.png", number)
    seeds = source(tmp_path)
    assert [ref.seed_id for ref in seeds.refs()] == ["seq1_1", "seq1_2", "seq2_1"]
    assert_pairs_are_right(seeds)


def test_named_folders(tmp_path):
    pairs(tmp_path, ["1"], images="data/frames", masks="data/truth")
    assert len(source(tmp_path, images="data/frames", masks="data/truth").refs()) == 1


def test_what_systems_leave_is_ignored(tmp_path):
    pairs(tmp_path, ["1"])
    for name in ("Thumbs.db", ".DS_Store", "._1.png", "desktop.ini", "notes.txt"):
        (tmp_path / "images" / name).write_bytes(b"x")
    (tmp_path / "images" / "__MACOSX").mkdir()
    (tmp_path / "images" / "__MACOSX" / "1.png").write_bytes(b"x")
    (tmp_path / "__MACOSX").mkdir()
    assert len(source(tmp_path).refs()) == 1


def test_unlabelled_folders(tmp_path):
    for number in range(3):
        picture(tmp_path / "flat" / f"{number}.jpg", number)
        picture(tmp_path / "below" / "images" / f"{number}.jpg", number)
    for root in (tmp_path / "flat", tmp_path / "below"):
        seeds = source(root, labels="none")
        assert len(seeds.refs()) == 3
        assert seeds.load(seeds.refs()[1]).expected is None
        with pytest.raises(UserMistakes, match="labels: none"):
            source(root).refs()


def test_masks_beside_images_are_no_images_when_unlabelled(tmp_path):
    pairs(tmp_path, ["1", "2"], images=".", masks=".", mask_name="{}_mask")
    assert [ref.seed_id for ref in source(tmp_path, labels="none").refs()] == ["1", "2"]


def test_exif_turns_image_and_mask_each_by_its_own(tmp_path):
    exif = Pillow.Exif()
    exif[274] = 6
    picture(tmp_path / "images" / "1.jpg", 0, size=(24, 32), exif=exif)
    mask(tmp_path / "masks" / "1.png", 0, size=(32, 24))
    seed = source(tmp_path).load(source(tmp_path).refs()[0])
    assert seed.image.shape[:2] == seed.expected.shape == (32, 24)


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
    found = reported(source(tmp_path, max_pixels=10_000))
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
    assert set(found) == set(expected), "every bad file once, and nothing else"
    for name, reason in expected.items():
        assert reason in found[name]
    skipping = source(tmp_path, max_pixels=10_000, on_bad_seed="skip")
    assert [ref.seed_id for ref in skipping.refs()] == ["good1", "good2"]
    assert {problem.file for problem in skipping.problems()} == set(expected)
    assert_pairs_are_right(skipping)


def test_negatives_are_allowed_when_said(tmp_path):
    pairs(tmp_path, ["1"])
    Pillow.new("L", (32, 24), 0).save(tmp_path / "masks" / "1.png")
    seeds = source(tmp_path, negatives=True)
    assert not seeds.load(seeds.refs()[0]).expected.any()


@pytest.mark.parametrize("what", ["file", "folder", "images"])
def test_links_out_of_the_root_are_refused(tmp_path, what):
    root, outside = tmp_path / "root", tmp_path / "outside"
    pairs(root, ["1", "2"])
    picture(outside / "secret.png")
    if what == "file":
        (root / "images" / "1.png").unlink()
        (root / "images" / "1.png").symlink_to(outside / "secret.png")
        assert "leads out" in reported(source(root))["images/1.png"]
    elif what == "folder":
        (root / "images" / "more").symlink_to(outside, target_is_directory=True)
        assert "leads out" in reported(source(root))["images/more"]
    else:
        shutil.rmtree(root / "images")
        (root / "images").symlink_to(outside, target_is_directory=True)
        with pytest.raises(UserMistakes):
            source(root).refs()


def test_links_inside_the_root_are_followed(tmp_path):
    pairs(tmp_path, ["1"])
    (tmp_path / "store").mkdir()
    (tmp_path / "images" / "1.png").rename(tmp_path / "store" / "1.png")
    (tmp_path / "images" / "1.png").symlink_to(tmp_path / "store" / "1.png")
    assert len(source(tmp_path).refs()) == 1


def test_a_link_put_there_later_is_not_followed(tmp_path):
    pairs(tmp_path / "root", ["1"])
    picture(tmp_path / "secret.png", 3)
    seeds = source(tmp_path / "root")
    ref = seeds.refs()[0]
    (tmp_path / "root" / "images" / "1.png").unlink()
    (tmp_path / "root" / "images" / "1.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(UserMistakes, match="leads out"):
        seeds.load(ref)


def test_names_that_fit_in_two_ways_are_not_guessed(tmp_path):
    for number, name in enumerate(["1", "2", "p1", "p2"]):
        picture(tmp_path / "images" / f"{name}.png", number)
    mask(tmp_path / "masks" / "p1.png", 0)
    mask(tmp_path / "masks" / "p2.png", 1)
    assert "two ways" in next(iter(reported(source(tmp_path)).values()))


def test_names_that_become_one_id_are_told(tmp_path):
    pairs(tmp_path, ["a b", "a+b"])
    found = reported(source(tmp_path))
    assert set(found) == {"images/a b.png", "images/a+b.png"}
    assert "'a_b'" in found["images/a b.png"]


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
    with pytest.raises(UserMistakes, match="no images at all"):
        source(tmp_path).refs()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_unreadable_folder(tmp_path):
    pairs(tmp_path, ["1"])
    (tmp_path / "images" / "closed").mkdir(mode=0o000)
    assert "cannot be read" in reported(source(tmp_path))["images/closed"]


@pytest.mark.parametrize("value", ["../x", "/etc", "a/../../b", "~/x", "C:\\x", "a\\..\\..\\b"])
@pytest.mark.parametrize("key", ["images", "masks", "metadata"])
def test_settings_cannot_climb(key, value):
    with pytest.raises(ValidationError):
        ImageMaskFoldersSettings(**{key: value})


def test_avoid_comes_from_trusted_places_alone():
    schema = ImageMaskFoldersSettings.model_json_schema()
    assert schema["properties"]["avoid"]["trusted"] is True
    assert "trusted" not in schema["properties"]["images"]


def test_the_defaults_in_yaml_are_valid_and_the_part_is_found():
    info = part("seeds", "image_mask_folders")
    assert info.load() is ImageMaskFolders
    assert ImageMaskFoldersSettings(**info.defaults) == ImageMaskFoldersSettings()


# ------------------------------------------------------------------------------------------- metadata and avoid


def test_metadata_gives_clusters_and_strata(tmp_path):
    pairs(tmp_path, ["1", "2", "3"])
    text = "File;Patient;Device type\nimages/1.png;p1;new\n2.png;p1;old\n3;p2;old\n"
    (tmp_path / "about.csv").write_text(text, encoding="utf-8-sig")
    refs = source(tmp_path, metadata="about.csv").refs()
    assert [ref.cluster for ref in refs] == ["p1", "p1", "p2"]
    assert [ref.strata[0] for ref in refs] == [("device_type", kind) for kind in ("new", "old", "old")]


def test_metadata_by_data_set(tmp_path):
    for name in ("a", "b"):
        pairs(tmp_path / name, ["1"])
    (tmp_path / "m.csv").write_text("dataset,seed_id,video\na,1,v1\nb,1,v2\n")
    assert [(r.dataset, r.cluster) for r in source(tmp_path, metadata="m.csv").refs()] == [("a", "v1"), ("b", "v2")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,patient\n1.png,a\n", "no row for images/2.png"),
        ("file,patient\n1.png,a\n2.png,b\n1.png,c\n", "second time"),
        ("patient,age\na,3\n", "names the image"),
        ("file,patient\n1.png\n2.png,b\n", "1 values"),
        ("", "empty"),
        ("file,file\n1,2\n", "a column twice"),
    ],
)
def test_metadata_mistakes(tmp_path, text, message):
    pairs(tmp_path, ["1", "2"])
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(UserMistakes, match=message):
        source(tmp_path, metadata="m.csv").refs()


def test_metadata_must_be_there_and_inside(tmp_path):
    pairs(tmp_path / "root", ["1"])
    with pytest.raises(UserMistakes, match="does not exist"):
        source(tmp_path / "root", metadata="m.csv").refs()
    (tmp_path / "m.csv").write_text("file\n1\n")
    (tmp_path / "root" / "m.csv").symlink_to(tmp_path / "m.csv")
    with pytest.raises(UserMistakes, match="leads out"):
        source(tmp_path / "root", metadata="m.csv").refs()
    (tmp_path / "root" / "latin.csv").write_bytes("file,name\n1,J\xf6rg\n".encode("latin-1"))
    with pytest.raises(UserMistakes, match="not UTF-8"):
        source(tmp_path / "root", metadata="latin.csv").refs()


def test_rough_masks(tmp_path):
    for number in range(2):
        picture(tmp_path / "data" / f"{number}.png", number)
    mask(tmp_path / "rough" / "0.png", 3)
    seeds = source(tmp_path / "data", labels="none", avoid=str(tmp_path / "rough"))
    first, second = (seeds.load(ref) for ref in seeds.refs())
    assert np.count_nonzero(first.avoid) == 20
    assert second.avoid is None
    mask(tmp_path / "rough" / "1.png", 3, size=(9, 9))
    with pytest.raises(UserMistakes, match="9×9, but its image is 32×24"):
        source(tmp_path / "data", labels="none", avoid=str(tmp_path / "rough")).refs()
    with pytest.raises(UserMistakes, match="is no folder"):
        source(tmp_path / "data", labels="none", avoid=str(tmp_path / "nowhere")).refs()


# -------------------------------------------------------------------------------------------- digest and identity


def test_digest_follows_contents_names_and_metadata(tmp_path):
    pairs(tmp_path, ["1", "2"])
    first = source(tmp_path).digest()
    assert source(tmp_path).digest() == first
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    assert source(tmp_path.parent / "copy").digest() == first, "where it lies does not matter"
    assert source(tmp_path, labels="none").digest() != first
    (tmp_path / "m.csv").write_text("file,patient\n1,a\n2,a\n")
    assert source(tmp_path, metadata="m.csv").digest() != first
    mask(tmp_path / "masks" / "2.png", 7)
    assert source(tmp_path).digest() != first


def test_loading_needs_no_listing(tmp_path):
    """A worker gets the reference from another process."""
    pairs(tmp_path, ["1", "2"])
    ref = source(tmp_path).refs()[1]
    fresh = source(tmp_path)
    assert number_of(fresh.load(ref)) == 1
    assert fresh._listing is None
    assert json.loads(ref.locator) == ["images/2.png", "masks/2.png", None]


def test_a_file_that_goes_bad_later_is_a_mistake(tmp_path):
    pairs(tmp_path, ["1"])
    seeds = source(tmp_path)
    ref = seeds.refs()[0]
    (tmp_path / "masks" / "1.png").write_bytes(b"gone")
    with pytest.raises(UserMistakes, match="masks/1.png"):
        seeds.load(ref)


@given(st.text(min_size=1, max_size=300).filter(lambda t: "/" not in t and "\0" not in t and t not in (".", "..")))
@settings(max_examples=200)
def test_ids_are_safe_whatever_the_name(name):
    pair = Pair(key=name.casefold(), image=PurePosixPath("images") / (name + ".png"))
    identifier = seed_identifier(pair)
    assert 1 <= len(identifier) <= 120
    assert set(identifier) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert not identifier.startswith(".")


@given(st.text(max_size=100))
def test_data_set_ids_fit_the_pattern(name):
    assert ID_PATTERN.fullmatch(dataset_id(name))


@given(st.lists(st.integers(0, 10**9), max_size=8, unique=True), st.text(alphabet="ab٣²", max_size=3))
def test_numbers_in_names_are_ordered_as_numbers(numbers, stem):
    names = [f"{stem}{number}x" for number in numbers]
    assert sorted(names, key=natural_key) == [f"{stem}{number}x" for number in sorted(numbers)]


@pytest.mark.skipif(not REAL.is_dir(), reason="the real images are not here (set MEDTEST_SHARED)")
def test_real_folder():
    seeds = source(REAL / "test")
    assert len(seeds.refs()) == 50
    seed = seeds.load(seeds.refs()[0])
    assert seed.image.shape[:2] == seed.expected.shape
    assert 0.005 < seed.expected.mean() < 0.9
