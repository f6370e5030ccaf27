"""A run that takes follow-ups from a store has the records of one that makes them."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from followup_parts import Bend, make_suite

from medtest.core.cases import FollowUp
from medtest.core.errors import MedtestError
from medtest.core.oracles.moves import moved_mask
from medtest.core.records import UNEQUAL_COLUMNS
from medtest.runner.followups import FollowUpStore, StoredFollowUps, make_followups
from medtest.runner.reporting.outcome import Limits
from medtest.runner.run import run_suite
from medtest.runner.units.parts import Parts
from medtest.suite.model import Invocation, Privacy, Suite


def records(suite: Suite, home: Path, stored: StoredFollowUps | None) -> pd.DataFrame:
    invocation = Invocation(home=home, quiet=True, workers=1, kept=stored)
    outcome = run_suite(suite, invocation, limits=Limits(samples=0))
    table = pq.read_table(outcome.systems[0].folder / "records.parquet").to_pandas()
    return table.drop(columns=list(UNEQUAL_COLUMNS), errors="ignore")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_followups(make_suite(), Invocation(home=tmp_path), workers=0).folder


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [Privacy(), Privacy(seed_ids="hashed")], ids=["plain", "hashed"])
def test_records_are_equal_with_and_without_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, privacy: Privacy
) -> None:
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    suite = make_suite(privacy=privacy)
    folder = make_followups(suite, Invocation(home=tmp_path), workers=0).folder
    stored = StoredFollowUps.of(suite, tmp_path, folder)
    plain = records(suite, tmp_path / "made", None)
    reused = records(suite, tmp_path / "taken", stored)
    pd.testing.assert_frame_equal(plain, reused, check_exact=True)
    assert set(plain["verdict"]) >= {"PASS", "SKIP"}
    # they were really reused: a change in the index shows in the records
    with sqlite3.connect(folder / "index.sqlite") as index:
        index.execute("UPDATE followups SET scale = 77 WHERE relation = 'dim' AND severity = 3")
    marked = records(suite, tmp_path / "marked", stored)
    changed = marked[marked["scale"] == 77]
    assert set(changed["relation"]) == {"dim"}
    assert len(changed) == 3


def test_stored_follow_ups_equal_fresh_ones(store: Path, tmp_path: Path) -> None:
    suite = make_suite()
    stored = pickle.loads(pickle.dumps(StoredFollowUps.of(suite, tmp_path, store)))  # noqa: S301 - our own
    plain, using = Parts(suite, None, 8), Parts(suite, None, 8, stored=stored)
    for ref in plain.sources[0].refs():
        seed = plain.prepared(0, ref)
        for address in plain.unit(ref).cases[1:]:
            reused = stored.find(seed, address)
            fresh, taken_over = plain.make(seed, address), using.make(seed, address)
            assert (fresh.sha256, fresh.verdict, fresh.reason) == (
                taken_over.sha256,
                taken_over.verdict,
                taken_over.reason,
            )
            if fresh.follow is None:
                assert reused is None
                continue
            assert isinstance(reused, FollowUp)
            assert taken_over.follow is not None
            for name in ("params", "scale", "effect"):
                assert getattr(fresh.follow, name) == getattr(taken_over.follow, name)
            assert dict(fresh.follow.facts) == dict(taken_over.follow.facts)


def test_displacements_are_not_kept_and_made_again(tmp_path: Path) -> None:
    suite = make_suite(relations={"bend": (Bend, {"severities": [1], "levels": {1: {"shift": 0.1}}})})
    store = make_followups(suite, Invocation(home=tmp_path), workers=0).folder
    stored = StoredFollowUps.of(suite, tmp_path, store)
    parts = Parts(suite, None, 8, stored=stored)
    seed = parts.prepared(0, parts.sources[0].refs()[0])
    (address,) = parts.unit(seed.ref).cases[1:]
    case = parts.make(seed, address)
    assert stored.find(seed, address) is None
    assert case.follow is not None and case.follow.effect.displacements is not None
    opened = FollowUpStore.open(store)
    entry = opened.find(address)
    assert entry is not None and entry.followup_sha256 == case.sha256
    assert seed.mask is not None
    np.testing.assert_array_equal(opened.mask(entry.mask_sha256), moved_mask(seed.mask, case.follow.effect))


def test_damaged_and_unknown_follow_ups_are_made_again(store: Path, tmp_path: Path) -> None:
    suite = make_suite()
    stored = StoredFollowUps.of(suite, tmp_path, store)
    parts = Parts(suite, None, 8, stored=stored)
    ref = parts.sources[0].refs()[0]
    seed = parts.prepared(0, ref)
    address = parts.unit(ref).cases[1]
    before = parts.make(seed, address)
    opened = FollowUpStore.open(store)
    opened.image_path(before.sha256).write_bytes(b"damaged")
    assert stored.find(seed, address) is None
    assert parts.make(seed, address).sha256 == before.sha256
    for other in (make_suite(seed=8), make_suite(brighter=1)):
        stranger = Parts(other, None, 8)
        prepared = stranger.prepared(0, ref)
        assert StoredFollowUps.of(other, tmp_path, store).find(prepared, address) is None
    with pytest.raises(MedtestError, match="medtest followups make"):
        StoredFollowUps.of(suite, tmp_path, tmp_path / "none")


def test_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtest.session.runs import invocation_of
    from medtest.suite.compose import load

    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path))
    assert invocation_of(load("polyp_seg", [])).kept is None
    with pytest.raises(MedtestError, match="holds no follow-ups"):
        invocation_of(load("polyp_seg", ["followups=store"]))
    FollowUpStore.open(tmp_path / "followups", create=True)
    assert invocation_of(load("polyp_seg", ["followups=store"])).kept is not None
