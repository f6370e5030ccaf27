"""What must hold for a run to be no worse than a finished one: five conditions, each paired and with an interval.

A rate of violations rests on the cases that both runs judged. A system that gives no answer where it used to err has
fewer of them and looks better for it, so a run is no worse than another only where five figures are not: violations,
the score on source cases, source cases that fail, errors, and skipped cases.

Each is a difference of the same cases, bounded by a margin in points. The 95 % interval of the difference is that of
:mod:`medtest.results.rates.differences`; its unfavourable end is a one-sided bound at 97.5 %.

- ``passed``: the bound lies within the margin, so that a loss of the margin or more can be ruled out.
- ``failed``: a loss is shown (the interval leaves 0 out), and the difference itself reaches the margin.
- ``not shown``: neither, or there is no interval, as of one source (patient). It counts as a condition that is not met.

A run is no worse only where all five pass, so that the chance of calling a worse run no worse stays 2.5 % however many
conditions there are (R. L. Berger, Technometrics 24, 1982: intersection-union tests).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.oracles import criteria
from medtest.results.cube.axes import ALL, OVERALL, Axes, axes
from medtest.results.cube.power import clusters_that_agree
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
"""A source score that moves by one point or less may do so on another processor: it does not tell two runs apart."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition of a gate or a comparison. Figures are in percent and points, None where there is none.

    Attributes:
        name: What is bounded.
        verdict: What became of it.
        words: The figures beside their bound, in words.
        figure: What was held against the limit.
        limit: The limit; of paired conditions the margin.
        cases: Cases (or source cases) behind it.
        clusters: Patients, videos or seeds that they are of; 0 where no clusters count.
        own: The run's figure.
        base: That of the run it is compared with.
        difference: ``own`` less ``base``.
        low: Lower end of the difference's 95 % interval.
        high: Its upper end.
        method: How the interval was made.
        newly: Cases that the run alone loses (violates, scores lower on).
        no_longer: Cases that the other run alone loses.
        scale: Of a source score, its value at 100 %: 1, or the largest of both runs where it goes beyond.
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
        """Its name with its words."""
        return f"{self.name}: {self.words}"

    def facts(self) -> dict[str, Any]:
        """Return it as plain data, numbers finite or None."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Margins:
    """How much worse a run may be, in points.

    Attributes:
        percent: Of violations, failed sources, errors and skipped cases.
        source_percent: Of the source score; None for ``percent``.
    """

    percent: float = 2.0
    source_percent: float | None = None

    @property
    def source(self) -> float:
        """The margin of the source score."""
        return self.percent if self.source_percent is None else self.source_percent


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which of the common cases are looked at: one data set, relation or severity, or all of them."""

    dataset: str = ALL
    relation: str = OVERALL
    severity: str = ALL

    def rows(self, records: Records, place: Axes) -> NDArray[np.bool_]:
        """Return which follow-ups, whose axes are given, are chosen; ``overall`` leaves the floor out."""
        chosen = (
            place.pooled[place.relation] if self.relation == OVERALL else records.texts("relation") == self.relation
        )
        if self.dataset != ALL:
            chosen = chosen & (records.texts("dataset") == self.dataset)
        if self.severity != ALL:
            chosen = chosen & (records.followups["severity"].to_numpy(dtype=np.int64) == int(self.severity))
        return np.asarray(chosen, dtype=np.bool_)


def verdict_of(conditions: Sequence[Condition]) -> Verdict:
    """Return the gravest verdict; ``not shown`` of no condition."""
    verdicts = {one.verdict for one in conditions}
    return FAILED if FAILED in verdicts else NOT_SHOWN if NOT_SHOWN in verdicts or not verdicts else PASSED


def paired_conditions(
    own: Records, base: Records, criterion: Criterion, margins: Margins, chosen: Chosen | None = None
) -> tuple[Condition, ...]:
    """Return the conditions under which a run is no worse than another.

    Args:
        own: The run's records of the common cases, as :func:`medtest.results.records.common_cases.common_cases` gives.
        base: Those of the run it is compared with; row by row the same cases.
        criterion: When a case is a violation, and which score a source case has.
        margins: How much worse it may be.
        chosen: Which of the cases are looked at; None for all but the floor.

    Returns:
        Nothing where neither run judged any of the cases. The source score is left out where no source of either run
        has one, as of images without an expected answer.
    """
    if own.followups.empty:
        return ()
    place = axes(own)
    rows = (chosen or Chosen()).rows(own, place)
    judged = tuple(
        status(one, score=criterion.score, threshold=criterion.threshold, against=criterion.against)
        for one in (own, base)
    )
    if not any((rows & one.case).any() for one in judged):
        return ()
    return (
        _violations(place, judged, rows, margins),
        *_of_sources(own, base, judged, rows, criterion, margins),
        *_lost(place.take(rows), judged, rows, margins),
    )


