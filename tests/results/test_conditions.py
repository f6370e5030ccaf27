"""Conditions of gates and comparisons, recomputed with SciPy's likelihood and bootstrap, and by counting."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from records_maker import make_records
from scipy import optimize, stats

from medtest.results.gating.conditions import (
    ERRORS,
    FAILED,
    FAILED_SOURCES,
    NOT_SHOWN,
    PASSED,
    SKIPPED,
    SOURCE_SCORE,
    VIOLATIONS,
    Condition,
    Margins,
    paired_conditions,
    verdict_of,
    what_helps,
)
from medtest.results.gating.gates import GateResult, evaluate, evaluate_paired
from medtest.results.rates.efr import Criteria, efr_table
from medtest.results.records.common_cases import common_cases
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion, Gate, PairedGate

DICE = Criterion(score="dice", threshold=0.25, against="truth")


def _base(seeds: int = 60, **options: Any) -> pd.DataFrame:
    """Return records of a system that answers every source."""
    frame = make_records(seeds=seeds, errors=0, skips=0, **options)
    zero = frame.source_dice == 0
    frame.loc[zero, ["source_dice", "source_iou"]] = 0.9
    frame.loc[zero & (frame.relation == "source"), ["dice", "iou"]] = 0.9
    return frame


def _blind(frame: pd.DataFrame, seeds: set[str]) -> pd.DataFrame:
    """Return records of a system whose mask is empty on some sources and on all of their follow-ups."""
    worse, hit = frame.copy(), frame.seed_id.isin(seeds)
    worse.loc[hit, ["dice", "iou", "source_dice", "source_iou"]] = 0.0
    worse.loc[hit & (frame.relation != "source"), "verdict"] = "SKIP"
    return worse


def _judge(
    own: pd.DataFrame, base: pd.DataFrame, margins: Margins | None = None, criterion: Criterion = DICE, **chosen: str
) -> dict[str, Condition]:
    first, second = common_cases([Records.of(own), Records.of(base)]).records
    conditions = paired_conditions(first, second, criterion, margins or Margins(percent=10), **chosen)
    for condition in conditions:
        assert "nan" not in condition.words.lower()
        json.dumps(condition.facts(), allow_nan=False)
    return {condition.name: condition for condition in conditions}


def _seeds(number: int) -> set[str]:
    return {f"seed{index:05d}" for index in range(number)}


def _tango(more: float, less: float, pairs: int) -> tuple[float, float]:
    """Return Tango's interval in points, the restricted maximum of the likelihood found by a search."""

    def statistic(difference: float) -> float:
        def lost(second: float) -> float:
            chances = ((more, second + difference), (less, second), (pairs - more - less, 1 - 2 * second - difference))
            return -sum(count * math.log(max(chance, 1e-300)) for count, chance in chances if count)

        low, high = max(0.0, -difference), (1 - difference) / 2
        minimum = optimize.minimize_scalar(lost, bounds=(low, high), method="bounded", options={"xatol": 1e-13})
        variance = (2 * float(minimum.x) + difference * (1 - difference)) / pairs
        return ((more - less) / pairs - difference) / math.sqrt(max(variance, 1e-300))

    middle, quantile = (more - less) / pairs, float(stats.norm.ppf(0.975))
    upper = 1.0
    if middle < 1:
        upper = optimize.brentq(lambda d: statistic(d) + quantile, middle + 1e-9, 1 - 1e-9)
    lower = optimize.brentq(lambda d: statistic(d) - quantile, -1 + 1e-9, middle - 1e-9)
    return 100 * lower, 100 * upper


def _scipy_bootstrap(values: np.ndarray) -> tuple[float, float]:
    """Return SciPy's percentile bootstrap of a mean, in points."""
    bootstrap = stats.bootstrap((100 * values,), np.mean, method="percentile", n_resamples=20_000, rng=1)
    return float(bootstrap.confidence_interval.low), float(bootstrap.confidence_interval.high)


