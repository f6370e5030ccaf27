"""Packs of suites: packed, moved, checked and run on another machine."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from pack_parts import SMALL, checked, packed, resealed, rewritten, unpacked
from PIL import Image

import medtest
from medtest.core.errors import ExitCode, UserMistakes
from medtest.phantoms import skin
from medtest.phantoms.colon import make_colon
from medtest.report.packs.locks import other_versions
from medtest.runner.reporting.software import lock_of
from medtest.suite.compose import load_suite

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[3].parent / "shared"))
REAL = SHARED / "data" / "polyp" / "kvasir_seg" / "test"
FOLDERS = """
name: {name}
version: "1"
description: A team's own.
seed: 7
seeds: {{ours: {{source: image_mask_folders}}}}
relations: {{blur: {{severities: [2]}}, saturation: {{severities: [1, 5]}}}}
systems: [pranet]
oracles: {{}}
{more}
"""


def pictures(folder: Path, count: int = 3) -> Path:
    """Write a folder of images and masks, as JPEG with an author's name in them, and PNG."""
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    for index in range(count):
        phantom = make_colon(np.random.default_rng(index), size=(200, 240), polyps=1)
        exif = Image.Exif()
        exif[0x013B] = "Jane Doe"
        Image.fromarray(phantom.image).save(folder / "images" / f"case {index}.jpg", exif=exif)
        Image.fromarray(phantom.mask.astype(np.uint8) * 255).save(folder / "masks" / f"case {index}.png")
    return folder


def team(folder: Path, name: str = "ours", more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(FOLDERS.format(name=name, more=more), encoding="utf-8")
    return folder / f"{name}.yaml"


# --- what travels -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_packing_twice_gives_the_same_bytes(small_pack: Path, tmp_path: Path) -> None:
    again = packed(tmp_path / "again.zip")
    assert again.read_bytes() == small_pack.read_bytes()


def test_a_pack_holds_data_and_no_code_and_no_image(small_pack: Path) -> None:
    with zipfile.ZipFile(small_pack) as archive:
        names = archive.namelist()
        text = archive.read("followups.csv").decode()
        head = json.loads(archive.read("pack.json"))
    assert {Path(name).suffix for name in names} == {".json", ".yaml", ".csv", ".txt"}
    assert "as_written/polyp_seg.yaml" in names
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["relation"], row["severity"]) for row in rows} >= {
        (relation, str(severity)) for relation in ("blur", "text", "saturation") for severity in range(1, 6)
    }
    assert {row["seed_id"] for row in rows} == {f"phantom-000{index}" for index in range(3)}
    assert head["versions"]["opencv-python"] and head["of_suite"]["parts"]["relations.blur"]["revision"] >= 1
    assert str(Path.home()) not in json.dumps(head) or Path.home() == Path("/")


@pytest.mark.slow
def test_hashes_match_records(small_pack: Path, tmp_path: Path) -> None:
    """Compared with a run of the suite, which goes another way: workers, shards, a Parquet file."""
    import pandas as pd

    home = tmp_path / "home"
    result = medtest.run("polyp_seg", "pranet", home=home, track=False, overrides=[*SMALL[1:3], "only=relation:blur"])
    records = pd.read_parquet(next(iter(result.folders.values())) / "records.parquet")
    with zipfile.ZipFile(small_pack) as archive:
        seeds = pd.read_csv(io.BytesIO(archive.read("seeds.csv")))
        cases = pd.read_csv(io.BytesIO(archive.read("followups.csv")))
    own = dict(zip(seeds["seed_id"], seeds["image_sha256"], strict=True))
    assert own == dict(zip(records["seed_id"], records["source_sha256"], strict=True))
    keys = ["seed_id", "relation", "severity", "followup_sha256"]
    both = cases[cases["relation"] == "blur"][keys].merge(records[keys], on=keys)
    assert len(both) == 5


@pytest.mark.slow
def test_the_unpacked_suite_is_the_run_that_was_packed(small_pack: Path, tmp_path: Path) -> None:
    """Its digest, and so its folder, is that of the suite as it was typed where it was packed."""
    folder = unpacked(small_pack, tmp_path / "received")
    unpacked_suite = load_suite(folder / "suites" / "polyp_seg.yaml")
    typed_suite = load_suite("polyp_seg", SMALL[1:])
    assert unpacked_suite.composed == typed_suite.composed
    with zipfile.ZipFile(small_pack) as archive:
        head = json.loads(archive.read("pack.json"))
    from medtest.suite.digest import digest_of

    result = medtest.run(
        folder / "suites" / "polyp_seg.yaml", home=tmp_path / "h", track=False, limit=1, only="relation:text"
    )
    (run,) = result.folders.values()
    assert run.name == digest_of(head["of_suite"]["systems"]["pranet"])


