"""An oracle of a later revision judges the stored answers of a run without new calls of a system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from judging_parts import AreaMasks, BrokenMasks, HalfMasks, LostBlobs, calls, judged_by, logged_suite
from runner_helpers import assert_equal_records, go, records, script, wait_for
from runner_parts import make_suite

from medtest.core.errors import ExitCode, OutputProblem
from medtest.core.files import file_sha256
from medtest.report.finish import finish
from medtest.results.records.common_cases import common_cases
from medtest.results.records.records_io import Records, read_table
from medtest.results.tables import make_tables
from medtest.runner.forecast import forecast
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.suite.compose import load
from medtest.suite.composed import with_composed
from medtest.suite.model import Invocation, PairedGate, Privacy, Suite


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.log"


@pytest.fixture
def suite(log: Path) -> Suite:
    return logged_suite(log)


def tabled(suite: Suite, home: Path, **options: Any) -> tuple[RunOutcome, pd.DataFrame]:
    """Run and make tables; return the outcome and ``seeds.csv``."""
    outcome = go(suite, home, **options)
    finish(suite, Invocation(home=home, quiet=True, track=False), outcome)
    target = outcome.systems[0].folder
    target = target / "views" / outcome.view if outcome.view else target
    return outcome, pd.read_csv(target / "tables" / "seeds.csv")


def test_a_raised_revision_judges_stored_answers(suite: Suite, log: Path, tmp_path: Path) -> None:
    outcome, before = tabled(suite, tmp_path, limit=1)
    earlier_calls, old = calls(log), records(outcome)
    assert set(old["oracle_revision"]) == {1}
    outcome, after = tabled(judged_by(suite, HalfMasks), tmp_path)
    new = records(outcome)
    assert set(new["oracle_revision"]) == {2}
    assert len(after) == 4 and (after["dice"] <= 0.5).all()
    assert after["dice"][0] == before["dice"][0] / 2
    first = [address for address in calls(log)[len(earlier_calls) :] if "/patient-0000/" in address]
    assert first == []
    assert "11 finished cases judged again" in " ".join(outcome.notices)
    fresh = records(go(judged_by(suite, HalfMasks), tmp_path / "fresh"))
    assert_equal_records(new, fresh)
    assert new.loc[new["seed_id"] == "patient-0000", "elapsed_ms"].tolist() == old["elapsed_ms"].tolist()


def test_a_new_score_reaches_finished_cases(suite: Suite, log: Path, tmp_path: Path) -> None:
    go(suite, tmp_path)
    call_count = len(calls(log))
    new = records(go(judged_by(suite, AreaMasks), tmp_path))
    assert len(calls(log)) == call_count
    assert (new["pixels"] > 0).all() and (new["source_pixels"] > 0).all()
    assert_equal_records(new, records(go(judged_by(suite, AreaMasks), tmp_path / "fresh")))


@pytest.mark.parametrize("maps_by", ["maps", "named"])
def test_scores_of_maps_are_made_of_stored_maps(maps_by: str, suite: Suite, log: Path, tmp_path: Path) -> None:
    plain = records(go(suite, tmp_path / "compact"))
    assert "mean_dice_256" not in plain.columns
    asking = replace(suite, answers="maps") if maps_by == "maps" else naming(suite)
    before = records(go(asking, tmp_path))
    assert (before["mean_dice_256"] > 0).all()
    call_count = len(calls(log))
    outcome = go(judged_by(asking, HalfMasks), tmp_path)
    after = records(outcome)
    assert after["mean_dice_256"].tolist() == before["mean_dice_256"].tolist()
    assert set(after["oracle_revision"]) == {2}
    # a named score needs maps, and these answers were stored without
    assert (len(calls(log)) > call_count) == (maps_by == "named")


def naming(suite: Suite) -> Suite:
    """Return a suite that names a score of maps."""
    return replace(suite, oracle=replace(suite.oracle, scores=(*suite.oracle.scores, "mean_dice_256")))


def test_a_score_that_records_hold_is_never_emptied(suite: Suite, log: Path, tmp_path: Path) -> None:
    before = records(go(replace(suite, answers="maps"), tmp_path, limit=2))
    after = records(go(suite, tmp_path))
    assert (after["mean_dice_256"] > 0).all()  # of the others too, whose maps are not stored
    call_count = len(calls(log))
    assert [line.asked for line in forecast(judged_by(suite, HalfMasks), Invocation(home=tmp_path))] == [22]
    again = records(go(judged_by(suite, HalfMasks), tmp_path))
    assert again["mean_dice_256"].tolist()[: len(before)] == before["mean_dice_256"].tolist()
    assert {address.split("/")[1] for address in calls(log)[call_count:]} == {"patient-0002", "patient-0003"}


def test_cases_without_an_answer_run_again_and_the_plan_counts_them(suite: Suite, log: Path, tmp_path: Path) -> None:
    silent = replace(suite, answers="none")
    outcome = go(silent, tmp_path, limit=2)
    assert not (outcome.systems[0].folder / "answers").exists()
    go(suite, tmp_path, limit=3)
    later, call_count = judged_by(suite, HalfMasks), len(calls(log))
    (planned,) = forecast(later, Invocation(home=tmp_path))
    assert (planned.judged, planned.asked, planned.left) == (11, 22, 0)
    (planned,) = forecast(later, Invocation(home=tmp_path, limit=1))
    assert (planned.judged, planned.asked, planned.left) == (11, 11, 11)
    new = records(go(later, tmp_path, limit=3))
    assert len(calls(log)) == call_count + 22
    assert_equal_records(new, records(go(later, tmp_path / "fresh", limit=3)))
    assert forecast(later, Invocation(home=tmp_path)) == []


def test_tables_over_two_revisions_are_refused(suite: Suite, tmp_path: Path) -> None:
    silent = replace(suite, answers="none")
    go(silent, tmp_path, limit=2)
    outcome = go(judged_by(silent, HalfMasks), tmp_path, limit=1)
    folder = outcome.systems[0].folder
    assert sorted(set(records(outcome)["oracle_revision"])) == [1, 2]
    with pytest.raises(OutputProblem, match="11 judged by revision 1, 11 judged by revision 2"):
        make_tables(folder, suite)
    finished = finish(suite, Invocation(home=tmp_path, quiet=True, track=False), outcome)
    assert finished.code == 0 and "revision 1" in finished.problems[0]
    other = go(suite, tmp_path / "other", limit=2)
    own_records, later_outcome = (
        Records.read(other.systems[0].folder),
        go(judged_by(suite, HalfMasks), tmp_path / "third", limit=2),
    )
    with pytest.raises(OutputProblem, match="bright by revision 1 and bright by revision 2"):
        common_cases([own_records, Records.read(later_outcome.systems[0].folder)])


def test_hidden_images_take_stored_answers_away(suite: Suite, tmp_path: Path) -> None:
    folder = go(suite, tmp_path).systems[0].folder
    assert len(list((folder / "answers").iterdir())) == 1
    hidden = replace(suite, privacy=Privacy(images="none"))
    go(hidden, tmp_path)
    assert not (folder / "answers").exists()


def test_unreadable_cases_stay_unchanged(suite: Suite, tmp_path: Path) -> None:
    before = records(go(suite, tmp_path))
    target = f"{LostBlobs.__module__}:{LostBlobs.__name__}"
    infos = [replace(plan.info, target=target, part=plan.info.digest_name) for plan in suite.seeds]
    lost_seeds = tuple(replace(plan, info=info) for plan, info in zip(suite.seeds, infos, strict=True))
    gone = replace(judged_by(suite, HalfMasks), seeds=lost_seeds)
    outcome = go(gone, tmp_path)
    messages = [line for line in outcome.notices if "could not be judged again" in line]
    assert len(messages) == 1 and "22 finished cases" in messages[0] and "No such file" in messages[0]
    after = records(outcome)
    lost = after["seed_id"].isin(["patient-0001", "patient-0003"]).to_numpy()
    assert set(after.loc[lost, "oracle_revision"]) == {1} and set(after.loc[~lost, "oracle_revision"]) == {2}
    pd.testing.assert_frame_equal(after[lost], before[lost])


def test_an_altered_answer_is_asked_for_again(suite: Suite, log: Path, tmp_path: Path) -> None:
    folder = go(suite, tmp_path).systems[0].folder
    (pack,) = (folder / "answers").iterdir()
    table = pq.read_table(pack)
    source = records(go(suite, tmp_path))["answer_sha256"][0].encode()
    answers = [
        b"" if name.encode() == source else answer
        for name, answer in zip(table["sha256"].to_pylist(), table["answer"].to_pylist(), strict=True)
    ]
    pq.write_table(table.set_column(2, table.schema.field(2), pa.array(answers, pa.binary())), pack)
    call_count = len(calls(log))
    later = judged_by(suite, HalfMasks)
    new = records(go(later, tmp_path))
    assert {address.split("/")[1] for address in calls(log)[call_count:]} == {"patient-0000"}
    assert_equal_records(new, records(go(later, tmp_path / "fresh")))


def test_an_oracle_that_breaks_is_asked_again(suite: Suite, log: Path, tmp_path: Path) -> None:
    before = go(suite, tmp_path)
    broken = records(go(judged_by(suite, BrokenMasks), tmp_path))
    assert set(broken["verdict"]) <= {"ERROR", "SKIP"}
    assert len(calls(log)) == 44  # of the first run
    assert_equal_records(records(go(suite, tmp_path)), records(go(suite, tmp_path / "fresh")))
    assert len(calls(log)) == 88 and before.systems[0].folder.is_dir()


def test_a_run_that_is_killed_while_it_judges_goes_on_from_there(suite: Suite, log: Path, tmp_path: Path) -> None:
    folder = go(suite, tmp_path).systems[0].folder
    body = (
        "from judging_parts import *\n"
        f"suite = judged_by(logged_suite(Path({str(log)!r})), StallingMasks)\n"
        "run_suite(suite, Invocation(home=home, quiet=True, workers=1), limits=Limits(samples=0, shard_seconds=0.1))\n"
    )
    program = script(body, tmp_path)
    wait_for(lambda: len(list((folder / "records").glob("shard-*.parquet"))) > 0)
    program.kill()
    program.wait()
    assert (folder / "records.parquet").is_file()
    assert sorted(set(read_table(folder, ["oracle_revision"])["oracle_revision"].to_pylist())) == [1, 2]
    outcome = go(judged_by(suite, HalfMasks), tmp_path)
    assert "22 finished cases judged again" in " ".join(outcome.notices)
    assert len(calls(log)) == 44
    assert_equal_records(records(outcome), records(go(judged_by(suite, HalfMasks), tmp_path / "fresh")))


def test_strips_show_stored_answers_and_ask_no_system(suite: Suite, log: Path, tmp_path: Path) -> None:
    shown = Limits(samples=6)
    folder = go(suite, tmp_path, limits=shown).systems[0].folder
    strips = {path.name: file_sha256(path) for path in (folder / "samples").glob("*.png")}
    earlier_calls = calls(log)
    assert len(strips) == 6 and len(earlier_calls) == 44  # the run's own cases only
    go(judged_by(suite, HalfMasks), tmp_path, limits=shown)
    assert len(list((folder / "samples").glob("*.png"))) == 6 and calls(log) == earlier_calls
    silent = go(replace(suite, answers="none"), tmp_path / "silent", limits=shown).systems[0].folder
    assert {path.name: file_sha256(path) for path in (silent / "samples").glob("*.png")} == strips
    assert len(calls(log)) > 88


def test_cases_that_failed_with_their_source_run_again_with_it(log: Path, tmp_path: Path) -> None:
    mark = tmp_path / "failed-once"
    suite = make_suite(
        seeds=1, systems={"bright": {"log": str(log), "fault": "nan", "when": "/source_", "once": str(mark)}}
    )
    failed = records(go(suite, tmp_path))
    assert failed["verdict"][0] == "ERROR" and set(failed["verdict"][1:]) == {"SKIP"}
    (planned,) = forecast(judged_by(suite, HalfMasks), Invocation(home=tmp_path))
    assert planned.judged == 0
    outcome = go(judged_by(suite, HalfMasks), tmp_path)
    assert not any("judged again" in notice for notice in outcome.notices)  # all eleven were asked again
    new = records(outcome)
    assert "ERROR" not in set(new["verdict"]) and set(new["oracle_revision"]) == {2}
    assert_equal_records(new, records(go(judged_by(suite, HalfMasks), tmp_path / "fresh")))


def test_answers_whose_source_has_none_are_judged_again_in_place(log: Path, tmp_path: Path) -> None:
    suite = make_suite(seeds=2, systems={"bright": {"log": str(log), "fault": "nan", "when": "patient-0001/source_"}})
    go(suite, tmp_path)
    earlier_calls = calls(log)
    new = records(go(judged_by(suite, HalfMasks), tmp_path, limit=1))  # the second seed is not to run
    assert calls(log) == earlier_calls and set(new["oracle_revision"]) == {2}
    assert new.loc[new["seed_id"] == "patient-0001", "verdict"].tolist() == ["ERROR", *["SKIP"] * 10]


def test_a_score_that_is_typed_is_recorded() -> None:
    plain = load("polyp_seg", ["model=pranet"])
    assert "mean_dice_256" not in plain.own.build_oracle().recorded
    typed = load("polyp_seg", ["model=pranet", "oracles.scores=[dice,mean_dice_256]"])
    assert typed.view and "mean_dice_256" in typed.own.build_oracle().recorded
    assert "mean_iou_256" not in typed.own.build_oracle().recorded
    assert load("polyp_seg", ["model=pranet", "answers=maps"]).own.composed["answers"] == "maps"


def test_a_gate_against_a_run_of_another_revision_is_not_held(suite: Suite, tmp_path: Path) -> None:
    base = go(with_composed(replace(suite, seed=8)), tmp_path).systems[0].folder
    gate = PairedGate(no_worse_than=str(base), score="dice")
    later = replace(judged_by(suite, HalfMasks), gates=(gate,))
    outcome = go(later, tmp_path)
    done = finish(later, Invocation(home=tmp_path, quiet=True, track=False), outcome)
    assert done.code == ExitCode.MISTAKE and "different revisions" in " ".join(done.problems)
