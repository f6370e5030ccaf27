"""Follow-ups crafted on a system, read from the folder of its run by the store, exports and studies."""

from __future__ import annotations

import csv
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "runner"))

from crafting_parts import crafting_suite
from runner_helpers import assert_equal_records, go, records

from medtest.core.errors import MedtestError, UserMistakes
from medtest.runner.followups import FollowUpStore, StoredFollowUps, make_followups
from medtest.runner.followups.recipe import SuiteKeys
from medtest.runner.privacy.rules import ShownNames
from medtest.runner.replaying.export import export_followups
from medtest.runner.units.parts import Parts
from medtest.study.workshop import Workshop
from medtest.suite.model import Invocation, Selection, Suite

PUSH = Selection(relations=frozenset({"push"}))


def crafted_keys(suite: Suite) -> list[str]:
    parts = Parts(suite, None, 8)
    keys = SuiteKeys(suite, parts.relations, ShownNames(None))
    number, ref = parts.refs()[0]
    source = keys.source_key(parts.prepared(number, ref))
    return [keys.followup_key(source, case) for case in parts.unit(ref).cases if case.relation == "push"]


def test_a_key_covers_the_system_whether_it_is_named_or_each() -> None:
    white = crafted_keys(crafting_suite())
    named = crafted_keys(crafting_suite(systems={"one": {"net": 1}}, crafted_on="net", crafter={"net": 0}))
    other = crafted_keys(crafting_suite(systems={"one": {"net": 1}}))
    assert white == named
    assert not set(white) & set(other)
    # crafted in other batches, they have other data
    assert not set(white) & set(crafted_keys(crafting_suite(severities=(1, 3))))


def test_the_store_takes_what_a_run_crafted(tmp_path: Path) -> None:
    suite = crafting_suite()
    outcome = go(suite, tmp_path)
    report = make_followups(suite, Invocation(home=tmp_path), workers=0)
    assert not report.left_out
    assert not report.errors
    store = FollowUpStore.open(report.folder)
    entries = [entry for entry in store.entries(report.suite) if entry.address.relation == "push"]
    frame = records(outcome)
    recorded = frame[frame["relation"] == "push"].set_index("address")["followup_sha256"]
    assert {str(entry.address): entry.followup_sha256 for entry in entries} == recorded.to_dict()
    assert store.image(entries[0].followup_sha256).dtype == "uint8"
    store.close()
    # a run with the store crafts again and records the same, with the columns of crafting
    stored = StoredFollowUps.of(suite, tmp_path, report.folder)
    assert_equal_records(frame, records(go(suite, tmp_path / "other", kept=stored)))


def test_without_a_run_the_store_leaves_them_out_and_refuses_them_by_name(tmp_path: Path) -> None:
    suite = crafting_suite(count=1)
    report = make_followups(suite, Invocation(home=tmp_path), workers=0)
    assert report.left_out == ("push",)
    assert report.made
    with pytest.raises(UserMistakes, match="Run it first.*medtest run suite=label_suite model=net"):
        make_followups(suite, Invocation(home=tmp_path, only=PUSH), workers=0)


def test_a_case_missing_in_the_run_is_an_error_and_is_stored_after_it_ran(tmp_path: Path) -> None:
    suite = crafting_suite(natural=False)
    go(suite, tmp_path, limit=2)
    report = make_followups(suite, Invocation(home=tmp_path), workers=0)
    assert (report.made, report.errors, report.skipped) == (6, 6, 0)
    assert "no run stored its pixels" in report.problems[0][1]
    go(suite, tmp_path)
    report = make_followups(suite, Invocation(home=tmp_path), workers=0)
    assert (report.made, report.reused, report.errors) == (6, 6, 0)


def test_an_export_holds_what_was_judged(tmp_path: Path) -> None:
    suite = crafting_suite(natural=False)
    with pytest.raises(UserMistakes, match="Run it first"):
        export_followups(suite, Invocation(home=tmp_path), tmp_path / "out")
    outcome = go(suite, tmp_path)
    export_followups(suite, Invocation(home=tmp_path), tmp_path / "out")
    with (tmp_path / "out" / "manifest.csv").open() as file:
        rows = {row["address"]: row for row in csv.DictReader(file)}
    frame = records(outcome)
    assert {address: row["sha256"] for address, row in rows.items()} == frame.set_index("address")[
        "followup_sha256"
    ].to_dict()
    shutil.rmtree(outcome.systems[0].folder / "crafted")
    with pytest.raises(MedtestError, match="pixels are lost.*fresh=true"):
        export_followups(suite, Invocation(home=tmp_path), tmp_path / "again")


def test_another_system_s_follow_ups_go_to_another_folder(tmp_path: Path) -> None:
    for net in (0, 1):
        go(crafting_suite(systems={"net": {"net": net}}, natural=False, count=1), tmp_path)
    export_followups(crafting_suite(natural=False, count=1), Invocation(home=tmp_path), tmp_path / "out")
    other = crafting_suite(systems={"net": {"net": 1}}, natural=False, count=1)
    with pytest.raises(UserMistakes, match="other follow-ups"):
        export_followups(other, Invocation(home=tmp_path), tmp_path / "out")


def test_of_several_systems_one_is_named(tmp_path: Path) -> None:
    suite = crafting_suite(systems={"one": {"net": 1}, "two": {"net": 2}}, natural=False, count=1)
    outcome = go(suite, tmp_path)
    with pytest.raises(UserMistakes, match="model=one"):
        export_followups(suite, Invocation(home=tmp_path), tmp_path / "out")
    alone = replace(suite, systems=suite.systems[1:])
    export_followups(alone, Invocation(home=tmp_path), tmp_path / "out")
    text = (tmp_path / "out" / "manifest.csv").read_text()
    for sha256 in records(outcome, 1)["followup_sha256"]:
        assert sha256 in text


def test_a_study_shows_what_was_judged(tmp_path: Path) -> None:
    suite = crafting_suite(count=2)
    with pytest.raises(UserMistakes, match="Run it first"):
        Workshop(suite, Invocation(home=tmp_path), tmp_path / "study")
    outcome = go(suite, tmp_path)
    workshop = Workshop(suite, Invocation(home=tmp_path), tmp_path / "study")
    recorded = records(outcome).set_index("address")["followup_sha256"]
    for address in workshop.addresses["push"]:
        picture = workshop.picture(address)
        assert picture is not None
        assert picture.sha256 == recorded[str(address)]
    workshop.close()
