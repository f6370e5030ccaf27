"""Cases whose verdict changed between two runs: new and resolved violations, errors, skips and failed sources."""

from __future__ import annotations

import numpy as np

from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.core.records import KEY_COLUMNS, addresses
from medtest.results.columns import columns_in
from medtest.results.rates.images import case_losses
from medtest.results.records.records_io import Records
from medtest.results.records.status import Status, failed_in_pair, source_scores, status
from medtest.suite.model import Criterion

COLUMNS = columns_in(__file__, "comparison_changed")
"""Columns; ``first`` and ``second`` are scores after the perturbation, ``source_…`` those on the source."""
FAILING, PASSING, BROKEN = "newly failing", "newly passing", "newly an error"
SKIPPED, SOURCE_LOST = "newly skipped", "newly failed source"
KINDS = (SOURCE_LOST, FAILING, PASSING, BROKEN, SKIPPED)
"""Kinds of changes, in the order of the table."""


def changed_table(first: Records, second: Records, primary: Criterion) -> pd.DataFrame:
    """Return the cases whose verdict changed from the first run to the second, with :data:`COLUMNS`.

    Newly failing and newly passing cases are in the denominator of both runs. Cases that became errors or were skipped
    are listed separately, as are failed source cases, whose follow-ups are no longer judged. Each kind is sorted by the
    change in loss, sources by the decrease of their score.

    Args:
        first: Records of the reference run, with the same cases row by row as ``second``.
        second: Records of the other run.
        primary: Criterion of a violation.
    """
    old, new = (status(run, primary) for run in (first, second))
    shared = old.case & new.case
    change = np.full(len(first.followups), "", dtype=object)
    change[shared & ~old.violated & new.violated] = FAILING
    change[shared & old.violated & ~new.violated] = PASSING
    change[~old.error & new.error] = BROKEN
    change[~old.skipped & new.skipped] = SKIPPED
    score = criteria.components(primary.score)[0]
    name = f"self_{score}" if primary.against == "source" else score
    losses = [case_losses(run, primary) for run in (first, second)]
    with np.errstate(invalid="ignore"):  # losses are infinite for sources that score 0
        moved = np.nan_to_num(np.abs(losses[1] - losses[0]), posinf=0.0)
    kinds = np.array([KINDS.index(kind) if kind in KINDS else len(KINDS) for kind in change], dtype=np.int64)
    rows = np.lexsort((np.arange(len(kinds)), -moved, kinds))
    rows = rows[: int((kinds < len(KINDS)).sum())]
    table = pd.DataFrame(
        {
            "change": change,
            "address": first.texts("address"),
            "dataset": first.texts("dataset"),
            "relation": first.texts("relation"),
            "severity": first.followups["severity"].to_numpy(),
            "score": score,
            "source_first": np.round(first.floats(f"source_{score}"), 6),
            "source_second": np.round(second.floats(f"source_{score}"), 6),
            "first": np.round(first.floats(name), 6),
            "second": np.round(second.floats(name), 6),
        }
    )
    sources = _sources(first, second, (old, new), primary)
    parts = [part for part in (sources, table.iloc[rows]) if not part.empty] or [table.iloc[:0]]
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def _sources(first: Records, second: Records, states: tuple[Status, Status], primary: Criterion) -> pd.DataFrame:
    """Return the source cases that fail only in the second run, by decreasing loss of score."""
    lost = failed_in_pair((first, second), states, primary)
    score = criteria.components(primary.score)[0]
    scores = [source_scores(run, score) for run in (first, second)]
    fell = np.nan_to_num(scores[0]) - np.nan_to_num(scores[1])
    rows = [at for at in np.argsort(-fell, kind="stable") if lost[1][at] and not lost[0][at]]
    keys = {name: first.sources[name].astype(object).fillna("").iloc[rows].tolist() for name in KEY_COLUMNS}
    return pd.DataFrame(
        {
            "change": SOURCE_LOST,
            "address": addresses(keys),
            "dataset": keys["dataset"],
            "relation": keys["relation"],
            "severity": keys["severity"],
            "score": score,
            "source_first": np.round(scores[0][rows], 6),
            "source_second": np.round(scores[1][rows], 6),
            "first": np.nan,
            "second": np.nan,
        }
    )
