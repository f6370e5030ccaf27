"""``medtest data inspect``: counts, sizes, problems, archives, and suite lines that load."""

from __future__ import annotations

import gzip
import os
import resource
import shlex
import shutil
import tarfile
import time
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from layout_files import (
    clinicdb_archive,
    colondb_archive,
    endoscene_archive,
    etis_archive,
    junk,
    kvasir_archive,
    mask,
    picture,
    pranet_test,
    pranet_train,
)
from PIL import Image as Pillow

from medtest.cli.app import run_app
from medtest.core.errors import UserMistakes
from medtest.seeds.datasets.inspect import inspect_path
from medtest.seeds.datasets.inspect_notes import frame_notes
from medtest.seeds.datasets.tree import tree_of_archive
from medtest.suite.compose import load_suite
from medtest.suite.model import Invocation
from medtest.suite.reading.outline import outline

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[3].parent / "shared"))
REAL = SHARED / "data" / "polyp" / "kvasir_seg"


def everything(root):
    kvasir_archive(root / "Kvasir-SEG")
    clinicdb_archive(root / "CVC-ClinicDB")
    etis_archive(root / "etis")
    colondb_archive(root / "CVC-ColonDB")
    endoscene_archive(root / "CVC-EndoSceneStill")
    pranet_test(root)
    pranet_train(root)


@pytest.mark.slow
def test_every_line_loads_what_was_counted(tmp_path):
    """The exact tokens are composed as a suite and its seeds are listed, from a path with a space."""
    root = tmp_path / "my data"
    everything(root)
    report = inspect_path(root)
    assert report.usable
    assert {looked.found.dataset for looked in report.looked} == {
        "cvc-300",
        "cvc-clinicdb",
        "cvc-colondb",
        "kvasir",
        "etis",
        "endoscene-cvc-300",
        "endoscene-cvc-612",
    }
    for looked in report.looked:
        suite_token, data, *settings = looked.line.tokens(str(root))
        suite = load_suite(suite_token.removeprefix("suite="), settings)
        (source,) = suite.build_seeds(Path(data.removeprefix("data=")))
        assert len(source.refs()) == looked.found.count == looked.pairs, looked
    (line, counts), *_ = report.suites
    assert line.suite == "polyp_seg_paper"
    assert set(line.sets) == {"cvc-300", "cvc-clinicdb", "cvc-colondb", "kvasir"}
    assert counts["cvc-300"] == 2
    assert any("EndoScene is here with 5 of 912" in note for note in report.notes)


def test_sizes_and_copies_of_another_size(tmp_path):
    base = tmp_path / "CVC-300"
    for number, width in enumerate([574, 574, 578, 600]):
        picture(base / "images" / f"{number}.png", number, (50, width))
        mask(base / "masks" / f"{number}.png", number, (50, width))
    # The sizes that matter are width x height, so these small heights are sizes that nobody published.
    (looked,) = inspect_path(tmp_path).looked
    assert looked.sizes == (("574x50", 2), ("578x50", 1), ("600x50", 1))
    assert any("a resized copy" in note for note in looked.notes)


def test_578_against_574(tmp_path):
    base = tmp_path / "CVC-300"
    for number, (width, mask_width) in enumerate([(574, 574), (578, 578), (578, 574)]):
        picture(base / "images" / f"{number}.png", number, (500, width))
        mask(base / "masks" / f"{number}.png", number, (500, mask_width))
    report = inspect_path(tmp_path)
    (looked,) = report.looked
    assert looked.sizes == (("578x500", 2), ("574x500", 1))
    assert any("mixes copies of 574x500 and 578x500" in note for note in looked.notes)
    assert [(p.file, p.reason) for p in looked.problems] == [
        ("CVC-300/masks/2.png", "is 574×500, but its image is 578×500")
    ]
    assert not report.usable


def test_other_names_of_masks_and_files_left_over(tmp_path):
    for number in range(3):
        picture(tmp_path / "images" / f"{number}.jpg", number)
        mask(tmp_path / "masks" / f"{number}_mask.png", number)
    (looked,) = inspect_path(tmp_path).looked
    assert (looked.pairs, looked.rule, looked.problems) == (3, "<name>_mask", ())
    picture(tmp_path / "images" / "alone.jpg", 9)
    (looked,) = inspect_path(tmp_path).looked
    assert [p.reason for p in looked.problems] == ["has no mask"]


