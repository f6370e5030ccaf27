"""Shards are joined into the run's own folder; no other file on the disk changes."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from runner_helpers import assert_equal_records, go, records
from runner_parts import make_suite

import medtest
from medtest.cli.app import run_app
from medtest.core.cases import Image
from medtest.core.errors import FolderInUse, OutputProblem, UserMistakes
from medtest.runner.folder import FolderLock
from medtest.runner.records.shards import DIGEST, SHARDS
from medtest.runner.sharding.joining import join
from medtest.suite.sharding import Shard

MINE = {
    "suite.yaml": "name: mine\n",
    "report.html": "<p>mine</p>",
    "summary.md": "mine",
    "tables/mine.csv": "a,b\n1,2\n",
    "run.lock": "mine",
}


def sharded(home: Path, of: int, seeds: int = 3, *, systems: Any = None, **options: object) -> list[Path]:
    """Run a suite in shards and return their folders."""
    suite = make_suite(seeds=seeds, systems=systems)
    runs = [go(suite, home, shard=Shard(of=of, number=number), **options) for number in range(1, of + 1)]
    return [run.systems[0].folder for run in runs]


def fetched(home: Path, to: Path, of: int = 4, **options: object) -> list[Path]:
    """Return shards as a user copied them from a cluster, with their locks."""
    folders = sharded(home, of, **options)
    to.mkdir(parents=True)
    for folder in folders:
        shutil.copytree(folder, to / folder.name)
        shutil.copyfile(folder.with_name(f"{folder.name}.lock"), to / f"{folder.name}.lock")
    return [to / folder.name for folder in folders]


def state_of(folder: Path) -> Mapping[str, tuple[bytes, int]]:
    """Return content and time of change of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def put_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def merge(*arguments: str | Path) -> int:
    return run_app(["merge", *(str(argument) for argument in arguments)])


