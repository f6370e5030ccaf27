"""Public sets of labelled images in their downloaded layout, each as a tiny copy of its archive's folders."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from label_files import (
    ENTRIES,
    FINDINGS,
    KVASIR_FOLDERS,
    VIDEOS,
    cad_cap,
    chestxray14,
    chexnet_lists,
    class_folders,
    isic_2016,
    isic_2017,
    kid,
    kvasir_capsule,
    labels_of,
    messidor,
    npz,
    source,
)
from layout_files import mask, mistakes_of, number_of, picture

from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.seeds.datasets.facts import known

DATA = Path(__file__).parents[2] / "data"


def count_labels(seeds):
    return Counter(label for labels in labels_of(seeds).values() for label in labels)


def mistake_of(seeds):
    (mistake,) = mistakes_of(seeds)
    return mistake


# ------------------------------------------------------------------------------------------------ capsule endoscopy


def test_kvasir_capsule(tmp_path):
    kvasir_capsule(tmp_path)
    seeds = source(tmp_path)
    assert seeds.classes() == CAPSULE
    assert count_labels(seeds) == {"normal": 4, "vascular": 3, "inflammatory": 3}
    assert seeds.notices() == (
        "Images without a class in this suite are left out: 3 of 'Ileocecal valve', 1 of 'Polyp'.",
    )
    assert {ref.cluster for ref in seeds.refs()} == set(VIDEOS)


def test_kvasir_capsules_mapping_can_be_changed(tmp_path):
    kvasir_capsule(tmp_path)
    mapping = {"blood - fresh": "", "Polyp": "inflammatory", "Ileocecal valve": "normal"}
    assert count_labels(source(tmp_path, mapping=mapping)) == {"normal": 7, "vascular": 2, "inflammatory": 4}
    own = source(tmp_path, classes=["Ulcer", "Polyp"])
    assert count_labels(own) == {"Ulcer": 2, "Polyp": 1}
    whole = source(tmp_path, layout="class_folders", images="labelled_images")
    assert len(whole.refs()) == sum(KVASIR_FOLDERS.values())
    assert len(whole.classes().names) == len(KVASIR_FOLDERS)


def test_mappings_name_the_published_classes():
    published = {name.casefold() for name, _ in known()["kvasir-capsule"].class_counts}
    assert {name.casefold() for name in known()["kvasir-capsule"].mapping} == published
    for name in ("kvasir-capsule", "kid", "cad-cap"):
        assert {to for to in known()[name].mapping.values() if to} == set(CAPSULE.names)


@pytest.mark.parametrize("beside", [False, True])
def test_kid(tmp_path, beside):
    kid(tmp_path, beside=beside)
    seeds = source(tmp_path)
    assert seeds.classes() == CAPSULE
    assert count_labels(seeds) == {"normal": 3, "vascular": 2, "inflammatory": 2}
    assert seeds.notices()[0].endswith("left out: 2 of 'normal-colon'.")
    for ref in seeds.refs():
        seed = seeds.load(ref)
        area = None if seed.expected is None else np.count_nonzero(seed.expected)
        assert area == (None if seed.labels == ("normal",) else number_of(seed) + 2)


def test_cad_cap(tmp_path):
    cad_cap(tmp_path)
    seeds = source(tmp_path)
    assert count_labels(seeds) == {"normal": 3, "vascular": 2, "inflammatory": 2}
    masked = [ref.seed_id for ref in seeds.refs() if seeds.load(ref).expected is not None]
    assert masked == ["inflammatory_inflammatory_0", "inflammatory_inflammatory_1"] + [
        "vascularlesions_vascularlesions_0",
        "vascularlesions_vascularlesions_1",
    ]


def test_other_polyps_and_ulcers_are_not_a_known_set(tmp_path):
    class_folders(tmp_path, {"polyp": 1, "ulcer": 1, "normal": 1})
    assert source(tmp_path).classes().names == ("normal", "polyp", "ulcer")


# ------------------------------------------------------------------------------------------------------ dermoscopy


def test_isic_2016(tmp_path):
    isic_2016(tmp_path)
    seeds = source(tmp_path)
    assert seeds.classes() == DERMOSCOPY
    assert labels_of(seeds) == {"ISIC_0000100": ("melanoma",), "ISIC_0000101": ("benign",)}
    assert count_labels(source(tmp_path, split="train")) == {"benign": 2, "melanoma": 1}
    assert len(source(tmp_path, split="all").refs()) == 5
    seed = seeds.load(seeds.refs()[1])
    assert np.count_nonzero(seed.expected) == number_of(seed) + 2 == 3
    assert mistake_of(source(tmp_path, split="val")).key == "seeds.mine.split"


def test_isic_2016_with_masks_beside_images(tmp_path):
    for name, label in (("ISIC_0000001", "benign"), ("ISIC_0000002", "malignant")):
        picture(tmp_path / "ISBI2016_ISIC_Part3B_Training_Data" / f"{name}.png", 1)
        mask(tmp_path / "ISBI2016_ISIC_Part3B_Training_Data" / f"{name}_Segmentation.png", 5)
        with (tmp_path / "ISBI2016_ISIC_Part3B_Training_GroundTruth.csv").open("a") as file:
            file.write(f"{name},{label}\n")
    seeds = source(tmp_path)
    assert len(seeds.refs()) == 2
    assert all(np.count_nonzero(seeds.load(ref).expected) == 7 for ref in seeds.refs())


def test_isic_2017(tmp_path):
    isic_2017(tmp_path)
    assert labels_of(source(tmp_path)) == {"ISIC_0000200": ("melanoma",), "ISIC_0000201": ("benign",)}
    everything = source(tmp_path, split="all")
    assert count_labels(everything) == {"benign": 4, "melanoma": 2}
    assert all(everything.load(ref).expected is not None for ref in everything.refs())
    three = source(tmp_path, split="train", classes=["melanoma", "seborrheic keratosis", "nevus"])
    assert list(labels_of(three).values()) == [("melanoma",), ("seborrheic keratosis",), ("nevus",)]


def test_isic_without_some_images(tmp_path):
    isic_2017(tmp_path)
    next((tmp_path / "ISIC-2017_Test_v2_Data").rglob("ISIC_0000200.png")).unlink()
    assert any("1 images that" in notice for notice in source(tmp_path).notices())
    shutil.rmtree(tmp_path / "ISIC-2017_Test_v2_Data")
    assert len(source(tmp_path, split="train").refs()) == 3


def test_isic_with_a_wrong_value(tmp_path):
    isic_2017(tmp_path)
    path = tmp_path / "ISIC-2017_Test_v2_Part3_GroundTruth.csv"
    path.write_text(path.read_text().replace("1.0,0.0", "yes,0.0"))
    mistake = mistake_of(source(tmp_path))
    assert (mistake.where, mistake.line, mistake.found) == (path.name, 2, "'yes'")


# ---------------------------------------------------------------------------------------------------------- fundus


def test_messidor(tmp_path):
    messidor(tmp_path)
    seeds = source(tmp_path)
    assert seeds.classes() == FUNDUS
    assert list(labels_of(seeds).values()) == [("grade0",), ("grade1",), ("grade2",), ("grade3",), ("grade0",)]
    assert dict(seeds.refs()[0].strata) == {"department": "Service Ophtalmologie Lariboisière"}
    with (tmp_path / "Annotation_Base11.csv").open("a") as file:
        file.write("\nabsent.tif,x,1,0\n20051020_11001_0100_PP.tif,x,7,0")
    assert mistake_of(source(tmp_path)).found == "grade '7' is none of 0, 1, 2, 3"
    assert "Partial: 1 images that the tables name are not there." in source(tmp_path, on_bad_seed="skip").notices()


def test_messidor_grades_as_two_classes(tmp_path):
    messidor(tmp_path)
    mapping = {"0": "healthy", "1": "healthy", "2": "ill", "3": "ill"}
    assert count_labels(source(tmp_path, classes=["healthy", "ill"], mapping=mapping)) == {"healthy": 3, "ill": 2}


def messidor_workbook(root):
    shutil.copy(DATA / "Annotation_Base11.xls", root)
    for number in range(3):
        picture(root / "Base11" / f"20051020_1100{number}_0100_PP.tif", number)


def test_messidors_workbooks(tmp_path):
    pytest.importorskip("xlrd", reason="medtest[xls] is not installed")
    messidor_workbook(tmp_path)
    seeds = source(tmp_path)
    assert list(labels_of(seeds).values()) == [("grade0",), ("grade3",), ("grade2",)]
    assert dict(seeds.refs()[2].strata) == {"department": "CHU de Saint Etienne"}
    content = (DATA / "Annotation_Base11.xls").read_bytes()
    (tmp_path / "Annotation_Base11.xls").write_bytes(content[:700])
    assert "damaged" in mistake_of(source(tmp_path)).found


def test_workbooks_without_their_package(tmp_path, monkeypatch):
    messidor_workbook(tmp_path)
    monkeypatch.setitem(sys.modules, "xlrd", None)
    mistake = mistake_of(source(tmp_path))
    assert mistake.where == "Annotation_Base11.xls"
    assert "medtest[xls]" in mistake.fix


# ----------------------------------------------------------------------------------------------------------- chest


def test_chestxray14(tmp_path):
    chestxray14(tmp_path)
    seeds = source(tmp_path)
    assert seeds.classes() == CHEST
    assert labels_of(seeds) == {"00000003_000": ("hernia",), "00000004_000": ("mass", "pleural_thickening")}
    assert "The test part is taken, 2 images; split: all takes every part." in seeds.notices()
    everything = source(tmp_path, split="all")
    assert labels_of(everything)["00000002_000"] == ()
    assert [ref.cluster for ref in everything.refs()] == ["00000001", "00000001", "00000002", "00000003", "00000004"]
    assert dict(everything.refs()[1].strata) == {"view": "PA"}
    assert len(source(tmp_path, split="train").refs()) == 3
    assert "parts: test, train" in mistake_of(source(tmp_path, split="val")).fix


def test_part_of_chestxray14(tmp_path):
    chestxray14(tmp_path, missing=("00000003_000.png", "00000001_001.png"))
    assert "Partial: 2 of 5 listed images are not there." in source(tmp_path, split="all").notices()


def test_chexnets_lists(tmp_path):
    chexnet_lists(tmp_path / "a")
    expected = {"00000003_000": ("hernia",), "00000004_000": ("mass", "pleural_thickening")}
    assert labels_of(source(tmp_path / "a")) == expected
    chestxray14(tmp_path / "b")
    lists, table = (labels_of(source(tmp_path / name, split="all")) for name in "ab")
    assert lists == table
    assert len(lists) == len(ENTRIES)
    mistakes = mistakes_of(source(tmp_path))  # two copies below one folder: nothing is guessed
    assert all("is the name of 2 files" in mistake.found for mistake in mistakes)


def test_the_order_of_findings_is_chexnets():
    assert tuple(name.lower() for name in FINDINGS) == CHEST.names == known()["chestmnist"].classes


def test_lists_alone_and_wrong_lists(tmp_path):
    chestxray14(tmp_path)
    (tmp_path / "Data_Entry_2017.csv").unlink()
    assert mistake_of(source(tmp_path)).key == "seeds.mine.table"
    chexnet_lists(tmp_path / "b")
    path = tmp_path / "b" / "labels" / "test_list.txt"
    path.write_text(path.read_text().replace(" 1", " 2"))
    mistakes = mistakes_of(source(tmp_path / "b"))
    assert (mistakes[0].line, mistakes[0].allowed) == (1, "14 columns of 0 and 1")


# --------------------------------------------------------------------------------------------------------- MedMNIST


@pytest.mark.parametrize(("packed", "colour"), [(True, False), (False, True)])
@pytest.mark.parametrize("split", ["auto", "train", "val", "all"])
def test_medmnist(tmp_path, packed, colour, split):
    arrays = npz(tmp_path / "pneumoniamnist_64.npz", size=64, packed=packed, colour=colour)
    seeds = source(tmp_path, split=split)
    parts = {"auto": ["test"], "train": ["train"], "val": ["val"], "all": ["train", "val", "test"]}[split]
    expected = [(p, i) for p in parts for i in range(len(arrays[f"{p}_images"]))]
    assert len(seeds.refs()) == len(expected)
    for ref, (name, index) in zip(seeds.refs(), expected, strict=True):
        seed = seeds.load(ref)
        pixels = arrays[f"{name}_images"][index]
        np.testing.assert_array_equal(seed.image, pixels if colour else np.stack([pixels] * 3, axis=-1))
        assert seed.labels == (("normal", "pneumonia")[arrays[f"{name}_labels"][index, 0]],)
        assert ref.seed_id == f"{name}_{index}"


def test_medmnist_with_several_labels(tmp_path):
    arrays = npz(tmp_path / "chestmnist.npz", multi=True)
    seeds = source(tmp_path)
    assert seeds.classes() == CHEST
    for ref, flags in zip(seeds.refs(), arrays["test_labels"], strict=True):
        assert seeds.load(ref).labels == tuple(n for n, flag in zip(CHEST.names, flags, strict=True) if flag)
    npz(tmp_path / "all" / "chestmnist.npz", multi=True, test_labels=np.ones((5, 14), np.uint8))
    seeds = source(tmp_path / "all")
    assert {seeds.load(ref).labels for ref in seeds.refs()} == {CHEST.names}


def test_the_digest_follows_pixels_and_not_their_packing(tmp_path):
    for name, packed in (("a", True), ("b", False)):
        npz(tmp_path / name / "pneumoniamnist.npz", packed=packed)
    arrays = npz(tmp_path / "c" / "pneumoniamnist.npz")
    arrays["test_images"][2, 0, 0] ^= 1
    np.savez_compressed(tmp_path / "c" / "pneumoniamnist.npz", **arrays)
    a, b, c = (source(tmp_path / name).digest() for name in "abc")
    assert a == b != c
    assert source(tmp_path / "a", split="train").digest() == source(tmp_path / "c", split="train").digest()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"test_images": np.zeros((5, 28, 28, 28), np.uint8)}, "volumes"),
        ({"test_images": np.zeros((5, 28, 28), np.float32)}, "uint8"),
        ({"test_images": np.zeros((4, 28, 28), np.uint8)}, "for 4 images"),
        ({"test_labels": np.zeros((5, 1), np.float32)}, "whole numbers"),
        ({"test_labels": np.full((5, 3), 2, np.uint8)}, "values above 1"),
        ({"test_labels": np.array([[None]] * 5)}, "pickled objects never"),
    ],
)
def test_arrays_without_images_or_labels(tmp_path, wrong, reason):
    npz(tmp_path / "pneumoniamnist.npz", **wrong)
    assert reason in mistake_of(source(tmp_path)).found


def test_arrays_of_another_name(tmp_path):
    npz(tmp_path / "ours.npz")
    seeds = source(tmp_path, table="ours.npz", split="val")
    assert seeds.classes().names == ("0", "1")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    assert "holds x" in mistake_of(source(tmp_path, table="other.npz")).found
    npz(tmp_path / "octmnist.npz")
    npz(tmp_path / "breastmnist.npz")
    assert "2 labelled data sets" in mistake_of(source(tmp_path)).found


def test_the_bound_on_pixels_holds_for_arrays(tmp_path):
    npz(tmp_path / "pneumoniamnist.npz")
    assert "the bound is" in mistake_of(source(tmp_path, max_pixels=700)).found
    assert len(source(tmp_path, max_pixels=28 * 28).refs()) == 5


def test_published_counts_add_up():
    for facts in known().values():
        if facts.holds == "labels":
            counts = [count for count, _ in facts.copies]
            if facts.key == "chestxray14":
                counts = counts[2:]
                assert facts.copies[0][0] + facts.copies[1][0] == facts.images
            assert not counts or sum(counts) == facts.images, facts.key
            classes = sum(count for _, count in facts.class_counts)
            assert classes in (0, facts.images) or facts.key == "kid", facts.key
