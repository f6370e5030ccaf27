"""By which revision of its oracle a record was judged, and by which it would be judged now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from medtest.core.oracles.base import Oracle
from medtest.core.records import REVISION


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBy:
    """By what records are judged now.

    Attributes:
        revision: Of the oracle's class.
        columns: The number columns that it gives (:attr:`medtest.core.oracles.base.Oracle.judged_columns`).
        from_records: Whether it judges what records hold (:attr:`medtest.core.oracles.base.Oracle.from_records`).
    """

    revision: int
    columns: tuple[str, ...]
    from_records: bool = False

    @classmethod
    def of(cls, oracle: Oracle) -> JudgedBy:
        """Return how an oracle judges."""
        return cls(revision=oracle.revision, columns=oracle.judged_columns, from_records=oracle.from_records)

    def stated(self, table: pa.Table, there: Iterable[str]) -> pa.Table:
        """Return records with the revision that judged them.

        Args:
            table: Records with today's columns.
            there: The columns that their file has; if a score is missing, no revision gave all scores.
        """
        return table if set(there).issuperset(self.columns) else revised(table, 0)

    def stale(self, table: pa.Table, there: Iterable[str]) -> NDArray[np.bool_]:
        """Return which records of a file are to be judged again.

        Args:
            table: Records.
            there: The columns that their file has.
        """
        if not set(there).issuperset(self.columns):
            return np.ones(table.num_rows, np.bool_)
        found = table[REVISION].combine_chunks().fill_null(self.revision).to_numpy(zero_copy_only=False)
        return np.asarray(found != self.revision)


def revised(table: pa.Table, revision: int) -> pa.Table:
    """Return records that say that this revision of the oracle judged them."""
    at = table.schema.get_field_index(REVISION)
    if at < 0:
        return table
    column = pa.array(np.full(table.num_rows, revision), table.schema.field(at).type)
    return table.set_column(at, table.schema.field(at), column)
