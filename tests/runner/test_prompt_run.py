"""Runs of prompts: pictures by content, readers in separate processes, resume, privacy, another reader."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from prompt_parts import StripeReader, Stripes, prompt_suite, stripes
from runner_helpers import assert_equal_records, go, records

from medtest.core.errors import ExitCode
from medtest.core.files.by_content import PictureFiles
from medtest.core.records import PICTURES
from medtest.readers.base import ReadingJob
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.suite.model import Privacy


def pictures(outcome: RunOutcome) -> set[str]:
    folder = outcome.systems[0].folder / PICTURES
    return {path.stem for path in folder.rglob("*.png")}


def test_a_run_keeps_pictures_by_content_and_scenes_in_records(tmp_path: Path) -> None:
    with stripes() as server:
        outcome = go(prompt_suite(server.base_url), tmp_path)
        frame = records(outcome)
        assert Counter(frame["verdict"]) == {"PASS": 9} and len(server.asked) == 9
        assert set(frame["picture"]) == pictures(outcome)
        source = frame[frame["relation"] == "source"].iloc[0]
        again = frame[(frame["relation"] == "unchanged") & (frame["seed_id"] == source["seed_id"])].iloc[0]
        swapped = frame[(frame["relation"] == "swap") & (frame["seed_id"] == source["seed_id"])].iloc[0]
        assert source["source_sha256"] == again["followup_sha256"] != swapped["followup_sha256"]
        assert json.loads(source["pool"])["entities"] == [["dog", 1, []], ["cat", 1, []]]
        assert [entity[0] for entity in json.loads(source["scene"])["entities"]] == ["dog", "cat"]
        effect = json.loads(swapped["effect"])
        assert effect["removed"]["entities"] == ["dog"] and len(effect["added"]["entities"]) == 1
        assert swapped["source_scene"] == source["scene"] and swapped["source_pool"] == source["pool"]
        for name in pictures(outcome):
            assert PictureFiles(outcome.systems[0].folder / PICTURES).read("images", name).shape == (48, 48, 3)
        assert go(prompt_suite(server.base_url), tmp_path).systems[0].cases_executed == 0 and len(server.asked) == 9


def test_strips_of_finished_cases_are_drawn_without_calls(tmp_path: Path) -> None:
    with stripes() as server:
        suite = prompt_suite(server.base_url)
        go(suite, tmp_path, limits=Limits(samples=0))
        again = go(suite, tmp_path, limits=Limits(samples=3))
        assert len(server.asked) == 9
    assert again.stopped is ExitCode.OK
    assert not any("not open" in notice for notice in again.notices)
    assert list((again.systems[0].folder / "samples").rglob("*.*"))


def test_objects_that_a_service_forgets_and_refuses_are_found(tmp_path: Path) -> None:
    with stripes(forgets="boat") as server:
        frame = records(go(prompt_suite(server.base_url, count=6), tmp_path / "forgets"))
    boats = frame["prompt"].str.contains("boat")
    assert set(frame[boats & (frame["relation"] == "source")]["entities"]) == {0.0}
    assert set(frame[~boats]["entities"]) == {1.0}
    assert set(frame[(frame["relation"] == "unchanged")]["self_whole"]) == {1.0}  # like with like
    with stripes(refuses="boat") as server:
        outcome = go(prompt_suite(server.base_url, count=6), tmp_path / "refuses")
    frame = records(outcome)
    refused = frame[frame["prompt"].str.contains("boat")]
    assert set(refused["answer_state"]) == {"content_filter"} and set(refused["picture"]) == {""}
    drawn_before = refused[(refused["relation"] == "swap") & (refused["source_state"] == "answered")]
    assert set(drawn_before["verdict"]) == {"FAIL"} and set(drawn_before["drawn"]) == {0.0}
    of_refused = frame[(frame["relation"] != "source") & (frame["source_state"] == "content_filter")]
    assert set(of_refused["verdict"]) == {"SKIP"}


def test_a_reader_that_hangs_is_to_blame_and_its_picture_alone(tmp_path: Path) -> None:
    with stripes() as server:
        suite = prompt_suite(server.base_url, count=4, reader={"hangs": "kite"})
        frame = records(go(suite, tmp_path, batch_seconds=2.0))
    kites = frame["prompt"].str.contains("kite")
    assert kites.any() and set(frame[kites & (frame["relation"] == "swap")]["verdict"]) == {"ERROR"}
    bad = frame[kites & (frame["verdict"] == "ERROR")]
    assert (bad["reason_code"] == "reader_error").all() and (bad["picture"] != "").all()
    assert set(frame[~kites]["verdict"]) == {"PASS"}


def test_another_reader_reads_kept_pictures_without_calls(tmp_path: Path) -> None:
    with stripes() as server:
        suite = prompt_suite(server.base_url)
        before = records(go(suite, tmp_path))
        prompt_count = len(server.asked)
        blind = prompt_suite(server.base_url, reader={"blind": "dog"})
        outcome = go(blind, tmp_path)
        after = records(outcome)
    assert len(server.asked) == prompt_count and outcome.systems[0].cases_executed == 0
    assert set(before["picture"]) == set(after["picture"])
    dogs = after["prompt"].str.contains("dog")
    assert set(after[dogs]["entities"]) == {0.0} and set(after[~dogs]["entities"]) == {1.0}
    swapped = after[(after["relation"] == "swap") & (after["seed_id"] == "p0000")].iloc[0]
    assert "dog" not in swapped["source_scene"]


def test_pictures_that_another_reader_cannot_read_have_no_scene_of_the_first(tmp_path: Path) -> None:
    with stripes() as server:
        outcome = go(prompt_suite(server.base_url), tmp_path / "home")
    frame = records(outcome)
    rows = frame[["picture", "pool", "source_pool"]].astype(object).where(frame.notna(), None).to_dict("records")
    reader = StripeReader("stripes", StripeReader.Settings(blind="kite"))
    contents = list({content for row in rows if (content := reader.recorded(row)) is not None})
    (gone,) = (outcome.systems[0].folder / PICTURES).rglob(f"{contents[0].picture}.png")
    gone.unlink()
    read = reader.readings(
        contents, ReadingJob(folder=outcome.systems[0].folder, shared=tmp_path / "shared", cache="off")
    )
    scenes = {row["picture"]: read.of(row)["scene"] for row in rows}
    assert scenes.pop(gone.stem) is None and all(scenes.values())
    assert f"1 of {len(contents)} answers: the picture" in read.problem


def test_scenes_are_kept_by_picture_and_reader(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with stripes() as server:
        suite = prompt_suite(server.base_url, reader={"log": str(log)})
        go(suite, tmp_path / "one")
        readings = len(log.read_text(encoding="utf-8").splitlines())
        again = go(suite, tmp_path / "one", fresh=True)
        assert len(server.asked) == 9 and again.systems[0].cases_executed == 9
    assert len(log.read_text(encoding="utf-8").splitlines()) == readings == len(pictures(again))


def test_privacy_keeps_words_and_pictures_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    with stripes(refuses="boat") as server:
        plain = records(go(prompt_suite(server.base_url, count=6), tmp_path / "plain"))
        private = Privacy(prompts="none", images="none")
        outcome = go(prompt_suite(server.base_url, count=6, privacy=private), tmp_path / "private")
    hidden = records(outcome)
    scores = [name for name in plain.columns if plain[name].dtype == float and name not in ("elapsed_ms", "seconds")]
    assert (plain[["verdict", *scores]].fillna(-1) == hidden[["verdict", *scores]].fillna(-1)).all().all()
    assert pictures(outcome) == set() and not (outcome.systems[0].folder / PICTURES).exists()
    text = (outcome.systems[0].folder / "records.csv").read_text(encoding="utf-8")
    assert not any(name in text for name in ("dog", "cat ", "boat", "kite", "take"))
    assert hidden["prompt"].isna().all() and set(hidden["source_sha256"]).isdisjoint(plain["source_sha256"])


def test_a_run_that_was_stopped_goes_on_with_what_was_answered_and_seen(tmp_path: Path) -> None:
    with stripes() as server:
        whole = records(go(prompt_suite(server.base_url, count=6), tmp_path / "whole"))
        suite = prompt_suite(server.base_url, count=6)
        go(suite, tmp_path / "parts", limit=2)
        between = len(server.asked)
        parts = go(suite, tmp_path / "parts")
        assert len(server.asked) == between + 12
    assert_equal_records(whole, records(parts))


def test_parts_of_a_suite_of_prompts_have_names_and_digests() -> None:
    suite = prompt_suite("http://127.0.0.1:1/v1")
    reader = suite.build_reader()
    assert isinstance(reader, StripeReader) and reader.own_processes
    other = replace(suite, oracle=replace(suite.oracle, reader=None))
    assert other.oracle.reader is None and Stripes.answer is not None
