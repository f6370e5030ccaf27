"""Searches in runs: thresholds found, resumed in the middle, replayed, kept out of rates, and refused where unfit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runner_helpers import assert_equal_records, go, records, wait_for
from searching_parts import LEVELS, Bluish, search_suite

from medtest.relations.calibration.searching.queries import BUDGET, QUERIES, unfit
from medtest.relations.calibration.searching.strengths import Strengths
from medtest.report.pages.material import Material
from medtest.report.pages.page import report_html
from medtest.results.attacks.searched import AMBIGUOUS
from medtest.results.records.wanted import Wanted
from medtest.results.tables import make_tables
from medtest.runner.replaying.replay import replay_case
from medtest.runner.reporting.outcome import Limits, RunOutcome
from medtest.suite.compose import load
from medtest.suite.model import Invocation, Selection, Suite
from medtest.testing import load_relation, synthetic_seed

SCALE = LEVELS[5]
BLUR: dict[str, Any] = {
    "params": {"kernel_size": 13},
    "levels": {1: {"sigma": 1}, 3: {"sigma": 2.0}, 5: {"sigma": 4.0}},
}


def searched(suite: Suite, outcome: RunOutcome, number: int = 0) -> pd.DataFrame:
    """Return ``search.csv``."""
    return make_tables(outcome.systems[number].folder, suite).named()["search.csv"]


def asked_addresses(log: Path) -> list[str]:
    return [line.rpartition("/")[2] for line in log.read_text().splitlines()]


def within(table: pd.DataFrame, *thresholds: float) -> np.ndarray[Any, Any]:
    """Return a mask of the searches that met a threshold within 1 % of the scale."""
    scales = table["scale"].to_numpy(dtype=float)[:, None]
    return np.asarray((np.abs(scales - np.array(thresholds)) <= 0.01 * SCALE).any(axis=1))


def ambiguous(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    return np.array([any(note in text for note in AMBIGUOUS) for text in table["note"]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "thresholds"),
    [
        ({"fails": ((0.53, 1.0),)}, (0.53,)),
        ({"fails": ((0.31, 0.47), (0.75, 1.0))}, (0.31, 0.75)),
        ({"fails": ((0.53, 1.0),), "jitter": 0.08}, (0.53,)),
        ({"fails": ((0.25, 0.3), (0.75, 1.0)), "jitter": 0.02}, (0.25, 0.75)),
    ],
    ids=["one", "two", "stochastic", "two, stochastic"],
)
def test_thresholds_are_met_on_a_hundred_seeds(
    settings: dict[str, Any], thresholds: tuple[float, ...], tmp_path: Path
) -> None:
    suite = replace(search_suite(seeds=100, **settings), privacy=replace(search_suite().privacy, images="none"))
    table = searched(suite, go(suite, tmp_path, workers=2))
    assert len(table) == 100
    assert (table["state"] == "fails").all()
    met = within(table, *thresholds)
    assert (met | ambiguous(table)).all(), table.loc[~met, ["scale", "note"]]
    assert np.all(table["passing_scale"] < table["scale"])
    if "jitter" not in settings:
        assert met.all()
        assert ambiguous(table).all() == (len(thresholds) == 2)


def test_queries_are_no_case_of_any_rate(tmp_path: Path) -> None:
    suite = search_suite(seeds=3)
    plain = replace(suite, relations=tuple(replace(plan, search="") for plan in suite.relations))
    outcome, without = go(suite, tmp_path / "a"), go(plain, tmp_path / "b")
    tables = make_tables(outcome.systems[0].folder, suite)
    pd.testing.assert_frame_equal(tables.efr, make_tables(without.systems[0].folder, plain).efr)
    assert tables.counts.verdicts == make_tables(without.systems[0].folder, plain).counts.verdicts
    frame = records(outcome)
    queries = frame[frame["search"].notna()]
    assert len(queries) == 3 * len(QUERIES["mildest"])
    assert set(queries["crafted_on"]) == {"reader"}
    assert queries["params"].map(json.loads).map(len).eq(2).all()
    per_seed = queries[queries["search"] == "mildest"].groupby("seed_id")["queries"].apply(list)
    assert all(numbers == list(range(1, 9)) for numbers in per_seed)
    levels = frame[frame["search"].isna() & (frame["severity"] > 0)]
    old = records(without)
    shared = list(old.columns)
    pd.testing.assert_frame_equal(
        levels[shared].drop(columns="elapsed_ms").reset_index(drop=True),
        old[old["severity"] > 0].drop(columns="elapsed_ms").reset_index(drop=True),
    )


def test_all_draws_but_the_severity_are_fixed(tmp_path: Path) -> None:
    frame = records(go(search_suite(seeds=2), tmp_path))
    followups = frame[frame["relation"] == "code"]
    for _, rows in followups.groupby("seed_id"):
        assert rows["params"].map(lambda text: json.loads(text)["angle"]).nunique() == 1


def test_replay_makes_the_picture_of_the_record_and_searches_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    suite = search_suite(seeds=1, log=str(log))
    outcome = go(suite, tmp_path)
    before = log.read_text()
    row = records(outcome).query("search == 'mildest' and queries == 6").iloc[0]
    replayed = replay_case(suite, Invocation(home=tmp_path), str(row["address"]))
    assert replayed.followup_sha256 == row["followup_sha256"]
    assert replayed.scale == row["scale"]
    assert replayed.params == json.loads(row["params"])
    assert log.read_text() == before


def test_workers_do_not_change_a_search(tmp_path: Path) -> None:
    suite = search_suite(seeds=4)
    assert_equal_records(records(go(suite, tmp_path / "1")), records(go(suite, tmp_path / "2", workers=2)))


@pytest.mark.parametrize("search", ["mildest", "worst"])
def test_a_search_that_was_stopped_continues_in_the_middle(search: str, tmp_path: Path) -> None:
    # The first call records the levels and stops in the middle of a search by a case that is an ERROR.
    log, healed = tmp_path / "log", tmp_path / "healed"
    settings: dict[str, Any] = {"log": str(log), "fails": ((0.53, 1.0),)}
    suite = search_suite(search, seeds=1, healed_by=str(healed), **settings)
    first = go(suite, tmp_path / "home")
    broken = records(first)
    assert (broken["verdict"] == "ERROR").sum() == 1
    log.unlink()
    healed.touch()
    again = records(go(suite, tmp_path / "home"))
    # The source is asked about with its whole batch; of the search, only the case without a verdict.
    assert {name for name in asked_addresses(log) if name.startswith("code_s0_")} == {"code_s0_f3_r0"}
    assert not (again["verdict"] == "ERROR").any()


def test_a_level_alone_and_then_its_search_are_the_whole_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    suite = search_suite(seeds=2, log=str(log))
    whole = records(go(suite, tmp_path / "whole"))
    chosen = Selection(relations=frozenset({"code"}), severities=frozenset({1, 3}))
    go(suite, tmp_path / "parts", only=chosen)
    log.unlink()
    go(suite, tmp_path / "parts", only=replace(chosen, severities=frozenset({0})))
    # Levels without a record are asked about for the search, without a new record.
    assert {name for name in asked_addresses(log) if "_s0_" not in name and "code" in name} >= {
        "code_s2_f0_r0",
        "code_s5_f0_r0",
    }
    assert_equal_records(records(go(suite, tmp_path / "parts")), whole)


def test_a_limit_searches_the_first_seeds_as_the_whole_run_does(tmp_path: Path) -> None:
    suite = search_suite(seeds=3)
    first = records(go(suite, tmp_path, limit=1))
    assert set(first["seed_id"]) == {"patient-0000"}
    whole = records(go(suite, tmp_path))
    assert_equal_records(first, whole[whole["seed_id"] == "patient-0000"].reset_index(drop=True))


def test_each_system_is_searched_for_itself(tmp_path: Path) -> None:
    suite = search_suite(seeds=1, systems={"weak": {"fails": ((0.33, 1.0),)}, "strong": {"fails": ((0.93, 1.0),)}})
    outcome = go(suite, tmp_path)
    for number, threshold in enumerate((0.33, 0.93)):
        table = searched(suite, outcome, number)
        assert within(table, threshold).all()
        assert set(table["crafted_on"]) == {("weak", "strong")[number]}


def test_a_kill_in_the_middle_of_a_search_loses_nothing(tmp_path: Path) -> None:
    from forked_program import Program

    log = tmp_path / "log"
    suite = f"search_suite('worst', seeds=1, pause=0.03, log={str(log)!r})"
    body = (
        "from pathlib import Path\n"
        "from searching_parts import search_suite\n"
        "from medtest.runner.reporting.outcome import Limits\n"
        "from medtest.runner.run import run_suite\n"
        "from medtest.suite.model import Invocation\n"
        f"run_suite({suite}, Invocation(home=Path({str(tmp_path / 'home')!r}), quiet=True, workers=1),\n"
        "    limits=Limits(samples=0, shard_seconds=0.1, send_seconds=0.05))\n"
    )
    program = Program(body, modules=("medtest.runner", "medtest.runner.units.session"))
    home = tmp_path / "home"
    wait_for(lambda: log.exists() and len(log.read_text().splitlines()) > 40 and any(home.rglob("shard-*.parquet")))
    program.kill()
    program.wait()
    log.unlink()
    resumed = records(
        go(search_suite("worst", seeds=1, pause=0.03, log=str(log)), tmp_path / "home", limits=Limits(samples=0))
    )
    again = asked_addresses(log)
    assert len(again) < 2 * BUDGET  # what is on disk is not asked about again
    assert sum("_s0_" in name for name in again) > 10
    whole = records(go(search_suite("worst", seeds=1, pause=0.0), tmp_path / "whole"))
    assert_equal_records(resumed, whole)


def test_skips_and_errors_in_a_search_leave_its_bracket_open(tmp_path: Path) -> None:
    # No room between 0.5 and 0.56 and a fault between 0.42 and 0.46: the middle of the bracket has no verdict.
    suite = search_suite(seeds=2, relation={"no_room": (0.49, 0.56), "broken": (0.42, 0.46)})
    outcome = go(suite, tmp_path)
    frame = records(outcome)
    queries = frame[frame["search"] == "mildest"]
    assert set(queries["verdict"]) >= {"SKIP", "FAIL"}
    table = searched(suite, outcome)
    assert (table["scale"] - 0.56 < 0.01).all()
    assert (table["passing_scale"] < 0.49).all()


def test_nothing_is_bisected_where_nothing_fails_or_the_mildest_level_does(tmp_path: Path) -> None:
    suite = search_suite(seeds=1, systems={"perfect": {"fails": ()}, "weak": {"fails": ((0.0, 1.0),)}})
    outcome = go(suite, tmp_path)
    perfect, weak = (records(outcome, number).query("search == 'mildest'") for number in (0, 1))
    for frame, reason in ((perfect, "no level fails"), (weak, "the mildest level fails already")):
        assert set(frame["verdict"]) == {"SKIP"}
        assert set(frame["reason_code"]) == {"search_over"}
        assert set(frame["reason"]) == {reason}
    tables = make_tables(outcome.systems[0].folder, suite).named()
    assert list(tables["search_relations.csv"]["passed"]) == [1, 1]
    assert list(tables["search_curve.csv"]["passing_share"]) == [1.0, 1.0, 1.0, 1.0]
    weak_table = searched(suite, outcome, 1)
    assert list(weak_table["note"]) == ["fails at the mildest level"]
    assert list(weak_table["scale"]) == [LEVELS[1]]


def test_a_source_that_breaks_is_searched_in_the_next_call(tmp_path: Path) -> None:
    suite = search_suite(seeds=1, healed_by=str(tmp_path / "healed"), fault_in="source_s0")
    broken = records(go(suite, tmp_path / "home"))
    (tmp_path / "healed").touch()
    assert set(broken["verdict"]) == {"ERROR", "SKIP"}
    assert_equal_records(records(go(suite, tmp_path / "home")), records(go(search_suite(seeds=1), tmp_path / "whole")))


def test_tpe_finds_at_least_as_many_failures_as_random_search_in_a_planted_corner(tmp_path: Path) -> None:
    suite = search_suite("worst", seeds=6, fails=((0.85, 1.0),), angles=(0.7, 0.85))
    outcome = go(suite, tmp_path, workers=2)
    table = searched(suite, outcome)
    assert set(table["queries"]) == set(table["random_queries"]) == {BUDGET}
    assert (table["failures"] >= table["random_failures"]).all()
    assert table["failures"].sum() > 2 * table["random_failures"].sum()
    first = records(outcome)
    assert_equal_records(first, records(go(suite, tmp_path / "again")))


CALIBRATED = {"calibrate": {"ssim": [0.99, 0.9, 0.8], "parameter": "strength"}}


def test_targets_of_similarity_are_searched_for_the_mildest_failing_picture(tmp_path: Path) -> None:
    suite = search_suite(seeds=3, relation=CALIBRATED, kind=Bluish, fails=((0.53, 1.0),))
    outcome = go(suite, tmp_path)
    table = searched(suite, outcome)
    assert list(table["state"]) == ["fails"] * 3
    frame = records(outcome).set_index("address")
    for _, row in table.iterrows():
        failing, passing = (frame.loc[row[name]] for name in ("address", "passing_address"))
        solved = [json.loads(record["params"]) for record in (failing, passing)]
        mild, strong = (each["strength"] for each in solved[::-1])
        assert 0.53 - 0.01 < mild < 0.53 <= strong < 0.53 + 0.01
        for record, params in zip((failing, passing), solved, strict=True):
            assert record["scale"] == pytest.approx(1.0 - params["calibrated"]["target"], abs=1e-6)
            assert params["calibrated"]["ssim"] == pytest.approx(params["calibrated"]["target"], abs=1e-3)
    levels = records(outcome).query("severity > 0")
    assert sorted(set(levels["scale"])) == [0.01, 0.1, 0.2]
    query = records(outcome).query("search == 'mildest' and queries == 6").iloc[0]
    replayed = replay_case(suite, Invocation(home=tmp_path), str(query["address"]))
    assert replayed.followup_sha256 == query["followup_sha256"]


def test_draws_at_targets_of_similarity_are_searched_for_the_worst(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"fails": ((0.0, 1.0),), "angles": (0.7, 0.8)}
    suite = search_suite("worst", seeds=3, relation=CALIBRATED, kind=Bluish, **settings)
    outcome = go(suite, tmp_path, workers=2)
    table = searched(suite, outcome)
    assert table["failures"].sum() > 2 * table["random_failures"].sum()
    # A search that was stopped continues with the draws of its record.
    assert_equal_records(records(outcome), records(go(suite, tmp_path / "again")))


def test_a_query_without_a_run_cannot_be_replayed(tmp_path: Path) -> None:
    from medtest.core.errors import UserMistakes

    suite = search_suite(seeds=1)
    with pytest.raises(UserMistakes, match="no run recorded it"):
        replay_case(suite, Invocation(home=tmp_path), "blobs/patient-0000/code_s0_f3_r0")


def test_the_report_shows_both_sides_of_a_threshold_and_the_curve(tmp_path: Path) -> None:
    suite = search_suite(seeds=4, fails=((0.53, 1.0),))
    outcome = go(suite, tmp_path)
    folder = outcome.systems[0].folder
    tables = make_tables(folder, suite)
    page = report_html(Material(folder=folder, wanted=Wanted.of(suite, "reader"), tables=tables))
    start = page.index('<section id="searches">')
    section = page[start : page.index("</section>", start)]
    for words in ("mildest failing picture", "its passing neighbour", "share still passing", "medtest replay"):
        assert words in section
    assert section.count("data:image/webp;base64,") == 2
    (pair,) = tables.searched.pairs
    failing, passing = pair.records
    assert passing is not None
    assert (failing["verdict"], passing["verdict"]) == ("FAIL", "PASS")
    assert 0 < failing["scale"] - passing["scale"] < 0.01


def test_a_source_that_fails_counts_at_the_start_of_the_curve(tmp_path: Path) -> None:
    suite = search_suite(seeds=4, sources_fail="patient-0001")
    tables = make_tables(go(suite, tmp_path).systems[0].folder, suite).named()
    row = tables["search_relations.csv"].iloc[-1]
    assert (row["failed"], row["failing_sources"], row["skipped"]) == (3, 1, 0)
    curve = tables["search_curve.csv"]
    assert list(curve[curve["dataset"] == "all"]["passing_share"]) == [0.75, 0.0, 0.0]


@pytest.mark.slow
def test_a_first_look_at_the_shipped_suite_shows_a_mildest_failing_picture(tmp_path: Path) -> None:
    suite = load(
        "polyp_seg_search",
        ("~relations.streak", "~relations.feces", "~relations.lens_distortion", "model=pranet"),
        for_run=True,
    ).suite
    outcome = go(suite, tmp_path, limit=2, workers=2)
    (pair,) = make_tables(outcome.systems[0].folder, suite).searched.pairs
    failing, passing = pair.records
    assert passing is not None
    assert (pair.relation, failing["verdict"], passing["verdict"]) == ("smoke", "FAIL", "PASS")
    assert 0 < failing["scale"] - passing["scale"] < 0.01


def test_transforms_of_other_libraries_are_searched_between_their_arguments() -> None:
    levels = {1: {"sigma": 1}, 3: {"sigma": 2.0}, 5: {"sigma": 4.0}}
    blur = load_relation("perturb", transform="torchvision.GaussianBlur", params={"kernel_size": 13}, levels=levels)
    assert unfit(blur) is None
    strengths = Strengths(blur)
    between, severity = strengths.relation_at(1.25)
    params = between.sample(synthetic_seed(0), severity, np.random.default_rng(0))
    assert params["arguments"] == {"kernel_size": 13, "sigma": 2.5} and params["scale"] == 2.5
    assert params["seed"] == blur.sample(synthetic_seed(0), 5, np.random.default_rng(0))["seed"]