def reddish(image: Image) -> np.ndarray:
    red, green = image[..., 0].astype(np.float32), image[..., 1].astype(np.float32)
    return np.clip((red - green) / 128, 0, 1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return four shards of a bundled suite, for which tables can be made."""
    home = tmp_path_factory.mktemp("cluster")
    for number in range(1, 5):
        medtest.run(
            "polyp_seg",
            reddish,
            fingerprint="reddish",
            relations={"blur": {"severities": [1, 3]}},
            home=home,
            track=False,
            workers=1,
            shard=f"{number}/4",
            overrides=["seeds.phantoms.count=4", "gates=[]"],
        )
    (inside,) = home.glob("outputs/*/*/*/shards")
    return inside


@pytest.fixture
def user_folder(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of the user with four shards from a cluster among other files."""
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(cluster, tmp_path / "me" / "from_cluster")
    put_files(tmp_path / "me", MINE)
    return tmp_path / "me"


def test_files_beside_fetched_shards_stay(user_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state_of(user_folder)
    assert merge(*(user_folder / "from_cluster" / f"{number}-of-4" for number in range(1, 5))) == 0
    assert state_of(user_folder) == before
    (records_file,) = (user_folder.parent / "home" / "outputs").glob("polyp_seg/reddish/*/records.parquet")
    place = records_file.parent.relative_to(user_folder.parent)
    assert f"4 shards merged: 16 cases in {place}" in " ".join(capsys.readouterr().out.split())
    assert (records_file.parent / "tables" / "efr.csv").is_file()


def test_a_glob_over_shards_takes_what_is_a_shard(user_folder: Path) -> None:
    inside = user_folder / "from_cluster"
    (inside / "2-of-4.old-20260101T000000Z").mkdir()  # moved aside by fresh=true
    paths = sorted(inside.iterdir())
    assert len([path for path in paths if path.suffix == ".lock"]) == 4  # copied with the shards
    before = state_of(user_folder)
    assert merge(*paths) == 0
    assert state_of(user_folder) == before
    with pytest.raises(UserMistakes, match="a shard's folder"):
        merge(*inside.glob("*.lock"))


def test_merging_again_changes_nothing(user_folder: Path) -> None:
    shards = sorted((user_folder / "from_cluster").glob("*-of-4"))
    assert merge(*shards, "--out", "whole") == 0
    whole = user_folder.parent / "whole"
    run = json.loads((whole / "run.json").read_text())
    (whole / "run.json").write_text(json.dumps({**run, "mlflow_run_id": "abc"}, indent=2, ensure_ascii=False) + "\n")
    put_files(whole, {"notes.txt": "mine", "tables/mine.csv": "a\n"})
    assert merge(*shards, "--out", "whole") == 0
    first = state_of(whole)
    assert merge(*shards, "--out", "whole") == 0
    second = state_of(whole)
    growing = {"gates.jsonl", "manifest.sha256"}
    assert {name: content for name, (content, _) in first.items() if name not in growing} == {
        name: content for name, (content, _) in second.items() if name not in growing
    }
    assert second["records.parquet"] == first["records.parquet"]  # not even written again
    assert json.loads((whole / "run.json").read_text())["mlflow_run_id"] == "abc"  # else it would be sent twice
    assert (whole / "notes.txt").read_text() == "mine" and (whole / "tables" / "mine.csv").read_text() == "a\n"


def test_out_equals_the_run_of_one_machine(tmp_path: Path) -> None:
    broken = {"bright": {"fault": "nan", "when": "patient-0002/dim_s"}}
    shards = fetched(tmp_path / "cluster", tmp_path / "far", systems=broken)
    done = join(shards, home=tmp_path / "home", out=tmp_path / "x" / "whole")
    local = go(make_suite(seeds=3, systems=broken), tmp_path / "local")
    assert done.folder == tmp_path / "x" / "whole"
    assert_equal_records(pq.read_table(done.folder / "records.parquet").to_pandas(), records(local))
    assert not (tmp_path / "home").exists()
    run = json.loads((done.folder / "run.json").read_text())
    alone = json.loads((local.systems[0].folder / "run.json").read_text())
    assert run["error_percent"] == pytest.approx(alone["error_percent"]) == pytest.approx(100 * 5 / 33, abs=0.1)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("me", "files that do not belong to a run"),
        ("me/from_cluster", "files that do not belong to a run"),
        ("me/from_cluster/1-of-4", "a shard"),
        ("me/from_cluster/1-of-4/below", "the shard 1-of-4"),
        ("me/summary.md", "a file"),
        ("other", "a run of digest"),
    ],
)
@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_that_is_not_this_runs_is_refused(user_folder: Path, where: str, words: str, fresh: bool) -> None:
    go(make_suite(seeds=3, seed=8), user_folder.parent / "elsewhere")
    (other,) = (user_folder.parent / "elsewhere" / "outputs").glob("*/*/*/run.json")
    shutil.copytree(other.parent, user_folder.parent / "other")
    before = state_of(user_folder.parent)
    with pytest.raises(UserMistakes, match=words):
        merge(*(user_folder / "from_cluster").glob("*-of-4"), "--out", where, *(["--fresh"] if fresh else []))
    assert state_of(user_folder.parent) == before


def test_records_of_another_run_in_a_folder_of_this_one_are_refused(user_folder: Path) -> None:
    shards = sorted((user_folder / "from_cluster").glob("*-of-4"))
    digest = json.loads((shards[0] / "run.json").read_text())["digest"]
    put_files(user_folder.parent / "whole", {"run.json": json.dumps({"digest": digest})})
    foreign = pq.read_table(shards[0] / "records.parquet")
    foreign = foreign.replace_schema_metadata({**foreign.schema.metadata, DIGEST: b"0" * len(digest)})
    (user_folder.parent / "whole" / SHARDS).mkdir()
    pq.write_table(foreign, user_folder.parent / "whole" / SHARDS / "shard-00000001.parquet")
    before = state_of(user_folder.parent)
    with pytest.raises(UserMistakes, match="a run of digest 0000"):
        merge(*shards, "--out", "whole")
    assert state_of(user_folder.parent) == before


def test_a_foreign_lock_file_is_not_overwritten(user_folder: Path) -> None:
    """``--out poetry`` would lock ``poetry.lock``."""
    with pytest.raises(OutputProblem, match=r"run\.lock"):
        merge(*(user_folder / "from_cluster").glob("*-of-4"), "--out", user_folder / "run")
    assert (user_folder / "run.lock").read_text() == "mine" and not (user_folder / "run").exists()


def _more_cases(home: Path, shards: list[Path]) -> None:
    go(make_suite(seeds=3), home)  # the plain run of all, where the shards were limited