def archives(tmp_path):
    everything(tmp_path / "all")
    junk(tmp_path / "all" / "Kvasir-SEG" / "images")
    shutil.make_archive(str(tmp_path / "data set"), "zip", tmp_path / "all")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "all", "all")
    return tmp_path / "data set.zip", tmp_path / "data.tar.gz"


def test_archives_are_looked_into_and_not_unpacked(tmp_path):
    zipped, packed = archives(tmp_path)
    expected = {(f.found.dataset, f.found.count) for f in inspect_path(tmp_path / "all").looked}
    before = sorted(p.name for p in tmp_path.iterdir())
    for path in (zipped, packed):
        report = inspect_path(path)
        assert {(f.found.dataset, f.found.count) for f in report.archives["."]} == expected
        assert sum(report.ignored.values()) >= 8
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    # Beside other things in a folder they are looked into as well.
    shutil.rmtree(tmp_path / "all")
    assert set(inspect_path(tmp_path).archives) == {"data set.zip", "data.tar.gz"}


def test_hostile_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "climb.zip", "w") as packed:
        packed.writestr("../../images/1.png", b"x")
        packed.writestr("/images/2.png", b"x")
        packed.writestr("images/3.png", b"x")
    tree = tree_of_archive(tmp_path / "climb.zip")
    assert [str(f) for f in tree.folders] == ["images"]
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "bad.tar.gz").write_bytes(b"\x1f\x8b nothing")
    for name in ("bad.zip", "bad.tar.gz", "none", "notes.txt"):
        (tmp_path / "notes.txt").touch()
        with pytest.raises(UserMistakes):
            inspect_path(tmp_path / name)


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    root = tmp_path / "my data"
    pranet_test(root)
    junk(root / "TestDataset" / "Kvasir" / "images")
    assert run_app(["data", "inspect", str(root)]) == 0
    out = capsys.readouterr().out
    assert "CVC-ColonDB" in out
    assert "3 of 380 published" in out
    assert "suite=polyp_seg_paper" in out
    assert "Partial: CVC-300: 2 of the 60" in out
    assert "Ignored:" in out
    assert "Thumbs.db" in out
    line = next(text for text in out.splitlines() if "suite=polyp_seg_folder" in text and "ETIS" in text)
    assert f"data={root}/TestDataset/ETIS-LaribPolypDB" in shlex.split(line)
    (root / "TestDataset" / "Kvasir" / "images" / "lonely.png").write_bytes(b"x")
    assert run_app(["data", "inspect", str(root)]) == 2
    out = capsys.readouterr().out
    assert "lonely.png: has no mask" in out
    with pytest.raises(UserMistakes, match="does not exist"):
        run_app(["data", "inspect", str(tmp_path / "nowhere")])
    assert run_app(["data", "known"]) == 0
    assert "cvc-300" in capsys.readouterr().out


@pytest.mark.skipif(not REAL.is_dir(), reason="the shared folder with real images is absent")
def test_real_folder():
    report = inspect_path(REAL / "test")
    pairs = next(looked for looked in report.looked if looked.pairs == 50 and looked.found.holds == "masks")
    assert pairs.found.dataset == "kvasir"  # recognised by the names of its files
    assert sum(count for _, count in pairs.sizes) == 50
    assert not pairs.problems


def test_files_without_suffix_are_images_only_if_they_are_dicom(tmp_path, capsys):
    """LICENSE and README beside an archive's folders must not count as two images."""
    for name in ("LICENSE", "README", "Makefile"):
        (tmp_path / "all" / "Kvasir-SEG").mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / "Kvasir-SEG" / name).write_text("text")
    kvasir_archive(tmp_path / "all" / "Kvasir-SEG")
    shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "all")
    (looked,) = inspect_path(tmp_path / "all").looked
    assert (looked.found.dataset, looked.found.count) == ("kvasir", 3)
    (inside,) = inspect_path(tmp_path / "packed.zip").archives["."]
    assert (inside.found.dataset, inside.found.count) == ("kvasir", 3)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "LICENSE").write_text("text")
    assert inspect_path(tmp_path / "one").looked == ()


def test_names_cannot_steer_the_terminal(tmp_path, capsys):
    name = "set\x1b]0;owned\x07\x1b[2J"
    picture(tmp_path / "root" / name / "images" / "a.png")
    mask(tmp_path / "root" / name / "masks" / "a.png")
    (tmp_path / "root" / ".\x1b[31mjunk").write_text("x")
    shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "root")
    for path in (tmp_path / "root", tmp_path / "packed.zip"):
        run_app(["data", "inspect", str(path)])
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err
        assert "\x07" not in shown.out + shown.err
        assert "set" in shown.out


