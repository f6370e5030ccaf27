"""Kills, full disks, locks, orphans, interruptions: finished cases stay, and the rest follows."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forked_program import Program
from runner_helpers import QUICK, assert_equal_records, go, records, script, wait_for, workers_of
from runner_parts import make_suite
from sealed_records import write_sealed

from medtest.core.errors import FolderInUse, OutputProblem
from medtest.core.records import KEY_COLUMNS
from medtest.runner.folder import SWEEP_VARIABLE
from medtest.runner.prepared import prepare_run
from medtest.runner.records.ledger import CasePlaces
from medtest.runner.records.shard_scan import scan
from medtest.suite.model import Invocation

SLOW_SYSTEM = {"bright": {"pause": 0.05}, "dark": {"level": 150}}
RUN = (
    "limits = Limits(samples=0, shard_seconds={shard}, send_seconds=0.05)\n"
    "suite = make_suite(seeds={seeds}, systems={systems!r})\n"
    "outcome = run_suite(suite, Invocation(home=home, workers=2, quiet=True), limits=limits)\n"
    "sys.exit(130 if outcome.interrupted else 0)\n"
)


def _start(home: Path, *, seeds: int = 8, systems: Any = SLOW_SYSTEM, shard: float = 0.2) -> Program:
    return script(RUN.format(seeds=seeds, systems=systems, shard=shard), home)


def _folder(home: Path, system: str = "bright") -> Path:
    folder: Path = wait_for(lambda: next((p for p in home.glob(f"outputs/*/{system}/*") if p.is_dir()), None), 60)
    return folder


def _shards(home: Path) -> list[Path]:
    return sorted(home.glob("outputs/*/*/*/records/shard-*.parquet"))


def _cases_on_disk(home: Path) -> int:
    """Count cases, not rows: a kill between the merging and the removal of shards leaves rows in two files."""
    files = [*_shards(home), *home.glob("outputs/*/*/*/records.parquet")]
    rows = (pq.read_table(file, columns=["system", *KEY_COLUMNS]).to_pydict().values() for file in files)
    return len({row for columns in rows for row in zip(*columns, strict=True)})


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sigkill_at_random_moments_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    systems = {"bright": {"pause": 0.1}, "dark": {"level": 150}}
    whole = go(make_suite(seeds=60, systems=systems), tmp_path / "whole", workers=2)
    rng = random.Random(11)
    home = tmp_path / "killed"
    kills = at_work = finished = 0
    while kills < 21:
        process = _start(home, seeds=60, systems=systems, shard=0.1)
        if kills % 4:  # three of four while it works, whenever that begins on this machine; the others at any moment
            old_shards = set(_shards(home))
            wait_for(lambda p=process, old=old_shards: p.poll() is not None or set(_shards(home)) - old, 120)
            time.sleep(rng.uniform(0.0, 0.7))
        else:
            time.sleep(rng.uniform(0.0, 4.0))
        if process.poll() is not None:
            process.communicate()
            shutil.rmtree(home)  # it had finished: begin again, since kills are tested
            finished = 0
            continue
        process.kill()
        process.communicate()
        kills += 1
        cases = _cases_on_disk(home)
        assert cases >= finished, "a whole shard was lost"
        at_work += cases > finished
        finished = cases
    assert at_work >= 12
    resumed = go(make_suite(seeds=60, systems=systems), home, workers=2)
    assert not [notice for notice in resumed.notices if "set aside" in notice]
    for number in range(2):
        assert_equal_records(records(whole, number), records(resumed, number))
        assert not _shards(home)


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    process = _start(tmp_path, systems={"bright": {"fault": "hang"}})
    workers = wait_for(lambda: processes if len(processes := workers_of(process.pid)) == 2 else None, 60)
    _folder(tmp_path)
    wait_for(lambda: all(worker.num_threads() > 1 for worker in workers), 60)  # they listen by now
    process.kill()
    process.communicate()
    gone, alive = psutil.wait_procs(workers, timeout=3)
    assert not alive


def test_ctrl_c_keeps_whole_shards_and_the_next_run_goes_on(tmp_path: Path) -> None:
    process = _start(tmp_path, seeds=30)
    wait_for(lambda: len(_shards(tmp_path)) >= 2, 90)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err == "" and not list(tmp_path.glob("outputs/*/*/*/records/.*"))
    rows = sum(pq.read_table(shard).num_rows for shard in _shards(tmp_path))
    suite = make_suite(seeds=30, systems=SLOW_SYSTEM)
    resumed = go(suite, tmp_path, workers=2)
    assert sum(system.cases_reused for system in resumed.systems) == rows > 0
    assert_equal_records(records(go(suite, tmp_path / "whole", workers=2)), records(resumed))


@pytest.mark.slow
def test_sigterm_is_as_good_as_ctrl_c(tmp_path: Path) -> None:
    process = _start(tmp_path, seeds=30)
    wait_for(lambda: len(_shards(tmp_path)) >= 1, 90)
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 130 and _shards(tmp_path)


def test_a_second_process_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    process = _start(tmp_path, seeds=30)
    wait_for(lambda: _shards(tmp_path), 90)
    with pytest.raises(FolderInUse, match=f"in use by process {process.pid}"):
        go(make_suite(seeds=30, systems=SLOW_SYSTEM), tmp_path)
    process.kill()
    process.communicate()
    assert go(make_suite(seeds=30, systems=SLOW_SYSTEM), tmp_path, workers=2).systems[0].finished == 330


def test_jobs_of_one_multirun_wait_for_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWEEP_VARIABLE, "one")
    process = _start(tmp_path, seeds=6)
    wait_for(lambda: _shards(tmp_path), 90)
    outcome = go(make_suite(seeds=6, systems=SLOW_SYSTEM), tmp_path)
    assert process.wait(30) == 0
    process.communicate()
    assert outcome.systems[0].cases_executed == 0 and outcome.systems[0].finished == 66


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "flip", "foreign name", "other run"])
def test_torn_and_foreign_shards_are_set_aside_and_redone(tmp_path: Path, damage: str) -> None:
    suite = make_suite(seeds=3)
    whole = records(go(suite, tmp_path / "whole"))
    folder = go(suite, tmp_path, limit=2).systems[0].folder
    shard = folder / "records" / "shard-00000001.parquet"
    (folder / "records.parquet").rename(shard)
    content = shard.read_bytes()
    match damage:
        case "truncate":
            shard.write_bytes(content[: len(content) // 2])
        case "garbage":
            shard.write_bytes(random.Random(0).randbytes(5000))
        case "empty":
            shard.write_bytes(b"")
        case "flip":
            # Some single bytes of a Parquet file mean nothing; that none reads as other values is tested below.
            at = len(content) // 3
            shard.write_bytes(content[:at] + bytes(byte ^ 0xFF for byte in content[at : at + 64]) + content[at + 64 :])
        case "foreign name":
            shard.rename(shard.with_name("mine.parquet"))
        case "other run":
            other = go(make_suite(seeds=3, seed=8), tmp_path / "other").systems[0].folder
            shutil.copy(other / "records.parquet", shard)
    outcome = go(suite, tmp_path)
    assert outcome.systems[0].cases_executed == 33 and any("set aside" in notice for notice in outcome.notices)
    assert len(list((folder / "records").glob("*.aside-*"))) == 1
    assert_equal_records(whole, records(outcome))


def test_a_kill_between_merging_and_removing_shards_does_no_harm(tmp_path: Path) -> None:
    suite = make_suite(seeds=2)
    outcome = go(suite, tmp_path)
    folder, before = outcome.systems[0].folder, records(outcome)
    shutil.copy(folder / "records.parquet", folder / "records" / "shard-00000004.parquet")
    again = go(suite, tmp_path)
    assert again.systems[0].cases_executed == 0 and again.systems[0].finished == 22
    assert_equal_records(before, records(again))
    assert not list((folder / "records").iterdir())


def test_a_draft_of_a_killed_run_is_cleared(tmp_path: Path) -> None:
    folder = go(make_suite(seeds=1), tmp_path).systems[0].folder
    draft = folder / "records" / ".shard-00000009.parquet.tmp"
    draft.write_bytes(b"half")
    go(make_suite(seeds=1), tmp_path)
    assert not draft.exists()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("no folder")
    with pytest.raises(OutputProblem, match="cannot be written"):
        go(make_suite(seeds=1), tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """Mount a disk of two megabytes; only root can."""
    place = tmp_path / "disk"
    place.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("mounting a small disk takes root")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=2048k", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip("this machine does not let root mount")
    yield place
    subprocess.run([umount, "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_reported_and_finished_cases_stay(small_disk: Path, tmp_path: Path) -> None:
    suite = make_suite(seeds=40, systems={"bright": {}})
    whole = records(go(suite, tmp_path / "whole", workers=2))
    (small_disk / "ballast").write_bytes(bytes(1892 * 1024))
    process = script(
        "try:\n    run_suite(make_suite(seeds=40), Invocation(home=home, workers=1),\n"
        "              limits=Limits(samples=0, shard_seconds=0.0, send_seconds=0.0))\n"
        "except MedtestError as error:\n    print(type(error).__name__, error)\n",
        small_disk,
    )
    out, err = process.communicate(timeout=120)
    assert out.startswith("OutputProblem") and "No space left on device" in out and not err
    assert not list(small_disk.glob("outputs/*/*/*/records/.*"))
    (small_disk / "ballast").unlink()
    resumed = go(suite, small_disk)
    assert resumed.systems[0].cases_reused > 0
    assert_equal_records(whole, records(resumed))


def test_a_file_size_limit_is_reported(tmp_path: Path) -> None:
    process = script(
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    run_suite(make_suite(seeds=4), Invocation(home=home, workers=1), limits=Limits(samples=0))\n"
        "except MedtestError as error:\n    print(type(error).__name__, error)\n",
        tmp_path,
    )
    out, err = process.communicate(timeout=120)
    assert out.startswith("OutputProblem") and "too large" in out and not err


def test_a_read_only_folder_is_reported(small_disk: Path) -> None:
    subprocess.run([shutil.which("mount") or "mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OutputProblem, match="Read-only file system"):
        go(make_suite(seeds=1), small_disk)


@pytest.mark.slow
def test_a_worker_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        child = wait_for(lambda: next((c for c in workers_of(os.getpid()) if c.num_threads() > 1), None), 60)
        wait_for(lambda: _shards(tmp_path), 60)
        child.kill()
        killed.append(child.pid)

    thread = threading.Thread(target=kill_one)
    thread.start()
    from medtest.runner.reporting.outcome import Limits

    suite = make_suite(seeds=12, systems=SLOW_SYSTEM)
    outcome = go(suite, tmp_path, limits=Limits(samples=0, shard_seconds=0.1, send_seconds=0.0))
    thread.join()
    assert killed and outcome.systems[0].counts["ERROR"] == 0
    assert_equal_records(records(go(suite, tmp_path / "whole", limits=QUICK)), records(outcome))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_a_stopped_parent_does_not_take_its_workers_for_hung(tmp_path: Path) -> None:
    process = script(
        "outcome = run_suite(make_suite(seeds=10, systems={'bright': {'pause': 0.2}}),\n"
        "    Invocation(home=home, workers=1, batch_seconds=4.0), limits=Limits(samples=0, shard_seconds=0.1))\n"
        "print(outcome.systems[0].counts['ERROR'])\n",
        tmp_path,
    )
    wait_for(lambda: _shards(tmp_path), 60)
    process.send_signal(signal.SIGSTOP)
    time.sleep(6)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert (out.strip(), err) == ("0", "")


def _rewrite(path: Path, change: Any) -> None:
    """Write a file of records again with its metadata, after a change of the table."""
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path, write_page_checksum=True)


def _exchanged(table: pa.Table) -> pa.Table:
    dice, iou = table["dice"], table["iou"]
    at = table.schema.get_field_index
    return table.set_column(at("dice"), "dice", iou).set_column(at("iou"), "iou", dice)


def test_exchanged_columns_are_seen_in_shards_and_in_the_merged_file(tmp_path: Path) -> None:
    suite = make_suite(seeds=2)
    whole = records(go(suite, tmp_path / "whole"))
    folder = go(suite, tmp_path, limit=1).systems[0].folder
    for as_shard in (True, False):
        path = folder / "records.parquet"
        _rewrite(path, _exchanged)
        if as_shard:
            path = path.rename(folder / "records" / "shard-00000001.parquet")
        outcome = go(suite, tmp_path)
        assert any("not what was written" in notice for notice in outcome.notices)
        assert_equal_records(whole, records(outcome))


def test_a_damaged_csv_is_made_again(tmp_path: Path) -> None:
    suite = make_suite(seeds=1)
    folder = go(suite, tmp_path).systems[0].folder
    path = folder / "records.csv"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"0.9", b"0.8").replace(b"PASS", b"FAIL", 1))
    assert go(suite, tmp_path).systems[0].cases_executed == 0
    assert path.read_bytes() == before


def test_records_without_a_new_score_are_judged_again(tmp_path: Path) -> None:
    suite = make_suite(seeds=2)
    outcome = go(suite, tmp_path)
    whole, folder = records(outcome), outcome.systems[0].folder
    path = folder / "records.parquet"
    write_sealed(pq.read_table(path).drop_columns(["self_iou", "factor_visible_area"]), path)
    again = go(suite, tmp_path)
    assert again.systems[0].cases_executed == 0 and not [n for n in again.notices if "set aside" in n]
    now = records(again)
    assert list(now.columns) == list(whole.columns) and now["self_iou"].equals(whole["self_iou"])
    rest = [name for name in whole.columns if name not in ("self_iou", "factor_visible_area")]
    assert_equal_records(whole[rest], now[rest])


@pytest.mark.slow
def test_any_damaged_byte_is_detected_or_harmless(tmp_path: Path) -> None:
    suite = make_suite(seeds=1)
    outcome = go(suite, tmp_path)
    folder, whole = outcome.systems[0].folder, records(outcome)
    path = folder / "records.parquet"
    content, detected = path.read_bytes(), 0
    prepared = prepare_run(suite, Invocation(home=tmp_path, quiet=True))
    places = CasePlaces(prepared.plan, prepared.names)
    draw = random.Random(0)
    footer = range(len(content) - 8 - int.from_bytes(content[-8:-4], "little"), len(content))
    for at in [*draw.sample(range(len(content)), 80), *draw.sample(footer, 80)]:
        path.write_bytes(content[:at] + bytes([content[at] ^ draw.randrange(1, 256)]) + content[at + 1 :])
        scanned = scan(folder, prepared.schema, outcome.systems[0].digest, places.find)
        if scanned.set_aside:
            detected += 1
            next(folder.glob("*.aside-*")).unlink()
        else:
            assert_equal_records(whole, pq.read_table(path).to_pandas())
    assert detected > 80