def _unfinished(home: Path, shards: list[Path]) -> None:
    (folder,) = (home / "outputs").glob("*/*/*/records")
    shutil.copyfile(shards[0] / "records.parquet", folder / "shard-00000001.parquet")


def _other_shards(home: Path, shards: list[Path]) -> None:
    shutil.rmtree(next((home / "outputs").glob("*/*/*")))
    join(sharded(home.parent / "wide", 2), home=home)  # all cases, where these shards have some


@pytest.mark.parametrize("change", [_more_cases, _unfinished, _other_shards])
def test_cases_that_these_shards_lack_are_kept(tmp_path: Path, change: Callable[[Path, list[Path]], None]) -> None:
    home = tmp_path / "home"
    shards = fetched(tmp_path / "cluster", tmp_path / "far", limit=2)
    done = join(shards, home=home)
    change(home, shards)
    (done.folder / "mine.txt").write_text("mine")
    before = state_of(done.folder)
    with pytest.raises(UserMistakes, match="--fresh"):
        join(shards, home=home)
    assert state_of(done.folder) == before
    again = join(shards, home=home, fresh=True)
    assert again == done
    (aside,) = done.folder.parent.glob("*.old-*")
    assert state_of(aside) == before  # every byte of it was moved


def test_shards_made_again_replace_what_an_earlier_merge_made(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shards = sharded(tmp_path / "cluster", 2)
    join(shards, home=home)
    go(make_suite(seeds=3), tmp_path / "cluster", shard=Shard(of=2, number=1), fresh=True)
    done = join(shards, home=home)
    first = {row["address"]: row["elapsed_ms"] for row in pq.read_table(shards[0] / "records.parquet").to_pylist()}
    merged = {row["address"]: row["elapsed_ms"] for row in pq.read_table(done.folder / "records.parquet").to_pylist()}
    assert merged | first == merged


def test_shards_of_a_run_in_this_home_are_joined_there_and_stay(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    run = tmp_path.joinpath("outputs", *cluster.parts[-4:-1])
    shutil.copytree(cluster.parent, run)
    before = state_of(run / "shards")
    assert merge(run) == 0
    assert (run / "report.html").is_file()
    assert merge(run, "--fresh") == 0
    assert state_of(run / "shards") == before
    assert not list(run.parent.glob("*.old-*"))  # no other folder was in the way


def test_a_running_shard_is_not_joined(tmp_path: Path) -> None:
    shards = fetched(tmp_path / "cluster", tmp_path / "far", of=2)
    lock = FolderLock(shards[1])
    lock.acquire()
    with pytest.raises(FolderInUse):
        join(shards, home=tmp_path / "home")
    lock.release()
    join(shards, home=tmp_path / "home")


def test_names_in_a_shard_cannot_leave_its_folder(tmp_path: Path) -> None:
    shards = fetched(tmp_path / "cluster", tmp_path / "far", of=2)
    for shard in shards:
        run = json.loads((shard / "run.json").read_text())
        (shard / "run.json").write_text(json.dumps({**run, "suite": "../../escaped"}))
    with pytest.raises(UserMistakes, match="escaped"):
        join(shards, home=tmp_path / "home")
    assert not list(tmp_path.glob("**/escaped*"))


def test_shards_that_cannot_be_written_are_joined(tmp_path: Path) -> None:
    """A folder on a read-only share, or of another user: no file has to be written there."""
    shards = fetched(tmp_path / "cluster", tmp_path / "far", of=2)
    paths = [tmp_path / "far", *(tmp_path / "far").rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert join(shards, home=tmp_path / "home").cases == 33
    finally:
        for path in paths:
            path.chmod(stat.S_IRWXU)


def rewritten(folder: Path, **content: object) -> None:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**run, **content}), encoding="utf-8")


def test_shards_of_another_format_are_not_joined_and_nothing_is_written(tmp_path: Path) -> None:
    shards = fetched(tmp_path / "cluster", tmp_path / "here", of=2)
    rewritten(shards[1], format=1)
    before = state_of(tmp_path)
    with pytest.raises(OutputProblem, match="format 1"):
        join(shards, home=tmp_path / "home")
    assert {name: state for name, state in state_of(tmp_path).items() if not name.endswith(".lock")} == {
        name: state for name, state in before.items() if not name.endswith(".lock")
    }
