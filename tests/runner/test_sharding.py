"""Shards of a run hold the cases of their position, and joined they equal the run of one machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_helpers import assert_equal_records, go, records
from runner_parts import make_suite

from medtest.core.cases import SeedRef
from medtest.core.errors import FolderInUse, UserMistakes
from medtest.runner.folder import FolderLock
from medtest.runner.prepared import prepare_run
from medtest.runner.records.parts import KEY, write_part
from medtest.runner.sharding.joining import join
from medtest.suite.model import Invocation, Privacy, Selection
from medtest.suite.plan import Plan
from medtest.suite.sharding import Shard


def sharded(home: Path, of: int, seeds: int = 7, **options: object) -> list[Path]:
    """Run a suite in shards and return their folders."""
    suite = make_suite(seeds=seeds)
    runs = [go(suite, home, shard=Shard(of=of, number=number), **options) for number in range(1, of + 1)]
    return [run.systems[0].folder for run in runs]


@given(st.integers(1, 40), st.integers(1, 60), st.one_of(st.none(), st.integers(1, 9)))
def test_shards_divide_the_full_plan(of: int, seeds: int, limit: int | None) -> None:
    refs = [SeedRef(dataset=f"d{n % 2}", seed_id=f"s{n}") for n in range(seeds)]
    plan = Plan(refs, make_suite().build_relations(), 8)
    whole = [seed.unit for seed in plan.chosen_seeds(limit=limit, only=Selection())]
    parts = [
        [seed.unit for seed in plan.chosen_seeds(limit=limit, only=Selection(), shard=Shard(of=of, number=number))]
        for number in range(1, of + 1)
    ]
    assert sorted(unit for part in parts for unit in part) == whole  # all of it, and no unit twice
    assert all(unit % of == number for number, part in enumerate(parts) for unit in part)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "-1/4", "1/2/3", "3", "a/b", " 1/2", "1/1000000", "١/٢"])
def test_a_malformed_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="K/N"):
        Shard.typed(text)


def test_chosen_places_are_those_of_the_units(tmp_path: Path) -> None:
    """The counts, for which no case is made, equal what every unit has."""
    only = Selection(relations=frozenset({"dim"}), severities=frozenset({2, 3}))
    prepared = prepare_run(make_suite(seeds=5), Invocation(home=tmp_path, limit=3, only=only))
    plan, expected = prepared.plan, []
    for unit in plan.units():
        inside = set(unit.chosen(limit=3, only=only))
        expected += [case in inside for case in range(plan.cases_per_seed)]
    assert np.array_equal(prepared.chosen, expected)


def test_four_merged_shards_are_the_local_run(tmp_path: Path) -> None:
    folders = sharded(tmp_path / "a", 4)
    assert [folder.name for folder in folders] == [f"{n}-of-4" for n in range(1, 5)]
    assert not (folders[0].parent.parent / "records.parquet").exists()
    done = join(folders[::-1], home=tmp_path / "a")
    local = go(make_suite(seeds=7), tmp_path / "b")
    assert_equal_records(pq.read_table(done.folder / "records.parquet").to_pandas(), records(local))
    assert (done.shards, done.cases, done.planned) == (4, 77, 77)
    run = json.loads((done.folder / "run.json").read_text())
    assert not run["partial"] and run["verdicts"] == dict(local.systems[0].counts) and "shard" not in run
    again = go(make_suite(seeds=7), tmp_path / "a")  # the plain run reuses them all
    assert again.systems[0].cases_executed == 0 and again.systems[0].cases_reused == 77
    assert "shards/" not in (done.folder / "manifest.sha256").read_text()


def test_shards_of_other_machines_go_to_the_home_folder(tmp_path: Path) -> None:
    first, second = sharded(tmp_path / "a", 2, seeds=3)
    far = tmp_path / "far" / "2-of-2"
    shutil.copytree(second, far)
    shutil.rmtree(second)
    done = join([first, far], home=tmp_path / "c")
    assert done.folder.is_relative_to(tmp_path / "c" / "outputs") and done.cases == 33
    again = join([done.folder.parent / done.folder.name, first, far][1:], home=tmp_path / "c")  # the merge again
    assert again == done


def test_a_choice_of_cases_is_joined_as_one_run_has_it(tmp_path: Path) -> None:
    folders = sharded(tmp_path / "a", 3, limit=2)  # the third shard has no case of it
    done = join(folders, home=tmp_path)
    local = go(make_suite(seeds=7), tmp_path / "b", limit=2)
    assert_equal_records(pq.read_table(done.folder / "records.parquet").to_pandas(), records(local))
    go(make_suite(seeds=7), tmp_path / "a", limit=1, shard=Shard(of=3, number=2))
    with pytest.raises(UserMistakes, match="another choice of cases"):
        join(folders, home=tmp_path)


def test_a_seed_is_one_choice_by_its_id_and_by_its_hashed_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    suite = make_suite(seeds=3, privacy=Privacy(seed_ids="hashed"))

    def choice(*seeds: str) -> str:
        invocation = Invocation(home=tmp_path, only=Selection(seeds=frozenset(seeds)))
        write_part(tmp_path, Shard(of=2, number=1), prepare_run(suite, invocation), invocation, finished=0)
        return str(json.loads((tmp_path / "run.json").read_text())[KEY]["chosen"])

    prepared = prepare_run(suite, Invocation(home=tmp_path))
    plain_ids = [ref.seed_id for ref in prepared.plan.refs]
    hashed_ids = [prepared.names.seed_id(ref.dataset, ref.seed_id) for ref in prepared.plan.refs]
    assert hashed_ids[0] != plain_ids[0]
    assert choice(plain_ids[0]) == choice(hashed_ids[0])
    assert len({choice(), choice(plain_ids[0]), choice(hashed_ids[1])}) == 3


def test_shards_that_do_not_make_one_run_are_refused(tmp_path: Path) -> None:
    folders = sharded(tmp_path / "a", 3)
    target = folders[0].parent.parent

    def refused(shards: list[Path], *words: str) -> None:
        with pytest.raises(UserMistakes) as error:
            join(shards, home=tmp_path)
        assert all(word in str(error.value) for word in words), str(error.value)
        assert not (target / "records.parquet").exists()

    refused([*folders, folders[1]], "shard 2/3 2 times")
    refused(folders[:2], "2 of 3 shards", "3/3")
    refused([tmp_path], "a shard's folder")
    refused([*folders[:2], tmp_path / "3-of-3"], "not a finished shard")
    other = go(make_suite(seeds=7, seed=8), tmp_path / "other", shard=Shard(of=3, number=3)).systems[0].folder
    refused([*folders[:2], other], "of digest", "they differ in seed")
    half = go(make_suite(seeds=7), tmp_path / "a", shard=Shard(of=2, number=1)).systems[0].folder
    refused([*folders, half], "shards of one division")
    shutil.copytree(folders[0], tmp_path / "wrong" / "2-of-3")
    refused([folders[0], tmp_path / "wrong" / "2-of-3", folders[2]], "says that it is shard 1/3")
    lock = FolderLock(folders[2])
    lock.acquire()
    with pytest.raises(FolderInUse):
        join(folders, home=tmp_path)
    lock.release()


def test_damaged_and_unfinished_shards_are_refused_until_run_again(tmp_path: Path) -> None:
    folders = sharded(tmp_path, 2, seeds=3)
    path = folders[1] / "records.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + b"\0\0\0\0" + whole[len(whole) // 2 + 4 :])
    with pytest.raises(UserMistakes, match="2-of-2: records.parquet is"):
        join(folders, home=tmp_path)
    sharded(tmp_path, 2, seeds=3)  # the same command
    run = json.loads((folders[0] / "run.json").read_text())
    run["shard"]["finished"] -= 1
    (folders[0] / "run.json").write_text(json.dumps(run))
    with pytest.raises(UserMistakes, match="21 of 22 cases are finished"):
        join(folders, home=tmp_path)
    sharded(tmp_path, 2, seeds=3)
    assert join(folders, home=tmp_path).cases == 33
