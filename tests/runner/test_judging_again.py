"""An oracle of a later revision judges the answers that a run kept, and asks no system again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from judging_parts import AreaMasks, HalfMasks, calls, judged_by, logged_suite
from runner_helpers import assert_equal_records, go, records

from medtest.report.finish import finish
from medtest.runner import RunOutcome
from medtest.suite.model import Invocation, Suite


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.log"


@pytest.fixture
def suite(log: Path) -> Suite:
    return logged_suite(log)


def tabled(suite: Suite, home: Path, **options: Any) -> tuple[RunOutcome, pd.DataFrame]:
    """Run and make tables; return what came out and ``seeds.csv``."""
    outcome = go(suite, home, **options)
    finish(suite, Invocation(home=home, quiet=True, track=False), outcome)
    target = outcome.systems[0].folder
    target = target / "views" / outcome.view if outcome.view else target
    return outcome, pd.read_csv(target / "tables" / "seeds.csv")


def test_a_raised_revision_judges_stored_answers(suite: Suite, log: Path, tmp_path: Path) -> None:
    outcome, before = tabled(suite, tmp_path, limit=1)
    asked, old = calls(log), records(outcome)
    assert set(old["oracle_revision"]) == {1}
    outcome, after = tabled(judged_by(suite, HalfMasks), tmp_path)
    new = records(outcome)
    assert set(new["oracle_revision"]) == {2}
    assert len(after) == 4 and (after["dice"] <= 0.5).all()
    assert after["dice"][0] == before["dice"][0] / 2
    first = [address for address in calls(log)[len(asked) :] if "/patient-0000/" in address]
    assert first == []
    assert "11 finished cases judged again" in " ".join(outcome.notices)
    fresh = records(go(judged_by(suite, HalfMasks), tmp_path / "fresh"))
    assert_equal_records(new, fresh)
    assert new.loc[new["seed_id"] == "patient-0000", "elapsed_ms"].tolist() == old["elapsed_ms"].tolist()


def test_a_new_score_reaches_finished_cases(suite: Suite, log: Path, tmp_path: Path) -> None:
    go(suite, tmp_path)
    asked = len(calls(log))
    new = records(go(judged_by(suite, AreaMasks), tmp_path))
    assert len(calls(log)) == asked
    assert (new["pixels"] > 0).all() and (new["source_pixels"] > 0).all()
    assert_equal_records(new, records(go(judged_by(suite, AreaMasks), tmp_path / "fresh")))
