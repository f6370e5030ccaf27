"""Status of each follow-up under a criterion: case, violation, or the reason for neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import ReasonCode, Verdict
from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.results.records.records_io import Records
from medtest.suite.model import Criterion

_UNREADABLE = (ReasonCode.CHANGE_UNREADABLE, ReasonCode.PROMPT_UNREADABLE)


@dataclass(frozen=True, kw_only=True)
class Status:
    """Status of each follow-up under one criterion: exactly one of case, error, skipped and source_failed.

    Attributes:
        case: The follow-up is in the denominator.
        error: The system or the relation failed.
        skipped: There is no verdict for a reason specific to the case.
        source_failed: The source case allows no comparison.
        violated: The follow-up is in the denominator and a violation.
    """

    case: NDArray[np.bool_]
    error: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    source_failed: NDArray[np.bool_]
    violated: NDArray[np.bool_]


def source_scores(records: Records, score: str) -> NDArray[np.float64]:
    """Return a score of each source case, float64; NaN if it has none."""
    if score not in records.sources.columns:
        return np.full(len(records.sources), np.nan)
    return records.sources[score].to_numpy(dtype=np.float64, na_value=np.nan)


def failed_sources(records: Records, judged: Status, criterion: Criterion) -> NDArray[np.bool_]:
    """Return a mask of the source cases that allow no comparison under one criterion.

    These are cases with an ERROR; against ``truth``, cases with a score of zero (or below) in any component of the
    criterion; against ``truth`` and ``source``, cases with a follow-up that says so.

    Args:
        records: Records of one system.
        judged: Status of its follow-ups from :func:`status`.
        criterion: The criterion. Against ``input`` a follow-up is compared with its own input, not with a source.
    """
    keys = ["dataset", "seed_id", "item"]
    failed = (records.sources["verdict"] == Verdict.ERROR.value).to_numpy(dtype=bool)
    if criterion.against == "input":
        return failed
    if criterion.against == "truth" and criterion.score not in criteria.ALONE:
        for name in criteria.components(criterion.score):
            failed = failed | (source_scores(records, name) <= 0)
    lost = records.followups.loc[judged.source_failed, keys].astype(str)
    if lost.empty:
        return failed
    source_keys = pd.MultiIndex.from_frame(records.sources[keys].astype(str))
    return np.asarray(failed | source_keys.isin(pd.MultiIndex.from_frame(lost)), dtype=np.bool_)


def failed_in_pair(
    sides: tuple[Records, Records], judged: tuple[Status, Status], criterion: Criterion
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return a mask of the failed source cases for each of two runs.

    These are the cases of :func:`failed_sources`, and cases without a score where the other run has one, for example
    because a system gave no answer.

    Args:
        sides: Records of two runs, with the same source cases row by row.
        judged: Status from :func:`status` for each run.
        criterion: The criterion.
    """
    unknown = tuple(np.isnan(source_scores(run, criteria.components(criterion.score)[0])) for run in sides)
    first, second = (failed_sources(run, of, criterion) for run, of in zip(sides, judged, strict=True))
    return first | (unknown[0] & ~unknown[1]), second | (unknown[1] & ~unknown[0])


def status(records: Records, criterion: Criterion) -> Status:
    """Return the status of each follow-up under one criterion."""
    score, threshold, against = criterion.score, criterion.threshold, criterion.against
    columns = {name: records.floats(name) for name in criteria.columns_needed(score, against)}
    outcome = criteria.judge(columns, score=score, threshold=threshold, against=against)
    error = (records.followups["verdict"] == Verdict.ERROR.value).to_numpy(dtype=bool)
    case = outcome.applies & ~error
    lost = outcome.source_failed | records.source_broken
    if against == "source":
        # Scored against the truth but not against the source: there is no answer to the source, unless the reader is
        # the reason.
        unread = records.followups["reason_code"].isin(_UNREADABLE).to_numpy(dtype=bool)
        lost = lost | (~np.isnan(records.floats(criteria.components(score)[0])) & ~outcome.applies & ~unread)
    source_failed = lost & ~case & ~error
    return Status(
        case=case,
        error=error,
        skipped=~(case | error | source_failed),
        source_failed=source_failed,
        violated=outcome.violated & case,
    )
