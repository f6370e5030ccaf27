"""A run as users see it: records, folders, resume, and options that only choose cases."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from runner_helpers import QUICK, assert_equal_records, comparable, go, records
from runner_parts import Blobs, BlobSettings, Dim, DimSettings, Fading, make_suite

from medtest.core.cases import Address, image_sha256
from medtest.core.errors import FolderInUse, UserMistakes
from medtest.preparation import prepare
from medtest.preparation.visibility import source_visibility, visibility
from medtest.results.records.records_io import Records
from medtest.runner.folder import SWEEP_VARIABLE, FolderLock, write_manifest
from medtest.runner.reporting.outcome import Count, Limits
from medtest.runner.run import run_suite
from medtest.suite.model import Criterion, Invocation, Selection

CASES = 11  # one source and two relations of five severities


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return one complete run of two systems with one worker."""
    suite = make_suite(seeds=4, systems={"bright": {}, "dark": {"level": 150}})
    return go(suite, tmp_path_factory.mktemp("whole"))


def test_every_case_has_one_record_in_the_order_of_the_plan(whole: Any) -> None:
    frame = records(whole)
    assert len(frame) == 4 * CASES
    assert list(frame["seed_id"]) == [f"patient-{i:04d}" for i in range(4) for _ in range(CASES)]
    assert list(frame["relation"][:CASES]) == ["source"] + ["dim"] * 5 + ["dim2"] * 5
    assert list(frame["severity"][:CASES]) == [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    assert list(frame["address"][:2]) == [f"blobs/patient-0000/{case}_f0_r0" for case in ("source_s0", "dim_s1")]


def test_a_record_says_what_a_hand_computation_says(whole: Any) -> None:
    source = Blobs(dataset="blobs", settings=BlobSettings(count=4), root=None, suite_seed=7)
    seed = prepare(source.load(source.refs()[2]), size=None)
    address = Address(dataset="blobs", seed_id="patient-0002", relation="dim2", severity=4)
    follow = Dim(DimSettings()).follow_up(seed, 4, address.generator(7))
    frame = records(whole, 1)
    row = frame[(frame.seed_id == "patient-0002") & (frame.relation == "dim2") & (frame.severity == 4)].iloc[0]
    answer = follow.image.max(axis=2) > 150
    before = seed.image.max(axis=2) > 150
    assert seed.mask is not None
    dice = 2 * (answer & seed.mask).sum() / (answer.sum() + seed.mask.sum())
    source_dice = 2 * (before & seed.mask).sum() / (before.sum() + seed.mask.sum())
    assert row["dice"] == pytest.approx(dice, abs=1e-12)
    assert row["source_dice"] == pytest.approx(source_dice, abs=1e-12)
    assert row["self_dice"] == pytest.approx(2 * (answer & before).sum() / (answer.sum() + before.sum()), abs=1e-12)
    assert row["verdict"] == ("FAIL" if (source_dice - dice) / source_dice > 0.25 else "PASS")
    assert row["followup_sha256"] == image_sha256(follow.image)
    assert row["source_sha256"] == image_sha256(seed.image)
    assert json.loads(row["params"]) == dict(follow.params)
    assert (row["scale"], row["group"], row["stratum_site"], row["cluster"]) == (4.0, "lighting", "south", "video1")
    assert row["factor_object_area"] == 0.25
    assert row["factor_polyp_area"] == pytest.approx(seed.mask[~seed.frame].mean(), abs=0.05)


def test_source_rows_pass_and_score_what_they_score(whole: Any) -> None:
    rows = records(whole).query("relation == 'source'")
    assert set(rows["verdict"]) == {"PASS"} and set(rows["severity"]) == {0} and set(rows["group"]) == {"source"}
    assert (rows["dice"] == rows["source_dice"]).all() and (rows["self_dice"] == 1).all()
    assert (rows["followup_sha256"] == rows["source_sha256"]).all() and (rows["params"] == "{}").all()


def test_all_systems_see_the_same_follow_ups(whole: Any) -> None:
    bright, dark = records(whole, 0), records(whole, 1)
    assert (bright["followup_sha256"] == dark["followup_sha256"]).all()
    assert not (bright["dice"] == dark["dice"]).all()


def test_csv_holds_what_parquet_holds(whole: Any) -> None:
    frame = records(whole)
    csv = pd.read_csv(whole.systems[0].folder / "records.csv", keep_default_na=False, na_values={"reason": []})
    assert list(csv.columns) == list(frame.columns) and len(csv) == len(frame)
    np.testing.assert_allclose(csv["dice"].astype(float), frame["dice"], rtol=0, atol=0)
    assert list(csv["params"]) == list(frame["params"])


def test_the_outcome_counts_what_the_records_hold(whole: Any) -> None:
    for number, system in enumerate(whole.systems):
        frame = records(whole, number)
        assert system.counts == {v: int((frame.verdict == v).sum()) for v in ("PASS", "FAIL", "ERROR", "SKIP")}
        assert (system.finished, system.planned, system.partial) == (44, 44, False)
        assert (system.cases_executed, system.cases_reused, system.error_percent) == (44, 0, 0.0)


def test_run_json_suite_yaml_and_manifest(whole: Any) -> None:
    folder = whole.systems[0].folder
    run = json.loads((folder / "run.json").read_text())
    assert run["digest"] == folder.name and run["covers"]["system"]["fingerprint"] == {"level": 110}
    assert run["system_id"] == whole.systems[0].system
    assert run["cases_executed"] == 44 and run["device"] == "cpu" and run["mlflow_run_id"] is None
    assert run["versions"]["numpy"] == np.__version__
    assert yaml.safe_load((folder / "suite.yaml").read_text())["name"] == "runner_suite"
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", "manifest.sha256"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    listed = {line.split("  ")[1] for line in (folder / "manifest.sha256").read_text().splitlines()}
    (pack, _thumbnails) = sorted(listed - {"records.parquet", "records.csv", "run.json", "suite.yaml"})
    assert pack.startswith("answers/pack-")


def test_the_manifest_survives_odd_names(tmp_path: Path) -> None:
    (tmp_path / "a b\nc\\d.txt").write_text("x")
    (tmp_path / "é.txt").write_text("y")
    write_manifest(tmp_path)
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", "manifest.sha256"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("options", [{"workers": 2}, {"workers": 1, "batch_size": 1}, {"workers": 2, "batch_size": 50}])
def test_records_do_not_depend_on_workers_or_batches(whole: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    suite = make_suite(seeds=4, systems={"bright": {}, "dark": {"level": 150}})
    other = go(suite, tmp_path, **options)
    for number in range(2):
        assert_equal_records(records(whole, number), records(other, number))


def test_nothing_is_run_again(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    suite = make_suite(seeds=2, systems={"bright": {"log": str(log)}})
    first = go(suite, tmp_path)
    calls, before = log.read_text(), records(first)
    again = go(suite, tmp_path)
    assert log.read_text() == calls
    system = again.systems[0]
    assert (system.cases_executed, system.cases_reused, again.workers) == (0, 22, 0)
    assert system.reused_from == first.systems[0].reused_from or system.reused_from.endswith("Z")
    assert any("22 finished cases" in notice and system.reused_from in notice for notice in again.notices)
    pd.testing.assert_frame_equal(before, records(again))


def test_limit_and_only_choose_and_the_rest_follows_later(whole: Any, tmp_path: Path) -> None:
    suite = make_suite(seeds=4, systems={"bright": {}, "dark": {"level": 150}})
    first = go(suite, tmp_path, limit=1, only=Selection(relations=frozenset({"dim2"}), severities=frozenset({2, 5})))
    frame = records(first)
    assert list(zip(frame.relation, frame.severity, strict=True)) == [("source", 0), ("dim2", 2), ("dim2", 5)]
    assert (first.systems[0].finished, first.systems[0].planned, first.systems[0].partial) == (3, 44, True)
    second = go(suite, tmp_path, only=Selection(seeds=frozenset({"patient-0003"})))
    assert second.systems[0].cases_executed == 11 and second.systems[0].cases_reused == 0  # of the chosen ones
    assert second.asked is not None and second.asked.count == 11
    third = go(suite, tmp_path)
    assert third.systems[0].cases_executed == 44 - 14 and not third.systems[0].partial
    for number in range(2):
        assert_equal_records(records(whole, number), records(third, number))


def test_a_batch_partly_chosen_is_inferred_whole(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    suite = make_suite(seeds=1, systems={"bright": {"log": str(log)}})
    go(suite, tmp_path, batch_size=4, only=Selection(relations=frozenset({"dim2"}), severities=frozenset({5})))
    batches = [len(line.split()) - 1 for line in log.read_text().splitlines()]
    assert batches == [4, 3]  # the source's batch, and the one that holds dim2 at severity 5


def test_each_follow_up_is_made_once_for_all_systems(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    suite = make_suite(seeds=2, systems={"one": {"log": str(log)}, "two": {"log": str(log), "level": 120}})
    go(suite, tmp_path)
    lines = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines()]
    assert lines[0::2] == lines[1::2]  # batch by batch, the second system right after the first


def test_fresh_moves_the_old_folder_aside(tmp_path: Path) -> None:
    suite = make_suite(seeds=1)
    folder = go(suite, tmp_path).systems[0].folder
    (folder / "note.txt").write_text("mine")
    outcome = go(suite, tmp_path, fresh=True)
    assert outcome.systems[0].cases_executed == CASES and not (folder / "note.txt").exists()
    old = [p for p in folder.parent.iterdir() if ".old-" in p.name]
    assert [(p / "note.txt").read_text() for p in old] == ["mine"]
    assert any(old[0].name in notice for notice in outcome.notices)


def test_in_one_multirun_a_folder_is_moved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = make_suite(seeds=1)
    go(suite, tmp_path)
    monkeypatch.setenv(SWEEP_VARIABLE, "sweep-1")
    assert go(suite, tmp_path, fresh=True).systems[0].cases_executed == CASES
    assert go(suite, tmp_path, fresh=True).systems[0].cases_executed == 0
    monkeypatch.setenv(SWEEP_VARIABLE, "sweep-2")
    assert go(suite, tmp_path, fresh=True).systems[0].cases_executed == CASES


def test_another_threshold_runs_no_system_again(tmp_path: Path) -> None:
    suite = make_suite(seeds=3, systems={"dark": {"level": 150}})
    strict = replace(suite, oracle=replace(suite.oracle, primary=Criterion(threshold=0.01)))
    full = records(go(strict, tmp_path / "a"))
    go(suite, tmp_path / "b", limit=1)
    mixed = go(strict, tmp_path / "b")
    assert mixed.systems[0].cases_executed == 2 * CASES
    assert_equal_records(full, records(mixed))  # every verdict of a folder follows the criterion of its suite
    counts = records(mixed)["verdict"].value_counts()
    assert mixed.systems[0].counts["FAIL"] == counts["FAIL"]
    back = go(suite, tmp_path / "b")
    assert back.systems[0].cases_executed == 0
    assert back.systems[0].counts["FAIL"] < counts["FAIL"]
    assert back.systems[0].counts["FAIL"] == (records(back)["verdict"] == "FAIL").sum()


def test_without_masks_answers_are_compared_with_the_source(tmp_path: Path) -> None:
    suite = make_suite(seeds=2, labelled=False, against="source", systems={"dark": {"level": 150}})
    frame = records(go(suite, tmp_path))
    assert frame["dice"].isna().all() and frame["self_dice"].notna().all()
    follow = frame[frame.relation != "source"]
    assert ((follow.verdict == "FAIL") == (1 - follow.self_dice > 0.25)).all()
    assert {"PASS", "FAIL"} <= set(follow.verdict)


def test_native_size_and_512(tmp_path: Path) -> None:
    suite = make_suite(seeds=1, severities=(1,), size=40)
    native = records(go(suite, tmp_path))
    resized = records(go(replace(suite, prepare=replace(suite.prepare, size=96)), tmp_path))
    assert native["source_sha256"][0] != resized["source_sha256"][0]


def test_a_seed_that_exists_twice_is_a_mistake(tmp_path: Path) -> None:
    suite = make_suite(seeds=1)
    with pytest.raises(UserMistakes, match="mistake") as caught:
        go(replace(suite, seeds=suite.seeds * 2), tmp_path)
    assert "blobs/patient-0000 twice" in str(caught.value)


def test_one_system_under_two_ids_has_two_folders(tmp_path: Path) -> None:
    suite = make_suite(seeds=1, systems={"one": {}, "two": {}})
    outcome = go(suite, tmp_path)
    assert outcome.systems[0].folder != outcome.systems[1].folder


def test_the_folder_is_locked_until_the_caller_releases_it(tmp_path: Path) -> None:
    from contextlib import ExitStack

    suite = make_suite(seeds=1, severities=(1,))
    with ExitStack() as stack:
        folder = run_suite(suite, Invocation(home=tmp_path, quiet=True), limits=QUICK, hold=stack).systems[0].folder
        with pytest.raises(FolderInUse, match="in use by process"):
            FolderLock(folder).acquire()
    lock = FolderLock(folder)
    lock.acquire()
    lock.release()


def test_progress_shows_how_far_a_run_is(tmp_path: Path) -> None:
    class Note:
        counts: list[Count] = []
        closed = False

        def update(self, count: Count) -> None:
            self.counts.append(count)

        def close(self) -> None:
            self.closed = True

    note = Note()
    suite = make_suite(seeds=2, systems={"dark": {"level": 150, "pause": 0.05}})
    go(suite, tmp_path, limit=1)
    outcome = run_suite(suite, Invocation(home=tmp_path), progress=note, limits=Limits(samples=0, send_seconds=0.0))
    done = [count.done for count in note.counts]
    assert note.closed and done == sorted(done) and done[-1] == 22
    last = note.counts[-1]
    assert (last.total, last.reused, last.errors) == (22, 11, 0)
    assert last.violations == outcome.systems[0].counts["FAIL"]


def test_strata_and_clusters_reach_the_records(whole: Any) -> None:
    frame = comparable(records(whole)).drop_duplicates("seed_id")
    assert list(frame["stratum_site"]) == ["south", "north", "south", "north"]
    assert list(frame["cluster"]) == ["video0", "video0", "video1", "video1"]


def test_records_say_what_can_be_seen_of_the_lesion(tmp_path: Path) -> None:
    source = Blobs(dataset="blobs", settings=BlobSettings(count=2, size=160), root=None, suite_seed=7)
    seed = prepare(source.load(source.refs()[1]), size=None)
    rows = records(go(make_suite(seeds=2, size=160), tmp_path)).query("seed_id == 'patient-0001'")
    before = source_visibility(seed)
    assert before is not None
    assert (rows["source_visibility"] == before).all()
    assert rows.iloc[0]["visibility"] == before
    address = Address(dataset="blobs", seed_id="patient-0001", relation="dim", severity=4)
    image = Dim(DimSettings()).follow_up(seed, 4, address.generator(7)).image
    assert rows.iloc[4]["visibility"] == visibility(seed, image) < before
    assert rows["scale_applied"].isna().all()
    scores = Records.read(next(tmp_path.glob("outputs/*/*/*/records.parquet")).parent).scores
    assert "dice" in scores and "visibility" not in scores
    unlabelled = records(go(make_suite(seeds=1, size=160, labelled=False), tmp_path))
    assert unlabelled[["visibility", "source_visibility"]].isna().all(axis=None)


def test_a_level_that_hides_the_lesion_is_skipped_or_weakened_in_records(tmp_path: Path) -> None:
    suite = make_suite(seeds=2, size=160, relations={"fading": Fading})
    frame = records(go(suite, tmp_path))
    followups = frame[frame["relation"] == "fading"]
    assert (followups[followups.severity == 1]["verdict"] != "SKIP").all()
    skipped = followups[followups.severity >= 4]
    assert set(skipped["verdict"]) == {"SKIP"} and set(skipped["reason_code"]) == {"lesion_invisible"}
    weakened = followups[followups["scale_applied"].notna()]
    assert (weakened["severity"] - 1 < weakened["scale_applied"]).all()
    assert (weakened["scale_applied"] < weakened["scale"]).all()
    assert (weakened["scale"] == weakened["severity"]).all()
    assert len(weakened)
