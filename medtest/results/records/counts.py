"""Counts of verdicts, sources and reasons in the records of a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from medtest.results.records.records_io import Records


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of a folder's follow-ups and sources.

    Attributes:
        verdicts: Follow-ups by verdict, including ``unchanged``.
        sources: Source cases.
        source_errors: Source cases with an ERROR.
        seeds: Source cases or, without those, seeds by data set.
        reasons: The most frequent reasons of ERROR and SKIP: (verdict, reason code, reason, count), most frequent
            first.
        images: Seeds, each counted once even with several questions.
    """

    verdicts: Mapping[str, int]
    sources: int
    source_errors: int
    seeds: Mapping[str, int]
    reasons: tuple[tuple[str, str, str, int], ...] = ()
    images: int = 0

    @property
    def cases(self) -> int:
        """Number of cases, including sources."""
        return sum(self.verdicts.values()) + self.sources


def counts_of(records: Records, most: int = 12) -> Counts:
    """Return verdicts, seeds and the most frequent reasons."""
    cases = records.followups
    verdicts = dict.fromkeys(("PASS", "FAIL", "ERROR", "SKIP"), 0)
    for name, count in cases["verdict"].astype(str).value_counts().items():
        verdicts[str(name)] = int(count)
    sources = records.sources
    owner = sources if not sources.empty else cases.drop_duplicates(["dataset", "seed_id"])
    seeds = {str(name): int(count) for name, count in owner["dataset"].astype(str).value_counts(sort=False).items()}
    names = ["verdict", "reason_code", "reason"]
    bad = cases.loc[cases["verdict"].isin(["ERROR", "SKIP"]).to_numpy(dtype=bool), names].astype(str)
    numbers = bad.groupby(names, sort=False).size().reset_index(name="count")
    numbers = numbers.sort_values("count", ascending=False, kind="stable").head(most)
    reasons = tuple(
        (str(row.verdict), str(row.reason_code), str(row.reason), int(str(row.count)))
        for row in numbers.itertuples(index=False)
    )
    return Counts(
        verdicts=verdicts,
        sources=len(sources),
        source_errors=int(np.count_nonzero(sources["verdict"].astype(str) == "ERROR")),
        seeds=seeds,
        reasons=reasons,
        images=len(owner[["dataset", "seed_id"]].drop_duplicates()),
    )
