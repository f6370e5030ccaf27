"""Leaves follow-ups that people judged unfit out of every rate, and counts them: ``tables/excluded.csv``.

The records keep their verdicts; a suite without ``exclude:`` shows the rates over all of them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from medtest.results.records.records_io import Records
from medtest.suite.checking.exclusion import Exclusion

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("dataset", "relation", "severity", "excluded", "executed")


@dataclass(frozen=True, kw_only=True, eq=False)
class Excluded:
    """What was left out.

    Attributes:
        file: Name of the list.
        listed: Follow-ups on it.
        found: Listed follow-ups that the records hold.
        cases: Records that were left out.
        table: Cases left out by data set, relation and severity, with the cases executed; rows without any are not
            there, the last row is over all.
    """

    file: str
    listed: int
    found: int
    cases: int
    table: pd.DataFrame

    @property
    def words(self) -> str:
        """One sentence for reports."""
        said = f"{self.cases:,} follow-ups that people flagged in a study ({self.file}) are left out of every rate."
        missing = self.listed - self.found
        if not missing:
            return said
        return (
            f"{said} {missing:,} of the {self.listed:,} on that list are not among this run's follow-ups: they were "
            "not executed, or their pixels differ."
        )


def leave_out(records: Records, exclusion: Exclusion) -> tuple[Records, Excluded]:
    """Return the records without the listed follow-ups, and what was left out.

    Args:
        records: Records of one system, with ``followup_sha256``.
        exclusion: The list.
    """
    import pandas as pd

    keys = list(zip(records.texts("relation"), records.texts("followup_sha256"), strict=True))
    out = np.fromiter((key in exclusion.cases for key in keys), dtype=bool, count=len(keys))
    found = len({key for key, leave in zip(keys, out, strict=True) if leave})
    frame = records.followups
    places = pd.DataFrame(
        {name: frame[name].astype(str).to_numpy(dtype=object) for name in ("dataset", "relation", "severity")}
    )
    counted = places.assign(excluded=out.astype(np.int64), executed=1)
    table = counted.groupby(["dataset", "relation", "severity"], sort=False, as_index=False)[
        ["excluded", "executed"]
    ].sum()
    table = table.loc[(table["excluded"] > 0).to_numpy(dtype=bool)]
    total = pd.DataFrame([["all", "all", "all", int(out.sum()), len(out)]], columns=list(COLUMNS))
    excluded = Excluded(
        file=exclusion.file,
        listed=len(exclusion.cases),
        found=found,
        cases=int(out.sum()),
        table=pd.concat([table[list(COLUMNS)], total], ignore_index=True),
    )
    kept = frame.loc[~out].reset_index(drop=True)
    return replace(records, followups=kept), excluded