def _violations(place: Axes, judged: tuple[Status, ...], rows: NDArray[np.bool_], margins: Margins) -> Condition:
    mine, theirs = judged
    both = rows & mine.case & theirs.case
    found = paired_change(place.take(both), mine.violated[both], theirs.violated[both])
    return _rate(VIOLATIONS, found, margins.percent, noun="shared case", verbs=("fails", "fail"), judged=True)


def _lost(
    place: Axes, judged: tuple[Status, ...], rows: NDArray[np.bool_], margins: Margins
) -> tuple[Condition, Condition]:
    mine, theirs = judged
    errors = paired_change(place, mine.error[rows], theirs.error[rows])
    skipped = paired_change(place, mine.skipped[rows], theirs.skipped[rows])
    return (
        _rate(ERRORS, errors, margins.percent, noun="shared case", verbs=("breaks", "break")),
        _rate(SKIPPED, skipped, margins.percent, noun="shared case", verbs=("is skipped", "are skipped")),
    )


def _of_sources(
    own: Records,
    base: Records,
    judged: tuple[Status, ...],
    rows: NDArray[np.bool_],
    criterion: Criterion,
    margins: Margins,
) -> list[Condition]:
    """Return what is asked of the source cases of which a follow-up is looked at."""
    kept = _with_followups(own, rows)
    place = axes(Records(followups=own.sources, sources=own.sources.iloc[:0])).take(kept) if kept.any() else None
    chosen = _only(judged[0], rows), _only(judged[1], rows)
    lost_in = failed_in_pair((own, base), chosen, score=criterion.score, against=criterion.against)
    failed = [one[kept] for one in lost_in]
    shares = PairedChange() if place is None else paired_change(place, *failed)
    taken = int((rows & judged[0].source_failed & judged[1].case).sum())
    lost = _rate(FAILED_SOURCES, shares, margins.percent, noun="shared source", verbs=("fails", "fail"), takes=taken)
    score = criteria.components(criterion.score)[0]
    mine, theirs = (source_scores(one, score)[kept] for one in (own, base))
    if np.isnan(mine).all() and np.isnan(theirs).all():
        return [lost]
    mine, theirs = np.where(failed[0] & np.isnan(mine), 0.0, mine), np.where(failed[1] & np.isnan(theirs), 0.0, theirs)
    known = ~np.isnan(mine) & ~np.isnan(theirs)
    scale = max(1.0, float(np.max(np.abs([mine[known], theirs[known]]), initial=0.0)))
    found = PairedChange()
    if place is not None:
        found = paired_change(place.take(known), mine[known] / scale, theirs[known] / scale, noise=NOISE)
    return [_source_score(score, found, margins.source, scale), lost]