def test_extended_suites_and_excluded_cases_travel(tmp_path: Path) -> None:
    sha = "ab" * 32
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "flagged.csv").write_text(f"relation,followup_sha256\nblur,{sha}\n", encoding="utf-8")
    (tmp_path / "suites" / "base.yaml").write_text(
        "extends: polyp_seg\nversion: '2'\nseeds: {phantoms: {count: 2}}\nrelations: [blur]\n", encoding="utf-8"
    )
    (tmp_path / "suites" / "mine.yaml").write_text(
        "extends: base\nversion: '3'\nexclude: {study: flagged.csv}\n", encoding="utf-8"
    )
    file = packed(tmp_path / "p.zip", f"suite={tmp_path}/suites/mine.yaml", "model=pranet")
    folder = unpacked(file, tmp_path / "other")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert {f"as_written/{name}.yaml" for name in ("mine", "base", "polyp_seg")} <= names
    loaded = load_suite(folder / "suites" / "mine.yaml")
    assert loaded.exclude is not None and loaded.exclude.cases == {("blur", sha)}
    assert (loaded.version, [plan.id for plan in loaded.relations]) == ("3", ["unchanged", "blur"])
    assert checked(folder) == ExitCode.OK


# --- the other side ---------------------------------------------------------------------------------------------------


