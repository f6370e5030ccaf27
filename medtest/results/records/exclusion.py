"""Exclusion of follow-ups that people judged unfit, with counts: ``tables/excluded.csv``.

Records keep their verdicts; without ``exclude:`` in the suite, rates cover all follow-ups again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from medtest.core.deferred import pd
from medtest.results.records.records_io import Records
from medtest.suite.checking.exclusion import Exclusion

COLUMNS = ("dataset", "relation", "severity", "excluded", "executed")


def leave_out(records: Records, exclusion: Exclusion) -> tuple[Records, pd.DataFrame, str]:
    """Return the records without the listed follow-ups, and a summary of the exclusion.

    Args:
        records: Records of one system, with ``followup_sha256``.
        exclusion: The list.

    Returns:
        The remaining records; the cases left out by data set, relation and severity, with the cases executed (rows
        without any are omitted, the last row is the total); and a sentence for reports.
    """
    keys = list(zip(records.texts("relation"), records.texts("followup_sha256"), strict=True))
    out = np.fromiter((key in exclusion.cases for key in keys), dtype=bool, count=len(keys))
    present = len({key for key, leave in zip(keys, out, strict=True) if leave})
    frame = records.followups
    places = pd.DataFrame(
        {name: frame[name].astype(str).to_numpy(dtype=object) for name in ("dataset", "relation", "severity")}
    )
    counts = places.assign(excluded=out.astype(np.int64), executed=1)
    table = counts.groupby(["dataset", "relation", "severity"], sort=False, as_index=False)[
        ["excluded", "executed"]
    ].sum()
    table = table.loc[(table["excluded"] > 0).to_numpy(dtype=bool)]
    total = pd.DataFrame([["all", "all", "all", int(out.sum()), len(out)]], columns=list(COLUMNS))
    words = f"{int(out.sum()):,} follow-ups flagged in a study ({exclusion.file}) are excluded from all rates."
    if absent := len(exclusion.cases) - present:
        words += (
            f" {absent:,} of the {len(exclusion.cases):,} listed follow-ups are not in this run: they were not "
            "executed, or their pixels differ."
        )
    table = pd.concat([table[list(COLUMNS)], total], ignore_index=True)
    return replace(records, followups=frame.loc[~out].reset_index(drop=True)), table, words
