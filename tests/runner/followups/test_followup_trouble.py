"""The store survives damage to folders, disks and processes."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from followup_parts import Dim, Trouble, files_of, go, make_suite
from forked_program import Program

from medtest.core.cases import image_sha256
from medtest.core.errors import FolderInUse, MedtestError, OutputProblem
from medtest.runner.followups import Entry, FollowUpStore, StoreReport
from medtest.runner.followups.guard import StoreLock

HERE = Path(__file__).parent


def test_a_broken_relation_or_seed_is_counted_and_tried_again(tmp_path: Path) -> None:
    once = tmp_path / "mark"
    suite = make_suite(relations={"bad": (Trouble, {"kind": "raise", "once": str(once)})}, count=2)
    first = go(suite, tmp_path)
    assert (first.made, first.errors) == (9, 1)
    ((address, reason),) = first.problems
    assert address == "squares/jane-doe-0/bad_s2_f0_r0"
    assert reason.startswith("relation: RuntimeError: broken on jane-doe-0")
    assert "/home" not in reason
    again = go(suite, tmp_path)
    assert (again.made, again.reused, again.errors) == (1, 9, 0)
    gone = go(make_suite(bad=1, count=2), tmp_path, tmp_path / "gone")
    assert gone.errors == 1
    assert gone.made == 9


def test_a_wrong_shape_is_an_error(tmp_path: Path) -> None:
    report = go(make_suite(relations={"bad": (Trouble, {"kind": "shape"})}, count=1), tmp_path)
    assert (report.made, report.errors) == (4, 1)
    assert "shape" in report.problems[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exit", "hang"])
def test_a_relation_that_hangs_or_takes_its_process_down(tmp_path: Path, kind: str) -> None:
    suite = make_suite(relations={"bad": (Trouble, {"kind": kind}), "dim": (Dim, {})}, count=1)
    report = go(suite, tmp_path, workers=1, batch_seconds=3.0 if kind == "hang" else 60.0)
    assert (report.made, report.errors) == (9, 1)
    assert report.problems[0][0].endswith("bad_s2_f0_r0")


@pytest.mark.slow
def test_killed_at_any_moment_a_store_is_smaller_and_never_torn(tmp_path: Path) -> None:
    """SIGKILL of parent and workers: the remaining files are whole, and the same call completes the store."""
    body = (
        "from pathlib import Path\n"
        "from followup_parts import *\n"
        "from medtest.runner.followups import make_followups\n"
        "from medtest.suite.model import Invocation\n"
        f"make_followups(make_suite(count=40, pause=0.02), Invocation(home=Path({str(tmp_path)!r})), workers=2)\n"
    )
    process = Program(body, modules=("medtest.runner.followups", "medtest.runner.followups.worker"))
    folder = tmp_path / "followups"
    until = time.monotonic() + 120
    while time.monotonic() < until and len(list(folder.glob("images/*/*.png"))) < 40:
        time.sleep(0.01)
        assert process.poll() is None
    process.kill()
    process.communicate()
    store = FollowUpStore.open(folder)
    entries = list(store.entries())
    assert 0 < len(entries) < 40 * 9
    for entry in entries:
        assert image_sha256(store.image(entry.followup_sha256)) == entry.followup_sha256
        store.mask(entry.mask_sha256)
    deadline = time.monotonic() + 30
    while not StoreLock(folder).is_free() and time.monotonic() < deadline:
        time.sleep(0.05)
    from medtest.runner.followups.verify import verify_store

    assert {f.trouble for f in verify_store(store).findings} <= {"orphaned", "draft"}
    done = go(make_suite(count=40), tmp_path)
    assert done.made + done.reused == 40 * 9
    assert done.reused >= len(entries)
    troubles = {f.trouble for f in verify_store(FollowUpStore.open(folder)).findings}
    assert troubles <= {"draft"}


def test_several_processes_at_once(store_report: StoreReport, tmp_path: Path) -> None:
    reports: list[StoreReport] = []
    shared = tmp_path / "shared"
    threads = [
        threading.Thread(target=lambda: reports.append(go(make_suite(), tmp_path, shared, workers=1))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    assert files_of(shared) == files_of(store_report.folder)
    shared_store, store = FollowUpStore.open(shared), FollowUpStore.open(store_report.folder)
    assert list(shared_store.entries(store_report.suite, skipped=True)) == list(
        store.entries(store_report.suite, skipped=True)
    )
    assert shared_store.count() == 27


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FollowUpStore.open(tmp_path / "s", create=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputProblem, match="No space left"):
        store.put_image(np.zeros((8, 8, 3), np.uint8))
    monkeypatch.undo()
    assert [p for p in (tmp_path / "s").rglob("*") if p.suffix in (".png", ".part")] == []
    store.put_image(np.zeros((8, 8, 3), np.uint8))


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs of a given size is Linux's")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        with pytest.raises(OutputProblem, match=r"(?i)no space left|disk is full"):
            go(make_suite(count=60), tmp_path, small / "followups")
        store = FollowUpStore.open(small / "followups")
        for entry in store.entries():
            store.image(entry.followup_sha256)
        store.close()
        roomy = tmp_path / "roomy"
        shutil.copytree(small / "followups", roomy)
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
    report = go(make_suite(count=60), tmp_path, roomy)
    assert report.made + report.reused == 60 * 9


def test_the_index_on_a_full_disk(copy: Path) -> None:
    store = FollowUpStore.open(copy, create=True)
    connection = store.index._connection()
    connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    entry = next(iter(store.entries()))
    many = [
        Entry(**{**{f: getattr(entry, f) for f in entry.__slots__}, "key": f"{i:024x}", "params": {"text": "x" * 500}})
        for i in range(500)
    ]
    before = store.count()
    with pytest.raises(OutputProblem, match="full"):
        store.put("source", many)
    assert FollowUpStore.open(copy).count() == before


@pytest.mark.skipif(sys.platform != "linux", reason="read-only bind mounts are Linux's")
def test_a_read_only_folder_can_be_read(copy: Path, tmp_path: Path) -> None:
    view = tmp_path / "view"
    view.mkdir()
    if subprocess.run(["mount", "--bind", str(copy), str(view)], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(view)], check=True)
        store = FollowUpStore.open(view)
        assert store.count() == 27
        entry = next(iter(store.entries()))
        store.image(entry.followup_sha256)
        from medtest.runner.followups.verify import verify_store

        assert verify_store(store).whole
        store.close()
        with pytest.raises(OutputProblem, match="followups|view"):
            go(make_suite(count=5), tmp_path, view)
    finally:
        subprocess.run(["umount", "--lazy", str(view)], check=True)


def test_a_store_is_opened_for_reading_by_default(store_report: StoreReport, tmp_path: Path) -> None:
    store = FollowUpStore.open(store_report.folder)
    with pytest.raises(OutputProblem):
        store.put_image(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(MedtestError, match="medtest followups make"):
        FollowUpStore.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "foreign").mkdir()
    with sqlite3.connect(tmp_path / "foreign" / "index.sqlite") as foreign:
        foreign.execute("CREATE TABLE t (a)")
    with pytest.raises(MedtestError, match="index.sqlite"):
        FollowUpStore.open(tmp_path / "foreign")
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "index.sqlite").write_bytes(os.urandom(5000))
    with pytest.raises(MedtestError, match="damaged"):
        FollowUpStore.open(tmp_path / "noise")


def test_threads_forks_and_pickles_share_a_store(store_report: StoreReport) -> None:
    store = FollowUpStore.open(store_report.folder)
    first = next(iter(store.entries()))
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(store.count())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [27] * 4
    other = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own
    assert other.count() == 27
    assert np.array_equal(other.image(first.followup_sha256), store.image(first.followup_sha256))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(store.count()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"27"
    os.close(read)
    os.close(write)


def test_adding_and_repairing_exclude_each_other(copy: Path, tmp_path: Path) -> None:
    with StoreLock(copy).alone(), pytest.raises(FolderInUse):
        go(make_suite(), tmp_path, copy)
    with StoreLock(copy).shared():
        assert not StoreLock(copy).is_free()
        with pytest.raises(FolderInUse), StoreLock(copy).alone():
            pass
    assert StoreLock(copy).is_free()
