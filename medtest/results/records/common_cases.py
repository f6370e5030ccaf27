"""Cases that several systems of a suite all finished, the basis of every comparison.

Cases are equal if their addresses, images and questions are: cases run under other seeds, other parameters of a
relation or another preparation have different bytes; they are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.core.records import KEY_COLUMNS
from medtest.results.records.alike import check_alike
from medtest.results.records.records_io import Records

_SEED = ("dataset", "seed_id", "item")
_CONTENT = ("source_sha256", "followup_sha256", "question")
"""Columns that must agree between the cases of two systems, if both records have them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LeftOut:
    """Finished follow-ups of one system that are not compared.

    Attributes:
        cases: Number of follow-ups.
        table: dataset, seed_id, relation and number of cases, one row for each combination with such cases.
        seeds: Source cases without a compared follow-up, as ``dataset/seed_id``.
        relations: Relations without a compared follow-up.
    """

    cases: int
    table: pd.DataFrame
    seeds: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Common:
    """Common cases of several systems.

    Attributes:
        records: For each system, its records of the common cases, the same cases row by row.
        finished: Number of follow-ups that each system finished.
        cases: Number of follow-ups that all finished.
        unlike: Number of follow-ups that all finished, but on different images or questions; not included in ``cases``.
        left_out: Follow-ups of each system that are not compared.
    """

    records: tuple[Records, ...]
    finished: tuple[int, ...]
    cases: int
    unlike: int
    left_out: tuple[LeftOut, ...]

    @property
    def whole(self) -> bool:
        """True if every system finished the same cases, all on the same images."""
        return all(number == self.cases for number in self.finished)


def common_cases(sides: Sequence[Records]) -> Common:
    """Return the common cases of the systems of one suite.

    Args:
        sides: Records of each system, with the contract's columns; hashes and questions are compared if both have them.

    Raises:
        MixedRevisions: Different revisions of the oracle judged them.
    """
    check_alike(sides)
    rows = _shared([_keys(side.followups, KEY_COLUMNS) for side in sides])
    equal = np.ones(len(rows[0]), dtype=bool)
    for name in _CONTENT:
        equal &= _alike([_texts(side.followups, name)[at] for side, at in zip(sides, rows, strict=True)])
    rows = [at[equal] for at in rows]
    return Common(
        records=tuple(_kept(side, at, sources) for side, at, sources in zip(sides, rows, _sources(sides), strict=True)),
        finished=tuple(len(side.followups) for side in sides),
        cases=int(equal.sum()),
        unlike=int((~equal).sum()),
        left_out=tuple(_left_out(side.followups, at) for side, at in zip(sides, rows, strict=True)),
    )


def _keys(frame: pd.DataFrame, names: Sequence[str]) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([_texts(frame, name) for name in names])


def _shared(keys: Sequence[pd.MultiIndex]) -> list[NDArray[np.int64]]:
    """Return the rows of keys common to all, in the order of the first; the last row of a repeated key."""
    rows = [np.flatnonzero(~index.duplicated(keep="last")) for index in keys]
    distinct = [index[at] for index, at in zip(keys, rows, strict=True)]
    shared = distinct[0]
    for index in distinct[1:]:
        shared = shared[shared.isin(index)]
    return [at[index.get_indexer(shared)] for index, at in zip(distinct, rows, strict=True)]


def _texts(frame: pd.DataFrame, name: str) -> NDArray[np.object_]:
    """Return a column as texts, "" if it is empty or absent."""
    if name not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    column = frame[name].astype(object)
    return column.where(column.notna(), "").astype(str).to_numpy(dtype=object)


def _alike(columns: Sequence[NDArray[np.object_]]) -> NDArray[np.bool_]:
    """Return a mask of the rows whose texts are equal in all columns, ignoring empty ones."""
    first = columns[0].copy()
    alike = np.ones(len(first), dtype=bool)
    for column in columns[1:]:
        alike &= (first == "") | (column == "") | (first == column)
        first = np.where(first == "", column, first)
    return alike


def _sources(sides: Sequence[Records]) -> list[NDArray[np.int64]]:
    """Return the rows of the source cases common to all, in one order."""
    rows = _shared([_keys(side.sources, _SEED) for side in sides])
    equal = _alike([_texts(side.sources, "source_sha256")[at] for side, at in zip(sides, rows, strict=True)])
    return [at[equal] for at in rows]


def _kept(side: Records, followups: NDArray[np.int64], sources: NDArray[np.int64]) -> Records:
    return Records(
        followups=side.followups.iloc[followups].reset_index(drop=True),
        sources=side.sources.iloc[sources].reset_index(drop=True),
        classes=side.classes,
        reader=side.reader,
    )


def _left_out(frame: pd.DataFrame, rows: NDArray[np.int64]) -> LeftOut:
    names = ["dataset", "seed_id", "relation"]
    places = pd.DataFrame({name: _texts(frame, name) for name in names})
    unshared = np.ones(len(frame), np.int64)
    unshared[rows] = 0
    places["left"] = unshared
    counts = places.groupby(names, sort=False, as_index=False)["left"].agg(["sum", "size"])
    counts.columns = [*names, "cases", "all"]
    table = counts.loc[(counts["cases"] > 0).to_numpy(dtype=bool), [*names, "cases"]].reset_index(drop=True)
    by_seed = counts.groupby(["dataset", "seed_id"], sort=False, as_index=False)[["cases", "all"]].sum()
    lost_seeds = by_seed.loc[(by_seed["cases"] == by_seed["all"]).to_numpy(dtype=bool)]
    by_relation = counts.groupby("relation", sort=False, as_index=False)[["cases", "all"]].sum()
    lost_relations = by_relation.loc[(by_relation["cases"] == by_relation["all"]).to_numpy(dtype=bool), "relation"]
    return LeftOut(
        cases=int(places["left"].sum()),
        table=table,
        seeds=tuple(f"{row.dataset}/{row.seed_id}" for row in lost_seeds.itertuples(index=False)),
        relations=tuple(str(name) for name in lost_relations),
    )