@pytest.mark.slow
def test_many_folders_take_no_longer_than_their_number(tmp_path):
    """DICOM archives have a folder for each study; twelve thousand of them took minutes."""
    with zipfile.ZipFile(tmp_path / "studies.zip", "w") as packed:
        for number in range(12_000):
            packed.writestr(f"studies/{number // 100}/{number}/image.png", b"")
    began = time.process_time()  # the clock of this process, which no other one delays
    report = inspect_path(tmp_path / "studies.zip")
    assert sum(entry.found.count for entry in report.archives["."]) == 12_000
    assert time.process_time() - began < 20


def test_a_header_with_a_large_declared_size_is_not_read(tmp_path):
    """A few hundred kilobytes unpack to one header of 300 MB, which tarfile would keep whole."""
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 300 * 2**20
    with gzip.open(tmp_path / "bomb.tar.gz", "wb", compresslevel=1) as packed:
        packed.write(info.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(300):
            packed.write(bytes(2**20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserMistakes, match="mistake") as caught:
        inspect_path(tmp_path / "bomb.tar.gz")
    assert "is not a readable archive" in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.parametrize("kind", ["", "gz", "bz2", "xz"])
def test_every_kind_of_tar_is_looked_into(kind, tmp_path):
    kvasir_archive(tmp_path / "all" / "Kvasir-SEG")
    path = tmp_path / (f"data.tar.{kind}" if kind else "data.tar")
    with tarfile.open(path, f"w:{kind}") as tar:
        tar.add(tmp_path / "all", "all")
    (inside,) = inspect_path(path).archives["."]
    assert (inside.found.dataset, inside.found.count) == ("kvasir", 3)


def test_nothing_found_is_exit_code_2_with_a_reason(tmp_path, capsys):
    kvasir_archive(tmp_path / "elsewhere")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "images").symlink_to(tmp_path / "nowhere" / "images")
    assert run_app(["data", "inspect", str(tmp_path / "linked")]) == 2
    output = capsys.readouterr().out
    assert "images (is a broken link; bring back the file that it leads to) is not looked into" in output
    assert "nowhere" not in output
    assert "No images were found" in output


def test_a_hundred_other_sizes_are_not_named_one_by_one(tmp_path):
    base = tmp_path / "CVC-ClinicDB"
    for number in range(30):
        picture(base / "images" / f"{number}.png", number, (40, 40 + number))
        mask(base / "masks" / f"{number}.png", number, (40, 40 + number))
    (looked,) = inspect_path(tmp_path).looked
    (note,) = (note for note in looked.notes if "a resized copy" in note)
    assert note == "40x40, 41x40, 42x40, 43x40 and others where 384x288 is published: a resized copy"


def test_a_plan_names_missing_sets_of_the_paper(tmp_path):
    kvasir_archive(tmp_path / "Kvasir-SEG")
    plan = outline(load_suite("polyp_seg_paper", []), Invocation(data=tmp_path, home=tmp_path))
    assert plan.datasets == {"kvasir": 3}
    assert any("CVC-300 is missing" in notice and "60 images" in notice for notice in plan.notices)
    assert "Partial: Kvasir-SEG: 3 of the 1,000 published images are present." in plan.notices


# ------------------------------------------------------------------------------------- what else lies in a folder


def test_several_sets_under_one_root_run_together(tmp_path, capsys):
    for name in ("Centre A", "Centre-B"):
        picture(tmp_path / name / "images" / "1.png")
        mask(tmp_path / name / "masks" / "1.png")
    report = inspect_path(tmp_path)
    assert report.together is not None and report.together.sets == ("centre-a", "centre-b")
    suite, data, *settings = report.together.tokens(str(tmp_path))
    (source,) = load_suite("polyp_seg_folder", settings).build_seeds(Path(data.removeprefix("data=")))
    assert {ref.dataset for ref in source.refs()} == {"centre-a", "centre-b"}
    assert run_app(["data", "inspect", str(tmp_path)]) == 0
    assert "2 data sets in one run: centre-a, centre-b" in capsys.readouterr().out


def test_sets_that_one_run_cannot_take_whole_are_named(tmp_path):
    everything(tmp_path)
    report = inspect_path(tmp_path)
    assert report.together is not None
    suite, data, *settings = report.together.tokens(str(tmp_path))
    (source,) = load_suite("polyp_seg_folder", settings).build_seeds(Path(data.removeprefix("data=")))
    assert {ref.dataset for ref in source.refs()} == set(report.together.sets)


def _map(path, number, size=(60, 80)):
    path.parent.mkdir(parents=True, exist_ok=True)
    soft = np.zeros(size, np.uint8)
    soft[10:30, 10 + number : 40 + number] = 255
    Pillow.fromarray(cv2.GaussianBlur(soft, (0, 0), 2)).save(path)


def test_prediction_maps_are_listed_with_their_images(tmp_path, capsys):
    root = tmp_path / "my data"
    for number in range(3):
        picture(root / "set" / "images" / f"{number}.png", number, (60, 80))
        _map(root / "set" / "masks" / f"{number}.png", number)
        _map(root / "PraNet" / f"{number}.png", number)
    (maps,) = [looked for looked in inspect_path(root).looked if looked.found.holds == "maps"]
    assert maps.found.count == 3
    assert maps.line.tokens("R") == (
        "suite=polyp_seg_folder", "data=R/set", "model=predictions", "folder=R/PraNet", "only=relation:unchanged"
    )  # fmt: skip
    shutil.rmtree(root / "set")
    assert run_app(["data", "inspect", str(root)]) == 0
    text = capsys.readouterr().out
    assert "3 (prediction maps; maps of probability, or masks without images)" in text
    assert "model=predictions folder=PraNet" in text
    assert "run: " not in text


def test_photographs_and_x_rays_are_not_maps(tmp_path):
    grey = np.tile(np.linspace(20, 220, 80).astype(np.uint8), (60, 1))
    for number in range(3):
        path = tmp_path / "rays" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Pillow.fromarray(grey).save(path)
    assert [looked.found.holds for looked in inspect_path(tmp_path).looked] == ["images"]


def test_all_files_that_no_run_reads_are_printed(tmp_path, capsys):
    kvasir_archive(tmp_path / "Kvasir-SEG")
    for name in ("notes.docx", "clip.mp4", "LICENSE", "arrays.npz"):
        (tmp_path / name).write_bytes(b"x")
    run_app(["data", "inspect", str(tmp_path)])
    text = capsys.readouterr().out
    for line in ("1 .docx (notes.docx)", "1 .mp4 (clip.mp4)", "1 .npz (arrays.npz)", "1 LICENSE"):
        assert line in text, line


def test_no_line_under_a_refusal_takes_refused_files(tmp_path, capsys):
    for number in range(2):
        picture(tmp_path / "images" / f"{number}.png", number)
        mask(tmp_path / "masks" / f"{number}.png", number)
    mask(tmp_path / "masks" / "1.png", size=(9, 9))
    assert run_app(["data", "inspect", str(tmp_path)]) == 2
    assert "seeds.folder.on_bad_seed=skip" in capsys.readouterr().out
    mask(tmp_path / "masks" / "0.png", size=(9, 9))
    assert run_app(["data", "inspect", str(tmp_path)]) == 2
    assert "run" not in capsys.readouterr().out.replace("a run would refuse", "")


def test_a_picture_with_truncated_pixels_is_reported_before_the_run(tmp_path, capsys):
    for number in range(4):
        picture(tmp_path / "images" / f"{number}.png", number)
        mask(tmp_path / "masks" / f"{number}.png", number)
    for torn in (tmp_path / "images" / "1.png", tmp_path / "masks" / "2.png"):
        torn.write_bytes(torn.read_bytes()[: -torn.stat().st_size // 3])
    (looked,) = inspect_path(tmp_path).looked
    assert [problem.file for problem in looked.problems] == ["images/1.png", "masks/2.png"]
    hurried = inspect_path(tmp_path, pixel_seconds=0)
    assert not hurried.looked[0].problems
    assert "pixels of 0 of 8 files were read, the others' headers alone" in " ".join(hurried.notes)
    assert run_app(["data", "inspect", str(tmp_path)]) == 2
    output = capsys.readouterr().out
    assert "2 files that would be refused" in output and "headers alone" not in output


def test_files_of_several_frames_are_noted() -> None:
    assert frame_notes(1_200, 1) == ("1,200 frames or slices in 1 file",)
    assert frame_notes(1_200, 2) == ("1,200 frames or slices in 2 files",)
    assert frame_notes(2, 2) == ()
