"""Systems and relations that misbehave: their cases get verdicts, and all others are as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runner_helpers import QUICK, assert_equal_records, go, records, script
from runner_parts import Dim, Picky, Stuck, make_suite

from medtest.core.errors import MedtestError
from medtest.runner.reporting.outcome import Limits

ONE = "patient-0001/dim_s3"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The records of a system without faults."""
    return records(go(make_suite(seeds=2), tmp_path_factory.mktemp("healthy")))


def _others_are_well(frame: Any, healthy: Any, bad: Any) -> None:
    assert_equal_records(frame[~bad].reset_index(drop=True), healthy[~bad].reset_index(drop=True))


def _case(frame: Any, address: str) -> Any:
    seed, case = address.split("/")
    relation, severity = case.split("_s")
    return (frame.seed_id == seed) & (frame.relation == relation) & (frame.severity == int(severity))


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        ("raise", "system_error", "ValueError: cannot do this one"),
        ("nan", "invalid_answer", "NaN"),
        ("shape", "invalid_answer", "shape"),
        ("none", "invalid_answer", "None"),
        ("sysexit", "system_error", "SystemExit: 5"),
    ],
)
def test_one_bad_case_sinks_no_other(tmp_path: Path, healthy: Any, fault: str, code: str, reason: str) -> None:
    outcome = go(make_suite(seeds=2, systems={"bright": {"fault": fault, "when": ONE}}), tmp_path)
    frame = records(outcome)
    bad = _case(frame, ONE)
    assert list(frame[bad].verdict) == ["ERROR"] and list(frame[bad].reason_code) == [code]
    assert reason.lower() in frame[bad].reason.iloc[0].lower()
    assert frame[bad].dice.isna().all() and frame[bad].source_dice.notna().all() and frame[bad].followup_sha256.all()
    _others_are_well(frame, healthy, bad)
    assert outcome.systems[0].error_percent == pytest.approx(100 / 22)


def test_no_text_of_a_system_ends_a_run_or_shows_a_key(tmp_path: Path, healthy: Any) -> None:
    outcome = go(make_suite(seeds=2, systems={"bright": {"fault": "odd", "when": ONE}}), tmp_path)
    frame = records(outcome)
    bad = _case(frame, ONE)
    shown = "ValueError: half \\ud83d \\x1b[2J\\x9b \\u202etxet Authorization: Bearer [hidden] api_key=[hidden]"
    assert frame[bad].reason.iloc[0].startswith(shown)
    _others_are_well(frame, healthy, bad)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"abc12345" not in written and b"q9w8" not in written


def test_too_few_answers_are_asked_for_one_by_one(tmp_path: Path, healthy: Any) -> None:
    frame = records(go(make_suite(seeds=2, systems={"bright": {"fault": "short", "when": ONE}}), tmp_path))
    bad = _case(frame, ONE)
    assert list(frame[bad].reason_code) == ["invalid_answer"]
    _others_are_well(frame, healthy, bad)


def test_a_missing_prediction_is_no_fault(tmp_path: Path, healthy: Any) -> None:
    outcome = go(make_suite(seeds=2, systems={"bright": {"fault": "missing", "when": ONE}}), tmp_path)
    frame = records(outcome)
    bad = _case(frame, ONE)
    assert list(frame[bad].verdict) == ["SKIP"] and list(frame[bad].reason_code) == ["no_prediction"]
    _others_are_well(frame, healthy, bad)
    assert outcome.systems[0].error_percent == 0


def test_a_missing_source_prediction_skips_its_follow_ups(tmp_path: Path) -> None:
    outcome = go(make_suite(seeds=2, systems={"bright": {"fault": "missing", "when": "patient-0001/source"}}), tmp_path)
    frame = records(outcome).query("seed_id == 'patient-0001'")
    assert set(frame.verdict) == {"SKIP"} and list(frame.reason_code) == [
        "no_prediction",
        *["no_source_prediction"] * 10,
    ]
    assert outcome.systems[0].error_percent == 0


def test_a_failed_source_is_blamed_once_and_run_again_with_its_follow_ups(tmp_path: Path, healthy: Any) -> None:
    mark = tmp_path / "mark"
    fault = {"fault": "nan", "when": "patient-0001/source", "once": str(mark)}
    suite = make_suite(seeds=2, systems={"bright": fault})
    outcome = go(suite, tmp_path)
    frame = records(outcome).query("seed_id == 'patient-0001'")
    assert frame.verdict.iloc[0] == "ERROR" and set(frame.verdict[1:]) == {"SKIP"}
    assert (frame.reason_code[1:] == "source_failed").all() and frame.dice[1:].notna().all()
    assert outcome.systems[0].error_percent == pytest.approx(50)
    again = go(suite, tmp_path)
    assert again.systems[0].cases_executed == 11 and again.systems[0].error_percent == 0
    assert_equal_records(records(again), healthy)


def test_error_cases_are_run_again_and_the_newer_row_counts(tmp_path: Path, healthy: Any) -> None:
    suite = make_suite(seeds=2, systems={"bright": {"fault": "nan", "when": ONE, "once": str(tmp_path / "mark")}})
    assert go(suite, tmp_path).systems[0].counts["ERROR"] == 1
    again = go(suite, tmp_path)
    assert (again.systems[0].cases_executed, again.systems[0].counts["ERROR"]) == (1, 0)
    assert_equal_records(records(again), healthy)


