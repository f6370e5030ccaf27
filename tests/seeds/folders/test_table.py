"""Labelled images named by a table: one column of names, columns of 0 and 1, and unusable tables."""

from __future__ import annotations

import pytest
from label_files import class_folders, labels_of, source, table
from layout_files import mask, mistakes_of

from medtest.core.cases import Classes


def test_one_column_of_names(tmp_path):
    table(tmp_path, ["image,patient,diagnosis", "a0.png,p1,nv", "images/a1.png,p1,mel", "a2,p2,nv", "a3,p3,bcc"])
    seeds = source(tmp_path)
    assert labels_of(seeds) == {"a0": ("nv",), "a1": ("mel",), "a2": ("nv",), "a3": ("bcc",)}
    assert seeds.classes() == Classes(names=("bcc", "mel", "nv"))
    assert [ref.cluster for ref in seeds.refs()] == ["p1", "p1", "p2", "p3"]


@pytest.mark.parametrize(("mark", "separator"), [("|", "|"), ("/", "/"), (" & ", "&")])
def test_several_names_in_one_column(tmp_path, mark, separator):
    rows = ["file;labels", f"a0;mass{mark}nodule", "a1;No Finding", "a2;nodule", f"a3;hernia{mark}mass{mark}nodule"]
    table(tmp_path, rows)
    seeds = source(tmp_path, separator=separator)
    assert seeds.classes() == Classes(names=("hernia", "mass", "nodule"), multi=True)
    assert labels_of(seeds) == {
        "a0": ("mass", "nodule"),
        "a1": (),
        "a2": ("nodule",),
        "a3": ("hernia", "mass", "nodule"),
    }


def test_columns_of_0_and_1(tmp_path):
    table(tmp_path, ["image_id,mel,nv,age", "a0,1.0,0.0,50", "a1,0,1,60", "a2,0,1,61", "a3,1,0,70"])
    seeds = source(tmp_path)
    assert seeds.classes() == Classes(names=("mel", "nv"))
    assert labels_of(seeds) == {"a0": ("mel",), "a1": ("nv",), "a2": ("nv",), "a3": ("mel",)}


def test_columns_of_0_and_1_several_at_once(tmp_path):
    table(tmp_path, ["image_id,mass,nodule", "a0,1,1", "a1,0,0", "a2,0,1", "a3,1,0"])
    seeds = source(tmp_path)
    assert seeds.classes().multi
    assert labels_of(seeds) == {"a0": ("mass", "nodule"), "a1": (), "a2": ("nodule",), "a3": ("mass",)}
    limited = source(tmp_path, classes=["nodule", "hernia"])
    assert labels_of(limited) == {"a0": ("nodule",), "a1": (), "a2": ("nodule",), "a3": ()}
    mistakes = mistakes_of(source(tmp_path, multi=False))
    assert [m.found for m in mistakes] == ["a0 is of 2 classes (mass, nodule); multi: true allows it"]


def test_findings_without_a_class_are_dropped_and_counted(tmp_path):
    table(tmp_path, ["file,labels", "a0,mass|pin", "a1,pin", "a2,nodule", "a3,mass"])
    seeds = source(tmp_path, classes=["mass", "nodule"], mapping={"pin": ""})
    assert labels_of(seeds) == {"a0": ("mass",), "a1": (), "a2": ("nodule",), "a3": ("mass",)}
    assert seeds.notices() == ("Findings without a class in this suite are left out: 2 of 'pin'.",)


def test_films_of_other_findings_are_not_healthy(tmp_path):
    """Unknown single labels leave images out of a multi-label suite; they do not become "none true"."""
    class_folders(tmp_path, {"normal": 2, "abnormal": 2, "mass": 1})
    seeds = source(tmp_path, classes=["mass", "nodule"], multi=True)
    assert labels_of(seeds) == {"mass_0": ("mass",)}
    assert seeds.notices()[0].startswith("Images without a class")
    (mistake,) = mistakes_of(source(tmp_path, classes=["hernia", "nodule"], multi=True))
    assert "no image of a class of this suite" in mistake.found
    table(tmp_path / "t", ["file,labels", "a0,pin|rod", "a1,pin", "a2,rod", "a3,rod"])
    (mistake,) = mistakes_of(source(tmp_path / "t", classes=["hernia", "nodule"]))
    assert "'rod', 'pin'" in mistake.found


