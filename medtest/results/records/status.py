"""What each follow-up counts as under a criterion: a case, a violation, or which of the reasons for neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Verdict
from medtest.core.oracles import criteria
from medtest.results.records.records_io import Records


@dataclass(frozen=True, kw_only=True)
class Status:
    """What each follow-up counts as under one criterion; every follow-up is exactly one of the four.

    Attributes:
        case: It is in the denominator.
        error: The system or the relation broke.
        skipped: There is no verdict for a reason of the case's own.
        source_failed: The source case gives nothing to compare with.
        violated: It is in the denominator and a violation.
    """

    case: NDArray[np.bool_]
    error: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    source_failed: NDArray[np.bool_]
    violated: NDArray[np.bool_]


def source_scores(records: Records, score: str) -> NDArray[np.float64]:
    """Return a score of each source case, NaN where it has none: float64, one for each source."""
    if score not in records.sources.columns:
        return np.full(len(records.sources), np.nan)
    return records.sources[score].to_numpy(dtype=np.float64, na_value=np.nan)


def failed_sources(records: Records, judged: Status, *, score: str, against: str) -> NDArray[np.bool_]:
    """Return which source cases give nothing to compare with under one criterion: bool, one for each source.

    Those that are an ERROR; against ``truth`` those that score zero (or below) in any component of the criterion;
    against ``truth`` and ``source`` those of which a follow-up says so.

    Args:
        records: Records of one system.
        judged: What :func:`status` gave for its follow-ups.
        score: As in :func:`status`.
        against: As in :func:`status`. Against ``input`` a follow-up is held against its own input and no source.
    """
    import pandas as pd

    keys = ["dataset", "seed_id", "item"]
    failed = (records.sources["verdict"] == Verdict.ERROR.value).to_numpy(dtype=bool)
    if against == "input":
        return failed
    if against == "truth" and score not in criteria.ALONE:
        for name in criteria.components(score):
            failed = failed | (source_scores(records, name) <= 0)
    lost = records.followups.loc[judged.source_failed, keys].astype(str)
    if lost.empty:
        return failed
    own = pd.MultiIndex.from_frame(records.sources[keys].astype(str))
    return np.asarray(failed | own.isin(pd.MultiIndex.from_frame(lost)), dtype=np.bool_)


def failed_in_pair(
    sides: tuple[Records, Records], judged: tuple[Status, Status], *, score: str, against: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which source cases fail in each of two runs: bool, one for each source.

    Those of :func:`failed_sources`, and those without a score where the other run has one, as where a system has no
    answer.

    Args:
        sides: Records of two runs; row by row the same source cases.
        judged: What :func:`status` gave for each.
        score: As in :func:`status`.
        against: As in :func:`status`.
    """
    unknown = tuple(np.isnan(source_scores(one, criteria.components(score)[0])) for one in sides)
    first, second = (
        failed_sources(one, of, score=score, against=against) for one, of in zip(sides, judged, strict=True)
    )
    return first | (unknown[0] & ~unknown[1]), second | (unknown[1] & ~unknown[0])


def status(records: Records, *, score: str, threshold: float, against: str) -> Status:
    """Return what each follow-up counts as under one criterion."""
    columns = {name: records.floats(name) for name in criteria.columns_needed(score, against)}
    judged = criteria.judge(columns, score=score, threshold=threshold, against=against)
    error = (records.followups["verdict"] == Verdict.ERROR.value).to_numpy(dtype=bool)
    case = judged.applies & ~error
    lost = judged.source_failed | records.source_broken
    if against == "source":
        # an answer that is scored against the truth and not against the source: there is no answer to the source
        lost = lost | (~np.isnan(records.floats(criteria.components(score)[0])) & ~judged.applies)
    source_failed = lost & ~case & ~error
    return Status(
        case=case,
        error=error,
        skipped=~(case | error | source_failed),
        source_failed=source_failed,
        violated=judged.violated & case,
    )
