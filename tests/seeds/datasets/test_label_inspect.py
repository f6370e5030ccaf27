"""``medtest data inspect`` on labelled images: layouts are recognised by names, and printed lines load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from label_files import (
    cad_cap,
    chestxray14,
    chexnet_lists,
    class_folders,
    isic_2016,
    isic_2017,
    kid,
    kvasir_capsule,
    messidor,
    npz,
    table,
)
from layout_files import clinicdb_archive, kvasir_archive, mask, pairs, picture

from medtest.cli.app import run_app
from medtest.seeds.datasets.base import recognise
from medtest.seeds.datasets.inspect import inspect_path
from medtest.seeds.datasets.tree import tree_of_archive
from medtest.suite.compose import load_suite

MAKERS = {
    "kvasir-capsule": (kvasir_capsule, "wce_folder", 14),
    "kid": (kid, "wce_folder", 9),
    "cad-cap": (cad_cap, "wce_folder", 7),
    "isic-2016": (isic_2016, "skin_folder", 5),
    "isic-2017": (isic_2017, "skin_folder", 6),
    "messidor": (messidor, "fundus_folder", 5),
    "chestxray14": (chestxray14, "chest_folder", 5),
    "chestmnist": (lambda root: npz(root / "chestmnist.npz", multi=True), "chest_folder", 15),
}


def labelled_folders(root):
    return [looked for looked in inspect_path(root).looked if looked.found.holds == "labels"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_every_layout_is_recognised_and_its_line_loads(tmp_path, name):
    make, suite_name, count = MAKERS[name]
    root = tmp_path / "my data"
    make(root)
    report = inspect_path(root)
    assert report.usable
    assert [looked.found.dataset for looked in report.looked] == [name] * len(report.looked)
    assert sum(looked.found.count for looked in report.looked) == count
    loaded = 0
    for looked in report.looked:
        suite_token, data, *settings = looked.line.tokens(str(root))
        assert suite_token == f"suite={suite_name}"
        (source,) = load_suite(suite_name, settings).build_seeds(Path(data.removeprefix("data=")))
        refs = source.refs()
        words = " ".join(n for n in source.notices() if "left out" in n).split()
        left_out = sum(int(word) for word in words if word.isdigit())
        assert len(refs) + left_out == looked.pairs
        assert source.load(refs[0]).labels
        loaded += len(refs)
    assert loaded > 1


def test_counts_by_class_beside_the_published(tmp_path):
    kvasir_capsule(tmp_path)
    (looked,) = inspect_path(tmp_path).looked
    classes = {name: (count, published) for name, count, published in looked.classes}
    assert classes["Normal clean mucosa"] == (4, 34_338)
    assert classes["Pylorus"] == (0, 1_529)
    assert any("4 images have no class in wce_folder unless you map them" in note for note in looked.notes)
    assert any("not confirmed" in note for note in looked.notes)


def test_the_output_of_the_command(tmp_path, capsys):
    isic_2017(tmp_path)
    code = run_app(["data", "inspect", str(tmp_path)])
    text = capsys.readouterr().out
    assert code == 0
    assert "ISIC 2017, task 3, train" in text
    assert "3 of 2,750 published" in text
    assert "seborrheic keratosis" in text
    assert "3 images have a mask of their lesion" in text
    assert "suite=skin_folder" in text
    assert "seeds.folder.split=train" in text


@pytest.mark.parametrize("name", MAKERS)
def test_archives_are_recognised_by_their_names(tmp_path, name):
    MAKERS[name][0](tmp_path / "data")
    path = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "data")
    recognised = recognise(tree_of_archive(Path(path)))
    assert {layout.dataset for layout in recognised} == {name}
    assert {layout.holds for layout in recognised} == {"labels"}


def test_chexnets_lists_are_recognised(tmp_path):
    chexnet_lists(tmp_path)
    (looked,) = inspect_path(tmp_path).looked
    assert (looked.found.dataset, looked.line.suite) == ("chestxray14", "chest_folder")


def test_own_class_folders_and_tables(tmp_path):
    class_folders(tmp_path / "capsule", {"normal": 2, "inflammatory": 1, "vascular": 1})
    class_folders(tmp_path / "other", {"cat": 1, "dog": 1})
    table(tmp_path / "skin", ["file,label", "a0,benign", "a1,melanoma", "a2,benign", "a3,benign"])
    for number in range(4):
        mask(tmp_path / "skin" / "masks" / f"a{number}.png", number)
    by_title = {looked.found.title: looked for looked in labelled_folders(tmp_path)}
    assert set(by_title) == {"capsule", "other", "skin"}
    assert by_title["capsule"].line.suite == "wce_folder"
    assert by_title["other"].line is None
    assert any("state classes and mapping" in note for note in by_title["other"].notes)
    tokens = by_title["skin"].line.tokens("x")
    assert tokens == ("suite=skin_folder", "data=x/skin", "seeds.folder.table=labels.csv", "seeds.folder.images=images")
    # Images with masks beside a table of labels are a data set of either kind.
    assert [looked.found.holds for looked in inspect_path(tmp_path / "skin").looked] == ["labels", "masks"]


def test_masks_and_folders_of_cases_are_not_classes(tmp_path):
    kvasir_archive(tmp_path / "Kvasir-SEG")
    clinicdb_archive(tmp_path / "CVC-ClinicDB")
    for patient in ("patient_1", "patient_2"):
        picture(tmp_path / "cases" / patient / "1.png")
    pairs(tmp_path / "mine" / "images", tmp_path / "mine" / "masks", ["1", "2"])
    (tmp_path / "mine" / "metadata.csv").write_text("file,patient\n1,p\n2,q\n")
    (tmp_path / "mine" / "train.csv").write_text("file,size\n1,3 cm\n2,4 cm\n")
    report = inspect_path(tmp_path)
    assert [looked.found.reader for looked in report.looked if looked.found.holds == "labels"] == ["table"]
    (table_found,) = labelled_folders(tmp_path)
    assert table_found.line is None
    assert table_found.notes[0].startswith("not taken for labels: columns file, size")
    assert report.usable


def test_kvasir_capsule_is_not_kvasir_seg(tmp_path):
    root = tmp_path / "Kvasir-Capsule"
    pairs(root / "images", root / "masks", ["1", "2"])
    (looked,) = inspect_path(root).looked
    assert looked.found.dataset == ""


def test_mistakes_are_problems(tmp_path, capsys):
    messidor(tmp_path)
    (tmp_path / "Annotation_Base11.csv").write_text("a,b\n1,2\n")
    (looked,) = inspect_path(tmp_path).looked
    assert looked.problems[0].reason.startswith("columns a, b")
    assert run_app(["data", "inspect", str(tmp_path)]) == 2
    assert "Annotation_Base11.csv" in capsys.readouterr().out


def test_damaged_images_are_problems(tmp_path):
    class_folders(tmp_path, {"normal": 2, "vascular": 2})
    (tmp_path / "normal" / "0.png").write_bytes(b"x")
    (looked,) = inspect_path(tmp_path).looked
    assert [problem.file for problem in looked.problems] == ["normal/0.png"]
