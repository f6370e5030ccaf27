"""Records of answers judged again, with another matrix or tolerance, equal those judged so at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from answer_parts import Instrument, Tint, answer_suite
from runner_helpers import assert_equal_records, go, records
from runner_parts import Dim

from medtest.report.finish import finish
from medtest.suite.digest import oracle_digest
from medtest.suite.model import Invocation, Suite
from medtest.tasks.ask.oracle import Answers

OTHER = {
    "expectations": {
        "dim": {"all": "may change", "text": "must become yes", "findings": "must become +2"},
        "instrument": {"instrument_place": "invariant", "all": "invariant", "polyps": "must become +inserted"},
        "white_balance": {"landmark_colour": "invariant"},
    },
    "tolerance": 1,
}


def make(oracle: dict[str, Any] | None = None) -> Suite:
    wrong = {"dim": 0.3, "instrument": 0.3, "unchanged": 0.1, "source": 0.2, "white_balance": 0.2}
    return answer_suite(
        seeds=4,
        systems={"teller": {"wrong": wrong, "refuses": 0.1, "unread": 0.1}},
        relations={"dim": Dim, "instrument": Instrument, "white_balance": Tint},
        again=1,
        oracle=oracle,
    )


def test_a_suite_with_other_expectations_judges_existing_answers(tmp_path: Path) -> None:
    first = records(go(make(), tmp_path / "one"))
    outcome = go(make(OTHER), tmp_path / "one")
    assert outcome.systems[0].cases_executed == 0
    again = records(outcome)
    fresh = records(go(make(OTHER), tmp_path / "two"))
    assert_equal_records(again, fresh)
    assert (first.verdict != again.verdict).sum() > 20
    assert {"PASS", "FAIL", "SKIP"} <= set(again[again.relation == "dim"].verdict)
    back = go(make(), tmp_path / "one")
    assert back.systems[0].cases_executed == 0
    assert_equal_records(records(back), first)


def test_a_view_s_tables_are_those_of_its_own_oracle(tmp_path: Path) -> None:
    own, other = make(), make(OTHER)
    outcome = go(own, tmp_path / "one")
    invocation = Invocation(home=tmp_path / "one", quiet=True, workers=1, track=False)
    finish(own, invocation, outcome)
    finish(other, invocation, outcome, view=oracle_digest(other).value)
    folder = outcome.systems[0].folder
    view = folder / "views" / oracle_digest(other).value / "tables"
    fresh = go(other, tmp_path / "two")
    done = finish(other, Invocation(home=tmp_path / "two", quiet=True, workers=1, track=False), fresh)
    assert done.reports[0].is_file()
    for name in ("flips", "flips_detail", "answer_accuracy", "answer_states", "answer_changes", "efr"):
        judged = pd.read_csv(view / f"{name}.csv")
        expected = pd.read_csv(fresh.systems[0].folder / "tables" / f"{name}.csv")
        pd.testing.assert_frame_equal(judged, expected)
        assert not judged.equals(pd.read_csv(folder / "tables" / f"{name}.csv")) or name == "answer_states"


@pytest.mark.parametrize("odd", ["words", "reason"])
def test_odd_signs_of_a_system_reach_no_table_and_no_page(tmp_path: Path, odd: str) -> None:
    suite = answer_suite(seeds=2, systems={"teller": {"odd": odd}}, again=1)
    outcome = go(suite, tmp_path)
    finish(suite, Invocation(home=tmp_path, quiet=True, workers=1, track=False), outcome)
    frame = records(outcome)
    if odd == "words":
        assert frame.answer.str.startswith("\\ud83d ").any() and (frame.state == "value").mean() > 0.5
    else:
        assert (frame[frame.relation != "source"].verdict == "ERROR").all()
    for path in outcome.systems[0].folder.rglob("*"):
        if path.suffix in (".csv", ".html", ".json"):
            text = path.read_text(encoding="utf-8")
            assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(text) and "abc12345" not in text


class Before(Answers):
    """The oracle of an earlier reading of words: it took every answer for a refusal."""

    revision: ClassVar[int] = Answers.revision - 1

    def describe(self, **case: Any) -> dict[str, str | None]:
        """Return the columns, all of them refusals."""
        columns = super().describe(**case)
        changed = {"state": "refusal", "said": "", "evidence": ""} if columns["state"] else {}
        return columns | changed | ({"source_state": "refusal", "source_said": ""} if columns["source_state"] else {})


def test_a_folder_of_an_older_reading_is_read_again_without_calls(tmp_path: Path) -> None:
    suite = make()
    part = suite.oracle.part
    before = replace(part, info=replace(part.info, target=f"{__name__}:{Before.__name__}"))
    old = replace(suite, oracle=replace(suite.oracle, part=before))
    first = records(go(old, tmp_path / "one"))
    assert set(first.state.dropna()) == {"refusal"}
    outcome = go(suite, tmp_path / "one")
    assert outcome.systems[0].cases_executed == 0
    fresh = records(go(suite, tmp_path / "two"))
    assert {"value", "refusal", "unparsed"} <= set(fresh.state)
    assert_equal_records(records(outcome), fresh)
