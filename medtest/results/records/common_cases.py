"""The cases that several systems of a suite all finished: nothing else may be compared.

A case is the same when its address is, and its images and its question are: what ran under other seeds, other
parameters of a relation or another preparation has other bytes, and is left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medtest.core.records import KEY_COLUMNS
from medtest.results.records.alike import check_alike
from medtest.results.records.records_io import Records

if TYPE_CHECKING:
    import pandas as pd

_SEED = ("dataset", "seed_id", "item")
_CONTENT = ("source_sha256", "followup_sha256", "question")
"""What must be alike in a case of two systems, where both records have it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LeftOut:
    """What of one system's finished follow-ups is not compared.

    Attributes:
        cases: How many.
        table: dataset, seed_id, relation and number of cases, one row each where there are any.
        seeds: Source cases of which nothing is compared, as ``dataset/seed_id``.
        relations: Relations of which nothing is compared.
    """

    cases: int
    table: pd.DataFrame
    seeds: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Common:
    """What several systems have in common.

    Attributes:
        records: Of each system, its records of the common cases; row by row the same cases.
        finished: Follow-ups that each system finished.
        cases: Follow-ups that all finished.
        unlike: Follow-ups that all finished, but on other images or with other questions; they are not in ``cases``.
        left_out: Of each system.
    """

    records: tuple[Records, ...]
    finished: tuple[int, ...]
    cases: int
    unlike: int
    left_out: tuple[LeftOut, ...]

    @property
    def whole(self) -> bool:
        """Whether every system finished the same cases, all on the same images."""
        return all(number == self.cases for number in self.finished)


def common_cases(sides: Sequence[Records]) -> Common:
    """Return what systems of one suite have in common.

    Args:
        sides: Records of each system, with the contract's columns; hashes and questions are compared where both have
            them.

    Raises:
        MixedRevisions: Different revisions of the oracle judged them.
    """
    check_alike(sides)
    rows = _shared([_keys(side.followups, KEY_COLUMNS) for side in sides])
    same = np.ones(len(rows[0]), dtype=bool)
    for name in _CONTENT:
        same &= _alike([_texts(side.followups, name)[at] for side, at in zip(sides, rows, strict=True)])
    rows = [at[same] for at in rows]
    return Common(
        records=tuple(_kept(side, at, sources) for side, at, sources in zip(sides, rows, _sources(sides), strict=True)),
        finished=tuple(len(side.followups) for side in sides),
        cases=int(same.sum()),
        unlike=int((~same).sum()),
        left_out=tuple(_left_out(side.followups, at) for side, at in zip(sides, rows, strict=True)),
    )


def _keys(frame: pd.DataFrame, names: Sequence[str]) -> pd.MultiIndex:
    import pandas as pd

    return pd.MultiIndex.from_arrays([_texts(frame, name) for name in names])


def _shared(keys: Sequence[pd.MultiIndex]) -> list[NDArray[np.int64]]:
    """Return the rows of the keys that all have, in the order of the first; of a key that stands twice its last row."""
    rows = [np.flatnonzero(~one.duplicated(keep="last")) for one in keys]
    known = [one[at] for one, at in zip(keys, rows, strict=True)]
    shared = known[0]
    for other in known[1:]:
        shared = shared[shared.isin(other)]
    return [at[one.get_indexer(shared)] for one, at in zip(known, rows, strict=True)]


def _texts(frame: pd.DataFrame, name: str) -> NDArray[np.object_]:
    """Return a column as texts, "" where it is empty or absent."""
    if name not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    column = frame[name].astype(object)
    return column.where(column.notna(), "").astype(str).to_numpy(dtype=object)


def _alike(columns: Sequence[NDArray[np.object_]]) -> NDArray[np.bool_]:
    """Whether the texts of all columns are equal, those that are empty left out of sight."""
    first = columns[0].copy()
    alike = np.ones(len(first), dtype=bool)
    for other in columns[1:]:
        alike &= (first == "") | (other == "") | (first == other)
        first = np.where(first == "", other, first)
    return alike


def _sources(sides: Sequence[Records]) -> list[NDArray[np.int64]]:
    """Return the rows of the source cases that all have, in one order."""
    rows = _shared([_keys(side.sources, _SEED) for side in sides])
    same = _alike([_texts(side.sources, "source_sha256")[at] for side, at in zip(sides, rows, strict=True)])
    return [at[same] for at in rows]


def _kept(side: Records, followups: NDArray[np.int64], sources: NDArray[np.int64]) -> Records:
    return Records(
        followups=side.followups.iloc[followups].reset_index(drop=True),
        sources=side.sources.iloc[sources].reset_index(drop=True),
        classes=side.classes,
        reader=side.reader,
    )


def _left_out(frame: pd.DataFrame, rows: NDArray[np.int64]) -> LeftOut:
    import pandas as pd

    names = ["dataset", "seed_id", "relation"]
    places = pd.DataFrame({name: _texts(frame, name) for name in names})
    left = np.ones(len(frame), np.int64)
    left[rows] = 0
    places["left"] = left
    counted = places.groupby(names, sort=False, as_index=False)["left"].agg(["sum", "size"])
    counted.columns = [*names, "cases", "all"]
    table = counted.loc[(counted["cases"] > 0).to_numpy(dtype=bool), [*names, "cases"]].reset_index(drop=True)
    by_seed = counted.groupby(["dataset", "seed_id"], sort=False, as_index=False)[["cases", "all"]].sum()
    gone = by_seed.loc[(by_seed["cases"] == by_seed["all"]).to_numpy(dtype=bool)]
    by_relation = counted.groupby("relation", sort=False, as_index=False)[["cases", "all"]].sum()
    whole = by_relation.loc[(by_relation["cases"] == by_relation["all"]).to_numpy(dtype=bool), "relation"]
    return LeftOut(
        cases=int(places["left"].sum()),
        table=table,
        seeds=tuple(f"{row.dataset}/{row.seed_id}" for row in gone.itertuples(index=False)),
        relations=tuple(str(name) for name in whole),
    )