def test_the_same_machine_finds_everything_the_same(small_pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(small_pack) == ExitCode.OK
    output = capsys.readouterr().out
    for line in (
        "suite      same",
        "data       same: 3 of 3",
        "16 of 16 compared follow-ups",
        "systems    same",
    ):
        assert line in output


def test_another_library_does_not_matter_where_bits_are_the_same(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def older(files: dict[str, bytes]) -> None:
        versions = json.loads(files["pack.json"])["versions"]
        resealed(files, versions={**versions, "opencv-python": "4.12.0.1", "rich": "1.0", "torch": "2.0.1"})

    assert checked(rewritten(small_pack, tmp_path / "p.zip", older)) == ExitCode.OK
    output = capsys.readouterr().out
    assert "versions   not compared: 3 of" in output
    assert "pixels: opencv-python 4.12.0.1 →" in output
    assert "the compared content is the same" in output
    assert "answers may differ in the last digits" in output
    assert "1 without effect on results: rich 1.0 →" in output


def test_other_bits_matter_and_their_relation_is_named(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(files: dict[str, bytes]) -> None:
        lines = files["followups.csv"].decode().splitlines()
        changed = [line[:-6] + "00000," if ",blur,2," in line else line for line in lines]
        assert changed != lines
        files["followups.csv"] = ("\n".join(changed) + "\n").encode()
        versions = json.loads(files["pack.json"])["versions"]
        resealed(files, versions={**versions, "numpy": "2.0.0"})

    assert checked(rewritten(small_pack, tmp_path / "p.zip", other)) == ExitCode.GATE_FAILED
    output = capsys.readouterr().out
    assert "different: blur (1 of 5); their figures" in output
    assert "identical:" in output
    assert "numpy 2.0.0 →" in output and "possible cause" in output


@pytest.mark.slow
def test_each_seed_is_the_same_changed_missing_or_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, suite = pictures(tmp_path / "data", 4), team(tmp_path / "suites")
    file = packed(tmp_path / "p.zip", f"suite={suite}", f"data={data}")
    assert checked(file, f"data={data}") == ExitCode.OK
    other = shutil.copytree(data, tmp_path / "other")
    mask = np.asarray(Image.open(other / "masks" / "case 0.png")).copy()
    mask[90:110, 90:110] ^= 255
    Image.fromarray(mask).save(other / "masks" / "case 0.png")
    picture = np.asarray(Image.open(other / "images" / "case 1.jpg")).copy()
    picture[80:120, 80:120] = 0
    Image.fromarray(picture).save(other / "images" / "case 1.jpg")
    for kind, ending in (("images", "jpg"), ("masks", "png")):
        (other / kind / f"case 2.{ending}").rename(other / kind / f"case 9.{ending}")
    capsys.readouterr()
    assert checked(file, f"data={other}") == ExitCode.GATE_FAILED
    output = capsys.readouterr().out
    assert "data       different, matters: 1 of 4 seeds" in output
    assert "1 changed (different pixels): " in output, output
    assert "1 changed (same pixels, different" in output
    assert "1 missing (not here)" in output and "1 new (not in the pack)" in output
    assert "are identical" in output and "not compared: their seeds differ here" in output


@pytest.mark.skipif(os.name == "nt", reason="links need rights that not every user of Windows has")
def test_data_of_a_pack_do_not_lead_out_of_it(tmp_path: Path) -> None:
    """The user's own folder is trusted, that of a pack which came as a folder is not."""
    data, suite = pictures(tmp_path / "data", 2), team(tmp_path / "suites")
    file = packed(tmp_path / "p.zip", f"suite={suite}", f"data={data}", "images=true")
    for kind in ("file", "further file", "folder"):
        (tmp_path / kind).mkdir()
        images = unpacked(file, tmp_path / kind / "pack") / "data" / "images"
        outside = tmp_path / kind / "secret"
        if kind == "folder":
            images.rename(outside)
            images.symlink_to(outside)
        elif kind == "file":
            (images / "case 0.png").rename(outside)
            (images / "case 0.png").symlink_to(outside)
        else:
            (images / "case 9.png").symlink_to(data / "images" / "case 0.jpg")
        with pytest.raises(UserMistakes, match="a link, data/images") as caught:
            checked(tmp_path / kind / "pack")
        assert "secret" not in str(caught.value)


def test_files_of_other_kinds_with_the_same_pixels_are_the_same_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, suite = pictures(tmp_path / "data"), team(tmp_path / "suites")
    file = packed(tmp_path / "p.zip", f"suite={suite}", f"data={data}")
    for path in (data / "images").glob("*.jpg"):
        Image.open(path).convert("RGB").save(path.with_suffix(".png"))
        path.unlink()
    capsys.readouterr()
    assert checked(file, f"data={data}") == ExitCode.OK
    output = capsys.readouterr().out
    assert "data       same" in output
    assert "the seed files differ, but their pixels are the same" in output


@pytest.mark.slow
def test_images_travel_on_request_without_the_metadata_of_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, suite = pictures(tmp_path / "data"), team(tmp_path / "suites")
    file = packed(tmp_path / "p.zip", f"suite={suite}", f"data={data}", "images=true")
    assert b"Jane Doe" in next((data / "images").glob("*.jpg")).read_bytes()
    with zipfile.ZipFile(file) as archive:
        assert not any(b"Jane Doe" in archive.read(name) for name in archive.namelist())
        assert "data/images/case 0.png" in archive.namelist()
    shutil.rmtree(data)
    capsys.readouterr()
    assert checked(file) == ExitCode.OK  # from the images in the pack
    assert "3 of 3 seeds" in capsys.readouterr().out
    folder = unpacked(file, tmp_path / "other")
    result = medtest.run(
        folder / "suites" / "ours.yaml", data=folder / "data", home=tmp_path / "h", track=False, limit=1
    )
    assert len(result.records) == 5


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="the real images are not here (set MEDTEST_SHARED)")
def test_real_images_are_the_same_until_one_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("images", "masks"):
        shutil.copytree(REAL / kind, tmp_path / "data" / kind)
    data = f"data={tmp_path / 'data'}"
    file = packed(tmp_path / "p.zip", "suite=polyp_seg_folder", data, "limit=8", "relations=[blur,blood]")
    assert checked(file, data) == ExitCode.OK
    assert "data       same: 8 of 8 seeds" in capsys.readouterr().out
    first = min((tmp_path / "data" / "images").iterdir())
    pixels = np.asarray(Image.open(first).convert("RGB")).copy()
    pixels[100, 100] ^= 255
    Image.fromarray(pixels).save(first)
    assert checked(file, data) == ExitCode.GATE_FAILED
    assert "1 changed (different pixels)" in capsys.readouterr().out


def test_images_in_a_folder_for_each_class_travel_with_their_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for index in range(8):
        phantom = skin.make(index, 1, size=128)
        folder = tmp_path / "data" / phantom.labels[0]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(phantom.image).save(folder / f"{index}.jpg")
    assert len(list((tmp_path / "data").iterdir())) == 2
    data = f"data={tmp_path / 'data'}"
    file = packed(tmp_path / "p.zip", "suite=skin_folder", data, "images=true", "relations=[corruption_rotate]")
    assert "the suite runs from them" in capsys.readouterr().out
    assert checked(file) == ExitCode.OK
    assert "data       same: 8 of 8" in capsys.readouterr().out


def test_a_suite_that_forbids_images_keeps_them(tmp_path: Path) -> None:
    data = pictures(tmp_path / "data")
    for name, privacy in (("none", "images: none"), ("hashed", "seed_ids: hashed")):
        suite = team(tmp_path / "suites", name, f"privacy: {{{privacy}}}")
        with pytest.raises(UserMistakes, match="images=true"):
            packed(tmp_path / "p.zip", f"suite={suite}", f"data={data}", "images=true")
        assert not (tmp_path / "p.zip").exists()


def test_hashed_ids_stay_hashed_and_seeds_are_found_by_their_pixels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pictures(tmp_path / "data")
    suite = team(tmp_path / "suites", more="privacy: {seed_ids: hashed}")
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "one.key"))
    file = packed(tmp_path / "p.zip", f"suite={suite}", f"data={data}")
    with zipfile.ZipFile(file) as archive:
        assert not any(b"case" in archive.read(name) for name in ("seeds.csv", "followups.csv"))
        assert {row["expected_sha256"] for row in csv.DictReader(io.StringIO(archive.read("seeds.csv").decode()))} == {
            ""
        }
    assert checked(file, f"data={data}") == ExitCode.OK
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "two.key"))
    capsys.readouterr()
    checked(file, f"data={data}")
    output = capsys.readouterr().out
    assert "data       same: 3 of 3" in output and "4 of 4 compared follow-ups" in output


