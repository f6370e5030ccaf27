"""Non-inferiority of a run to a finished one: five paired conditions with intervals.

The rate of violations covers only cases that both runs judged. A system that stops answering its failing cases has
fewer such cases and would look better, so five figures are compared: violations, the score on source cases, failing
source cases, errors, and skipped cases.

Each is a difference on the same cases, bounded by a margin in points. Its 95 % interval is that of
:mod:`medtest.results.rates.differences`; the unfavourable end is a one-sided bound at 97.5 %.

- ``passed``: the bound is within the margin, so a loss of the margin or more is ruled out.
- ``failed``: a loss is significant (the interval excludes 0), and the difference itself reaches the margin.
- ``not shown``: neither, or there is no interval, as for a single source (patient). The condition counts as not met.

All five must pass, so that the probability of accepting a worse run stays 2.5 % for any number of conditions (R. L.
Berger, Technometrics 24, 1982: intersection-union tests).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.results.cube.axes import ALL, OVERALL, Axes, axes
from medtest.results.cube.power import agreeing_clusters
from medtest.results.rates.differences import PairedChange, paired_change
from medtest.results.records.records_io import Records
from medtest.results.records.status import Status, failed_in_pair, source_scores, status
from medtest.suite.model import Criterion

Verdict: TypeAlias = Literal["passed", "failed", "not shown"]
PASSED: Verdict = "passed"
FAILED: Verdict = "failed"
NOT_SHOWN: Verdict = "not shown"

VIOLATIONS, SOURCE_SCORE, FAILED_SOURCES = "violations", "source score", "failed sources"
ERRORS, SKIPPED = "errors", "skipped cases"
NOISE = 0.01
"""Change of a source score that may occur between processors and is ignored."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition of a gate or a comparison, with figures in percent and points, or None.

    Attributes:
        name: Quantity that is bounded.
        verdict: Verdict on the condition.
        words: The figures and their bound as text.
        figure: Figure compared with the limit.
        limit: The limit; for paired conditions the margin.
        cases: Number of cases (or source cases).
        clusters: Number of their patients, videos or seeds; 0 if clusters do not apply.
        own: Figure of the run.
        base: Figure of the run it is compared with.
        difference: ``own`` minus ``base``.
        low: Lower end of the 95 % interval of the difference.
        high: Upper end.
        method: Method of the interval.
        newly: Cases that only the run loses (violates, scores lower on).
        no_longer: Cases that only the other run loses.
        scale: For a source score, its value at 100 %: 1, or the largest of both runs if larger.
    """

    name: str
    verdict: Verdict
    words: str
    figure: float | None = None
    limit: float
    cases: int
    clusters: int = 0
    own: float | None = None
    base: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    newly: int = 0
    no_longer: int = 0
    scale: float = 1.0

    @property
    def sentence(self) -> str:
        """Name and text of the condition."""
        return f"{self.name}: {self.words}"

    def facts(self) -> dict[str, Any]:
        """Return the condition as plain data, numbers finite or None."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Margins:
    """Allowed losses of a run, in points.

    Attributes:
        percent: Margin for violations, failed sources, errors and skipped cases.
        source_percent: Margin for the source score; None for ``percent``.
    """

    percent: float = 2.0
    source_percent: float | None = None

    @property
    def source(self) -> float:
        """Margin of the source score."""
        return self.percent if self.source_percent is None else self.source_percent


def verdict_of(conditions: Sequence[Condition]) -> Verdict:
    """Return the worst verdict; ``not shown`` without conditions."""
    verdicts = {condition.verdict for condition in conditions}
    return FAILED if FAILED in verdicts else NOT_SHOWN if NOT_SHOWN in verdicts or not verdicts else PASSED