def _with_followups(records: Records, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    import pandas as pd

    keys = ["dataset", "seed_id", "item"]
    wanted = pd.MultiIndex.from_frame(records.followups.loc[rows, keys].astype(str).drop_duplicates())
    return np.asarray(pd.MultiIndex.from_frame(records.sources[keys].astype(str)).isin(wanted), dtype=np.bool_)


def _only(judged: Status, rows: NDArray[np.bool_]) -> Status:
    return Status(**{name: getattr(judged, name) & rows for name in Status.__dataclass_fields__})


def what_helps(conditions: Sequence[Condition]) -> str:
    """Return how many sources runs need that agree, where a condition is not shown though nothing differs; else ""."""
    margins = [one.limit for one in conditions if one.verdict == NOT_SHOWN and not one.newly and not one.no_longer]
    if not margins:
        return ""
    margin = min(margins)
    if margin <= 0:
        return "No number of sources shows a margin of 0 where runs agree"
    least = clusters_that_agree(margin / 100)
    return f"Even runs that agree on every case need {least:,} sources (patients) for a margin of {margin:g} points"


def newly_lost(conditions: Sequence[Condition]) -> str:
    """Return how many sources and cases a run alone loses: ``10 of 12 sources fail anew, 3 of 24 cases break anew``."""
    named = {
        FAILED_SOURCES: ("source", "fails anew", "fail anew"),
        ERRORS: ("case", "breaks anew", "break anew"),
        SKIPPED: ("case", "is skipped anew", "are skipped anew"),
    }
    lost = [
        f"{one.newly:,} of {one.cases:,} {noun}{'' if one.cases == 1 else 's'} {each if one.newly == 1 else several}"
        for one in conditions
        if one.newly and one.name in named
        for noun, each, several in [named[one.name]]
    ]
    return ", ".join(lost) or "no source or case is newly lost"


# --- verdicts and words ----------------------------------------------------------------------------------------------


def _rate(
    name: str,
    found: PairedChange,
    margin: float,
    *,
    noun: str,
    verbs: tuple[str, str],
    judged: bool = False,
    takes: int = 0,
) -> Condition:
    """Return a condition on a share that should not grow."""
    verdict, why = _verdict(found, found.difference, found.low, found.high, margin, noun)
    if not found.cases:
        words = f"no {noun} was judged in both runs" if judged else f"no {noun}"
    else:
        more = f", which {'take' if found.only_first > 1 else 'takes'} {takes:,} judged {_cases(takes)} along"
        words = (
            f"{found.first:.1f} % against {found.second:.1f} %, {_points(found.difference)} points"
            f"{_between(found.low, found.high)} on {found.cases:,} {noun}{'' if found.cases == 1 else 's'}, "
            f"{found.only_first:,} {verbs[found.only_first != 1]} anew, {found.only_second:,} no longer"
            f"{more if takes else ''}{why}"
        )
    return _condition(name, verdict, words, found, margin, found.high)


def _source_score(score: str, found: PairedChange, margin: float, scale: float) -> Condition:
    """Return the condition on the mean score of source cases, which should not fall."""
    verdict, why = _verdict(found, -found.difference, -found.high, -found.low, margin, "shared source")
    words = f"no shared source has a {score} in both runs"
    if found.cases:
        digits = ".3f" if scale == 1.0 else ".2f"
        own, base = scale * found.first / 100, scale * found.second / 100
        of = "" if scale == 1.0 else f" of {scale:.4g}, the largest"
        words = (
            f"mean {score} {own:{digits}} against {base:{digits}}, {_points(found.difference)} points{of}"
            f"{_between(found.low, found.high)} on {found.cases:,} shared source{'' if found.cases == 1 else 's'}, "
            f"{found.only_second:,} lower, {found.only_first:,} higher{why}"
        )
    made = _condition(SOURCE_SCORE, verdict, words, found, margin, -found.low)
    return replace(made, newly=found.only_second, no_longer=found.only_first, scale=scale)


def _condition(name: str, verdict: Verdict, words: str, found: PairedChange, margin: float, figure: float) -> Condition:
    return Condition(
        name=name,
        verdict=verdict,
        words=words,
        figure=_known(figure),
        limit=margin,
        cases=found.cases,
        clusters=found.clusters,
        own=_known(found.first),
        base=_known(found.second),
        difference=_known(found.difference),
        low=_known(found.low),
        high=_known(found.high),
        method=found.method,
        newly=found.only_first,
        no_longer=found.only_second,
    )


def _verdict(
    found: PairedChange, worse: float, low: float, high: float, margin: float, noun: str
) -> tuple[Verdict, str]:
    """Return the verdict on a loss in points with its interval, and why it is not shown."""
    if math.isnan(high):
        return NOT_SHOWN, "; they are of one source (patient), too few for an interval"
    if high < margin:
        return PASSED, ""
    if low > 0 and worse >= margin:
        return FAILED, ""
    if found.only_first == found.only_second == 0:
        return NOT_SHOWN, f"; too few to rule {margin:g} points out"
    return NOT_SHOWN, f"; too few to tell whether it is {margin:g} points or more"


def _between(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" ({_points(low)} to {_points(high)})"


def _points(value: float) -> str:
    return f"{value:+.1f}" if round(value, 1) else "0.0"


def _cases(number: int) -> str:
    return "case" if number == 1 else "cases"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
