"""Suites that ask questions: every case once, for any order of answers, failures, budgets and crashes."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from question_parts import QUESTIONS, Meter, question_suite
from runner_helpers import QUICK, assert_equal_records, go, records, script, wait_for
from runner_parts import Dim, Picky

from medtest.core.errors import ExitCode, UserMistakes
from medtest.runner.replaying.replay_answers import replay_strips
from medtest.runner.reporting.outcome import Count, Limits
from medtest.runner.run import run_suite
from medtest.runner.units.asker import answer_seed
from medtest.suite.model import Invocation, Selection
from medtest.suite.reading.outline import outline
from medtest.systems.answering.asking import BudgetLimits

ROW = 1 + 5


def test_every_question_of_every_case_has_a_record(tmp_path: Path) -> None:
    frame = records(go(question_suite(), tmp_path))
    assert len(frame) == 4 * 3 * ROW
    assert list(frame.item[: 3 * ROW]) == [item for item in QUESTIONS for _ in range(ROW)]
    assert not frame.duplicated(["seed_id", "relation", "severity", "item"]).any()
    assert (frame.said == frame.number.map("{:.3f}".format)).all()
    assert (frame.question == frame.item).all()
    assert (frame.tokens == 10).all()
    assert set(frame[frame.relation == "source"].verdict) == {"PASS"}
    changed = frame[(frame.relation == "dim") & (frame.item == "level")]
    expected = (changed.number - changed.source_number).abs() > 20
    assert ((changed.verdict == "FAIL") == expected).all()
    assert expected.any()
    assert not expected.all()
    shared = frame.groupby(["seed_id", "relation", "severity"]).followup_sha256.nunique()
    assert (shared == 1).all(), "all questions of a follow-up share its image"


def test_the_order_of_answers_changes_nothing(tmp_path: Path) -> None:
    in_order = records(go(question_suite(systems={"meter": {"mix": 0}}), tmp_path / "one"))
    mixed = records(go(question_suite(systems={"meter": {"mix": 17}}), tmp_path / "other"))
    assert_equal_records(in_order, mixed)


def test_questions_together_are_one_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    apart = records(go(question_suite(), tmp_path / "apart"))
    frame = records(go(question_suite(systems={"meter": {"log": str(log)}}, together=True), tmp_path / "one"))
    calls = log.read_text().splitlines()
    assert len(calls) == 4 * ROW
    assert all(line.split()[0].endswith("/together") for line in calls)
    assert_equal_records(frame, apart)
    questions = frame.groupby("seed_id")["item"].transform("nunique")
    assert questions.min() > 1
    assert frame.elapsed_ms.tolist() == pytest.approx((10 / questions).tolist())  # the call took 10 ms


def test_seeds_may_ask_different_questions(tmp_path: Path) -> None:
    suite = question_suite(ragged=True)
    outcome = go(suite, tmp_path)
    frame = records(outcome)
    assert Counter(frame.seed_id) == {f"patient-{n:04d}": (2 if n % 2 else 3) * ROW for n in range(4)}
    assert outcome.systems[0].planned == outcome.systems[0].finished == 10 * ROW
    assert not outcome.systems[0].partial
    again = go(suite, tmp_path)
    assert again.systems[0].cases_executed == 0
    assert again.systems[0].cases_reused == 10 * ROW


def test_a_call_s_seed_and_label_say_which_case_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    go(question_suite(seeds=2, systems={"meter": {"log": str(log)}}), tmp_path)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len({label for label, *_ in lines}) == len(lines) == 2 * 3 * ROW
    assert len({seed for _, seed, *_ in lines}) == len(lines)
    assert all(0 <= int(seed) < 2**31 for _, seed, *_ in lines)
    label, seed, repeat, *_ = next(line for line in lines if line[0] == "blobs/patient-0000/dim_s2_f0_r0/red")
    assert repeat == "1"
    from medtest.core.cases import Address

    address = Address(dataset="blobs", seed_id="patient-0000", relation="dim", severity=2, item="red")
    assert int(seed) == answer_seed(7, address)
    assert str(address) == label


def test_only_a_question_is_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    suite = question_suite(systems={"meter": {"log": str(log)}})
    frame = records(go(suite, tmp_path, only=Selection(questions=frozenset({"red"}), severities=frozenset({3}))))
    assert len(frame) == 4 * 2
    assert set(frame.item) == {"red"}
    assert len(log.read_text().splitlines()) == 4 * 2
    with pytest.raises(UserMistakes, match=r"(?s)question:gold.*bright, level, red"):
        go(suite, tmp_path, only=Selection(questions=frozenset({"gold"})))


def test_a_budget_ends_the_run_whole_and_the_next_one_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    systems: dict[str, dict[str, Any]] = {"meter": {"log": str(log)}}
    first = go(question_suite(systems=systems), tmp_path, budget=BudgetLimits(max_calls=20))
    assert first.stopped is ExitCode.BUDGET
    assert any("the budget is reached" in notice for notice in first.notices)
    assert first.systems[0].partial
    begun = records(first)
    assert 0 < len(begun) <= 20
    assert not (begun.verdict == "ERROR").any()
    second = go(question_suite(systems=systems), tmp_path)
    assert second.stopped is ExitCode.OK
    assert not second.systems[0].partial
    assert_equal_records(records(second), records(go(question_suite(), tmp_path / "whole")))


def test_one_system_s_budget_leaves_the_others_alone(tmp_path: Path) -> None:
    outcome = go(question_suite(systems={"poor": {"calls": 7}, "rich": {}}), tmp_path)
    assert outcome.stopped is ExitCode.BUDGET
    assert outcome.systems[0].partial
    assert not outcome.systems[1].partial
    assert len(records(outcome, 1)) == 4 * 3 * ROW


def test_exhausted_retries_are_errors_and_a_failed_source_blames_once(tmp_path: Path) -> None:
    frame = records(go(question_suite(systems={"meter": {"fault": "error"}}), tmp_path / "one"))
    assert set(frame[frame.severity == 3].verdict) == {"ERROR"}
    assert set(frame[frame.severity == 3].reason_code) == {"system_error"}
    assert (frame[frame.severity != 3].verdict != "ERROR").all()
    frame = records(go(question_suite(systems={"meter": {"fault": "source"}}), tmp_path / "two"))
    assert set(frame[frame.relation == "source"].verdict) == {"ERROR"}
    assert set(frame[frame.relation == "dim"].verdict) == {"SKIP"}
    assert set(frame[frame.relation == "dim"].reason_code) == {"source_failed"}


def test_a_system_that_raises_fails_what_it_had_not_answered(tmp_path: Path) -> None:
    outcome = go(question_suite(systems={"meter": {"fault": "raise"}, "other": {}}), tmp_path)
    frame = records(outcome)
    assert len(frame) == 4 * 3 * ROW
    assert {"ERROR", "PASS"} <= set(frame.verdict)
    assert "ValueError: cannot do this one" in set(frame[frame.verdict == "ERROR"].reason)
    assert (records(outcome, 1).verdict != "ERROR").all()


def test_a_system_that_ends_early_leaves_no_case_out(tmp_path: Path) -> None:
    frame = records(go(question_suite(seeds=2, systems={"meter": {"fault": "quit"}}), tmp_path))
    assert len(frame) == 2 * 3 * ROW
    failed = frame[frame.verdict == "ERROR"]
    assert len(failed) > 0
    assert (failed.reason_code == "system_error").all()


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    frame = records(go(question_suite(systems={"meter": {"fault": "exit", "once": str(mark)}}), tmp_path))
    assert_equal_records(frame, records(go(question_suite(), tmp_path / "whole")))


def test_counters_that_break_once_are_shown_again(tmp_path: Path) -> None:
    class Shown:
        def __init__(self) -> None:
            self.calls: set[str] = set()

        def update(self, count: Count) -> None:
            self.calls.add(count.calls)

        def close(self) -> None: ...

    shown = Shown()
    suite = question_suite(seeds=2, systems={"meter": {"fault": "counters", "pause": 0.08}})
    run_suite(suite, Invocation(home=tmp_path, quiet=True, workers=1), progress=shown, limits=QUICK)
    assert "in flight 1" in shown.calls


@pytest.mark.parametrize("fault", ["drop", "late"])
@pytest.mark.timeout(90)
def test_a_dropped_call_is_an_error_and_delays_no_other(tmp_path: Path, fault: str) -> None:
    outcome = go(question_suite(seeds=5, systems={"meter": {"fault": fault, "silent": 1.5}}), tmp_path)
    frame = records(outcome)
    assert len(frame) == 5 * 3 * ROW
    lost = (frame.seed_id == "patient-0001") & (frame.relation == "dim") & (frame.severity == 3)
    assert set(frame[lost].verdict) == {"ERROR"}
    assert (frame[lost].reason_code == "timeout").all()
    assert set(frame[~lost].verdict) <= {"PASS", "FAIL"}


def test_a_slow_system_that_says_something_now_and_then_is_not_cut_off(tmp_path: Path) -> None:
    suite = question_suite(seeds=1, systems={"meter": {"pause": 0.4, "silent": 1.5, "mix": 0}})
    some = Selection(severities=frozenset({1}))  # six calls, one after another: longer than it may be silent
    assert set(records(go(suite, tmp_path, only=some)).verdict) <= {"PASS", "FAIL"}


@pytest.mark.slow
@pytest.mark.usefixtures("own_servers")  # the memory of a worker at its start is counted
def test_a_worker_that_grows_is_replaced_and_no_question_is_asked_twice(tmp_path: Path) -> None:
    log = tmp_path / "log"
    suite = question_suite(seeds=14, systems={"meter": {"fault": "leak", "log": str(log)}})
    outcome = go(suite, tmp_path, limits=Limits(samples=0, worker_bytes=350 * 1024**2))
    assert [notice for notice in outcome.notices if "leaks memory" in notice]
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len({label for label, *_ in lines}) == len(lines) == 14 * 3 * ROW
    assert len({pid for *_, pid in lines}) >= 2
    assert_equal_records(records(outcome), records(go(question_suite(seeds=14), tmp_path / "whole")))


def interrupted(home: Path, settings: dict[str, Any], halt_seconds: float = 3.0) -> int:
    """Run in a separate process, interrupt it after a few questions; return exit code and seconds."""
    log = home / "log"
    process = script(
        "from question_parts import question_suite\n"
        "import medtest.runner.pool.dispatch as dispatch\n"
        f"dispatch.HALT_SECONDS = {halt_seconds}\n"
        f"suite = question_suite(systems={{'meter': { ({**settings, 'log': str(log)})!r}}})\n"
        "outcome = run_suite(suite, Invocation(home=home, quiet=True), limits=Limits(samples=0))\n"
        "sys.exit(130 if outcome.interrupted else 0)\n",
        home,
    )
    wait_for(lambda: log.is_file() and len(log.read_text().splitlines()) > 8, 60)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return int(process.returncode)


def test_an_interrupt_records_every_answer_that_came(tmp_path: Path) -> None:
    settings = {"pause": 0.05, "mix": 0}
    code = interrupted(tmp_path, settings)
    assert code == 130
    labels = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    suite = question_suite(systems={"meter": {**settings, "log": str(tmp_path / "log")}})
    frame = records(go(suite, tmp_path))
    again = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()][len(labels) :]
    # Sources are asked again if follow-ups are still to be compared with them; no other case is.
    assert not [label for label in set(labels) & set(again) if "/dim" in label]
    assert [label for label in labels if "/dim" in label]
    assert_equal_records(frame, records(go(question_suite(), tmp_path / "whole")))


def test_a_call_that_does_not_end_is_given_up_after_the_interrupt_s_bound(tmp_path: Path) -> None:
    assert interrupted(tmp_path, {"fault": "hang"}, halt_seconds=1.0) == 130  # the call itself never ends


def test_a_seed_that_cannot_be_read_and_a_follow_up_that_cannot_be_made(tmp_path: Path) -> None:
    frame = records(go(question_suite(relations={"dim": Dim, "picky": Picky}, gone=True), tmp_path))
    lost = frame[frame.seed_id == "patient-0001"]
    assert set(lost[lost.relation == "source"].verdict) == {"ERROR"}
    assert set(lost[lost.relation != "source"].verdict) == {"SKIP"}
    rest = frame[(frame.seed_id != "patient-0001") & (frame.relation == "picky")]
    assert set(rest[rest.severity.isin([1, 3, 5])].verdict) == {"SKIP"}
    assert set(rest[rest.severity.isin([2, 4])].verdict) == {"ERROR"}


def test_files_of_a_system_are_in_no_manifest(tmp_path: Path) -> None:
    folder = go(question_suite(seeds=1), tmp_path).systems[0].folder
    assert (folder / "ledger.sqlite").is_file()
    assert "ledger" not in (folder / "manifest.sha256").read_text()


def test_a_plan_counts_questions(tmp_path: Path) -> None:
    plan = outline(question_suite(ragged=True), Invocation(home=tmp_path))
    assert plan.questions == 3
    assert plan.sources == 10
    assert plan.follow_ups == 10 * 5
    assert plan.systems[0].quote is None
    assert Meter.tasks == ("answer",)


def test_strips_are_drawn_again_without_asking(tmp_path: Path) -> None:
    log = tmp_path / "log"
    suite = question_suite(seeds=2, systems={"meter": {"log": str(log)}})
    go(suite, tmp_path)
    calls = log.read_text()
    out = tmp_path / "replayed"
    written = replay_strips(suite, Invocation(home=tmp_path, quiet=True), "blobs/patient-0001/dim_s4_f0_r0/red", out)
    assert written
    assert all(strip.file.is_file() for strip in written)
    assert log.read_text() == calls
