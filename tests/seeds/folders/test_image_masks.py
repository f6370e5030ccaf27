"""Folders of images and masks: layouts, names, metadata, and digests."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_files import source
from pair_files import assert_pairs_are_right, mask, number_of, pairs, picture
from PIL import Image as Pillow

from medtest.core.cases import ID_PATTERN
from medtest.core.errors import UserMistakes
from medtest.seeds.folders.files import distinct_ids
from medtest.seeds.folders.image_masks import name_parts
from medtest.seeds.folders.layout import Pair, dataset_id, natural_key

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[3].parent / "shared"))


REAL = SHARED / "data" / "polyp" / "kvasir_seg"


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


def test_other_suffix_and_other_case_of_the_suffix(tmp_path):
    picture(tmp_path / "images" / "Polyp_A.JPG", 0)
    mask(tmp_path / "masks" / "Polyp_A.Png", 0)
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


def test_files_of_operating_systems_are_ignored(tmp_path):
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


def test_masks_beside_images_are_not_images_when_unlabelled(tmp_path):
    pairs(tmp_path, ["1", "2"], images=".", masks=".", mask_name="{}_mask")
    assert [ref.seed_id for ref in source(tmp_path, labels="none").refs()] == ["1", "2"]


def test_exif_turns_image_and_mask_separately(tmp_path):
    exif = Pillow.Exif()
    exif[274] = 6
    picture(tmp_path / "images" / "1.jpg", 0, size=(24, 32), exif=exif)
    mask(tmp_path / "masks" / "1.png", 0, size=(32, 24))
    seed = source(tmp_path).load(source(tmp_path).refs()[0])
    assert seed.image.shape[:2] == seed.expected.shape == (32, 24)


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


def test_metadata_must_be_there(tmp_path):
    pairs(tmp_path / "root", ["1"])
    with pytest.raises(UserMistakes, match="does not exist"):
        source(tmp_path / "root", metadata="m.csv").refs()
    (tmp_path / "m.csv").write_text("file\n1\n")
    (tmp_path / "root" / "m.csv").symlink_to(tmp_path / "m.csv")
    assert len(source(tmp_path / "root", metadata="m.csv").refs()) == 1
    (tmp_path / "m.csv").unlink()
    with pytest.raises(UserMistakes, match="is a broken link"):
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
    with pytest.raises(UserMistakes, match="is not a folder"):
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


def test_a_file_that_breaks_later_is_a_mistake(tmp_path):
    pairs(tmp_path, ["1"])
    seeds = source(tmp_path)
    ref = seeds.refs()[0]
    (tmp_path / "masks" / "1.png").write_bytes(b"gone")
    with pytest.raises(UserMistakes, match="masks/1.png"):
        seeds.load(ref)


# ------------------------------------------------------------------------------------------------------------ names


def test_case_and_sharp_s_are_other_names(tmp_path):
    for number, name in enumerate(("A", "a", "Maß", "Mass")):
        picture(tmp_path / "images" / f"{name}.png", number)
        mask(tmp_path / "masks" / f"{name}_Mask.png", number)
    seeds = source(tmp_path)
    assert len(seeds.refs()) == 4
    assert_pairs_are_right(seeds)
    (tmp_path / "masks" / "A_Mask.png").unlink()
    (tmp_path / "masks" / "Maß_Mask.png").unlink()
    (tmp_path / "images" / "a.png").unlink()
    with pytest.raises(UserMistakes) as caught:
        source(tmp_path).refs()
    reasons = {mistake.where: mistake.found for mistake in caught.value.mistakes}
    assert reasons["images/A.png"] == reasons["images/Maß.png"] == "has no mask"
    assert "images/A.png is another name: upper and lower case count" in reasons["masks/a_Mask.png"]


def test_composed_and_decomposed_names_are_one(tmp_path):
    picture(tmp_path / "images" / (unicodedata.normalize("NFC", "é") + ".png"))
    mask(tmp_path / "masks" / (unicodedata.normalize("NFD", "é") + ".png"))
    seeds = source(tmp_path)
    assert len(seeds.refs()) == 1


def test_names_of_other_scripts_get_distinct_ids(tmp_path):
    names = ["漢字", "é", "ü", "plain"]
    pairs(tmp_path, names)
    ids = [ref.seed_id for ref in source(tmp_path).refs()]
    assert len(set(ids)) == 4 and "plain" in ids


@given(st.text(min_size=1, max_size=300).filter(lambda t: "/" not in t and "\0" not in t and t not in (".", "..")))
def test_ids_are_safe_for_any_name(name):
    pair = Pair(key=name.casefold(), image=PurePosixPath("images") / (name + ".png"))
    (identifier,) = distinct_ids(["/".join(name_parts(pair))])
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
