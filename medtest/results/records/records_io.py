"""Reading of selected columns of records, from ``records.parquet`` or the shards of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from medtest.core.cases import CONTROLS, SOURCE, Classes
from medtest.core.deferred import pd
from medtest.core.errors import OutputProblem
from medtest.core.files import read_object
from medtest.core.oracles.criteria import compared_columns
from medtest.core.records import KEY_COLUMNS, REVISION, VISIBILITY_COLUMNS
from medtest.results.records.revisions import check_revisions
from medtest.runner.records.case_set import CaseSet

Floats: TypeAlias = NDArray[np.float64]

RECORDS = "records.parquet"
SEARCH = "search"
"""Column that names the search of a query."""
_RUN_FILE = "run.json"
SHARDS = "records"
REPEATED = (
    "suite",
    "suite_version",
    "system",
    "dataset",
    "seed_id",
    "cluster",
    "item",
    "relation",
    "group",
    "verdict",
    "reason_code",
    "reason",
)
"""Text columns with many repeated values, stored as categories in memory."""


def record_files(folder: Path) -> list[Path]:
    """Return the files with a folder's records, oldest first: the finished file, then shards.

    Raises:
        OutputProblem: There are none.
    """
    finished = folder / RECORDS
    files = [finished] if finished.is_file() else []
    files += sorted((folder / SHARDS).glob("shard-*.parquet"))
    if not files:
        raise OutputProblem(f"{folder.name} holds no records: neither {RECORDS} nor {SHARDS}/shard-*.parquet")
    return files


def read_table(folder: Path, columns: Iterable[str] | None = None) -> pa.Table:
    """Read records as an Arrow table.

    Args:
        folder: Folder of a run.
        columns: Column names; missing ones are ignored. None reads all.

    Raises:
        OutputProblem: There are no records, or a file is not Parquet.
    """
    files = record_files(folder)
    try:
        available = pq.read_schema(files[0]).names
        selected = available if columns is None else [name for name in dict.fromkeys(columns) if name in available]
        if len(files) == 1:
            return _read(files[0], selected)
        combined = pa.concat_tables(_read(file, list(dict.fromkeys([*selected, *KEY_COLUMNS]))) for file in files)
        return _newest(combined).select(selected)
    except (pa.ArrowException, OSError) as error:
        raise OutputProblem(f"the records of {folder.name} cannot be read: {error}") from error


def _read(file: Path, columns: list[str]) -> pa.Table:
    # read_table would import pandas
    with pq.ParquetFile(file) as opened:
        return opened.read(columns=columns).replace_schema_metadata(None).select(columns)


def _newest(table: pa.Table) -> pa.Table:
    """Keep the last row of every case: a repeated case is also in an older file."""
    numbered = table.append_column("_row", pa.array(np.arange(table.num_rows)))
    last = numbered.group_by(list(KEY_COLUMNS)).aggregate([("_row", "max")])["_row_max"]
    return table.take(pa.array(np.sort(last.to_numpy())))


def _is_source(relations: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(relations.cast(pa.string()), SOURCE), False)


def _is_query(table: pa.Table) -> pa.ChunkedArray | None:
    """Return which records are queries of a search; None for a suite without any."""
    if SEARCH not in table.column_names:
        return None
    return pc.not_equal(pc.fill_null(table.column(SEARCH).cast(pa.string()), ""), "")


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a frame, column by column; the table must not be used afterwards."""
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    return frame


def classes_in(folder: Path) -> dict[str, Classes]:
    """Return the classes of each data set from a folder's ``run.json``; empty if it has none."""
    try:
        return {
            str(name): Classes(names=tuple(str(name) for name in entry["names"]), multi=bool(entry["multi"]))
            for name, entry in read_object(folder / _RUN_FILE)["classes"].items()
        }
    except (KeyError, TypeError, AttributeError):
        return {}


def reader_of(folder: Path) -> dict[str, Any]:
    """Return the information in a folder's ``run.json`` on the reader of the answers; empty if there is none."""
    about = read_object(folder / _RUN_FILE).get("reader")
    return about if isinstance(about, dict) else {}