def test_a_blind_system_fails_by_its_sources_whatever_its_rate_of_violations() -> None:
    base = _base()
    blind = _blind(base, _seeds(30))
    conditions = _judge(blind, base, Margins(percent=15))
    assert list(conditions) == [VIOLATIONS, SOURCE_SCORE, FAILED_SOURCES, ERRORS, SKIPPED]
    assert (
        conditions[VIOLATIONS].verdict == PASSED and conditions[VIOLATIONS].difference == 0.0
    )  # on the cases that are left
    sources = conditions[FAILED_SOURCES]
    assert (sources.verdict, sources.newly, sources.no_longer, sources.cases) == (FAILED, 30, 0, 60)
    assert (sources.low, sources.high) == pytest.approx(
        _scipy_bootstrap(np.repeat([1.0, 0.0], 30)), abs=1.8
    )  # a sixtieth
    assert "30 newly fail" in sources.words and "which leaves" in sources.words
    score = conditions[SOURCE_SCORE]
    dice = [side[side.relation == "source"].set_index("seed_id").dice for side in (blind, base)]
    assert score.verdict == FAILED and score.difference == pytest.approx(100 * (dice[0] - dice[1]).mean(), abs=1e-3)
    assert (score.low, score.high) == pytest.approx(_scipy_bootstrap((dice[0] - dice[1]).to_numpy()), abs=1.0)
    assert score.figure == pytest.approx(-score.low)
    assert score.base == pytest.approx(100 * dice[1].mean(), abs=1e-3)
    assert conditions[ERRORS].verdict == conditions[SKIPPED].verdict == PASSED


@pytest.mark.parametrize(("more", "less", "pairs"), [(0, 0, 12), (3, 0, 40), (6, 3, 200), (1, 8, 75)])
def test_few_sources_that_differ_get_tangos_interval(more: int, less: int, pairs: int) -> None:
    base = _base(pairs)
    base = _blind(base, {f"seed{index:05d}" for index in range(more, more + less)})
    own = _blind(_base(pairs), _seeds(more))
    condition = _judge(own, base)[FAILED_SOURCES]
    assert (condition.newly, condition.no_longer, condition.method) == (more, less, "score_clusters")
    assert (condition.low, condition.high) == pytest.approx(_tango(more, less, pairs), abs=0.02)


@pytest.mark.parametrize(
    ("more", "less", "margin", "verdict"),
    [(8, 0, 10, FAILED), (8, 0, 15, NOT_SHOWN), (8, 4, 4, NOT_SHOWN), (8, 0, 20, PASSED)],
)
def test_a_loss_fails_if_its_interval_is_above_zero_and_it_reaches_the_margin(
    more: int, less: int, margin: float, verdict: str
) -> None:
    base = _blind(_base(80), {f"seed{index:05d}" for index in range(more, more + less)})
    low, high = _tango(more, less, 80)
    loss = 100 * (more - less) / 80
    assert verdict == (PASSED if high < margin else FAILED if low > 0 and loss >= margin else NOT_SHOWN)
    condition = _judge(_blind(_base(80), _seeds(more)), base, Margins(percent=margin))[FAILED_SOURCES]
    assert condition.difference == pytest.approx(loss) and condition.verdict == verdict


def test_each_condition_is_found_by_itself() -> None:
    """One figure is made worse at a time, by far; the others pass."""
    base = _base(200)
    followups = base.relation != "source"
    case = followups & base.verdict.isin(["PASS", "FAIL"]) & (base.relation != "unchanged")
    rng = np.random.default_rng(3)
    some = pd.Series(rng.random(len(base)) < 0.4, index=base.index)
    wide = Margins(percent=15)
    worse = {name: base.copy() for name in (VIOLATIONS, SOURCE_SCORE, FAILED_SOURCES, ERRORS, SKIPPED)}
    worse[VIOLATIONS].loc[case & some, "dice"] = 0.1 * base.source_dice
    worse[SOURCE_SCORE]["dice"] *= 0.7
    worse[SOURCE_SCORE]["source_dice"] *= 0.7
    worse[FAILED_SOURCES] = _blind(base, _seeds(60))
    worse[ERRORS].loc[case & some, "verdict"] = "ERROR"
    worse[SKIPPED].loc[case & some, ["dice", "iou"]] = np.nan
    worse[SKIPPED].loc[case & some, "verdict"] = "SKIP"
    for name, frame in worse.items():
        conditions = _judge(frame, base, wide)
        failed = {condition.name for condition in conditions.values() if condition.verdict != PASSED}
        assert failed == ({name, SOURCE_SCORE} if name == FAILED_SOURCES else {name}), (name, conditions)
        back = _judge(base, frame, wide)  # the other way round all are no worse
        assert verdict_of(list(back.values())) == PASSED, back


def test_the_margin_of_the_source_score_is_that_of_the_gate_unless_it_has_its_own() -> None:
    base = _base(200)
    own = base.assign(dice=base.dice * 0.9, source_dice=base.source_dice * 0.9)  # some nine points of the score
    verdicts = {
        margins: _judge(own, base, margins)[SOURCE_SCORE].verdict
        for margins in (Margins(percent=5), Margins(percent=12), Margins(percent=5, source_percent=12))
    }
    assert list(verdicts.values()) == [FAILED, PASSED, PASSED]


