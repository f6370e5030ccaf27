"""Exclusion of follow-ups that people judged unfit, with counts: ``tables/excluded.csv``.

Records keep their verdicts; without ``exclude:`` in the suite, rates cover all follow-ups again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from medtest.core.deferred import pd
from medtest.results.records.records_io import Records
from medtest.suite.checking.exclusion import Exclusion

COLUMNS = ("dataset", "relation", "severity", "excluded", "executed")


@dataclass(frozen=True, kw_only=True, eq=False)
class Excluded:
    """Follow-ups that were left out.

    Attributes:
        file: Name of the list.
        listed: Number of follow-ups on the list.
        found: Number of listed follow-ups in the records.
        cases: Number of records that were left out.
        table: Cases left out by data set, relation and severity, with the cases executed; rows without any are omitted,
            the
            last row is the total.
    """

    file: str
    listed: int
    found: int
    cases: int
    table: pd.DataFrame

    @property
    def words(self) -> str:
        """Sentence for reports."""
        sentence = f"{self.cases:,} follow-ups flagged in a study ({self.file}) are excluded from all rates."
        absent = self.listed - self.found
        if not absent:
            return sentence
        return (
            f"{sentence} {absent:,} of the {self.listed:,} listed follow-ups are not in this run: they were not "
            "executed, or their pixels differ."
        )


def leave_out(records: Records, exclusion: Exclusion) -> tuple[Records, Excluded]:
    """Return the records without the listed follow-ups, and a summary of the exclusion.

    Args:
        records: Records of one system, with ``followup_sha256``.
        exclusion: The list.
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
    excluded = Excluded(
        file=exclusion.file,
        listed=len(exclusion.cases),
        found=present,
        cases=int(out.sum()),
        table=pd.concat([table[list(COLUMNS)], total], ignore_index=True),
    )
    remaining = frame.loc[~out].reset_index(drop=True)
    return replace(records, followups=remaining), excluded