def test_a_hanging_batch_is_given_up_and_the_unit_goes_on(tmp_path: Path, healthy: Any) -> None:
    suite = make_suite(seeds=2, systems={"bright": {"fault": "hang", "when": ONE}, "other": {}})
    outcome = go(suite, tmp_path, batch_size=4, batch_seconds=2.0)
    frame = records(outcome)
    bad = frame.reason_code == "timeout"
    assert list(frame[bad].verdict) == ["ERROR"] * 4 and set(frame[bad].seed_id) == {"patient-0001"}
    assert list(frame[bad].severity) == [0, 1, 2, 3]  # the source shares its batch with the first three follow-ups
    rest = (frame.seed_id == "patient-0001") & ~bad
    assert set(frame[rest].verdict) == {"SKIP"} and (frame[rest].reason_code == "source_failed").all()
    _others_are_well(frame, healthy, frame.seed_id == "patient-0001")
    assert_equal_records(records(outcome, 1).drop(columns="system"), healthy.drop(columns="system"))


@pytest.mark.slow
def test_a_hang_in_a_later_batch_leaves_the_others(tmp_path: Path, healthy: Any) -> None:
    suite = make_suite(seeds=2, systems={"bright": {"fault": "hang", "when": "patient-0000/dim2_s1"}})
    frame = records(go(suite, tmp_path, batch_size=4, batch_seconds=2.0))
    bad = frame.verdict == "ERROR"
    assert list(zip(frame[bad].relation, frame[bad].severity, strict=True)) == [
        ("dim", 4), ("dim", 5), ("dim2", 1), ("dim2", 2),
    ]  # fmt: skip
    _others_are_well(frame, healthy, bad)


@pytest.mark.parametrize(("fault", "reason"), [("exit", "ended with exit code 3"), ("segfault", "killed by SIGSEGV")])
def test_a_system_that_takes_its_process_down(tmp_path: Path, healthy: Any, fault: str, reason: str) -> None:
    suite = make_suite(seeds=2, systems={"bright": {"fault": fault, "when": "patient-0000/dim2_s1"}})
    frame = records(go(suite, tmp_path, batch_size=4))
    bad = frame.verdict == "ERROR"
    assert bad.sum() == 4 and (frame[bad].reason_code == "crash").all() and frame[bad].reason.str.contains(reason).all()
    _others_are_well(frame, healthy, bad)


def test_one_crash_is_forgiven(tmp_path: Path, healthy: Any) -> None:
    fault = {"fault": "exit", "when": "patient-0000/dim2_s1", "once": str(tmp_path / "mark")}
    outcome = go(make_suite(seeds=2, systems={"bright": fault}), tmp_path)
    assert_equal_records(records(outcome), healthy)


def test_relations_that_do_not_apply_break_or_lie(tmp_path: Path) -> None:
    frame = records(go(make_suite(seeds=1, relations={"picky": Picky, "dim": Dim}), tmp_path))
    picky = frame[frame.relation == "picky"].set_index("severity")
    assert list(picky.verdict) == ["SKIP", "ERROR", "SKIP", "ERROR", "SKIP"]
    assert list(picky.reason_code[[1, 2, 4]]) == ["not_applicable", "relation_error", "relation_error"]
    assert "(63, 64, 3)" in picky.reason[2] and "RuntimeError: broken on patient-0000" in picky.reason[4]
    assert "/home/someone" not in picky.reason[4]
    assert picky.scale.isna().all() and (picky.followup_sha256 == "").all() and picky.source_dice.notna().all()
    assert set(frame[frame.relation == "dim"].verdict) <= {"PASS", "FAIL"}


@pytest.mark.slow
def test_a_relation_that_hangs(tmp_path: Path) -> None:
    suite = make_suite(seeds=1, relations={"stuck": Stuck, "dim": Dim}, severities=(1, 2))
    frame = records(go(suite, tmp_path, batch_size=3, batch_seconds=2.0))
    assert list(frame.verdict[:3]) == ["PASS", "ERROR", "ERROR"]
    assert frame.reason_code[2] == "timeout" and "relation" in frame.reason[2] and set(frame.verdict[3:]) == {"PASS"}


def test_a_system_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(MedtestError, match="'bright' cannot be loaded: OSError: the weights are torn"):
        go(make_suite(systems={"bright": {"fault": "open"}}), tmp_path)


def test_a_process_that_dies_while_loading(tmp_path: Path) -> None:
    with pytest.raises(MedtestError, match="ended with exit code 7, 3 times in a row"):
        go(make_suite(systems={"bright": {"fault": "open_exit"}}), tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("own_servers")  # the memory of a worker at its start is counted
def test_a_leak_is_bounded_by_replacing_the_worker(tmp_path: Path) -> None:
    leak = make_suite(seeds=12, systems={"bright": {"fault": "leak"}}, severities=(1, 2))
    outcome = go(leak, tmp_path, limits=Limits(samples=0, worker_bytes=350 * 1024**2))
    assert outcome.systems[0].counts["ERROR"] == 0 and outcome.systems[0].finished == 60
    assert [n for n in outcome.notices if "leaks memory" in n]


def test_output_of_a_system_stays_out_of_the_way(tmp_path: Path) -> None:
    process = script(
        "class Loud(Threshold):\n"
        "    pass\n"
        "outcome = run_suite(make_suite(seeds=1), Invocation(home=home), limits=Limits(samples=0))\n"
        "sys.stdout.write('torch' if 'torch' in sys.modules else 'no torch')\n",
        tmp_path,
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "no torch", "")


def test_a_run_works_from_a_script_without_main_guard_and_from_a_thread(tmp_path: Path) -> None:
    import threading

    outcomes: list[Any] = []
    thread = threading.Thread(target=lambda: outcomes.append(go(make_suite(seeds=1), tmp_path, limits=QUICK)))
    thread.start()
    thread.join(120)
    assert outcomes[0].systems[0].finished == 11