def test_identical_runs_pass_only_where_their_number_rules_the_margin_out() -> None:
    for seeds, margin, verdict in ((72, 5, NOT_SHOWN), (73, 5, PASSED), (188, 2, NOT_SHOWN), (189, 2, PASSED)):
        base = _base(seeds, severities=(1,))
        conditions = _judge(base, base, Margins(percent=margin))
        assert {condition.difference for condition in conditions.values()} == {0.0}
        assert {condition.verdict for condition in conditions.values()} == {verdict}, (seeds, margin)
    conditions = _judge(base.head(60), base.head(60), Margins())
    assert "need 189 sources (patients) for a margin of 2 points" in what_helps(list(conditions.values()))
    assert all(condition.words.endswith("; too few to rule out 2 points") for condition in conditions.values())


def test_a_noisy_score_is_not_enough_to_show_robustness() -> None:
    """Differences in the fourth digit are another processor's; they make no narrow interval out of twelve images."""
    base = _base(12)
    trembling = base.assign(dice=base.dice + np.where(base.relation == "source", 1e-4, 0.0))
    score = _judge(trembling, base)[SOURCE_SCORE]
    assert score.method == "score_clusters" and score.verdict == NOT_SHOWN and score.low < -20


def test_all_sources_failing_is_a_failure_and_one_common_source_shows_nothing() -> None:
    base = _base()
    blind = _blind(base, _seeds(60))
    conditions = _judge(blind, base)
    assert conditions[VIOLATIONS].verdict == NOT_SHOWN and conditions[VIOLATIONS].cases == 0
    assert conditions[VIOLATIONS].words == "no shared case was judged in both runs"
    assert conditions[FAILED_SOURCES].verdict == conditions[SOURCE_SCORE].verdict == FAILED
    assert conditions[FAILED_SOURCES].own == 100.0  # 60 of 60, which is no proof of every source there is
    assert (conditions[FAILED_SOURCES].low, conditions[FAILED_SOURCES].high) == (
        pytest.approx(_tango(60, 0, 60)[0], abs=0.02),
        100,
    )
    alone = base[base.seed_id == "seed00007"]
    single = _judge(alone, alone)
    assert {condition.verdict for condition in single.values()} == {NOT_SHOWN}
    assert all("one source (patient)" in condition.words and condition.figure is None for condition in single.values())
    assert _judge(blind, blind) == {}  # neither judged anything: there is nothing to compare


def test_a_failed_case_that_breaks_now_is_a_new_error_and_not_a_violation_less() -> None:
    base = _base(100)
    violated = (base.relation == "blur") & ((base.source_dice - base.dice) / base.source_dice > 0.25)
    assert violated.sum() > 30
    own = base.copy()
    own.loc[violated, "verdict"] = "ERROR"
    conditions = _judge(own, base, relation="blur")
    assert conditions[ERRORS].newly == violated.sum() and conditions[ERRORS].verdict == FAILED
    assert (conditions[VIOLATIONS].no_longer, conditions[VIOLATIONS].difference) == (0, 0.0)


def test_a_source_that_breaks_scores_nothing_and_counts_as_failed() -> None:
    base = _base(40)
    own, broken = base.copy(), base.seed_id.isin(_seeds(15))
    own.loc[broken & (base.relation == "source"), "verdict"] = "ERROR"
    own.loc[broken & (base.relation == "source"), ["dice", "iou"]] = np.nan
    own.loc[broken, ["source_dice", "source_iou"]] = np.nan
    own.loc[broken & (base.relation != "source"), "verdict"] = "SKIP"
    conditions = _judge(own, base)
    assert conditions[FAILED_SOURCES].newly == 15 and conditions[FAILED_SOURCES].verdict == FAILED
    score = base[base.relation == "source"].set_index("seed_id").dice
    lost = sum(score[name] for name in _seeds(15)) / 40
    assert conditions[SOURCE_SCORE].difference == pytest.approx(-100 * lost, abs=1e-3)