def test_a_name_for_no_true_class(tmp_path):
    """``none`` in a mapping of a multi-label suite means that no class is true."""
    class_folders(tmp_path, {"normal": 2, "mass": 1, "abnormal": 3})
    stated = {"classes": ["mass", "nodule"], "mapping": {"normal": "none"}}
    seeds = source(tmp_path, **stated, multi=True)
    assert labels_of(seeds) == {"mass_0": ("mass",), "normal_0": (), "normal_1": ()}
    assert seeds.notices() == ("Images without a class in this suite are left out: 3 of 'abnormal'.",)
    (mistake,) = mistakes_of(source(tmp_path, **stated, multi=False))
    assert (mistake.key, mistake.found) == ("seeds.mine.mapping.normal", "'none'")
    called = source(tmp_path, classes=["mass", "none"], multi=False, mapping={"normal": "none"})
    assert labels_of(called)["normal_0"] == ("none",)


def test_a_table_without_header(tmp_path):
    table(tmp_path, ["a0,benign", "a1,malignant", "a2,benign", "a3,benign"])
    assert list(labels_of(source(tmp_path)).values()).count(("benign",)) == 3


def test_named_columns_and_folders(tmp_path):
    rows = ["who\twhat\tsort", "a0\tx\t1", "a1\ty\t0", "a2\tx\t1", "a3\ty\t0"]
    table(tmp_path, rows, name="sheet.tsv", folder="frames")
    named = {"table": "sheet.tsv", "images": "frames", "image_column": "Who", "label_column": "what"}
    assert source(tmp_path, **named).classes().names == ("x", "y")


def test_masks_beside_a_table(tmp_path):
    table(tmp_path, ["file,label", *(f"a{n},{'xy'[n % 2]}" for n in range(4))])
    for number in range(3):
        mask(tmp_path / "masks" / f"a{number}_segmentation.png", number)
    seeds = source(tmp_path)
    assert [seeds.load(ref).expected is not None for ref in seeds.refs()] == [True, True, True, False]


@pytest.mark.parametrize(
    ("rows", "settings", "key", "message"),
    [
        (["who,label", "a0,x"], {}, "image_column", "columns who, label"),
        (["file,size", "a0,3 cm"], {}, "label_column", "columns file, size"),
        (["file,label", "a0,x,y"], {}, "", "3 values"),
        (["file,label", "a0,x"], {"label_column": "lable"}, "label_column", "'lable'"),
        (["file,label", "b0,x"], {}, "seeds.mine.images", "none of the images"),
        ([], {}, "table", "is empty"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, rows, settings, key, message):
    table(tmp_path, rows)
    (mistake,) = mistakes_of(source(tmp_path, **settings))
    assert mistake.key == key
    assert message in mistake.found


def test_rows_that_do_not_fit(tmp_path):
    rows = ["file,label", "a0,x", "a1,y", "a9,x", "a0.png,y"]
    table(tmp_path, rows)
    by_place = {mistake.where: mistake.found for mistake in mistakes_of(source(tmp_path))}
    assert by_place == {
        "labels.csv:4": "a9 is not in the folder of images",
        "labels.csv:5": "a0.png a second time (first in line 2)",
    }
    seeds = source(tmp_path, on_bad_seed="skip")
    assert len(seeds.refs()) == 2
    assert seeds.notices() == ("2 images in images have no row in labels.csv; left out.",)


def test_bytes_without_text(tmp_path):
    table(tmp_path, [])
    (tmp_path / "labels.csv").write_bytes("file,label\na0,größer\n".encode("latin-1"))
    (mistake,) = mistakes_of(source(tmp_path))
    assert "not UTF-8" in mistake.found
    (tmp_path / "labels.csv").write_bytes(b"PK\x03\x04 workbook")
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.fix == "save it as CSV"


def test_large_tables_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("medtest.seeds.folders.table.MOST_CELLS", 1000)
    table(tmp_path, ["file,label", "a0,x", "," * 999])
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.found == "is too large a table"
    table(tmp_path, ["a0 " * 2000])
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.found == "is too long a list"


@pytest.mark.parametrize("name", ["labels.csv", "pneumoniamnist.npz"])
def test_tables_outside_the_folder_are_read_by_links_and_broken_links_reported(tmp_path, name):
    class_folders(tmp_path / "data", {"a": 2})
    (tmp_path / name).write_text("file,label\na/0,x\na/1,y\n")
    (tmp_path / "data" / name).symlink_to(tmp_path / name)
    if name.endswith(".csv"):
        assert len(source(tmp_path / "data", table=name).refs()) == 2
    (tmp_path / name).unlink()
    (mistake,) = mistakes_of(source(tmp_path / "data", table=name))
    assert f"{name} is a broken link" in mistake.found


def test_a_label_for_each_image_is_not_a_class(tmp_path):
    count = 1010
    table(tmp_path, ["file,label", *(f"a{n},{n}" for n in range(count))], images=0)
    for number in range(count):
        path = tmp_path / "images" / f"a{number}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    (mistake,) = mistakes_of(source(tmp_path))
    assert mistake.found == "1,010 different labels in the data"
