"""Labelled images: class folders and tables, classes and mappings, masks, left-out images, mistakes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_files import class_folders, labels_of, source
from layout_files import junk, mask, mistakes_of, number_of, picture
from pydantic import ValidationError

from medtest.core.cases import Classes
from medtest.core.errors import UserMistakes
from medtest.core.plugins import part
from medtest.seeds.labels.folder import LabelFolder, LabelFolderSettings

CAPSULE = ["normal", "vascular", "inflammatory"]


# ------------------------------------------------------------------------------------------------- class folders


def test_class_folders_give_their_classes(tmp_path):
    class_folders(tmp_path, {"cat10": 1, "cat2": 2, "dog": 11})
    seeds = source(tmp_path)
    assert seeds.classes() == Classes(names=("cat2", "cat10", "dog"))
    ids = [ref.seed_id for ref in seeds.refs()]
    assert ids == ["cat2_0", "cat2_1", "cat10_0", *[f"dog_{n}" for n in range(11)]]
    seed = seeds.load(seeds.refs()[3])
    assert (seed.kind, seed.labels, seed.classes.names) == ("label", ("dog",), ("cat2", "cat10", "dog"))
    assert seed.image.dtype == np.uint8
    assert seed.image.shape == (24, 32, 3)
    assert number_of(seed) == 3
    assert seed.expected is None
    assert seeds.task == "label"
    assert seeds.needs_root


def test_stated_classes_map_folders_and_leave_out_the_rest(tmp_path):
    class_folders(tmp_path, {"Normal": 2, "angiectasia": 3, "Debris": 4, "Ulcer": 1, "polyp": 5})
    mapping = {"Angiectasia": "vascular", "ulcer": "inflammatory", "polyp": ""}
    seeds = source(tmp_path, classes=CAPSULE, mapping=mapping)
    labels = labels_of(seeds)
    assert len(labels) == 6
    assert labels["angiectasia_0"] == ("vascular",)
    assert labels["Normal_1"] == ("normal",)
    assert seeds.notices() == ("Images without a class in this suite are left out: 5 of 'polyp', 4 of 'Debris'.",)
    assert seeds.classes() == Classes(names=tuple(CAPSULE))


def test_mapping_without_classes_makes_them(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1, "c": 1})
    assert source(tmp_path, mapping={"a": "ill", "b": "ill"}).classes().names == ("c", "ill")


@pytest.mark.parametrize(
    ("given_settings", "key", "nearest"),
    [
        ({"classes": CAPSULE, "mapping": {"Ulcer": "inflamatory"}}, "seeds.mine.mapping.Ulcer", "inflammatory"),
        ({"classes": CAPSULE, "mapping": {"Ulcr": "inflammatory"}}, "seeds.mine.mapping", "Ulcer"),
    ],
)
def test_wrong_mappings_are_one_message(tmp_path, given_settings, key, nearest):
    class_folders(tmp_path, {"normal": 1, "Ulcer": 1})
    (mistake,) = mistakes_of(source(tmp_path, **given_settings))
    assert (mistake.key, mistake.nearest) == (key, nearest)


def test_an_unused_mapping_is_a_mistake(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1})
    (mistake,) = mistakes_of(source(tmp_path, classes=CAPSULE))
    assert "no image of a class of this suite (normal, vascular, inflammatory)" in mistake.found
    assert "'a', 'b'" in mistake.found


@pytest.mark.parametrize("split", ["test", "auto", "train", "all"])
def test_parts(tmp_path, split):
    class_folders(tmp_path / "train", {"a": 3, "b": 1})
    class_folders(tmp_path / "test", {"a": 1, "b": 1})
    seeds = source(tmp_path, split=split)
    expected = {"test": 2, "auto": 2, "train": 4, "all": 6}[split]
    assert len(seeds.refs()) == expected
    if split == "all":
        assert seeds.refs()[0].seed_id.startswith(("test_", "train_"))
        assert not seeds.notices() or "exact copies" in seeds.notices()[0]
    else:
        assert any("part is taken" in notice for notice in seeds.notices())


def test_a_missing_part(tmp_path):
    class_folders(tmp_path / "train", {"a": 1, "b": 1})
    (mistake,) = mistakes_of(source(tmp_path, split="test"))
    assert mistake.key == "seeds.mine.split"
    assert "train" in mistake.fix


def test_per_class_is_evenly_spread(tmp_path):
    class_folders(tmp_path, {"a": 10, "b": 2})
    seeds = source(tmp_path, per_class=3)
    assert [ref.seed_id for ref in seeds.refs()] == ["a_1", "a_5", "a_8", "b_0", "b_1"]
    assert "5 of 12" in seeds.notices()[0]


def test_masks_of_another_folder(tmp_path):
    class_folders(tmp_path / "images", {"a": 2, "b": 2})
    mask(tmp_path / "lesions" / "a" / "0_mask.png", 4)
    mask(tmp_path / "lesions" / "b" / "1.png", 9)
    seeds = source(tmp_path, layout="class_folders", images="images", masks="lesions")
    expected = {ref.seed_id: seeds.load(ref).expected for ref in seeds.refs()}
    assert np.count_nonzero(expected["a_0"]) == 6
    assert np.count_nonzero(expected["b_1"]) == 11
    assert expected["a_1"] is None
    assert not expected["a_0"].flags.writeable


def test_an_empty_mask_is_not_a_lesion(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1})
    from PIL import Image as Pillow

    (tmp_path / "masks").mkdir()
    Pillow.fromarray(np.zeros((24, 32), np.uint8)).save(tmp_path / "masks" / "a.png")
    (tmp_path / "a" / "0.png").rename(tmp_path / "a" / "a.png")
    seeds = source(tmp_path, layout="class_folders", masks="masks")
    assert all(seeds.load(ref).expected is None for ref in seeds.refs())


@pytest.mark.parametrize(("folder", "reason"), [("masks", "no folder"), ("other", "named like an image")])
def test_masks_without_images(tmp_path, folder, reason):
    class_folders(tmp_path, {"a": 1, "b": 1})
    mask(tmp_path / "other" / "x.png")
    (mistake,) = mistakes_of(source(tmp_path, layout="class_folders", masks=folder))
    assert mistake.key == "seeds.mine.masks"
    assert reason in mistake.found


def test_files_of_operating_systems_are_skipped(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1})
    junk(tmp_path / "a")
    (tmp_path / ".hidden").mkdir()
    picture(tmp_path / ".hidden" / "1.png")
    assert len(source(tmp_path).refs()) == 2
    assert source(tmp_path).ignored() == 8


def test_bad_files_are_one_report_or_left_out(tmp_path):
    class_folders(tmp_path, {"a": 3, "b": 1})
    (tmp_path / "a" / "1.png").write_bytes(b"")
    (tmp_path / "a" / "2.png").write_text("text")
    picture(tmp_path / "a" / "0.jpg")
    by_place = {mistake.where: mistake.found for mistake in mistakes_of(source(tmp_path))}
    assert set(by_place) == {"a/0.png", "a/0.jpg", "a/1.png", "a/2.png"}
    assert "empty" in by_place["a/1.png"]
    assert "has the same name" in by_place["a/0.png"]
    seeds = source(tmp_path, on_bad_seed="skip")
    assert [ref.seed_id for ref in seeds.refs()] == ["b_0"]
    assert len(seeds.problems()) == 4


def test_pictures_over_the_bound_are_never_decoded(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1})
    picture(tmp_path / "a" / "large.png", 1, (200, 200))
    (mistake,) = mistakes_of(source(tmp_path, max_pixels=10_000))
    assert mistake.where == "a/large.png"
    assert "the bound is" in mistake.found


def test_links_out_of_the_folder(tmp_path):
    class_folders(tmp_path / "data", {"a": 1, "b": 1})
    picture(tmp_path / "outside.png")
    (tmp_path / "data" / "a" / "link.png").symlink_to(tmp_path / "outside.png")
    (tmp_path / "data" / "c").symlink_to(tmp_path / "data" / "b")
    assert [ref.seed_id for ref in source(tmp_path / "data").refs()] == ["a_0", "a_link", "b_0", "c_0"]


def test_a_changed_file_is_a_mistake(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1})
    seeds = source(tmp_path)
    ref = seeds.refs()[0]
    (tmp_path / "a" / "0.png").unlink()
    with pytest.raises(UserMistakes, match="leave the data alone"):
        seeds.load(ref)


def test_duplicates_are_reported(tmp_path):
    class_folders(tmp_path, {"a": 1, "b": 1})
    picture(tmp_path / "b" / "copy.png", 0)  # as a/0.png
    assert source(tmp_path).notices() == ("1 images are exact copies of another; intervals count each of them.",)


def test_metadata_clusters_and_strata(tmp_path):
    class_folders(tmp_path, {"a": 2, "b": 1})
    (tmp_path / "meta.csv").write_text("file,patient,scope\na/0.png,p1,x\na/1.png,p1,y\nb/0.png,p2,x\n")
    refs = source(tmp_path, metadata="meta.csv").refs()
    assert [ref.cluster for ref in refs] == ["p1", "p1", "p2"]
    assert refs[1].strata == (("scope", "y"),)
    (tmp_path / "meta.csv").write_text("file,patient\na/0.png,p1\n")
    mistakes = mistakes_of(source(tmp_path, metadata="meta.csv"))
    assert [mistake.found for mistake in mistakes] == ["no row for a/1.png", "no row for b/0.png"]


def test_digest_follows_contents_labels_and_classes(tmp_path):
    class_folders(tmp_path, {"a": 2, "b": 1})
    first = source(tmp_path).digest()
    assert source(tmp_path).digest() == first
    assert source(tmp_path, classes=["b", "a"]).digest() != first
    assert source(tmp_path, mapping={"a": "c"}).digest() != first
    picture(tmp_path / "b" / "0.png", 77)
    assert source(tmp_path).digest() != first


def test_loading_needs_no_listing(tmp_path):
    """Workers get references alone."""
    class_folders(tmp_path, {"a": 1, "b": 1})
    ref = source(tmp_path).refs()[1]
    worker = source(tmp_path)
    assert worker.load(ref).labels == ("b",)
    assert worker._listing is None
    assert json.loads(ref.locator)["image"] == "b/0.png"


# -------------------------------------------------------------------------------------------------- settings


def test_unlabelled(tmp_path):
    for number in range(3):
        picture(tmp_path / "images" / f"v1_{number}.png", number)
    mask(tmp_path / "images" / "v1_0_mask.png")
    seeds = source(tmp_path, labels="none", classes=CAPSULE)
    assert [ref.seed_id for ref in seeds.refs()] == ["v1_0", "v1_1", "v1_2"]
    seed = seeds.load(seeds.refs()[0])
    assert (seed.labels, seed.classes.names) == (None, tuple(CAPSULE))


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": "none"},
        {"classes": ["a", "a"]},
        {"classes": ["a"]},
        {"classes": ["a|b", "c"]},
        {"table": "../labels.csv"},
        {"images": "/etc"},
        {"metadata": "~/x.csv"},
        {"layout": "imagenet"},
        {"per_class": -1},
        {"separator": ""},
        {"mapping": {"a": 1}},
    ],
)
def test_refused_settings(wrong):
    with pytest.raises(ValidationError):
        LabelFolderSettings(**wrong)


def test_no_data_and_no_folder(tmp_path):
    (mistake,) = mistakes_of(source(None))
    assert mistake.fix == "add data=PATH"
    (mistake,) = mistakes_of(source(tmp_path / "absent"))
    assert "does not exist" in mistake.found
    (mistake,) = mistakes_of(source(tmp_path))
    assert "medtest data inspect" in mistake.fix and "labels: none" in mistake.fix
    (mistake,) = mistakes_of(source(tmp_path, images="imgs"))
    assert mistake.key == "seeds.mine.images"


def test_several_data_sets_are_not_guessed(tmp_path):
    class_folders(tmp_path / "one", {"a": 1, "b": 1})
    class_folders(tmp_path / "two", {"a": 1, "b": 1})
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.found == "2 labelled data sets: one, two"


def test_the_configured_defaults_equal_the_settings_own():
    info = part("seeds", "label_folder")
    assert info.load() is LabelFolder
    assert LabelFolderSettings(**info.defaults) == LabelFolderSettings()


@settings(max_examples=25)
@given(
    counts=st.dictionaries(st.sampled_from(["x", "Y z", "y-Z", "0", "+", "ä", "q.1"]), st.integers(1, 3), min_size=2),
    most=st.integers(0, 3),
)
def test_every_image_once_and_in_its_class(tmp_path_factory, counts, most):
    root = tmp_path_factory.mktemp("classes")
    class_folders(root, counts)
    seeds = source(root, layout="class_folders", per_class=most)
    names = {name.casefold().replace(" ", "").replace("-", "") or name for name in counts}
    if len(names) < 2:
        return
    refs = seeds.refs()
    assert len({ref.seed_id for ref in refs}) == len(refs)
    if not most:
        assert len(refs) == sum(counts.values())
    for ref in refs:
        labels = seeds.load(ref).labels
        assert len(labels) == 1
        assert labels[0] in seeds.classes().names
