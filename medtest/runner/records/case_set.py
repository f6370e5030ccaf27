"""The cases that a call asked for (``limit``, ``only``), where a folder holds finished cases beside them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.errors import OutputProblem
from medtest.core.records import FIXED_COLUMNS, KEY_COLUMNS
from medtest.runner.folder import writing
from medtest.runner.privacy.rules import ShownNames
from medtest.suite.digest import digest_of
from medtest.suite.plan import Plan

FILE = "cases.parquet"
"""The cases of a view, in its folder; a view without it is of all cases."""

_SCHEMA = pa.schema([pa.field(name, dict(FIXED_COLUMNS)[name]) for name in KEY_COLUMNS])
_ROW = "_row"


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseSet:
    """A set of cases, sources among them.

    Attributes:
        cases: One row a case, the key columns of records; seeds' ids as records show them.
    """

    cases: pa.Table

    @classmethod
    def of(cls, plan: Plan, chosen: NDArray[np.bool_], names: ShownNames) -> CaseSet:
        """Return the chosen cases of a plan.

        Args:
            plan: The plan.
            chosen: bool, one for each place (unit × cases of the longest unit + case).
            names: How ids are shown.
        """
        rows: list[tuple[Any, ...]] = []
        places = chosen.reshape(len(plan.refs), -1)
        for index in np.flatnonzero(places.any(axis=1)):
            unit = plan.unit(int(index), 0)
            shown = names.seed_id(unit.ref.dataset, unit.ref.seed_id)
            for number in np.flatnonzero(places[index]):
                case = unit.cases[int(number)]
                rows.append((case.dataset, shown, case.relation, case.severity, case.frame, case.repeat, case.item))
        columns = zip(*rows, strict=True) if rows else [() for _ in KEY_COLUMNS]
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        return cls(cases=pa.Table.from_arrays(arrays, schema=_SCHEMA))

    @classmethod
    def read(cls, folder: Path) -> CaseSet | None:
        """Return the cases of the view in a folder; None for one of all cases.

        Raises:
            OutputProblem: The file is no list of cases.
        """
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            with pq.ParquetFile(path) as file:
                return cls(cases=file.read(columns=list(KEY_COLUMNS)).select(KEY_COLUMNS).cast(_SCHEMA))
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise OutputProblem(f"{folder.name}/{FILE} cannot be read: {error}") from error

    def write(self, folder: Path) -> None:
        """Write the cases into a view's folder.

        Raises:
            OutputProblem: The file cannot be written.
        """
        with writing(folder / FILE) as file:
            pq.write_table(self.cases, file, compression="zstd")

    def view(self, judged: str) -> str:
        """Return the digest of the view of these cases under one way of judging; their order does not matter.

        Args:
            judged: Digest of the oracle, and of the judge where there is one.
        """
        lines = sorted(json.dumps(list(case)) for case in zip(*self.cases.to_pydict().values(), strict=True))
        text = "\n".join(lines).encode("ascii")
        return digest_of({"view": judged, "cases": hashlib.sha256(text).hexdigest()})

    @cached_property
    def count(self) -> int:
        """Cases, sources included."""
        return int(self.cases.num_rows)

    def rows(self, records: pa.Table) -> NDArray[np.int64]:
        """Return the positions of the records that are of these cases, in ascending order.

        Args:
            records: A table with the key columns.
        """
        numbered = records.select(KEY_COLUMNS).cast(_SCHEMA).append_column(_ROW, pa.array(np.arange(records.num_rows)))
        kept = numbered.join(self.cases, keys=list(KEY_COLUMNS), join_type="left semi")[_ROW]
        return np.sort(kept.to_numpy().astype(np.int64))
