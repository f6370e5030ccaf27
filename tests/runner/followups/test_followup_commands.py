"""Verify, export and the commands, on a store of suite polyp_seg's phantoms at small size."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from followup_parts import Shift, make_suite
from PIL import Image as PillowImage

from medtest.cli.app import run_app
from medtest.core.errors import FolderInUse, MedtestError, UserMistakes
from medtest.core.files.images import read_rgb
from medtest.core.files.masks import read_mask
from medtest.runner.followups import FollowUpStore, make_followups
from medtest.runner.followups.export import COLUMNS, export_store
from medtest.runner.followups.guard import LOCK, StoreLock
from medtest.runner.followups.verify import repair_store, verify_store
from medtest.seeds.folders.image_masks import ImageMaskFolders
from medtest.suite.model import Invocation


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    return make_followups(make_suite(), Invocation(home=home), workers=0).folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "followups"))


def remake(folder: Path) -> tuple[int, int]:
    report = make_followups(make_suite(), Invocation(home=folder.parent), folder, workers=0)
    return report.made, report.reused


# ------------------------------------------------------------------------------------------------------------ verify


def test_a_whole_store(folder: Path) -> None:
    counts: list[tuple[int, int]] = []
    report = verify_store(FollowUpStore.open(folder), progress=lambda done, total: counts.append((done, total)))
    files = len(list(folder.rglob("*.png")))
    assert report.whole
    assert (report.files, report.entries, report.in_work) == (files, 30, 0)
    assert counts[-1] == (files, files)


def test_every_kind_of_damage_is_found_named_and_repaired(folder: Path) -> None:
    store = FollowUpStore.open(folder, create=True)
    dims = list(store.entries(relations={"dim"}, seeds={"jane-doe-0"}))
    missing, truncated, altered, longer = (store.image_path(e.followup_sha256) for e in dims[:4])
    missing.unlink()
    truncated.write_bytes(truncated.read_bytes()[:-100])
    content = bytearray(altered.read_bytes())
    content[len(content) // 2] ^= 0xFF
    altered.write_bytes(bytes(content))
    longer.write_bytes(longer.read_bytes() + b"x")
    stranger = folder / "images" / "ab" / "holiday.jpg"
    stranger.parent.mkdir(exist_ok=True)
    stranger.write_bytes(b"x")
    orphan = folder / "masks" / "cd" / f"{'cd' * 32}.png"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"x")
    draft = folder / "images" / "ab" / ".0123-1-aa.part"
    draft.write_bytes(b"x")
    misplaced = folder / "images" / "ab" / store.image_path(dims[4].followup_sha256).name
    shutil.copy(store.image_path(dims[4].followup_sha256), misplaced)
    findings = {(f.trouble, Path(f.file).name): f for f in verify_store(store).findings}
    assert set(findings) == {
        ("missing", missing.name),
        ("truncated", truncated.name),
        ("altered", altered.name),
        ("altered", longer.name),
        ("orphaned", "holiday.jpg"),
        ("orphaned", orphan.name),
        ("draft", draft.name),
        ("orphaned", misplaced.name),
    }
    finding = findings["missing", missing.name]
    assert (finding.used_by, finding.uses) == (str(dims[0].address), 1)
    report = repair_store(store)
    assert (report.forgotten, report.moved) == (4, 6)
    assert verify_store(store).whole
    assert not draft.exists()
    assert len([p for p in (folder / "aside").rglob("*") if p.is_file()]) == 6
    assert store.count() == 23
    assert remake(folder) == (4, 23)
    assert verify_store(store).whole


def test_names_of_foreign_files_cannot_control_the_terminal(folder: Path) -> None:
    (folder / "images" / "\x1b[2J.png").write_bytes(b"x")
    (finding,) = verify_store(FollowUpStore.open(folder)).findings
    assert str(finding) == r"orphaned: images/\x1b[2J.png (the index does not name it)"


def test_a_pipe_among_the_pictures_does_not_hang(folder: Path) -> None:
    store = FollowUpStore.open(folder, create=True)
    picture = store.image_path(next(store.entries()).followup_sha256)
    picture.unlink()
    os.mkfifo(picture)
    (finding,) = verify_store(store).findings
    assert (finding.trouble, finding.detail) == ("altered", "is not a regular file")
    repair_store(store)
    assert verify_store(store).whole


def test_make_alone_restores_missing_and_truncated_files(folder: Path) -> None:
    store = FollowUpStore.open(folder)
    first, second = list(store.entries(relations={"shift"}))[:2]
    store.image_path(first.followup_sha256).unlink()
    store.mask_path(second.mask_sha256).write_bytes(b"")
    assert remake(folder) == (2, 25)
    assert verify_store(store).whole


def test_a_lost_source_takes_its_follow_ups_along(folder: Path) -> None:
    store = FollowUpStore.open(folder, create=True)
    entry = next(iter(store.entries(seeds={"jane-doe-1"})))
    store.image_path(entry.source_sha256).unlink()
    (finding,) = verify_store(store).findings
    assert (finding.trouble, finding.uses) == ("missing", 10)
    report = repair_store(store)
    assert report.forgotten == 10
    assert verify_store(store).whole
    assert remake(folder) == (9, 18)


def test_files_of_a_process_that_adds_are_no_orphans(folder: Path) -> None:
    store = FollowUpStore.open(folder, create=True)
    store.put_image(np.full((5, 5, 3), 9, np.uint8))
    with StoreLock(folder).shared():
        busy = verify_store(store)
        assert busy.whole
        assert busy.in_work == 1
        with pytest.raises(FolderInUse):
            repair_store(store)
    assert [f.trouble for f in verify_store(store).findings] == ["orphaned"]


def test_checking_whether_a_store_is_free_blocks_no_other_process(folder: Path) -> None:
    """verify takes the lock briefly to see whether another process adds; make must not take that for a repair."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    instant = threading.Timer(0.1, os.close, [handle])
    instant.start()
    with StoreLock(folder).shared():
        pass
    instant.join()


