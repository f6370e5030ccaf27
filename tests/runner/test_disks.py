"""A disk that is full or read-only costs no record, is reported once, and the same command continues afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from crafting_parts import crafting_suite
from disks import SmallDisk, read_only, small_disk
from runner_helpers import assert_equal_records, go, records
from runner_parts import make_suite

import medtest
from medtest.cli.app import run_app
from medtest.core.cases import Image
from medtest.core.errors import ExitCode, MedtestError, OutputProblem
from medtest.core.files.written import LIST
from medtest.runner.reporting.outcome import Limits
from medtest.suite.sharding import Shard

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),  # a worker's traceback
]
OFTEN = Limits(samples=0, shard_rows=4)


def reddish(image: Image) -> np.ndarray:
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.clip((red - green) / 128, 0, 1)


def run(home: Path) -> medtest.Result:
    """Run a bundled suite, with tables, report and samples."""
    return medtest.run(
        "polyp_seg",
        reddish,
        fingerprint="reddish",
        relations={"blur": {"severities": [1, 3]}},
        home=home,
        track=False,
        workers=1,
        overrides=["seeds.phantoms.count=2", "gates=[]"],
    )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 4096) as mounted:
        yield mounted


def content(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("filler", "manifest.sha256") and path.suffix != ".lock"
    }


def refused(error: MedtestError, words: str) -> None:
    """Check that an error is one message with the reason, and has the exit code of a mistake."""
    assert isinstance(error, OutputProblem) and error.exit_code == ExitCode.MISTAKE
    assert words in str(error) and str(error).count("cannot be written") == 1


@pytest.mark.parametrize("kib", [40, 60, 100])
def test_a_disk_that_fills_while_records_are_written(tmp_path: Path, kib: int) -> None:
    suite = make_suite(seeds=6)
    with small_disk(tmp_path / "disk", kib) as disk:
        with pytest.raises(OutputProblem) as full:
            go(suite, disk.folder, limits=OFTEN)
        refused(full.value, "No space left on device")
        shards = list(disk.folder.rglob("shard-*.parquet"))
        finished = sum(pq.read_metadata(path).num_rows for path in shards)
        assert finished > 0 and not list(disk.folder.rglob("*.tmp"))
        disk.grow(8192)
        again = go(suite, disk.folder, limits=OFTEN)
        assert again.systems[0].cases_executed == 66 - finished and not any("aside" in line for line in again.notices)
        assert_equal_records(records(again), records(go(suite, tmp_path / "other")))


def test_a_disk_that_is_full_when_records_are_merged(disk: SmallDisk, tmp_path: Path) -> None:
    suite = make_suite(seeds=6)
    first = go(suite, disk.folder, limit=2)
    before = content(first.systems[0].folder)
    disk.fill(but=65536)  # room for shards, not for all records a second time
    with pytest.raises(OutputProblem, match="No space left"):
        go(suite, disk.folder, limits=Limits(samples=0, shard_rows=1000))
        go(suite, disk.folder)
    after = content(first.systems[0].folder)
    assert {name: after[name] for name in ("records.parquet", "records.csv", "run.json")} == {
        name: before[name] for name in ("records.parquet", "records.csv", "run.json")
    }
    disk.free()
    assert_equal_records(records(go(suite, disk.folder)), records(go(suite, tmp_path / "other")))


@pytest.mark.parametrize("room", [0, 4096, 16384, 40960])
def test_a_disk_that_fills_while_tables_and_report_are_written(disk: SmallDisk, room: int) -> None:
    folder = run(disk.folder).outcome.systems[0].folder
    whole = content(folder)
    for path in (folder / "tables").glob("*.csv"):
        path.unlink()  # so that room is needed
    (folder / "report.html").unlink()
    disk.fill(but=room)
    with pytest.raises(OutputProblem) as full:
        run(disk.folder)
    refused(full.value, "No space left on device")
    with pytest.raises(OutputProblem) as full:
        run_app(["tables", str(folder)])
    refused(full.value, "No space left on device")
    remaining = content(folder)
    assert remaining["records.parquet"] == whole["records.parquet"] and remaining["run.json"]
    assert not [name for name in remaining if name.endswith(".tmp")]
    assert all(
        remaining[name] == whole[name] for name in remaining if name.startswith("tables/") and name.endswith(".csv")
    )
    disk.free()
    again = run(disk.folder)
    assert again.code == 0 and again.outcome.systems[0].cases_executed == 0
    assert {n: c for n, c in content(folder).items() if n.startswith("tables/") and not n.endswith(LIST)} == {
        n: c for n, c in whole.items() if n.startswith("tables/") and not n.endswith(LIST)
    }


def test_a_read_only_folder_of_results(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = run(home).outcome.systems[0].folder
    before = content(home)
    with read_only(home):
        with pytest.raises(OutputProblem) as refusal:
            run(home)
        refused(refusal.value, "Read-only file system")
        with pytest.raises(OutputProblem) as refusal:
            run_app(["tables", str(folder)])
        refused(refusal.value, "Read-only file system")
        packed = tmp_path / "run.zip"
        assert run_app(["pack", f"run={folder}", f"to={packed}"]) == 0  # commands that only read work
        assert run_app(["compare", str(folder), str(folder), "--strips", "0", "--out", str(tmp_path / "out")]) == 1
    assert content(home) == before
    assert run(home).outcome.systems[0].cases_executed == 0


def test_a_run_into_a_new_read_only_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with read_only(home):
        with pytest.raises(OutputProblem) as refusal:
            run(home)
        refused(refusal.value, "Read-only file system")
    assert run(home).code == 0


def test_shards_on_a_read_only_share_are_merged_elsewhere_and_onto_a_full_disk_later(
    disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtest.runner.sharding.joining import join

    suite = make_suite(seeds=4)
    shards = [go(suite, tmp_path / "share", shard=Shard(of=2, number=number)).systems[0].folder for number in (1, 2)]
    with read_only(tmp_path / "share"):
        with pytest.raises(OutputProblem) as refusal:
            join(shards, home=tmp_path / "share")
        refused(refusal.value, "Read-only file system")
        disk.fill(but=8192)
        with pytest.raises(OutputProblem) as full:
            join(shards, home=disk.folder)
        refused(full.value, "No space left on device")
        disk.free()
        done = join(shards, home=disk.folder)
    assert_equal_records(
        pq.read_table(done.folder / "records.parquet").to_pandas(), records(go(suite, tmp_path / "other"))
    )


@pytest.mark.parametrize("room", [0, 20_000])
def test_a_disk_that_fills_while_samples_are_drawn(
    disk: SmallDisk, room: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Workers draw strips: the disk stops them, which is no fault of a system."""
    folder = run(disk.folder).outcome.systems[0].folder
    for path in (folder / "samples").glob("*.*"):
        path.unlink()
    disk.fill(but=room)
    with pytest.raises(OutputProblem) as full:
        run(disk.folder)
    refused(full.value, "No space left on device")
    assert "Traceback" not in "".join(capfd.readouterr())
    disk.free()
    assert run(disk.folder).outcome.systems[0].cases_executed == 0
    assert len(list((folder / "samples").glob("*.png"))) == len(
        json.loads((folder / "samples" / "index.json").read_text())
    )
    assert list((folder / "samples").glob("*.png"))


def test_a_disk_that_fills_while_crafted_images_are_kept(tmp_path: Path) -> None:
    """Workers write these images; the run ends with one message and blames no system."""
    suite = crafting_suite(count=6)
    with small_disk(tmp_path / "disk", 120) as disk:
        with pytest.raises(OutputProblem) as full:
            go(suite, disk.folder, limits=OFTEN)
        refused(full.value, "No space left on device")
        disk.grow(16384)
        frame = records(go(suite, disk.folder))
        assert not (frame.verdict == "ERROR").any()
        assert_equal_records(frame, records(go(suite, tmp_path / "other")))
