"""Mistakes in packs and in commands on them: one message, nothing half written, nothing run."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pack_parts import checked, resealed, rewritten, unpacked

from medtest.cli.app import run_app
from medtest.cli.run.launch import main
from medtest.core.errors import ExitCode, MedtestError, OutputProblem, UserMistakes
from medtest.report.packs.reading import unpack
from medtest.report.packs.writing import write_pack
from medtest.runner.folder import output_problems


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["pack", "suite=polyp_sag", "to={new}"], "did you mean: polyp_seg"),
        (["pack", "to={new}"], "medtest list suites"),
        (["pack", "suite=polyp_seg"], "to=FILE.zip, a new file"),
        (["pack", "suite=polyp_seg", "to={there}"], "which exists"),
        (["pack", "suite=polyp_seg", "to={new}/deeper/p.zip"], "an existing folder"),
        (["pack", "suite=polyp_seg", "to={new}", "images=maybe"], "true, false"),
        (["pack", "suite=polyp_seg_folder", "to={new}"], "folder of the images"),
        (["pack", "suite=polyp_seg", "to={new}", "only=relation:blur"], "limit=N"),
        (["pack", "suite=polyp_seg", "to={new}", "tu=x"], "images"),
        (["pack", "run=polyp_seg/nobody", "to={new}"], "SUITE/SYSTEM of a finished run"),
        (["unpack", "{there}", "to={new}"], "is not a ZIP file"),
        (["unpack", "{pack}", "to={there}"], "which exists"),
        (["unpack", "nowhere.zip"], "an existing file"),
        (["unpack"], "Missing argument"),
        (["check", "nowhere.zip"], "an existing file"),
        (["check", "{there}"], "not a ZIP file"),
        (["check", "{folder}/"], "a folder without pack.json"),
        (["check", "{pack}", "data={new}"], "an existing folder"),
        (["check", "{newer}"], "pip install --upgrade medtest"),
        (["check", "{other}"], "a ZIP file without pack.json"),
        (["check", "{foreign}"], "install that package if you trust it"),
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
    output, code = "", 0
    try:
        code = run_app([token.format(**names) for token in tokens])
    except MedtestError as error:
        output, code = str(error), int(error.exit_code)
    output += "".join(capsys.readouterr())
    assert code == ExitCode.MISTAKE
    assert words in output
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
        with pytest.raises(UserMistakes, match="from the packed file|changed since it was packed"):
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


def test_texts_of_a_pack_do_not_control_the_terminal(
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
    output = capsys.readouterr().out
    assert "[2J1.0" in output
    assert all(sign.isprintable() or sign == "\n" for sign in output)


def test_a_part_of_another_revision_is_named(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def older(files: dict[str, bytes]) -> None:
        facts = json.loads(files["pack.json"])["of_suite"]
        for name in ("relations.blur", "oracles.masks"):
            facts["parts"][name]["revision"] += 1
        resealed(files, of_suite=facts)

    assert checked(rewritten(small_pack, tmp_path / "p.zip", older)) == ExitCode.GATE_FAILED
    output = capsys.readouterr().out
    assert "suite      different, matters" in output and "relations.blur 3 → 2" in output and "oracles.masks" in output


def test_a_pack_packed_again_by_another_tool_is_read(small_pack: Path, tmp_path: Path) -> None:
    folder = unpacked(small_pack, tmp_path / "first")
    shutil.make_archive(str(tmp_path / "python"), "zip", folder)
    unpacked(tmp_path / "python.zip", tmp_path / "second")
    if shutil.which("zip"):
        subprocess.run(["zip", "-q", "-9", "-r", str(tmp_path / "zip.zip"), "."], cwd=folder, check=True)
        unpacked(tmp_path / "zip.zip", tmp_path / "third")
        assert (tmp_path / "third" / "seeds.csv").read_bytes() == (folder / "seeds.csv").read_bytes()


def test_a_suite_with_forbidden_settings_is_refused_when_it_is_used(
    small_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pack cannot bring what suites may not contain: commands, addresses, paths."""

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


HALF = "\ud800"
"""Half a surrogate, which JSON can say and no file's name can hold."""


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head["files"].update({f"data/{HALF}.png": {"bytes": 1, "sha256": "0" * 64}}),
        lambda head: head.update(suite_version=HALF),
        lambda head: head.update(medtest=HALF, format=99),
        lambda head: head.update({HALF: 1, "suite": HALF}),
        lambda head: head["of_suite"]["left_out"].update(blur=HALF),
    ],
    ids=["file", "version", "newer", "key", "left out"],
)
def test_half_a_surrogate_does_not_crash(
    small_pack: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def damage(files: dict[str, bytes]) -> None:
        head = json.loads(files["pack.json"])
        change(head)
        files["pack.json"] = json.dumps(head).encode()  # as \\ud800, which any reader of JSON takes

    file = rewritten(small_pack, tmp_path / "p.zip", damage)
    for command in (["unpack", str(file), f"to={tmp_path / 'new'}"], ["check", str(file)]):
        try:
            run_app(command)
        except UserMistakes as error:
            assert "no pack of a suite has" in str(error) or "pack.json" in str(error) or "upgrade" in str(error)
        capsys.readouterr()[0].encode()


def test_many_small_files_are_synced_once(small_pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fsync waits for the disk; 49,000 of them take minutes on some."""

    def many(files: dict[str, bytes]) -> None:
        files |= {f"data/{number}.png": b"%d" % number for number in range(300)}
        resealed(files)

    file = rewritten(small_pack, tmp_path / "p.zip", many)
    calls: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append(handle), real(handle))[1])
    unpack(file, tmp_path / "new")
    assert len(calls) < 5
    assert len(list((tmp_path / "new" / "data").iterdir())) == 300


def test_what_a_killed_process_unpacked_is_not_mistaken_for_a_pack(small_pack: Path, tmp_path: Path) -> None:
    """Until everything is on disk the folder has another name, which ends in .part."""
    program = (
        "import os, sys; from pathlib import Path; from medtest.report.packs.reading import unpack\n"
        "import medtest.report.packs.writing as w\n"
        "w.sync_tree = lambda folder: os._exit(9)\n"
        "unpack(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(small_pack), str(tmp_path / "new")], check=False)
    assert ended.returncode == 9
    assert not (tmp_path / "new").exists()
    (unfinished,) = tmp_path.iterdir()
    assert unfinished.name.startswith(".new.") and unfinished.name.endswith(".part")
    unpack(small_pack, tmp_path / "new")  # the same command goes on
