"""A suite is packed, travels, and is checked and run on the other side."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from pack_parts import SMALL, checked, packed, resealed, rewritten, unpacked
from PIL import Image

import medtest
from medtest.cli.app import run_app
from medtest.cli.run.launch import main
from medtest.errors import ExitCode, MedtestError, OutputProblem, UserMistakes
from medtest.packs.locks import lock_of, other_versions
from medtest.packs.reading import unpack
from medtest.packs.writing import write_pack
from medtest.phantoms import skin
from medtest.phantoms.colon import make_colon
from medtest.runner.folder import output_problems
from medtest.suite.compose import load_suite

SHARED = Path(os.environ.get("MEDTEST_SHARED", Path(__file__).parents[2].parent / "shared"))
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
        made = make_colon(np.random.default_rng(index), size=(200, 240), polyps=1)
        exif = Image.Exif()
        exif[0x013B] = "Jane Doe"
        Image.fromarray(made.image).save(folder / "images" / f"case {index}.jpg", exif=exif)
        Image.fromarray(made.mask.astype(np.uint8) * 255).save(folder / "masks" / f"case {index}.png")
    return folder


def team(folder: Path, name: str = "ours", more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(FOLDERS.format(name=name, more=more), encoding="utf-8")
    return folder / f"{name}.yaml"


# --- what travels -----------------------------------------------------------------------------------------------------


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
    assert str(Path.home()) not in json.dumps(head)


@pytest.mark.slow
def test_hashes_are_those_of_records(small_pack: Path, tmp_path: Path) -> None:
    """Compared with a run of the suite, which goes another way: workers, shards, a Parquet file."""
    import pandas as pd

    home = tmp_path / "home"
    result = medtest.run("polyp_seg", "pranet", home=home, track=False, overrides=[*SMALL[1:3], "only=relation:blur"])
    records = pd.read_parquet(next(iter(result.folders.values())) / "records.parquet")
    with zipfile.ZipFile(small_pack) as archive:
        seeds = pd.read_csv(io.BytesIO(archive.read("seeds.csv")))
        cases = pd.read_csv(io.BytesIO(archive.read("followups.csv")))
    ours = dict(zip(seeds["seed_id"], seeds["image_sha256"], strict=True))
    assert ours == dict(zip(records["seed_id"], records["source_sha256"], strict=True))
    keys = ["seed_id", "relation", "severity", "followup_sha256"]
    both = cases[cases["relation"] == "blur"][keys].merge(records[keys], on=keys)
    assert len(both) == 5


@pytest.mark.slow
def test_the_unpacked_suite_is_the_run_that_was_packed(small_pack: Path, tmp_path: Path) -> None:
    """Its digest, and so its folder, is that of the suite as it was typed where it was packed."""
    folder = unpacked(small_pack, tmp_path / "received")
    here = load_suite(folder / "suites" / "polyp_seg.yaml")
    there = load_suite("polyp_seg", SMALL[1:])
    assert here.composed == there.composed
    with zipfile.ZipFile(small_pack) as archive:
        head = json.loads(archive.read("pack.json"))
    from medtest.suite.digest import digest_of

    result = medtest.run(
        folder / "suites" / "polyp_seg.yaml", home=tmp_path / "h", track=False, limit=1, only="relation:text"
    )
    (run,) = result.folders.values()
    assert run.name == digest_of(head["of_suite"]["systems"]["pranet"])


def test_what_a_suite_extends_and_leaves_out_travels(tmp_path: Path) -> None:
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
    there = load_suite(folder / "suites" / "mine.yaml")
    assert there.exclude is not None and there.exclude.cases == {("blur", sha)}
    assert (there.version, [plan.id for plan in there.relations]) == ("3", ["unchanged", "blur"])
    assert checked(folder) == ExitCode.OK


# --- the other side ---------------------------------------------------------------------------------------------------


def test_the_same_machine_finds_everything_the_same(small_pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(small_pack) == ExitCode.OK
    said = capsys.readouterr().out
    for line in (
        "suite      same",
        "data       same: 3 of 3",
        "16 of 16 compared have the same bits",
        "systems    same",
    ):
        assert line in said


def test_another_library_does_not_matter_where_bits_are_the_same(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def older(files: dict[str, bytes]) -> None:
        versions = json.loads(files["pack.json"])["versions"]
        resealed(files, versions={**versions, "opencv-python": "4.12.0.1", "rich": "1.0", "torch": "2.0.1"})

    assert checked(rewritten(small_pack, tmp_path / "p.zip", older)) == ExitCode.OK
    said = capsys.readouterr().out
    assert "versions   not compared: 3 of" in said
    assert "pixels: opencv-python 4.12.0.1 →" in said
    assert "does not matter to what was compared, which is the same" in said
    assert "answers may differ in their last digits" in said
    assert "1 that nothing here rests on: rich 1.0 →" in said


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

    assert checked(rewritten(small_pack, tmp_path / "p.zip", other)) == ExitCode.GATE_NOT_HELD
    said = capsys.readouterr().out
    assert "other bits: blur (1 of 5); their figures are of other images" in said
    assert "same bits: unchanged, saturation, text" in said or "same bits:" in said
    assert "numpy 2.0.0 →" in said and "this may be why they differ" in said


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
    assert checked(file, f"data={other}") == ExitCode.GATE_NOT_HELD
    said = capsys.readouterr().out
    assert "data       other, matters: 1 of 4 seeds the same" in said
    assert "1 changed (other pixels): " in said, said
    assert "1 changed (same pixels, another mask, label or answer is expected)" in said
    assert "1 missing (not here)" in said and "1 new (not in the pack)" in said
    assert "have the same bits" in said and "not compared: their seeds are not the same here" in said


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
    said = capsys.readouterr().out
    assert "data       same" in said
    assert "files of seeds are others, and their pixels are not" in said


@pytest.mark.slow
def test_images_travel_when_asked_for_without_what_their_files_say(
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
    assert "3 of 3 seeds the same" in capsys.readouterr().out
    folder = unpacked(file, tmp_path / "other")
    result = medtest.run(
        folder / "suites" / "ours.yaml", data=folder / "data", home=tmp_path / "h", track=False, limit=1
    )
    assert len(result.records) == 5


@pytest.mark.skipif(not REAL.is_dir(), reason="the real images are not here (set MEDTEST_SHARED)")
def test_real_images_are_the_same_until_one_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("images", "masks"):
        shutil.copytree(REAL / kind, tmp_path / "data" / kind)
    data = f"data={tmp_path / 'data'}"
    file = packed(tmp_path / "p.zip", "suite=polyp_seg_folder", data, "limit=8", "relations=[blur,blood]")
    assert checked(file, data) == ExitCode.OK
    assert "data       same: 8 of 8 seeds the same" in capsys.readouterr().out
    first = min((tmp_path / "data" / "images").iterdir())
    pixels = np.asarray(Image.open(first).convert("RGB")).copy()
    pixels[100, 100] ^= 255
    Image.fromarray(pixels).save(first)
    assert checked(file, data) == ExitCode.GATE_NOT_HELD
    assert "1 changed (other pixels)" in capsys.readouterr().out


def test_images_in_a_folder_for_each_class_travel_with_their_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for index in range(8):
        made = skin.make(index, 1, size=128)
        folder = tmp_path / "data" / made.labels[0]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(made.image).save(folder / f"{index}.jpg")
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
        with pytest.raises(UserMistakes, match="images=true where it says"):
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
    said = capsys.readouterr().out
    assert "data       same: 3 of 3" in said and "4 of 4 compared have the same bits" in said


def test_code_of_ones_own_stays_and_is_typed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ours.py").write_text("def net(image):\n    return image[..., 0] / 255\n", encoding="utf-8")
    (tmp_path / "theirs.py").write_text("def net(image):\n    return image[..., 1] / 255\n", encoding="utf-8")
    typed = ["model=callable", f"target={tmp_path}/ours.py:net"]
    file = packed(tmp_path / "p.zip", *SMALL[:3], *typed, "limit=1")
    assert "Stays here, for no suite holds paths, addresses or code: systems.callable.target" in capsys.readouterr().out
    with zipfile.ZipFile(file) as archive:
        assert not any(b"ours.py" in archive.read(name) for name in archive.namelist())
    for given, code, said in (
        ([], ExitCode.OK, "systems    not compared: 0 of 1"),
        (typed, ExitCode.OK, "systems    same: 1 of 1"),
        ([typed[0], f"target={tmp_path}/theirs.py:net"], ExitCode.GATE_NOT_HELD, "callable: another system (system."),
    ):
        assert checked(file, *given) == code
        assert said in capsys.readouterr().out


def test_a_limit_bounds_what_is_listed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = packed(tmp_path / "p.zip", *SMALL, "limit=2")
    assert checked(file) == ExitCode.OK
    assert "data       same: 2 of 2" in capsys.readouterr().out
    assert checked(file, "limit=1") == ExitCode.OK
    assert "data       same: 1 of 1" in capsys.readouterr().out


def test_an_unpacked_file_that_was_changed_is_told(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(small_pack, tmp_path / "other")
    suite = folder / "suites" / "polyp_seg.yaml"
    values = yaml.safe_load(suite.read_text())
    values["relations"]["blur"]["levels"]["5"]["noise"] = 9.5
    suite.write_text(yaml.safe_dump(values, sort_keys=False))
    assert checked(folder) == ExitCode.GATE_NOT_HELD
    said = capsys.readouterr().out
    assert "files      other, matters: 1 changed since the pack was unpacked" in said
    assert "other bits: blur (1 of 5)" in said


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["pack", "suite=polyp_sag", "to={new}"], "did you mean: polyp_seg"),
        (["pack", "to={new}"], "medtest list suites"),
        (["pack", "suite=polyp_seg"], "to=FILE.zip, a name that is not taken"),
        (["pack", "suite=polyp_seg", "to={there}"], "which is there"),
        (["pack", "suite=polyp_seg", "to={new}/deeper/p.zip"], "a folder that is there"),
        (["pack", "suite=polyp_seg", "to={new}", "images=maybe"], "true, false"),
        (["pack", "suite=polyp_seg_folder", "to={new}"], "the folder of the images whose SHA-256"),
        (["pack", "suite=polyp_seg", "to={new}", "only=relation:blur"], "limit=N"),
        (["pack", "suite=polyp_seg", "to={new}", "tu=x"], "images"),
        (["pack", "run=polyp_seg/nobody", "to={new}"], "SUITE/SYSTEM of a finished run"),
        (["unpack", "{there}", "to={new}"], "is no ZIP file"),
        (["unpack", "{pack}", "to={there}"], "which is there"),
        (["unpack", "nowhere.zip"], "a file that is there"),
        (["unpack"], "Missing argument"),
        (["check", "nowhere.zip"], "a file that is there"),
        (["check", "{there}"], "no ZIP file"),
        (["check", "{folder}/"], "a folder without pack.json"),
        (["check", "{pack}", "data={new}"], "a folder that is there"),
        (["check", "{newer}"], "pip install --upgrade medtest"),
        (["check", "{other}"], "a ZIP file without pack.json"),
        (["check", "{foreign}"], "install that package if you trust it: no code travels"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_mistake_has_one_message(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], tokens: list[str], words: str
) -> None:
    (tmp_path / "there.zip").write_bytes(b"taken")
    (tmp_path / "folder").mkdir()

    def newer(files: dict[str, bytes]) -> None:
        files["pack.json"] = json.dumps({"format": 2, "medtest": "9.0"}).encode()

    def foreign(files: dict[str, bytes]) -> None:
        facts = json.loads(files["pack.json"])["of_suite"]
        brought = {"name": "fog", "target": "fog:Fog", "revision": 1, "origin": "fog-relations", "version": "2.1"}
        resealed(files, of_suite={**facts, "parts": {**facts["parts"], "relations.fog": brought}})

    names = {
        "new": tmp_path / "new.zip",
        "there": tmp_path / "there.zip",
        "folder": tmp_path / "folder",
        "pack": small_pack,
        "newer": rewritten(small_pack, tmp_path / "newer.zip", newer),
        "other": rewritten(small_pack, tmp_path / "other.zip", lambda files: files.pop("pack.json") and None),
        "foreign": rewritten(small_pack, tmp_path / "foreign.zip", foreign),
    }
    before = sorted(tmp_path.rglob("*"))
    said, code = "", 0
    try:
        code = run_app([token.format(**names) for token in tokens])
    except MedtestError as error:
        said, code = str(error), int(error.exit_code)
    said += "".join(capsys.readouterr())
    assert code == ExitCode.MISTAKE
    assert words in said
    assert sorted(tmp_path.rglob("*")) == before  # nothing half-written is left


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("suites/harm.py", b"import os"),
        ("suites/.hidden.yaml", b"name: x"),
        ("data/run.sh", b"#!/bin/sh"),
        ("outputs/a/b/c/run.json", b"{}"),
        ("pack.json.bak", b""),
    ],
)
def test_files_that_no_pack_has_are_refused(small_pack: Path, tmp_path: Path, name: str, content: bytes) -> None:
    def add(files: dict[str, bytes]) -> None:
        files[name] = content
        resealed(files)

    with pytest.raises(UserMistakes, match="which no pack of a suite has"):
        unpacked(rewritten(small_pack, tmp_path / "p.zip", add), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_content_that_is_not_what_was_packed_is_refused(small_pack: Path, tmp_path: Path) -> None:
    def longer(files: dict[str, bytes]) -> None:
        files["suites/polyp_seg.yaml"] += b"\n# more"

    def as_long(files: dict[str, bytes]) -> None:
        files["seeds.csv"] = files["seeds.csv"].replace(b"phantom-0000", b"phantom-0009")

    def fewer(files: dict[str, bytes]) -> None:
        del files["seeds.csv"]

    def more(files: dict[str, bytes]) -> None:
        files["suites/other.yaml"] = b"name: other"

    for number, change in enumerate((longer, as_long, fewer, more)):
        file = rewritten(small_pack, tmp_path / f"{number}.zip", change)
        with pytest.raises(UserMistakes, match="than was packed|changed since it was packed"):
            unpacked(file, tmp_path / "other")
    assert [path for path in tmp_path.iterdir() if path.suffix != ".zip"] == []


def test_where_a_disk_is_full_nothing_half_written_is_left(small_pack: Path, tmp_path: Path) -> None:
    """A limit on the size of files refuses to write as a full disk does: in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, before[1]))
    try:
        with pytest.raises(OutputProblem, match="cannot be written"):
            unpack(small_pack, tmp_path / "other")
        with pytest.raises(OutputProblem, match="cannot be written"), output_problems(tmp_path / "p.zip"):
            write_pack(small_pack.parent, tmp_path / "p.zip")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_what_strangers_say_does_not_command_the_terminal(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def coloured(files: dict[str, bytes]) -> None:
        versions = json.loads(files["pack.json"])["versions"]
        resealed(
            files, medtest="\x1b[2J1.0", versions={**versions, "\x1b]0;x\x07numpy": "\x9b31m1", "numpy": "\x1b[31m"}
        )

    file = rewritten(small_pack, tmp_path / "p.zip", coloured)
    checked(file)
    unpacked(file, tmp_path / "other")
    said = capsys.readouterr().out
    assert "[2J1.0" in said
    assert all(sign.isprintable() or sign == "\n" for sign in said)


def test_a_part_of_another_revision_is_named(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def older(files: dict[str, bytes]) -> None:
        facts = json.loads(files["pack.json"])["of_suite"]
        for name in ("relations.blur", "oracles.masks"):
            facts["parts"][name]["revision"] += 1
        resealed(files, of_suite=facts)

    assert checked(rewritten(small_pack, tmp_path / "p.zip", older)) == ExitCode.GATE_NOT_HELD
    said = capsys.readouterr().out
    assert "suite      other, matters" in said and "relations.blur 2 → 1" in said and "oracles.masks" in said


def test_a_pack_packed_again_by_another_tool_is_read(small_pack: Path, tmp_path: Path) -> None:
    folder = unpacked(small_pack, tmp_path / "first")
    shutil.make_archive(str(tmp_path / "python"), "zip", folder)
    unpacked(tmp_path / "python.zip", tmp_path / "second")
    if shutil.which("zip"):
        subprocess.run(["zip", "-q", "-9", "-r", str(tmp_path / "zip.zip"), "."], cwd=folder, check=True)
        unpacked(tmp_path / "zip.zip", tmp_path / "third")
        assert (tmp_path / "third" / "seeds.csv").read_bytes() == (folder / "seeds.csv").read_bytes()


def test_a_suite_that_says_what_no_suite_may_is_refused_when_it_is_used(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pack is no way round what suites may not say: commands, addresses, paths."""

    def harm(files: dict[str, bytes]) -> None:
        suite = yaml.safe_load(files["suites/polyp_seg.yaml"])
        suite["systems"] = {"pranet": {"use": "pranet", "checkpoint": "/tmp/x.pth"}}  # noqa: S108
        files["suites/polyp_seg.yaml"] = yaml.safe_dump(suite).encode()
        resealed(files)

    file = rewritten(small_pack, tmp_path / "p.zip", harm)
    with pytest.raises(UserMistakes, match="no absolute path"):
        checked(file)
    folder = unpacked(file, tmp_path / "other")
    assert main([f"suite={folder}/suites/polyp_seg.yaml", "limit=1", "tracking=none"]) == ExitCode.MISTAKE
    assert "no absolute path" in "".join(capsys.readouterr())


def test_a_lock_lists_what_medtest_rests_on_and_no_tools() -> None:
    lock = lock_of()
    assert {"numpy", "opencv-python", "torch", "hydra-core", "pyarrow", "markupsafe"} <= lock.keys()
    assert not {"pytest", "ruff", "mypy"} & lock.keys()
    assert other_versions(lock, dict(lock)) == []
    (gone,) = other_versions({**lock, "wheelbarrow": "1"}, lock)
    assert (str(gone), gone.touches) == ("wheelbarrow 1 → none", ("nothing",))