def column_names(folder: Path) -> list[str]:
    """Return the columns of a folder's records.

    Raises:
        OutputProblem: As for :func:`read_table`.
    """
    files = record_files(folder)
    try:
        return list(pq.read_schema(files[0]).names)
    except (pa.ArrowException, OSError) as error:
        raise OutputProblem(f"the records of {folder.name} cannot be read: {error}") from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """Records of one system's folder, split into follow-ups and sources.

    Attributes:
        followups: One row for each follow-up case, in the order of the file.
        sources: One row for each source case.
        searched: Queries of searches, in no rate: which pictures they show depends on the answers.
        classes: For classifiers, the classes of each data set if ``run.json`` lists them: labels alone do not name
            classes
            that were never answered or expected.
        reader: Information on the reader of the answers (:meth:`medtest.readers.base.Reader.about`), if there was one.
    """

    followups: pd.DataFrame
    sources: pd.DataFrame
    classes: Mapping[str, Classes] = field(default_factory=dict)
    reader: Mapping[str, Any] = field(default_factory=dict)
    searched: pd.DataFrame | None = None

    @classmethod
    def read(cls, folder: Path, columns: Iterable[str] | None = None, asked: CaseSet | None = None) -> Records:
        """Read a folder's records; repeated texts become categories.

        Args:
            folder: Folder of a run.
            columns: As in :func:`read_table`; ``relation`` is always read.
            asked: Selection of cases; None for all.

        Raises:
            OutputProblem: As for :func:`read_table`; a :class:`~medtest.results.records.revisions.MixedRevisions` if
                several
                revisions of the oracle judged the records.
        """
        keys = () if asked is None else KEY_COLUMNS
        names = None if columns is None else ["relation", *columns, *keys, REVISION, SEARCH]
        table = read_table(folder, names)
        if asked is not None:
            table = table.take(asked.rows(table))
        if REVISION in table.column_names:
            counts = table[REVISION].value_counts()
            check_revisions(folder.name, {row["values"]: row["counts"] for row in counts.to_pylist()})
        for position, name in enumerate(table.column_names):
            if name in REPEATED or name.startswith("stratum_"):
                encoded = table.column(position).combine_chunks().dictionary_encode()
                table = table.set_column(position, name, encoded)
        is_source = _is_source(table.column("relation"))
        sources = table.filter(is_source)
        is_query = _is_query(table)
        queries = None if is_query is None else table.filter(is_query)
        followups = table.filter(pc.invert(is_source if is_query is None else pc.or_(is_source, is_query)))
        del table  # a million records take hundreds of megabytes, so each copy is freed before the next is made
        frames = _frame(followups), _frame(sources)
        pa.default_memory_pool().release_unused()
        return cls(
            followups=frames[0],
            sources=frames[1],
            classes=classes_in(folder),
            reader=reader_of(folder),
            searched=None if queries is None else _frame(queries),
        )

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        classes: Mapping[str, Classes] | None = None,
        reader: Mapping[str, Any] | None = None,
    ) -> Records:
        """Split a frame of records into follow-ups and sources."""
        is_source = (frame["relation"] == SOURCE).to_numpy()
        is_query = np.zeros(len(frame), bool)
        if SEARCH in frame.columns:
            is_query = frame[SEARCH].fillna("").to_numpy() != ""
        return cls(
            followups=frame.loc[~is_source & ~is_query].reset_index(drop=True),
            sources=frame.loc[is_source].reset_index(drop=True),
            classes=classes or {},
            reader=reader or {},
            searched=frame.loc[is_query].reset_index(drop=True) if SEARCH in frame.columns else None,
        )

    def parted(self) -> tuple[Records, Records]:
        """Return the records without controls and with controls alone, both with all sources.

        Controls have rates of their own and enter no others.
        """
        if "group" not in self.followups.columns:
            return self, replace(self, followups=self.followups.iloc[:0])
        is_control = (self.followups["group"].astype(str) == CONTROLS).to_numpy(dtype=bool)
        if not is_control.any():
            return self, replace(self, followups=self.followups.iloc[:0])
        harmless, controls = (self.followups.loc[rows].reset_index(drop=True) for rows in (~is_control, is_control))
        return replace(self, followups=harmless), replace(self, followups=controls)

    def beside(self, others: Records) -> Records:
        """Return the records with further follow-ups and their sources, each case once."""
        if others.followups.empty:
            return self
        keys = [name for name in KEY_COLUMNS if name in self.sources.columns]
        frames = (
            pd.concat(pair, ignore_index=True)
            for pair in ((self.followups, others.followups), (self.sources, others.sources))
        )
        followups, sources = frames
        return replace(self, followups=followups, sources=sources.drop_duplicates(keys).reset_index(drop=True))

    @property
    def scores(self) -> tuple[str, ...]:
        """Numeric score columns that have a corresponding ``source_`` column."""
        names = [str(name) for name in self.followups.columns if name not in VISIBILITY_COLUMNS]
        return tuple(name for name in names if f"source_{name}" in names and self._is_number(name))

    def _is_number(self, name: str) -> bool:
        from pandas.api.types import is_numeric_dtype

        return bool(is_numeric_dtype(self.followups[name]))

    @property
    def self_scores(self) -> tuple[str, ...]:
        """Names of the scores that exist as ``self_<score>``."""
        names = [str(name) for name in self.followups.columns]
        return tuple(name.removeprefix("self_") for name in names if name.startswith("self_"))

    @property
    def strata(self) -> tuple[str, ...]:
        """Names of the metadata columns that stratify tables."""
        names = [str(name) for name in self.followups.columns]
        return tuple(name.removeprefix("stratum_") for name in names if name.startswith("stratum_"))

    def floats(self, name: str) -> Floats:
        """Return a column of the follow-ups as float64, NaN if empty or absent."""
        if name not in self.followups.columns:
            return np.full(len(self.followups), np.nan)
        return self.followups[name].to_numpy(dtype=np.float64, na_value=np.nan)

    def compared(self, score: str, against: str) -> tuple[Floats, Floats]:
        """Return a score on the sources of the follow-ups and on the follow-ups, float64 each, under a reference.

        Compared with the source's own answer, that of the source is 1.
        """
        name, origin = compared_columns(score, against)
        after = self.floats(name)
        return np.ones_like(after) if origin is None else self.floats(origin), after

    def texts(self, name: str) -> NDArray[np.object_]:
        """Return a text column of the follow-ups, "" if empty."""
        column = self.followups[name]
        if str(column.dtype) == "category" and len(column):
            codes, names = self.codes(name)
            return np.array([*names], dtype=object)[codes]
        return column.astype(object).fillna("").to_numpy(dtype=object)

    def codes(self, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Return a text column of the follow-ups as codes, int64 N, and its distinct texts by first occurrence.

        Empty values are "".
        """
        if name not in self._codes:
            column = self.followups[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                texts = column.cat.categories.tolist()
                first, unique = pd.factorize(column.cat.codes.to_numpy())
                names = ["" if code < 0 else str(texts[code]) for code in unique.tolist()]
            else:
                first, distinct = pd.factorize(column.astype(object).fillna("").to_numpy(dtype=object))
                names = [str(text) for text in distinct]
            if len(set(names)) < len(names):  # an empty text and a missing value
                merged, distinct = pd.factorize(np.array(names, dtype=object))
                first, names = merged[first], [str(text) for text in distinct]
            self._codes[name] = (first.astype(np.int64), tuple(names))
        return self._codes[name]

    @cached_property
    def _codes(self) -> dict[str, tuple[NDArray[np.int64], tuple[str, ...]]]:
        return {}

    @cached_property
    def source_broken(self) -> NDArray[np.bool_]:
        """Mask of the follow-ups whose source case is an ERROR."""
        keys = ["dataset", "seed_id", "item"]
        bad = self.sources.loc[(self.sources["verdict"] == "ERROR").to_numpy(), keys].astype(str)
        if bad.empty:
            return np.zeros(len(self.followups), bool)
        sources_of = pd.MultiIndex.from_frame(self.followups[keys].astype(str))
        return np.asarray(sources_of.isin(pd.MultiIndex.from_frame(bad)), dtype=bool)