@pytest.mark.slow
def test_the_users_own_code_stays_and_is_typed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ours.py").write_text("def net(image):\n    return image[..., 0] / 255\n", encoding="utf-8")
    (tmp_path / "theirs.py").write_text("def net(image):\n    return image[..., 1] / 255\n", encoding="utf-8")
    typed = ["model=callable", f"target={tmp_path}/ours.py:net"]
    file = packed(tmp_path / "p.zip", *SMALL[:3], *typed, "limit=1")
    assert "addresses or code: systems.callable.target" in capsys.readouterr().out
    with zipfile.ZipFile(file) as archive:
        assert not any(b"ours.py" in archive.read(name) for name in archive.namelist())
    for overrides, code, message in (
        ([], ExitCode.OK, "systems    not compared: 0 of 1"),
        (typed, ExitCode.OK, "systems    same: 1 of 1"),
        ([typed[0], f"target={tmp_path}/theirs.py:net"], ExitCode.GATE_FAILED, "callable: different system (system."),
    ):
        assert checked(file, *overrides) == code
        assert message in capsys.readouterr().out


@pytest.mark.slow
def test_a_limit_bounds_what_is_listed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = packed(tmp_path / "p.zip", *SMALL, "limit=2")
    assert checked(file) == ExitCode.OK
    assert "data       same: 2 of 2" in capsys.readouterr().out
    assert checked(file, "limit=1") == ExitCode.OK
    assert "data       same: 1 of 1" in capsys.readouterr().out


def test_an_unpacked_file_that_was_changed_is_reported(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(small_pack, tmp_path / "other")
    suite = folder / "suites" / "polyp_seg.yaml"
    values = yaml.safe_load(suite.read_text())
    values["relations"]["blur"]["levels"]["5"]["noise"] = 9.5
    suite.write_text(yaml.safe_dump(values, sort_keys=False))
    assert checked(folder) == ExitCode.GATE_FAILED
    output = capsys.readouterr().out
    assert "files      different, matters: 1 changed since the pack was unpacked" in output
    assert "different: blur (1 of 5)" in output


def test_a_lock_lists_the_dependencies_and_no_tools() -> None:
    lock = lock_of()
    assert {"numpy", "opencv-python", "torch", "hydra-core", "pyarrow", "markupsafe"} <= lock.keys()
    assert not {"pytest", "ruff", "mypy"} & lock.keys()
    assert other_versions(lock, dict(lock)) == []
    (gone,) = other_versions({**lock, "wheelbarrow": "1"}, lock)
    assert (str(gone), gone.touches) == ("wheelbarrow 1 → none", ("nothing",))
