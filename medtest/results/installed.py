"""Tables of other installed packages: one class each, from the entry-point group ``medtest.tables``.

They are built from the records of every run with a matching task and appear wherever medtest's own tables do. Suites do
not name them and digests do not cover them. A failure affects only that table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from medtest.core.cases import ID_PATTERN
from medtest.core.deferred import pd
from medtest.core.errors import MedtestError
from medtest.core.plugins import Part, PartInfo, parts
from medtest.core.tasks.base import RunRecords, Section
from medtest.results.records.records_io import Records

OURS: tuple[str, ...] = (
    *("efr", "efr_primary", "pivot_*", "severity", "alpha_sigma", "factors", "factors_model", "slices"),
    *("strata", "worst", "violations", "images", "gates", "gate_conditions", "seeds", "excluded", "paper_*"),
    *("attacks", "attack_checks", "smallest_epsilon*", "efr_at_ssim"),
)
"""Names of the tables of every task; ``*`` matches any suffix."""


class Table(Part, ABC):
    """Table of another package, a pure function of the records of one system.

    Attributes:
        tasks: Names of the tasks whose records it reads; empty for any task.
    """

    tasks: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def make(self, records: RunRecords) -> pd.DataFrame:
        """Return the table, written as ``tables/NAME.csv`` unless it is empty.

        No system may be called and no image read. The records are a copy.
        """

    def section(self, table: pd.DataFrame) -> Section | None:
        """Return a report section for the table; None, the default, for no section.

        Args:
            table: Table from :meth:`make`, with the names of its index among the columns.
        """
        return None


@dataclass(frozen=True, kw_only=True)
class InstalledTables:
    """Tables and report sections of installed packages for one system's records.

    Attributes:
        frames: Tables by file name.
        sections: Report sections, at most one for each table.
        notices: Reasons for missing tables, one line each.
    """

    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    notices: tuple[str, ...] = ()


def installed_tables(task: str, records: Records, existing: Container[str]) -> InstalledTables:
    """Build every installed table that fits a task; a failure becomes a notice that names its package.

    Args:
        task: Name of the seeds' task.
        records: Records of one system.
        existing: File names of existing tables.
    """
    frames: dict[str, pd.DataFrame] = {}
    sections: list[Section] = []
    notices: list[str] = []
    for name, info in parts("tables").items():
        try:
            _check_name(name, existing)
            table = info.load()()
            if table.tasks and task not in table.tasks:
                continue
            frame = _plain(table.make(_copied(records)))
            section = table.section(frame.copy()) if not frame.empty else None
            sections += [] if section is None else [_as_text(section)]
            frames[f"{name}.csv"] = frame
        except (Exception, SystemExit) as error:  # noqa: BLE001 - another package's code may raise anything
            notices.append(_notice(info, error))
    return InstalledTables(frames=frames, sections=tuple(sections), notices=tuple(notices))


def _notice(info: PartInfo, error: BaseException) -> str:
    words = " ".join(str(error).split())
    why = words if isinstance(error, _NotATableError) else f"{type(error).__name__}: {words}"
    return f"Table {info.name!r} of the package {info.origin} is left out: {why[:300]}"


class _NotATableError(Exception):
    """The object from a package is not a valid table; the message says why."""


def _check_name(name: str, existing: Container[str]) -> None:
    if f"{name}.csv" in existing or any(fnmatchcase(name, pattern) for pattern in (*OURS, *_of_tasks())):
        raise _NotATableError("the name belongs to a table of medtest; choose another name for its entry point.")
    if not ID_PATTERN.fullmatch(name):
        raise _NotATableError("the entry point has an invalid name; lower-case letters, digits, - and _ are allowed.")


def _of_tasks() -> Iterator[str]:
    """Yield the names of the tables of installed tasks."""
    for info in parts("tasks").values():
        with suppress(MedtestError):  # a package that cannot be loaded has no tables
            yield from info.load().tables.names


def _copied(records: Records) -> Records:
    """Return a copy of records that can be modified safely."""
    return replace(copy(records), followups=records.followups.copy(), sources=records.sources.copy())


def _plain(frame: Any) -> pd.DataFrame:
    """Return a table of numbers and texts only, as CSV, MLflow and reports require."""
    if not isinstance(frame, pd.DataFrame):
        raise _NotATableError(f"make returned {type(frame).__name__}; a pandas.DataFrame is expected.")
    plain = frame.reset_index() if any(name is not None for name in frame.index.names) else frame.reset_index(drop=True)
    plain.columns = pd.Index([str(name) for name in plain.columns])
    if not plain.columns.is_unique:
        twice = sorted(set(plain.columns[plain.columns.duplicated()]))
        raise _NotATableError(f"several columns have the same name: {', '.join(twice)}.")
    for name in plain.columns:
        if not (pd.api.types.is_numeric_dtype(plain[name]) and plain[name].dtype.kind != "c"):
            plain[name] = [_cell(cell) for cell in plain[name].tolist()]
    return plain


def _cell(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str | int | float) else str(cell)


def _as_text(section: Section) -> Section:
    """Return a section with all parts converted to text, so that rendering cannot fail."""
    return Section(
        name=str(section.name),
        title=str(section.title),
        words=str(section.words),
        columns=tuple(str(column) for column in section.columns),
        rows=tuple(tuple(str(cell) for cell in row) for row in section.rows),
    )
