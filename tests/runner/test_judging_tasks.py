"""A raised revision of every kind of oracle judges stored answers: sequences, attacks, series, merged shards."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crafting_parts import crafting_suite
from judging_parts import HalfMasks, LaterLabels, LaterQuality, LaterRegions, judged_by
from label_parts import label_suite
from runner_helpers import assert_equal_records, go, records
from runner_parts import make_suite

from medtest.core.errors import UserMistakes
from medtest.core.oracles.base import Oracle
from medtest.runner.sharding.joining import join
from medtest.suite.compose import load_suite
from medtest.suite.model import Suite
from medtest.suite.sharding import Shard

SMALL_PICTURES = ["seeds.pictures.names=[camera]", "seeds.pictures.max_side=64"]


def judged_again(suite: Suite, oracle: type[Oracle], home: Path) -> Any:
    """Run a suite, judge its answers again, and return the records that equal those of one run under the oracle."""
    go(suite, home)
    outcome = go(judged_by(suite, oracle), home)
    assert outcome.systems[0].cases_executed == 0, outcome.notices
    again = records(outcome)
    assert set(again["oracle_revision"]) == {2}
    return again


def fresh(suite: Suite, oracle: type[Oracle], home: Path) -> Any:
    return records(go(judged_by(suite, oracle), home / "fresh"))


@pytest.mark.parametrize("system", [{"form": "labels"}, {"mask": True}, {"form": "logits", "turned": True}])
def test_labels_and_their_sequences(system: dict[str, Any], tmp_path: Path) -> None:
    suite = label_suite(seeds={"count": 2}, systems={"meter": system}, severities=(1, 3))
    again = judged_again(suite, LaterLabels, tmp_path)
    assert again["frame"].max() == 3
    assert_equal_records(again, fresh(suite, LaterLabels, tmp_path))


def test_crafted_cases_are_not_crafted_again(tmp_path: Path) -> None:
    suite = crafting_suite(count=2)
    folder = go(suite, tmp_path).systems[0].folder
    before = records(go(suite, tmp_path))
    shutil.rmtree(folder / "crafted")  # effects need no pixels
    again = judged_again(suite, LaterLabels, tmp_path)
    rest = [name for name in again.columns if "probability" not in name and name not in ("oracle_revision", "verdict")]
    assert_equal_records(again[rest], before[rest])
    attacked = again["relation"] == "push"
    assert attacked.any() and (again["probability"] == before["probability"] / 2).all()


@pytest.mark.parametrize(
    ("name", "typed", "oracle"),
    [
        ("denoising", [*SMALL_PICTURES, "model=median", "relations.gaussian_noise.severities=[1,3]"], LaterQuality),
        pytest.param(
            *("liver", ["model=region_growing", "seeds.abdomens.count=1"], LaterRegions), marks=pytest.mark.slow
        ),
    ],
)
def test_series(name: str, typed: list[str], oracle: type[Oracle], tmp_path: Path) -> None:
    suite = load_suite(name, typed)
    assert_equal_records(judged_again(suite, oracle, tmp_path), fresh(suite, oracle, tmp_path))


def test_merged_shards_hold_the_answers_of_all(tmp_path: Path) -> None:
    suite = make_suite(seeds=3)
    for number in (1, 2):
        go(suite, tmp_path, shard=Shard(of=2, number=number))
    shards = sorted(tmp_path.glob("outputs/*/*/*/shards/*-of-2"))
    done = join(shards, home=tmp_path)
    assert len(list((done.folder / "answers").iterdir())) == 2
    assert (done.folder / "answers").stat() != (shards[0] / "answers").stat()
    outcome = go(judged_by(suite, HalfMasks), tmp_path)
    assert outcome.systems[0].cases_executed == 0 and outcome.systems[0].folder == done.folder
    assert_equal_records(records(outcome), fresh(suite, HalfMasks, tmp_path))


def test_shards_of_two_revisions_are_not_joined(tmp_path: Path) -> None:
    suite = replace(make_suite(seeds=2), answers="none")
    go(suite, tmp_path, shard=Shard(of=2, number=1))
    go(judged_by(suite, HalfMasks), tmp_path, shard=Shard(of=2, number=2))
    shards = sorted(tmp_path.glob("outputs/*/*/*/shards/*-of-2"))
    with pytest.raises(UserMistakes, match="another revision of the oracle"):
        join(shards, home=tmp_path)
    assert not list(tmp_path.glob("outputs/*/*/*/records.parquet"))
    go(judged_by(suite, HalfMasks), tmp_path, shard=Shard(of=2, number=1))
    done = join(shards, home=tmp_path)
    outcome = go(judged_by(suite, HalfMasks), tmp_path)
    assert outcome.systems[0].folder == done.folder and outcome.systems[0].cases_executed == 0
    assert set(records(outcome)["oracle_revision"]) == {2}
