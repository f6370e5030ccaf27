"""The cases requested by a call (``limit``, ``only``) in a folder that also holds others."""

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
"""The cases of a view, in its folder; a view without it covers all cases."""

_SCHEMA = pa.schema([pa.field(name, dict(FIXED_COLUMNS)[name]) for name in KEY_COLUMNS])
_ROW = "_row"


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseSet:
    """Set of cases, including sources.

    Attributes:
        cases: One row per case, the key columns of records, with seed ids as in records.
    """

    cases: pa.Table

    @classmethod
    def of(cls, plan: Plan, chosen: NDArray[np.bool_], names: ShownNames) -> CaseSet:
        """Create the set of the chosen cases of a plan.

        Args:
            plan: The plan.
            chosen: bool, one per place (unit × cases of the longest unit + case).
            names: Display of ids.
        """
        rows: list[dict[str, Any]] = []
        places = chosen.reshape(len(plan.refs), -1)
        for index in np.flatnonzero(places.any(axis=1)):
            unit = plan.unit(int(index), 0)
            shown_id = names.seed_id(unit.ref.dataset, unit.ref.seed_id)
            for number in np.flatnonzero(places[index]):
                case = {name: getattr(unit.cases[int(number)], name) for name in KEY_COLUMNS}
                rows.append({**case, "seed_id": shown_id})
        return cls(cases=pa.Table.from_pylist(rows, schema=_SCHEMA))

    @classmethod
    def read(cls, folder: Path) -> CaseSet | None:
        """Read the cases of the view in a folder; None for a view of all cases.

        Raises:
            OutputProblem: The file is not a list of cases.
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
        """Return the digest of the view of these cases under one way of judging, regardless of their order.

        Args:
            judged: Digest of the oracle, and of the judge if there is one.
        """
        lines = sorted(json.dumps(list(case)) for case in zip(*self.cases.to_pydict().values(), strict=True))
        text = "\n".join(lines).encode("ascii")
        return digest_of({"view": judged, "cases": hashlib.sha256(text).hexdigest()})

    @cached_property
    def count(self) -> int:
        """Number of cases, including sources."""
        return int(self.cases.num_rows)

    def rows(self, records: pa.Table) -> NDArray[np.int64]:
        """Return the positions of the records of these cases, in ascending order.

        Args:
            records: A table with the key columns.
        """
        numbered = records.select(KEY_COLUMNS).cast(_SCHEMA).append_column(_ROW, pa.array(np.arange(records.num_rows)))
        positions = numbered.join(self.cases, keys=list(KEY_COLUMNS), join_type="left semi")[_ROW]
        return np.sort(positions.to_numpy().astype(np.int64))