def test_a_torn_index_is_reported(folder: Path) -> None:
    index = folder / "index.sqlite"
    content = bytearray(index.read_bytes())
    content[4096:9000] = os.urandom(9000 - 4096)
    index.write_bytes(bytes(content))
    with pytest.raises(MedtestError, match="damaged"):
        verify_store(FollowUpStore.open(folder))


@pytest.mark.parametrize("column", ["params", "effect", "facts"])
def test_an_altered_index_is_a_message(folder: Path, column: str) -> None:
    with sqlite3.connect(folder / "index.sqlite") as connection:
        connection.execute(f"UPDATE followups SET {column} = '[1'")  # noqa: S608 - our own words
    with pytest.raises(MedtestError, match="cannot be read"):
        list(FollowUpStore.open(folder).entries())


# ------------------------------------------------------------------------------------------------------------ export


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "followups.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_an_export_is_a_plain_data_set(folder: Path, tmp_path: Path) -> None:
    store = FollowUpStore.open(folder)
    report = export_store(store, tmp_path / "set")
    assert (report.followups, report.masks, report.sources, report.skipped) == (27, 27, 3, 3)
    rows = rows_of(tmp_path / "set")
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 30
    by_address = {str(e.address): e for e in store.entries(skipped=True)}
    for row in rows:
        entry = by_address.pop(row["address"])
        if row["skipped"]:
            assert (row["file"], row["skipped"]) == ("", entry.skipped)
            continue
        assert json.loads(row["params"]) == entry.params
        assert float(row["scale"]) == entry.scale
        assert row["source"] == str(entry.address.source())
        for column, expected in (("file", entry.followup_sha256), ("source_file", entry.source_sha256)):
            with PillowImage.open(tmp_path / "set" / row[column]) as picture:
                assert np.array_equal(np.asarray(picture), store.image(expected))
        for column, expected in (("mask_file", entry.mask_sha256), ("source_mask_file", entry.source_mask_sha256)):
            with PillowImage.open(tmp_path / "set" / row[column]) as picture:
                assert np.array_equal(np.asarray(picture) == 255, store.mask(expected))
    assert not by_address


def test_our_own_seeds_read_an_export_back(folder: Path, tmp_path: Path) -> None:
    store = FollowUpStore.open(folder)
    export_store(store, tmp_path / "set")
    settings = ImageMaskFolders.Settings(metadata="metadata.csv")
    source = ImageMaskFolders(dataset="kept", settings=settings, root=tmp_path / "set", suite_seed=1)
    refs = source.refs()
    entries = {(e.followup_sha256, e.mask_sha256): e for e in store.entries()}
    assert len(refs) == len(entries) == 27
    from medtest.core.cases import image_sha256
    from medtest.core.files.by_content import mask_sha256

    for ref in refs:
        seed = source.load(ref)
        assert seed.expected is not None
        entry = entries.pop((image_sha256(seed.image), mask_sha256(seed.expected)))
        assert ref.cluster == entry.cluster
        assert dict(ref.strata) == {"relation": entry.address.relation, "severity": str(entry.address.severity)}
    assert not entries


