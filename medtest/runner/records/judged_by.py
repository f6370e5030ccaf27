"""Comparison of the oracle's revision that judged a record with the present one."""

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
    """Present judgement of records.

    Attributes:
        revision: Revision of the oracle's class.
        columns: Its number columns (:attr:`medtest.core.oracles.base.Oracle.judged_columns`).
        from_records: True if it judges from records alone (:attr:`medtest.core.oracles.base.Oracle.from_records`).
    """

    revision: int
    columns: tuple[str, ...]
    from_records: bool = False

    @classmethod
    def of(cls, oracle: Oracle) -> JudgedBy:
        """Create an instance for an oracle."""
        return cls(revision=oracle.revision, columns=oracle.judged_columns, from_records=oracle.from_records)

    def stated(self, table: pa.Table, columns: Iterable[str]) -> pa.Table:
        """Return records with the revision that judged them.

        Args:
            table: Records with the present columns.
            columns: Columns of their file; if a score is missing, the revision is 0.
        """
        return table if set(columns).issuperset(self.columns) else revised(table, 0)

    def stale(self, table: pa.Table, columns: Iterable[str]) -> NDArray[np.bool_]:
        """Return which records of a file must be judged again.

        Args:
            table: Records.
            columns: Columns of their file.
        """
        if not set(columns).issuperset(self.columns):
            return np.ones(table.num_rows, np.bool_)
        revisions = table[REVISION].combine_chunks().fill_null(self.revision).to_numpy(zero_copy_only=False)
        return np.asarray(revisions != self.revision)


def revised(table: pa.Table, revision: int) -> pa.Table:
    """Return records with this revision of the oracle."""
    index = table.schema.get_field_index(REVISION)
    column = pa.array(np.full(table.num_rows, revision), table.schema.field(index).type)
    return table.set_column(index, table.schema.field(index), column)
