"""Which cases fail in one run and not in the other: new violations, those that are gone, and new errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtest.oracles import criteria
from medtest.results.columns import columns_in
from medtest.results.images import case_losses
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "comparison_changed")
"""``first`` and ``second`` are the scores after the change of the image, ``source_…`` those on the source."""
FAILING, PASSING, BROKEN = "newly failing", "newly passing", "newly an error"


def changed_table(first: Records, second: Records, primary: Criterion) -> pd.DataFrame:
    """Return the cases whose verdict changed from the first run to the second, with :data:`COLUMNS`.

    Newly failing and newly passing ones lie in a denominator of both; a case that broke is in none and is listed apart.
    Within each kind the case whose loss changed most stands first.

    Args:
        first: Records of the run that is compared with, row by row the same cases as ``second``.
        second: Records of the other run.
        primary: The criterion of a violation.
    """
    import pandas as pd

    before, after = (
        status(one, score=primary.score, threshold=primary.threshold, against=primary.against)
        for one in (first, second)
    )
    both = before.case & after.case
    change = np.full(len(first.followups), "", dtype=object)
    change[both & ~before.violated & after.violated] = FAILING
    change[both & before.violated & ~after.violated] = PASSING
    change[~before.error & after.error] = BROKEN
    score = criteria.components(primary.score)[0]
    name = f"self_{score}" if primary.against == "source" else score
    losses = [case_losses(one, primary) for one in (first, second)]
    with np.errstate(invalid="ignore"):  # of a source that scores 0 every loss is infinite
        moved = np.nan_to_num(np.abs(losses[1] - losses[0]), posinf=0.0)
    rank = {FAILING: 0, PASSING: 1, BROKEN: 2}
    kinds = np.array([rank.get(str(one), 9) for one in change])
    rows = np.lexsort((np.arange(len(kinds)), -moved, kinds))
    rows = rows[: int((kinds < 9).sum())]
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
    return table.iloc[rows].reset_index(drop=True)[list(COLUMNS)]