def test_choices_of_an_export(folder: Path, tmp_path: Path) -> None:
    store = FollowUpStore.open(folder)
    some = export_store(store, tmp_path / "some", relations=["shift"], severities=[2, 3], datasets=["squares"])
    assert some.followups == 6
    assert len(list((tmp_path / "some" / "images").iterdir())) == 6
    again = export_store(store, tmp_path / "some", relations=["shift"], severities=[2, 3], datasets=["squares"])
    assert again == some
    with pytest.raises(UserMistakes, match="something else"):
        export_store(store, tmp_path / "some", relations=["dim"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    with pytest.raises(UserMistakes, match="something else"):
        export_store(store, tmp_path / "full")
    with pytest.raises(UserMistakes) as caught:
        export_store(store, tmp_path / "new", relations=["shfit"], severities=[9])
    assert [m.nearest for m in caught.value.mistakes] == ["shift", None]
    with pytest.raises(UserMistakes, match="no follow-up"):
        export_store(store, tmp_path / "new", relations=["shift"], severities=[5])
    assert not (tmp_path / "new").exists()


def test_an_interrupted_export_goes_on(folder: Path, tmp_path: Path) -> None:
    store = FollowUpStore.open(folder)

    def stop(done: int, _: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_store(store, tmp_path / "set", progress=stop)
    assert not (tmp_path / "set" / "followups.csv").exists()
    some = sorted((tmp_path / "set" / "images").iterdir())
    some[0].write_bytes(b"torn")
    other = bytearray(some[1].read_bytes())
    whole, other[-20] = bytes(other), other[-20] ^ 0xFF
    some[1].write_bytes(other)  # as long as before, as a picture that was made again may be
    export_store(store, tmp_path / "set")
    assert some[1].read_bytes() == whole
    assert len(rows_of(tmp_path / "set")) == 30
    for path in (tmp_path / "set" / "images").iterdir():
        read_rgb(path)
    for path in (tmp_path / "set" / "masks").iterdir():
        read_mask(path)


def test_nothing_damaged_leaves_the_store(folder: Path, tmp_path: Path) -> None:
    store = FollowUpStore.open(folder)
    entry = list(store.entries())[3]
    store.image_path(entry.followup_sha256).write_bytes(b"damaged")
    with pytest.raises(MedtestError, match=entry.followup_sha256):
        export_store(store, tmp_path / "set")


def test_old_and_new_follow_ups_of_one_address_do_not_collide(folder: Path, tmp_path: Path) -> None:
    other = make_suite(relations={"shift": (Shift, {})}, seed=8, brighter=0)
    make_followups(other, Invocation(home=tmp_path), folder, workers=0)
    store = FollowUpStore.open(folder)
    report = export_store(store, tmp_path / "set", relations=["shift"])
    assert report.followups == 24 == len(list((tmp_path / "set" / "images").iterdir()))
    assert len({row["file"] for row in rows_of(tmp_path / "set") if row["file"]}) == 24


# ---------------------------------------------------------------------------------------------------------- commands


def medtest(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run_app(list(arguments))
    return code, capsys.readouterr().out


@pytest.mark.slow
def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    make = ["followups", "make", "suite=polyp_seg", "seeds.phantoms.count=2", "prepare.size=96", "limit=1"]
    make += ["only=relation:blur", "workers=1"]
    code, out = medtest(make, capsys)
    assert code == 0
    assert "5 made, 0 stored before, 0 not applicable; 1 sources" in out
    code, out = medtest(make, capsys)
    assert "0 made, 5 stored before" in out
    code, out = medtest(["followups", "list"], capsys)
    assert "polyp_seg" in out
    code, out = medtest(["followups", "verify"], capsys)
    assert code == 0 and "complete" in out, out
    code, out = medtest(["followups", "export", "--to", "set", "--severity", "3", "--suite", "polyp_seg"], capsys)
    assert code == 0
    assert "set: 1 images, 1 masks, 1 sources" in out
    victim = next((tmp_path / "followups" / "images").rglob("*.png"))
    victim.write_bytes(victim.read_bytes()[:50])
    code, out = medtest(["followups", "verify"], capsys)
    assert code == 1
    assert "truncated: images/" in out
    code, out = medtest(["followups", "verify", "--repair"], capsys)
    assert code == 0
    assert "Repaired: 1 files moved aside" in out
    assert medtest(["followups", "verify"], capsys)[0] == 0
    assert str(tmp_path) not in out
    for wrong in (
        ["followups", "export", "--to", "x", "--suite", "polyp_sge"],
        ["followups", "make", "suite=polyp_seg", "privacy.images=none"],
        ["followups", "make", "suite=polyp_seg", "blur"],
    ):
        with pytest.raises(UserMistakes):
            run_app(wrong)
    with pytest.raises(MedtestError, match="holds no follow-ups"):
        run_app(["followups", "verify", "--store", "nothing", "--repair"])
    assert not (tmp_path / "nothing").exists()