def paired_conditions(
    own: Records,
    base: Records,
    criterion: Criterion,
    margins: Margins,
    *,
    dataset: str = ALL,
    relation: str = OVERALL,
    severity: str = ALL,
) -> tuple[Condition, ...]:
    """Return the conditions under which a run is no worse than another.

    Args:
        own: The run's records of the common cases, from :func:`medtest.results.records.common_cases.common_cases`.
        base: Records of the run it is compared with, with the same cases row by row.
        criterion: Criterion of a violation, and score of source cases.
        margins: Allowed losses.
        dataset: The data set of the cases; ``all`` for all of them.
        relation: Their relation; ``overall`` for all but ``unchanged``.
        severity: Their severity; ``all`` for all of them.

    Returns:
        Empty if neither run judged any of the cases. The source score is left out if no source has one in either run,
            as
        for images without an expected answer.
    """
    if own.followups.empty:
        return ()
    place = axes(own)
    rows = place.pooled[place.relation] if relation == OVERALL else own.texts("relation") == relation
    if dataset != ALL:
        rows = rows & (own.texts("dataset") == dataset)
    if severity != ALL:
        rows = rows & (own.followups["severity"].to_numpy(dtype=np.int64) == int(severity))
    states = tuple(status(run, criterion) for run in (own, base))
    if not any((rows & state.case).any() for state in states):
        return ()
    return (
        _violations(place, states, rows, margins),
        *_of_sources(own, base, states, rows, criterion, margins),
        *_lost(place.take(rows), states, rows, margins),
    )


def _violations(place: Axes, states: tuple[Status, ...], rows: NDArray[np.bool_], margins: Margins) -> Condition:
    own, base = states
    shared = rows & own.case & base.case
    change = paired_change(place.take(shared), own.violated[shared], base.violated[shared])
    return _rate(VIOLATIONS, change, margins.percent, noun="shared case", verbs=("fails", "fail"), judged=True)


def _lost(
    place: Axes, states: tuple[Status, ...], rows: NDArray[np.bool_], margins: Margins
) -> tuple[Condition, Condition]:
    own, base = states
    errors = paired_change(place, own.error[rows], base.error[rows])
    skipped = paired_change(place, own.skipped[rows], base.skipped[rows])
    return (
        _rate(ERRORS, errors, margins.percent, noun="shared case", verbs=("breaks", "break")),
        _rate(SKIPPED, skipped, margins.percent, noun="shared case", verbs=("skipped", "skipped")),
    )


def _of_sources(
    own: Records,
    base: Records,
    states: tuple[Status, ...],
    rows: NDArray[np.bool_],
    criterion: Criterion,
    margins: Margins,
) -> list[Condition]:
    """Return the conditions on the source cases of the selected follow-ups."""
    sources = _with_followups(own, rows)
    place = axes(Records(followups=own.sources, sources=own.sources.iloc[:0])).take(sources) if sources.any() else None
    selected = _only(states[0], rows), _only(states[1], rows)
    lost_in = failed_in_pair((own, base), selected, criterion)
    failed = [lost_rows[sources] for lost_rows in lost_in]
    shares = PairedChange() if place is None else paired_change(place, *failed)
    affected = int((rows & states[0].source_failed & states[1].case).sum())
    lost = _rate(FAILED_SOURCES, shares, margins.percent, noun="shared source", verbs=("fails", "fail"), takes=affected)
    score = criteria.components(criterion.score)[0]
    own_scores, base_scores = (source_scores(run, score)[sources] for run in (own, base))
    if np.isnan(own_scores).all() and np.isnan(base_scores).all():
        return [lost]
    own_scores, base_scores = (
        np.where(failed[0] & np.isnan(own_scores), 0.0, own_scores),
        np.where(failed[1] & np.isnan(base_scores), 0.0, base_scores),
    )
    scored = ~np.isnan(own_scores) & ~np.isnan(base_scores)
    scale = max(1.0, float(np.max(np.abs([own_scores[scored], base_scores[scored]]), initial=0.0)))
    change = PairedChange()
    if place is not None:
        change = paired_change(place.take(scored), own_scores[scored] / scale, base_scores[scored] / scale, noise=NOISE)
    return [_source_score(score, change, margins.source, scale), lost]