def test_a_source_without_an_answer_counts_as_failed_where_the_other_run_has_one() -> None:
    """As of a folder of answers from which files are missing: a skip, and no error."""
    base = _base(40)
    own, missing = base.copy(), base.seed_id.isin(_seeds(15))
    own.loc[missing, ["dice", "iou", "source_dice", "source_iou", "self_dice", "self_iou"]] = np.nan
    own.loc[missing, "verdict"] = "SKIP"
    conditions = _judge(own, base)
    assert conditions[FAILED_SOURCES].newly == 15 and conditions[FAILED_SOURCES].verdict == FAILED
    assert conditions[SKIPPED].newly == 15 * 31 - 15 and conditions[SKIPPED].verdict == FAILED
    assert conditions[SOURCE_SCORE].verdict == FAILED
    both = _judge(own, own)[FAILED_SOURCES]
    assert (both.newly, both.no_longer) == (0, 0)


def test_images_without_an_expected_answer_have_no_source_score() -> None:
    base = make_records(seeds=60, labelled=False, errors=0)
    conditions = _judge(base, base, criterion=Criterion(score="dice", threshold=0.25, against="source"))
    assert list(conditions) == [VIOLATIONS, FAILED_SOURCES, ERRORS, SKIPPED]


def test_patients_count_and_not_images() -> None:
    base = _base(200, clusters=8)
    conditions = _judge(base, base)
    assert {condition.clusters for condition in conditions.values()} == {8}
    assert {condition.verdict for condition in conditions.values()} == {NOT_SHOWN}
    assert conditions[FAILED_SOURCES].high == pytest.approx(_tango(0, 0, 8)[1], abs=0.02)


def test_a_gate_is_held_only_where_every_condition_passes() -> None:
    base = _base(200)
    gate = PairedGate(no_worse_than="tiny/base", margin_percent=10)
    for own, verdict in ((base, PASSED), (_blind(base, _seeds(90)), FAILED)):
        result = evaluate_paired(gate, Records.of(base), Records.of(own), "tiny/base")
        assert (result.held, result.verdict) == (verdict == PASSED, verdict)
    assert result.reason.startswith("failed: source score: mean dice ")
    assert result.reason.endswith("Passed: violations; errors; skipped cases")
    few = base[base.seed_id.isin(_seeds(12))]
    result = evaluate_paired(gate, Records.of(few), Records.of(few), "tiny/base")
    assert (result.held, result.verdict) == (False, NOT_SHOWN)


# --- plain gates -----------------------------------------------------------------------------------------------------


def _plain_gate(frame: pd.DataFrame, **settings: Any) -> GateResult:
    gate = Gate(**{"max_percent": 100.0, **settings})
    table = efr_table(
        Records.of(frame), Criteria(scores=("dice", "iou"), thresholds=(0.25,), against=("truth", "source"))
    )
    (result,) = evaluate([gate], table)
    return result


def test_a_plain_gate_refuses_more_than_ten_percent_without_a_source() -> None:
    base = _base(100, severities=(1,))
    for lost, held in ((10, True), (11, False)):
        result = _plain_gate(_blind(base, _seeds(lost)))
        assert result.held is held and result.verdict == (PASSED if held else FAILED)
        by_name = {condition.name: condition for condition in result.conditions}
        assert by_name[FAILED_SOURCES].figure == pytest.approx(lost) and by_name[FAILED_SOURCES].limit == 10
    assert "66 of 600 cases (11.0 %) have no source to compare with, above 10 %" in result.reason
    assert _plain_gate(_blind(base, _seeds(40)), max_source_failed_percent=40.0).held
    assert not _plain_gate(_blind(base, _seeds(1)), max_source_failed_percent=0.0).held


def test_failed_sources_match_the_gates_own_rule() -> None:
    frame = _base(100, severities=(1,))
    hit = frame.seed_id.isin(_seeds(30))
    frame.loc[hit, ["iou", "source_iou"]] = 0.0
    assert _plain_gate(frame, score="dice").held and not _plain_gate(frame, score="iou").held
    assert _plain_gate(frame, score="iou", against="source").held  # the source's own answer is never wrong
    assert [condition.name for condition in _plain_gate(frame, against="source").conditions] == [VIOLATIONS]


def test_skipped_cases_do_not_dilute_the_share_without_a_source() -> None:
    """Of 600 cases 540 have no room, and of the 60 that could be judged 30 have no source: that is half of them."""
    frame = _base(100, severities=(1,))
    rooms = frame.seed_id.isin(_seeds(10))
    followups = frame.relation != "source"
    frame.loc[followups & ~rooms, ["dice", "iou"]] = np.nan
    frame.loc[followups & ~rooms, "verdict"] = "SKIP"
    result = _plain_gate(_blind(frame, _seeds(5)))
    assert not result.held and "30 of 60 cases (50.0 %)" in result.reason