def _with_followups(records: Records, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    keys = ["dataset", "seed_id", "item"]
    keys_used = pd.MultiIndex.from_frame(records.followups.loc[rows, keys].astype(str).drop_duplicates())
    return np.asarray(pd.MultiIndex.from_frame(records.sources[keys].astype(str)).isin(keys_used), dtype=np.bool_)


def _only(state: Status, rows: NDArray[np.bool_]) -> Status:
    return Status(**{name: getattr(state, name) & rows for name in Status.__dataclass_fields__})


def what_helps(conditions: Sequence[Condition]) -> str:
    """Return the number of agreeing sources needed if a condition is not shown although nothing differs, or ""."""
    margins = [
        condition.limit
        for condition in conditions
        if condition.verdict == NOT_SHOWN and not condition.newly and not condition.no_longer
    ]
    if not margins:
        return ""
    margin = min(margins)
    if margin <= 0:
        return "If runs agree, no number of sources can show a margin of 0"
    least = agreeing_clusters(margin / 100)
    return f"Even runs that agree on every case need {least:,} sources (patients) for a margin of {margin:g} points"


def newly_lost(conditions: Sequence[Condition]) -> str:
    """Return the numbers of sources and cases that only the run loses, as text."""
    wording = {
        FAILED_SOURCES: ("source", "newly fails", "newly fail"),
        ERRORS: ("case", "newly breaks", "newly break"),
        SKIPPED: ("case", "is newly skipped", "are newly skipped"),
    }
    lost = [
        f"{condition.newly:,} of {condition.cases:,} {noun}{'' if condition.cases == 1 else 's'} "
        f"{singular if condition.newly == 1 else plural}"
        for condition in conditions
        if condition.newly and condition.name in wording
        for noun, singular, plural in [wording[condition.name]]
    ]
    return ", ".join(lost) or "no source or case is newly lost"


# --- verdicts and text ------------------------------------------------------------------------------------------------


def _rate(
    name: str,
    change: PairedChange,
    margin: float,
    *,
    noun: str,
    verbs: tuple[str, str],
    judged: bool = False,
    takes: int = 0,
) -> Condition:
    """Return a condition on a share that must not increase."""
    verdict, why = _verdict(change, change.difference, change.low, change.high, margin, noun)
    if not change.cases:
        words = f"no {noun} was judged in both runs" if judged else f"no {noun}"
    else:
        suffix = f", which leaves {takes:,} {_cases(takes)} without a source"
        words = (
            f"{change.first:.1f} % against {change.second:.1f} %, {_points(change.difference)} points"
            f"{_between(change.low, change.high)} on {change.cases:,} {noun}{'' if change.cases == 1 else 's'}, "
            f"{change.only_first:,} newly {verbs[change.only_first != 1]}, {change.only_second:,} no longer"
            f"{suffix if takes else ''}{why}"
        )
    return _condition(name, verdict, words, change, margin, change.high)


def _source_score(score: str, change: PairedChange, margin: float, scale: float) -> Condition:
    """Return the condition on the mean score of source cases, which must not decrease."""
    verdict, why = _verdict(change, -change.difference, -change.high, -change.low, margin, "shared source")
    words = f"no shared source has a {score} in both runs"
    if change.cases:
        digits = ".3f" if scale == 1.0 else ".2f"
        own, base = scale * change.first / 100, scale * change.second / 100
        of = "" if scale == 1.0 else f" of {scale:.4g}, the largest"
        words = (
            f"mean {score} {own:{digits}} against {base:{digits}}, {_points(change.difference)} points{of}"
            f"{_between(change.low, change.high)} on {change.cases:,} shared source{'' if change.cases == 1 else 's'}, "
            f"{change.only_second:,} lower, {change.only_first:,} higher{why}"
        )
    condition = _condition(SOURCE_SCORE, verdict, words, change, margin, -change.low)
    return replace(condition, newly=change.only_second, no_longer=change.only_first, scale=scale)


def _condition(
    name: str, verdict: Verdict, words: str, change: PairedChange, margin: float, figure: float
) -> Condition:
    return Condition(
        name=name,
        verdict=verdict,
        words=words,
        figure=_known(figure),
        limit=margin,
        cases=change.cases,
        clusters=change.clusters,
        own=_known(change.first),
        base=_known(change.second),
        difference=_known(change.difference),
        low=_known(change.low),
        high=_known(change.high),
        method=change.method,
        newly=change.only_first,
        no_longer=change.only_second,
    )


def _verdict(
    change: PairedChange, worse: float, low: float, high: float, margin: float, noun: str
) -> tuple[Verdict, str]:
    """Return the verdict on a loss in points with its interval, and the reason why it is not shown."""
    if math.isnan(high):
        return NOT_SHOWN, "; all are of one source (patient), too few for an interval"
    if high < margin:
        return PASSED, ""
    if low > 0 and worse >= margin:
        return FAILED, ""
    if change.only_first == change.only_second == 0:
        return NOT_SHOWN, f"; too few to rule out {margin:g} points"
    return NOT_SHOWN, f"; too few to decide whether the loss is below {margin:g} points"


def _between(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" ({_points(low)} to {_points(high)})"


def _points(value: float) -> str:
    return f"{value:+.1f}" if round(value, 1) else "0.0"


def _cases(number: int) -> str:
    return "case" if number == 1 else "cases"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
